"""The questions of a set as text: a line for each, whatever breaks they hold."""

from __future__ import annotations

import pytest

from ragfilter.stores.labels import query_id
from ragfilter.ui.evaluate.sets import lines, one_line, with_ids


@pytest.mark.parametrize(
    "asked",
    [
        "first line\nsecond line",
        "first line\r\n\r\nsecond line",
        "first\u2028second",
        "first\u0085second",
        "first\fsecond",
        " one line ",
    ],
)
def test_a_question_keeps_its_id_and_wording_whatever_is_edited_beside_it(asked: str) -> None:
    before = {"q1": asked, "q2": "x"}
    shown = "\n".join(map(one_line, before.values()))
    assert len(shown.split("\n")) == 2
    edited = lines(f"{shown}\nnew")
    assert with_ids(edited, before) == {
        "q1": asked.strip(), "q2": "x", query_id("new"): "new",
    }  # fmt: skip


def test_questions_that_differ_in_their_breaks_alone_are_both_kept() -> None:
    before = {"q1": "a b", "q2": "a\nb"}
    assert with_ids(lines("a b\na b"), before) == before
