"""Which questions fail, change and gain most, on rows calculated by hand."""

from __future__ import annotations

import pytest
from ragfilter.evaluate.kinds import Kind, QuestionRow, only


def row(name: str, *, f1: float, gain: float, recall: float, plain_recall: float) -> QuestionRow:
    return QuestionRow(name, name, 0, f1, gain, 0.5, recall, 3, 2, 0, plain_recall)


ROWS = (
    row("worse", f1=0.3, gain=-0.1, recall=0.5, plain_recall=1.0),
    row("nothing found", f1=0.0, gain=0.0, recall=0.0, plain_recall=0.0),
    row("as before", f1=0.5, gain=0.0, recall=1.0, plain_recall=1.0),
    row("better", f1=0.6, gain=0.1, recall=1.0, plain_recall=1.0),
    row("great", f1=0.8, gain=0.2, recall=1.0, plain_recall=1.0),
    row("greater", f1=1.0, gain=0.6, recall=1.0, plain_recall=1.0),
    row("great at a loss", f1=0.7, gain=0.4, recall=0.5, plain_recall=1.0),
)


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("failures", ["worse", "nothing found"]),
        ("changed", ["worse", "better", "great", "greater", "great at a loss"]),
        ("highlights", ["greater", "great"]),
    ],
)
def test_the_questions_of_a_kind(wanted: Kind, names: list[str]) -> None:
    assert [each.id for each in only(ROWS, wanted)] == names
