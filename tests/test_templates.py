"""Conversations as text, byte for byte, and templates as people write them in a profile."""

from typing import Any

import pytest

from llmstream_cli.request import Message
from llmstream_cli.templates import TEMPLATES, Template, get_template

SYSTEM = Message(role="system", content="Be brief.")
QUESTION = Message(role="user", content="Why?")
ANSWER = Message(role="assistant", content="Because.")
SECOND = Message(role="user", content="Really?")


@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        ("none", "Be brief.\n\nWhy?Because.Really?"),
        ("plain", "Be brief.\n\nUser: Why?\nAssistant: Because.\nUser: Really?\nAssistant:"),
        (
            "chatml",
            "<|im_start|>system\nBe brief.<|im_end|>\n"
            "<|im_start|>user\nWhy?<|im_end|>\n"
            "<|im_start|>assistant\nBecause.<|im_end|>\n"
            "<|im_start|>user\nReally?<|im_end|>\n"
            "<|im_start|>assistant\n",
        ),
        (
            "llama3",
            "<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nWhy?<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nBecause.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nReally?<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n",
        ),
    ],
)
def test_built_in(name: str, prompt: str) -> None:
    assert get_template(name).flatten([SYSTEM, QUESTION, ANSWER, SECOND]) == prompt


def test_a_bare_prompt_stays_as_it_is() -> None:
    text = "  Once upon {content} a time\n"
    assert get_template("none").flatten([Message(role="user", content=text)]) == text


@pytest.mark.parametrize("name", list(TEMPLATES))
def test_an_answer_is_continued_exactly_where_it_broke_off(name: str) -> None:
    template = get_template(name)
    cut = Message(role="assistant", content=" Because of the")
    assert template.flatten([QUESTION, cut]) == template.flatten([QUESTION]) + cut.content


def test_an_answer_in_the_past_reads_as_the_model_wrote_it() -> None:
    template = get_template("plain")
    said = Message(role="assistant", content=" Because.")
    assert template.flatten([QUESTION, said, SECOND]).startswith(template.flatten([QUESTION]) + " Because.\n")


def test_text_is_never_a_format() -> None:
    odd = Message(role="user", content="{content} {0} %s \\n {system}")
    assert get_template("plain").flatten([odd]) == f"User: {odd.content}\nAssistant:"


def test_the_result_of_a_tool_is_a_users_turn() -> None:
    assert get_template("plain").flatten([Message(role="tool", content="22")]) == "User: 22\nAssistant:"


def test_no_messages() -> None:
    assert get_template("plain").flatten([]) == "Assistant:"


CUSTOM: dict[str, Any] = {
    "prefix": "Q: 1+1?\nA: 2\n",
    "system": "# {content}\n",
    "user": "Q: {content}\n",
    "assistant": "A:{content}\n",
    "open": "A:",
    "stop": ["\nQ:"],
}


def test_custom() -> None:
    template = Template.from_mapping(CUSTOM)
    assert template.stop == ("\nQ:",)
    assert (
        template.flatten([SYSTEM, QUESTION, ANSWER, SECOND])
        == "Q: 1+1?\nA: 2\n# Be brief.\nQ: Why?\nA:Because.\nQ: Really?\nA:"
    )


def test_custom_without_what_may_be_left_out() -> None:
    template = Template.from_mapping({key: CUSTOM[key] for key in ("system", "user", "assistant", "open")})
    assert (template.prefix, template.stop) == ("", ())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            {"usr": "{content}"},
            r"usr: not a key of a template \(system, user, assistant, open, prefix, stop\)",
        ),
        ({"user": "Q:"}, r"user: \{content\} is missing"),
        ({"system": ""}, r"system: \{content\} is missing"),
        ({"open": 7}, "open: a text is needed"),
        ({"prefix": ["x"]}, "prefix: a text is needed"),
        ({"stop": "\nQ:"}, "stop: a list of texts"),
        ({"stop": [""]}, "stop: a list of texts"),
        ({"stop": [1]}, "stop: a list of texts"),
    ],
)
def test_a_wrong_template_names_the_key(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Template.from_mapping({**CUSTOM, **change})


@pytest.mark.parametrize("key", ["system", "user", "assistant", "open"])
def test_a_missing_key_is_named(key: str) -> None:
    with pytest.raises(ValueError, match=f"{key}: missing in the template"):
        Template.from_mapping({name: value for name, value in CUSTOM.items() if name != key})


def test_an_unknown_name() -> None:
    with pytest.raises(
        ValueError, match=r"no template is called 'alpaca' \(there are none, plain, chatml, llama3\)"
    ):
        get_template("alpaca")
