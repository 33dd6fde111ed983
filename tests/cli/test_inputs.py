"""The question, from arguments, files and standard input; where fd 0 matters, in a process of its own."""

import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from llmstream_cli.cli import inputs
from llmstream_cli.cli.inputs import gather_question, normalise
from llmstream_cli.errors import UsageError

LIMIT_S = 30.0
PROGRAM = """
import json, sys
from llmstream_cli.cli import inputs
from llmstream_cli.errors import UsageError
inputs.STDIN_WAIT_S = float(sys.argv[1])
warnings = []
try:
    question = inputs.gather_question(json.loads(sys.argv[2]), json.loads(sys.argv[3]), warn=warnings.append)
except UsageError as error:
    question = f"UsageError: {error.message} | {error.hint}"
print(json.dumps([question, warnings]))
"""


def command(prompt: Sequence[str], files: Sequence[str], wait_s: float) -> list[str]:
    return [sys.executable, "-c", PROGRAM, str(wait_s), json.dumps(prompt), json.dumps(files)]


def gathered(
    *prompt: str,
    files: Sequence[str] = (),
    stdin: bytes | int | None = None,
    wait_s: float = LIMIT_S,
    **more: Any,
) -> tuple[str, list[str]]:
    """The question and the warnings of a process whose standard input is `stdin` (bytes: through a pipe)."""
    given: dict[str, Any] = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
    done = subprocess.run(
        command(prompt, files, wait_s), stdout=subprocess.PIPE, timeout=LIMIT_S, check=True, **given, **more
    )
    question, warnings = json.loads(done.stdout)
    return question, warnings


NO_PROMPT = (
    "UsageError: There is no prompt. | Give one as an argument or through a pipe: "
    'llmstream "why is the sky blue?"'
)


# Standard input


def test_piped_text_comes_before_the_argument() -> None:
    assert gathered("what", "is this?", stdin=b"some text\n") == ("some text\n\nwhat is this?", [])


@pytest.mark.parametrize(
    ("piped", "question"),
    [
        (b"hello", "hello"),
        (b"hello\n", "hello"),
        (b"hello\r\n", "hello"),
        (b"hello\n\n", "hello\n"),
        (b"  two\n lines \n", "  two\n lines "),
        (b"\xef\xbb\xbfbom", "bom"),
        ("é 👩‍👧".encode(), "é 👩‍👧"),
        (b"x" * 300_000, "x" * 300_000),
    ],
)
def test_a_pipe_alone_is_the_question(piped: bytes, question: str) -> None:
    assert gathered(stdin=piped) == (question, [])


def test_a_file_as_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_bytes(b"from a file\n")
    with path.open("rb") as file:
        assert gathered("and?", stdin=file.fileno()) == ("from a file\n\nand?", [])
    path.write_bytes(b"")
    with path.open("rb") as file:
        assert gathered("and?", stdin=file.fileno()) == ("and?", [])


def test_a_reader_of_a_file_goes_on_where_the_shell_stopped(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_bytes(b"first line\nrest\n")
    with path.open("rb", buffering=0) as file:
        file.readline()
        assert gathered(stdin=file.fileno()) == ("rest", [])


def test_dev_null_and_an_empty_pipe() -> None:
    assert gathered("hi", stdin=subprocess.DEVNULL) == ("hi", [])
    assert gathered("hi", stdin=b"") == ("hi", [])
    assert gathered(stdin=subprocess.DEVNULL) == (NO_PROMPT, [])
    assert gathered(stdin=b" \n\t\n") == (NO_PROMPT, [])


def test_a_closed_standard_input() -> None:
    closed: dict[str, Any] = {"preexec_fn": lambda: os.close(0)}
    assert gathered("hi", **closed) == ("hi", [])
    assert gathered("hi", files=["-"], **closed) == ("hi", [])
    assert gathered(**closed) == (NO_PROMPT, [])


def test_a_standard_input_that_is_open_for_writing_only(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        assert gathered("hi", stdin=file.fileno()) == ("hi", [])


def test_a_pipe_that_nobody_writes_to_does_not_hang() -> None:
    reader, writer = os.pipe()
    try:
        question, warnings = gathered("hi", stdin=reader, wait_s=0.05)
    finally:
        os.close(reader)
        os.close(writer)
    assert question == "hi"
    assert warnings == ["nothing came through the pipe for 0.05 s: going on without it (-f - waits for it)"]


def test_a_named_pipe_that_nobody_writes_to_does_not_hang(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDWR)
    try:
        assert gathered("hi", stdin=descriptor, wait_s=0.05)[0] == "hi"
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("asked", [(["-"], []), (["hi"], ["-"]), ([], [])], ids=["dash", "file", "alone"])
def test_what_is_asked_for_is_waited_for(asked: tuple[list[str], list[str]]) -> None:
    """Longer than a pipe is waited for that may be there by accident."""
    prompt, files = asked
    with subprocess.Popen(
        command(prompt, files, 0.0), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        threading.Timer(0.3, lambda: process.stdin and process.stdin.close()).start()
        process.stdin.write(b"late\n")
        question, warnings = json.loads(process.stdout.read())
    assert (question, warnings) == ("\n\n".join(["late", *(["hi"] if "hi" in prompt else [])]), [])


def test_the_first_byte_is_enough_to_wait_for_the_rest() -> None:
    with subprocess.Popen(
        command(["hi"], [], 10.0), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for piece in (b"o", b"n", b"e\n"):
            process.stdin.write(piece)
        process.stdin.close()
        assert json.loads(process.stdout.read()) == ["one\n\nhi", []]


def test_a_terminal_is_read_only_if_asked_for() -> None:
    import pty

    main, terminal = pty.openpty()
    try:
        assert gathered("hi", stdin=terminal) == ("hi", [])
        assert gathered(stdin=terminal) == (NO_PROMPT, [])
        os.write(main, b"typed\n\x04")
        assert gathered("hi", files=["-"], stdin=terminal) == ("typed\n\nhi", [])
        os.write(main, b"typed\n\x04")
        assert gathered("-", stdin=terminal) == ("typed", [])
    finally:
        os.close(main)
        os.close(terminal)


def test_the_wait_is_short_enough_for_a_person() -> None:
    assert 0 < inputs.STDIN_WAIT_S <= 10


# Bytes that are no text


def test_invalid_utf_8_is_replaced_and_told() -> None:
    assert gathered("hi", stdin=b"caf\xe9!\n") == (
        "caf\ufffd!\n\nhi",
        ["standard input is not valid UTF-8 at byte 3: the bad bytes are replaced"],
    )


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (b"\x7fELF\x02\x01\x01\x00\xff", "None"),
        (b"text with a \0 in it", "None"),
        ("hello".encode("utf-16"), "It looks like UTF-16: save it as UTF-8."),
        (b"\xfe\xff\x00h\x00i", "It looks like UTF-16: save it as UTF-8."),
    ],
)
def test_binary_is_refused(data: bytes, hint: str) -> None:
    assert gathered("hi", stdin=data) == (f"UsageError: standard input is binary, not text. | {hint}", [])


# Files and arguments (standard input is out of the way)


@pytest.fixture
def _no_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)


def gather(*prompt: str, files: Sequence[str | Path] = ()) -> tuple[str, list[str]]:
    warnings: list[str] = []
    return gather_question(prompt, [str(path) for path in files], warn=warnings.append), warnings


@pytest.mark.usefixtures("_no_stdin")
class TestFiles:
    def test_one_file_stands_before_the_question(self, tmp_path: Path) -> None:
        path = tmp_path / "a.txt"
        path.write_bytes(b"\xef\xbb\xbfthe file\r\n")
        assert gather("why?", files=[path]) == ("the file\n\nwhy?", [])
        assert gather(files=[path]) == ("the file", [])

    def test_several_files_keep_their_order_and_get_their_names(self, tmp_path: Path) -> None:
        first, second = tmp_path / "b.txt", tmp_path / "a.txt"
        first.write_text("one\n")
        second.write_text("two\n")
        question, _ = gather("why?", files=[first, second])
        assert question == f"--- {first} ---\none\n\n--- {second} ---\ntwo\n\nwhy?"

    def test_a_file_of_the_home_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("USERPROFILE", str(tmp_path))
        (tmp_path / "a.txt").write_text("home")
        assert gather(files=["~/a.txt"]) == ("home", [])

    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            ("missing.txt", "No such file or directory"),
            (".", "Is a directory"),
            ("~nobody-of-that-name/x", "Could not determine home directory."),
        ],
    )
    def test_a_file_that_cannot_be_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, reason: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(UsageError) as caught:
            gather("hi", files=[name])
        assert caught.value.message == f"cannot read {name}: {reason}"

    def test_a_file_that_is_no_text(self, tmp_path: Path) -> None:
        path = tmp_path / "a.bin"
        path.write_bytes(b"\0\1")
        with pytest.raises(UsageError, match=r"a\.bin is binary, not text"):
            gather("hi", files=[path])
        path.write_bytes(b"ok \xff")
        question, warnings = gather(files=[path])
        assert (question, len(warnings)) == ("ok \ufffd", 1)
        assert warnings[0].endswith("a.bin is not valid UTF-8 at byte 3: the bad bytes are replaced")

    def test_empty_files_are_no_question(self, tmp_path: Path) -> None:
        path = tmp_path / "a.txt"
        path.write_text("\n")
        with pytest.raises(UsageError, match="There is no prompt"):
            gather(files=[path])
        assert gather("hi", files=[path]) == ("hi", [])

    def test_a_name_that_is_no_unicode(self, tmp_path: Path) -> None:
        odd, other = tmp_path / "caf\udce9.txt", tmp_path / "b.txt"
        odd.write_text("one")
        other.write_text("two")
        question, _ = gather(files=[odd, other])
        question.encode()
        assert "caf\ufffd.txt ---\none" in question

    @pytest.mark.parametrize("prompt", [(), ("",), (" ", "\n")])
    def test_nothing_is_a_wrong_usage(self, prompt: tuple[str, ...]) -> None:
        with pytest.raises(UsageError, match="There is no prompt"):
            gather(*prompt)

    def test_arguments_are_joined_by_spaces(self) -> None:
        assert gather("why", "is  the", "sky blue?\n") == ("why is  the sky blue?\n", [])


def test_files_then_standard_input_then_arguments(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("file")
    for files in ([str(path), "-"], ["-", str(path)], [str(path)]):
        assert gathered("arg", files=files, stdin=b"pipe") == ("file\n\npipe\n\narg", [])
    assert gathered("-", files=[str(path)], stdin=b"pipe") == ("file\n\npipe", [])


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain é 👩‍👧", "plain é 👩‍👧"),
        ("caf\udce9", "caf\ufffd"),
        ("\udcc3\udca9", "é"),
        ("half \ud83d", "half \ufffd"),
        ("\ud83d\ude00", "😀"),
        ("mixed \udce9 \ud83d", "mixed \ufffd \ufffd"),
    ],
)
def test_arguments_become_valid_unicode(text: str, clean: str) -> None:
    assert normalise(text) == clean


def test_bytes_that_are_no_utf_8_as_an_argument() -> None:
    program = (
        "import sys; from llmstream_cli.cli.inputs import normalise; print(ascii(normalise(sys.argv[1])))"
    )
    done = subprocess.run([sys.executable, "-c", program, b"caf\xe9"], stdout=subprocess.PIPE, check=True)
    assert done.stdout.strip() == rb"'caf\ufffd'"


def test_a_replaced_standard_input_is_no_surprise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a test runner or in an editor sys.stdin may be anything; fd 0 counts."""
    reader, writer = os.pipe()
    os.close(writer)
    saved = os.dup(0)
    os.dup2(reader, 0)
    try:
        monkeypatch.setattr(sys, "stdin", io.StringIO("not this"))
        assert gather("hi") == ("hi", [])
    finally:
        os.dup2(saved, 0)
        os.close(saved)
        os.close(reader)
