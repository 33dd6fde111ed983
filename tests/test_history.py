"""Conversations: the fold of their records, their files, what they look like written out."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmstream_cli.errors import ConfigError, UsageError
from llmstream_cli.history import ConversationLog, Cut, Dialogue, Said, Shelf, as_json, as_markdown
from llmstream_cli.history.store import FLUSH_S


def user(text: str) -> dict[str, Any]:
    return {"type": "user", "text": text}


def answer(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "answer", "text": text, **more}


def piece(text: str) -> dict[str, Any]:
    return {"type": "piece", "text": text}


def texts(dialogue: Dialogue) -> list[str]:
    return [said.text for said in dialogue.said]


def test_questions_and_answers() -> None:
    dialogue = Dialogue([user("a"), piece("b"), answer("bc", model="m", profile="p"), user("d")])
    assert dialogue.said == (
        Said(role="user", text="a"),
        Said(role="assistant", text="bc", model="m", profile="p"),
        Said(role="user", text="d"),
    )


def test_pieces_without_their_answer_are_an_answer_cut_by_the_programs_end() -> None:
    cut = Said(role="assistant", text="bc", cut=Cut.KILLED)
    assert Dialogue([user("a"), piece("b"), piece("c")]).said[1:] == (cut,)
    assert Dialogue([user("a"), piece("b"), piece("c"), user("d")]).said[1:2] == (cut,)


def test_an_answer_without_text_is_no_message() -> None:
    assert texts(Dialogue([user("a"), answer("", cut="stopped"), user("b")])) == ["a", "b"]


@pytest.mark.parametrize("word", list(Cut))
def test_why_an_answer_was_cut(word: Cut) -> None:
    assert Dialogue([answer("b", cut=word.value)]).said[0].cut is word
    assert word.words


def test_an_unknown_cut_of_a_newer_program_is_a_cut_all_the_same() -> None:
    assert Dialogue([answer("b", cut="eaten by a dog")]).said[0].cut is Cut.INCOMPLETE


def test_an_answer_taken_up_again_holds_both_parts() -> None:
    records = [user("a"), answer("b", cut="length"), {"type": "resume"}, piece("c")]
    assert Dialogue(records).said[1] == Said(role="assistant", text="bc", cut=Cut.KILLED)
    assert Dialogue([*records, answer("bcd")]).said[1] == Said(role="assistant", text="bcd")


def test_taking_back_and_forgetting() -> None:
    records = [user("a"), answer("b"), user("c"), answer("d")]
    assert texts(Dialogue([*records, {"type": "drop", "count": 1}])) == ["a", "b", "c"]
    assert texts(Dialogue([*records, {"type": "drop", "count": 9}])) == []
    assert texts(Dialogue([*records, {"type": "forget", "count": 2}])) == ["c", "d"]


def test_system_prompt() -> None:
    assert Dialogue([{"type": "system", "text": "be brief"}]).system == "be brief"
    assert Dialogue([{"type": "system", "text": "be brief"}, {"type": "system"}]).system is None


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=3)
KINDS = st.sampled_from(["user", "piece", "answer", "resume", "drop", "forget", "system", "of the future"])
RECORDS = st.lists(
    st.dictionaries(st.sampled_from(["text", "cut", "count"]), JSON, max_size=3).flatmap(
        lambda record: KINDS.map(lambda kind: {**record, "type": kind})
    )
)


@given(RECORDS)
def test_whatever_a_file_says_is_read(records: list[dict[str, Any]]) -> None:
    assert all(said.text or said.role == "user" for said in Dialogue(records).said)


def test_files_are_private_and_read_back(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "deep" / "conversations")
    log = shelf.new()
    assert not shelf.folder.exists()
    log.write(user("caf\udce9\n"))
    log.piece("b")
    log.write(answer("b"))
    log.close()
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(shelf.folder.stat().st_mode) == 0o700
    assert [json.loads(line)["type"] for line in log.path.read_text().splitlines()] == [
        "conversation",
        "user",
        "piece",
        "answer",
    ]
    assert texts(shelf.load(log.name)) == ["caf?\n", "b"]


def test_pieces_reach_the_file_by_themselves(tmp_path: Path) -> None:
    log = Shelf(tmp_path).new()
    log.write(user("a"))
    log.piece("b")
    log.piece("c")
    timer = log._timer
    assert timer is not None
    timer.join(timeout=20 * FLUSH_S)
    assert log.path.read_text().endswith('{"type": "piece", "text": "bc"}\n')
    log.close()


@pytest.mark.parametrize(
    "tail", [b'{"type": "us', b"\xff\xfe\x00", b"[1]\n", b"\n\n", b'{"type": 7}\n', b"[" * 9999]
)
def test_a_damaged_tail_costs_only_itself(tmp_path: Path, tail: bytes) -> None:
    shelf = Shelf(tmp_path)
    log = shelf.log("a")
    log.write(user("one"))
    log.close()
    with log.path.open("ab") as file:
        file.write(tail)
    again = shelf.log("a")
    again.open()
    again.write(user("two"))
    again.close()
    assert texts(shelf.load("a")) == ["one", "two"]


def test_a_conversation_is_open_in_one_program_only(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    log = shelf.log("a")
    log.write(user("one"))
    with pytest.raises(ConfigError, match="open in another llmstream"):
        shelf.log("a").open()
    log.close()
    second = shelf.log("a")
    second.open()
    second.close()


def test_listed_the_newest_first_and_searched(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    assert shelf.last() is None
    for age, (name, text) in enumerate([("old", "About Straße\nand more"), ("new", "x" * 99)]):
        log = shelf.log(name)
        log.write(user(text))
        log.write(answer("yes"))
        log.close()
        os.utime(log.path, (1000 + age, 1000 + age))
    assert [(one.name, one.title, one.messages) for one in shelf.summaries()] == [
        ("new", "x" * 60 + " …", 2),
        ("old", "About Straße and more", 2),
    ]
    assert shelf.last() == "new"
    assert [one.name for one in shelf.search("STRASSE")] == ["old"]
    assert not list(shelf.search("nowhere"))


def test_renamed_while_open(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    log = shelf.new()
    log.write(user("one"))
    log.rename(shelf.path("trip"))
    log.write(user("two"))
    log.close()
    assert texts(shelf.load("trip")) == ["one", "two"]
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(UsageError, match="already"):
        shelf.new().rename(shelf.path("trip"))


@pytest.mark.parametrize("name", ["", "../a", "a/b", ".hidden", "a\n", "a.", "a" * 81, "-x"])
def test_names_that_are_no_file_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be called"):
        Shelf(tmp_path).path(name)


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot save the conversation"):
        ConversationLog(tmp_path / "file" / "a.jsonl").write(user("a"))


def test_written_out() -> None:
    records = [
        {"type": "system", "text": "be brief"},
        user("a?"),
        answer("b", model="m", cut="stopped"),
    ]
    dialogue = Dialogue(records)
    assert as_markdown(dialogue, "trip") == (
        "# trip\n\n## System\n\nbe brief\n\n## You\n\na?\n\n"
        "## Answer (m)\n\nb\n\n*Cut off here: stopped by the user.*\n"
    )
    document = json.loads(as_json(dialogue, "trip"))
    assert (document["schema"], document["name"], document["system"]) == (
        "llmstream.conversation/1",
        "trip",
        "be brief",
    )
    assert document["messages"][1] == {
        "role": "assistant",
        "text": "b",
        "cut": "stopped",
        "model": "m",
        "profile": None,
    }
