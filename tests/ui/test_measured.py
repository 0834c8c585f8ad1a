"""Which questions a filter of the Evaluate page shows, on rows calculated by hand."""

from __future__ import annotations

import pytest

from ragfilter.ui.evaluate.measured import QueryRow, matching


def row(name: str, *, f1: float, gain: float, recall: float, plain_recall: float) -> QueryRow:
    return QueryRow(name, name, 0, f1, gain, 0.5, recall, 3, 2, 0, plain_recall)


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
        ("All", [each.id for each in ROWS]),
        ("Failures", ["worse", "nothing found"]),
        ("Changed", ["worse", "better", "great", "greater", "great at a loss"]),
        ("Highlights", ["greater", "great"]),
    ],
)
def test_a_filter_shows_its_questions(wanted: str, names: list[str]) -> None:
    assert [each.id for each in matching(ROWS, wanted)] == names
