"""Dragging a line shows the count that the server would compute for every value."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragfilter.engine.replay import replay
from ragfilter.engine.whatif import change_by_one_hit
from ragfilter.layers.cutoff import cutoff_detail
from ragfilter.model import PoolResult
from ragfilter.results.rows import rows
from ragfilter.results.thresholds import cut_line
from ragfilter.settings.schema import field_info
from ragfilter.ui.inspect import curve_panel, curve_plot
from tests.ui.test_curve import CLIFFS, result

FAR = tuple(0.1 + 0.01 * i for i in range(60))
"""Background: the mean of the farther half, 0.1 + 0.01 × 44.5 = 0.545."""


def overlaid(made: PoolResult, *, with_controls: bool = True) -> dict[str, Any]:
    detail, line = cutoff_detail(made), cut_line(made)
    points = replace(curve_plot.place(made, rows(made), detail), grades={"c2": 2})
    ranges = curve_plot.axis_ranges(points, curve_plot.around_cut(made, points, detail), line)
    plot = curve_plot.plot(points, line, ranges)
    titles = {row.id: row.title for row in points.rows}
    return curve_panel.overlay(made, points, plot, titles, "c2", with_controls=with_controls)


@pytest.mark.parametrize(
    ("settings", "paths"),
    [
        ({}, []),  # a cliff has no limit to be moved
        ({"gap_threshold": 0.16}, ["cutoff.distance_offset"]),
        ({"gap_threshold": 0.16, "min_results": 5}, []),  # the minimum fixes the line
        ({"strategy": "fixed"}, ["cutoff.max_results"]),
        ({"enabled": False}, []),
    ],
)
def test_only_the_line_that_cuts_is_moved_while_nothing_is_tuned(settings: dict[str, Any], paths: list[str]) -> None:
    made = result(CLIFFS, **{f"cutoff.{name}": value for name, value in settings.items()})
    assert [line["path"] for line in overlaid(made, with_controls=False)["lines"]] == paths


@pytest.mark.slow
@given(
    gaps=st.lists(st.sampled_from((0.0, 0.01, 0.03, 0.1, 0.12, 0.3)), min_size=1, max_size=70),
    strategy=st.sampled_from(("gap", "fixed", "autocut", "adaptive_k", "otsu", "relative")),
    threshold=st.sampled_from((0.0, 0.1, 0.2)),
    k=st.integers(1, 12),
)
def test_every_step_is_what_the_filter_decides(gaps: list[float], strategy: str, threshold: float, k: int) -> None:
    distances = [0.2]
    for gap in gaps:
        distances.append(distances[-1] + gap)
    settings = {"cutoff.strategy": strategy, "cutoff.gap_threshold": threshold, "cutoff.max_results": k}
    made = result(tuple(distances), **settings)
    for line in overlaid(made)["lines"]:
        kept_by_value = line["kept_by_value"]
        for value in (line["low"], line["value"], *(v for v, _ in kept_by_value)):
            kept = [n for start, n in kept_by_value if start <= value + 1e-9][-1]
            again = result(tuple(distances), **settings | {line["path"]: value})
            assert kept == len(again.kept), (line["path"], value)


def test_each_line_stands_where_the_plot_draws_it() -> None:
    lines = {line["path"]: line for line in overlaid(result(CLIFFS))["lines"]}
    assert list(lines) == ["cutoff.max_results", "cutoff.gap_threshold", "cutoff.distance_offset"]
    stands = {path: line["base"] + line["per"] * line["value"] for path, line in lines.items()}
    assert stands == {"cutoff.max_results": 6.5, "cutoff.gap_threshold": 0.1, "cutoff.distance_offset": 0.5}
    relative = overlaid(result(FAR, **{"cutoff.strategy": "relative"}))["lines"][1]
    assert relative["path"] == "cutoff.relative_offset"
    # 0.1 + 0.3 × (0.545 − 0.1)
    assert relative["base"] + relative["per"] * relative["value"] == pytest.approx(0.2335)
    assert field_info(relative["path"]).ceiling == relative["low"] + relative["step"] * relative["count"]


@pytest.mark.slow
@given(
    gaps=st.lists(st.sampled_from((0.0, 0.01, 0.03, 0.1, 0.12, 0.3)), min_size=3, max_size=60),
    strategy=st.sampled_from(("gap", "fixed", "autocut", "adaptive_k", "otsu", "relative")),
    by=st.sampled_from((-1, 1)),
)
def test_one_more_or_less_is_kept_by_the_change_that_says_so(gaps: list[float], strategy: str, by: int) -> None:
    distances = [0.2]
    for gap in gaps:
        distances.append(distances[-1] + gap)
    settings = {"cutoff.strategy": strategy, "cutoff.max_results": 8}
    made = result(tuple(distances), **settings)
    change = change_by_one_hit(made, by, partial(replay, made.pool))
    if change is None:
        # A larger k may bring a new cliff, so that no limit alone keeps more than k.
        assert len(made.kept) in ((len(distances), 8) if by > 0 else (0,))
        return
    again = result(tuple(distances), **settings | {change.path: change.new})
    before, after = ({hit.id for hit in each.kept} for each in (made, again))
    assert (set(change.came), set(change.went)) == (after - before, before - after)
    assert by * (len(after) - len(before)) >= 1
