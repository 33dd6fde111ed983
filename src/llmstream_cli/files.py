"""Private files: folders 0700, files 0600; a write leaves the old file or the new one, never half."""

import os
from pathlib import Path


def make_private_dir(folder: Path) -> None:
    """Create `folder` and what is missing above it; only the owner may look inside. OSError if it fails."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_private(path: Path, data: bytes) -> None:
    """Replace the content of `path` at once. A symbolic link stays one: its target is replaced.

    OSError if it cannot be written; the old content is then untouched and nothing is left behind.
    """
    import tempfile

    target = Path(os.path.realpath(path))
    make_private_dir(target.parent)
    # mkstemp: a name that no other process has, created exclusively, readable by the owner only.
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def readable_by_others(path: Path) -> bool:
    """The file's mode lets the group or everybody read it; never true where modes mean nothing (Windows)."""
    return os.name == "posix" and bool(path.stat().st_mode & 0o077)
