"""The page about stop sequences says what the rules do."""

import pytest

from llmstream_cli.diagnose import Verdict
from llmstream_cli.diagnose.rules import ANSWER_RULES, STOP_RULES
from tests.support.stop_docs import DOCUMENT, codes, document

TEXT = DOCUMENT.read_text("utf-8")


def test_the_tables_are_up_to_date() -> None:
    assert document(TEXT) == TEXT, "run: python -m tests.support.stop_docs"


def test_every_cause_and_verdict_is_explained() -> None:
    assert codes(TEXT) == [rule.code for rule in (*STOP_RULES, *ANSWER_RULES)]
    assert all(f"| `{verdict.value}` |" in TEXT for verdict in Verdict)


def test_a_page_without_a_place_for_a_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="no place for the table 'causes'"):
        document(TEXT.replace("<!-- end of causes -->", ""))
