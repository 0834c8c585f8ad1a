"""What stays of an earlier answer when an LLM is asked again."""

from __future__ import annotations

import pytest

from ragfilter.answer.stream import UNFINISHED, Answer
from ragfilter.ui.session.answers import EARLIER, _with_earlier

GOOD, CUT, NONE = Answer("good"), Answer("so far", error=UNFINISHED), Answer("", error="No.")
AGAIN = Answer("good", error=f"No. {EARLIER}")


@pytest.mark.parametrize(
    ("made", "earlier", "stays"),
    [
        (Answer("new"), GOOD, Answer("new")),
        (NONE, GOOD, AGAIN),
        (NONE, None, NONE),
        # Stopped: what has arrived is kept, as the button says.
        (CUT, GOOD, CUT),
    ],
)
def test_a_complete_answer_stays_when_the_next_one_fails(
    made: Answer, earlier: Answer | None, stays: Answer
) -> None:
    assert _with_earlier(made, earlier) == stays
