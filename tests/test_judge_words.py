"""The judge in words: the cost of a call, what it did, and its verdicts. Literal cases."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from ragfilter.answer.stream import Prices
from ragfilter.judge.call import JudgeStats
from ragfilter.model import ExpandedChunk, Judgement, Outcome
from ragfilter.report import VerdictRow
from ragfilter.report.verdicts import Forecast
from ragfilter.settings.schema import Judge
from ragfilter.ui.inspect import judge_panel

FIRST = Forecast(13, 27, "default@1-ab", 1986, 240, None, 5000)
PRICED = Forecast(13, 27, "default@1-ab", 1986, 240, 0.00044, 5000, usual_ms=1234.0)
KNOWN = Forecast(1, 0, "default@1-ab", 500, 20, 0.1, 5000, remembered=True)


def test_before_asking(snapshot: SnapshotAssertion) -> None:
    assert [judge_panel.before(each, Judge()) for each in (PRICED, FIRST, KNOWN)] == snapshot


def test_after_asking(snapshot: SnapshotAssertion) -> None:
    stats = JudgeStats(
        40, 6, 13, 0.85, False, 118.34, 1500, 130, model="m", left_out=27, shortened=12
    )
    assert judge_panel.after(stats, Prices(0.15, 0.6)) == [
        ("Candidates", "40"), ("Kept", "6"), ("Reduction", "85%"), ("Added by references", "13"),
        ("Fallback", "not used"), ("Time", "118.3 ms"), ("Tokens in + out", "1,500 + 130"),
        # (1500 × 0.15 + 130 × 0.6) / 10⁶
        ("Cost", "0.0003"),
    ]  # fmt: skip
    assert "Cost" not in dict(judge_panel.after(stats, None))
    assert dict(judge_panel.after(stats, Prices(0.15, 0.6, "$")))["Cost"] == "$0.0003"
    assert judge_panel.by_whom(stats, Judge()) == snapshot


JUDGEMENT = Judgement(asked=("a", "b", "odd"), left_out=("c",), unreadable=("odd",))


@pytest.mark.parametrize(
    ("chunk", "said", "outcome", "word"),
    [
        ("a", "KEEP", "kept", "● KEEP"),
        ("a", "DISCARD", "dropped", "◇ DISCARD"),
        ("b", "", "dropped", "◇ not named"),
        ("odd", "", "dropped", "◇ unreadable"),
        ("c", "", "dropped", "◇ no room"),
        ("d", "", "dropped", "◇ not sent"),
        ("d", "", "expanded", "✚ added"),
    ],
)
def test_the_verdict_in_a_word(chunk: str, said: str, outcome: Outcome, word: str) -> None:
    by = ExpandedChunk(chunk, "a", "a", 1) if outcome == "expanded" else None
    row = VerdictRow(chunk, chunk, said, outcome, "", by)
    assert judge_panel.verdict(row, JUDGEMENT) == word
