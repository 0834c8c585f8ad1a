"""The two joined lists, as a plot."""

from __future__ import annotations

import plotly.graph_objects as go
import pytest

from ragfilter.engine.replay import replay
from ragfilter.model import Chunk, Hit, Pool, PoolResult
from ragfilter.report.contrast import contrast
from ragfilter.settings.config import of_profile
from ragfilter.ui.compare import plot

DISTANCES = (0.10, 0.14, 0.17, 0.60, 0.63)


def result(profile: str, n: int = len(DISTANCES)) -> PoolResult:
    """Hits with a cliff after the third; the first one has a hostile title."""
    hits = tuple(
        Hit(Chunk(f"c{i}", "text", title="<b>x</b>" if i == 1 else f"title {i}"), distance, i)
        for i, distance in enumerate(DISTANCES[:n], start=1)
    )
    return replay(Pool("Who?", "rules", "l2", hits), of_profile(profile))


@pytest.mark.parametrize("dark", [False, True])
def test_what_both_keep_is_joined_and_the_rest_ends_at_its_layer(dark: bool) -> None:
    made = contrast(result("unfiltered"), result("adaptive-gap"))
    drawn = plot.joined(made, dark=dark)
    go.Figure(drawn)  # plotly refuses what it does not know.
    long, short, joined, *rest = drawn["data"]
    assert joined["y"] == [1, 1, None, 2, 2, None, 3, 3, None]
    marks = [trace for trace in rest if trace["mode"] == "markers"]
    assert [trace["y"] for trace in marks] == [[4], [5]]
    assert all("B: dropped by cutoff" in trace["customdata"][0] for trace in marks)
    for titles in (long, short):
        assert len(titles["text"]) == 5 + 3
        assert sum("&lt;b&gt;x&lt;/b&gt;" in text for text in titles["text"]) == 2


def test_what_the_other_search_did_not_find_has_no_layer() -> None:
    made = contrast(result("unfiltered"), result("unfiltered", 3))
    drawn = plot.joined(made, dark=False)
    assert [trace["mode"] for trace in drawn["data"]] [2:] == [
        "lines", "markers+text", "markers+text",
    ]  # fmt: skip
    assert drawn["layout"]["height"] == plot.height(made)
