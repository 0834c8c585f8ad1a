"""The distance curve of results calculated by hand (Adaptive Filtering Algorithm). Dragging a line shows the count that
the server would compute for every value."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import plotly.graph_objects as go
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragfilter.engine.replay import replay
from ragfilter.engine.whatif import change_by_one_hit
from ragfilter.layers.cutoff import cutoff_detail
from ragfilter.layers.layer import BACKGROUND_FROM
from ragfilter.layers.quality import reranker_key
from ragfilter.model import Chunk, Entity, Hit, Pool, PoolResult, Score
from ragfilter.results.rows import rows
from ragfilter.results.thresholds import compared, cut_line, cut_name
from ragfilter.settings.schema import Settings, field_info
from ragfilter.ui.inspect import curve_panel, curve_plot

CLIFFS = (0.100, 0.300, 0.340, 0.470, 0.510, 0.660, 0.700)
"""Gaps: 0.2 (skipped), 0.04, 0.13, 0.04, 0.15 (the largest), 0.04."""
FLAT = tuple(0.5 + 0.02 * i for i in range(40))


def result(distances: tuple[float, ...], **settings: Any) -> PoolResult:
    hits = tuple(
        Hit(Chunk(f"c{rank}", title=f"Chunk {rank}", text="words"), distance, rank)
        for rank, distance in enumerate(distances, start=1)
    )
    pool = Pool("a question", "demo", "l2", hits, queries=1)
    base = {"retrieval.k": 6, "cutoff.enabled": True, "cutoff.max_results": 6}
    return replay(pool, Settings().with_values(base | settings))


def drawn(
    made: PoolResult,
    window: tuple[float, float] | None = None,
    *,
    by_distance: bool = False,
    tuning: bool = False,
    second: tuple[str, dict[str, float]] | None = None,
) -> dict[str, Any]:
    detail, line = (None, None) if by_distance else (cutoff_detail(made), cut_line(made))
    placed = curve_plot.place(made, rows(made), detail)
    ranges = curve_plot.axis_ranges(placed, window or curve_plot.around_cut(made, placed, detail), line)
    steps_of = (made, detail) if tuning and detail is not None else None
    plot: dict[str, Any] = curve_plot.plot(placed, line, ranges, steps_of=steps_of, second=second).to_dict()
    # Raises if plotly does not know a property or value.
    go.Figure(plot)
    return plot


def notes(plot: dict[str, Any]) -> set[str]:
    return {note["text"] for note in plot["layout"].get("annotations", ())}


def points(plot: dict[str, Any]) -> dict[str, tuple[list[float], list[float]]]:
    """The markers of each outcome, as (x, y)."""
    return {
        trace["name"]: (list(trace["x"]), [round(y, 3) for y in trace["y"]])
        for trace in plot["data"]
        if trace.get("name")
    }


@pytest.mark.parametrize(
    ("distances", "settings", "expected"),
    [
        (
            CLIFFS,
            {},
            {
                "<b>limit 0.510</b><br>kept below",
                "dropped above",
                "cliff: the next is 0.150 farther",
                "largest gap 0.200 after 1 chunk: skipped",
            },
        ),
        (
            CLIFFS,
            {"gap_threshold": 0.16},
            {
                "<b>limit 0.500</b><br>kept below",
                "dropped above",
                "the next is 0.040 farther<br>largest gap 0.200 after 1 chunk: skipped",
            },
        ),
        (
            FLAT,
            {"strategy": "otsu"},
            {"<b>limit 0.540</b><br>kept below", "dropped above", "cliff: the next is 0.020 farther"},
        ),
        (
            FLAT,
            {"strategy": "spike"},
            {"<b>Min results = 2</b><br>kept below", "dropped above", "past the cliff: the next is 0.020 farther"},
        ),
        (FLAT, {"strategy": "fixed"}, {"<b>Max results = 6</b><br>kept before", "dropped after"}),
        (FLAT, {"enabled": False}, {"<b>Unfiltered k = 6</b><br>kept before", "dropped after"}),
        (CLIFFS[:4], {"enabled": False}, {"Unfiltered k = 6 is not reached"}),
    ],
)
def test_one_line_cuts_and_both_its_sides_are_named(
    distances: tuple[float, ...], settings: dict[str, Any], expected: set[str]
) -> None:
    made = result(distances, **{f"cutoff.{name}": value for name, value in settings.items()})
    plot = drawn(made)
    assert notes(plot) == {"↑ farther from the question<br>distance", *expected}
    lines = [shape for shape in plot["layout"]["shapes"] if shape["type"] == "line"]
    assert len(lines) == any("<b>" in note for note in expected)
    assert not plot["layout"]["xaxis"]["showticklabels"]


@pytest.mark.parametrize(("threshold", "name"), [(0.1, "Cliff"), (0.2, "No later gap ≥ 0.200"), (1, "No gap ≥ 1.000")])
def test_a_cut_without_a_cliff_is_named_by_the_gap_it_lacks(threshold: float, name: str) -> None:
    made = result(CLIFFS, **{"cutoff.gap_threshold": threshold})
    detail = cutoff_detail(made)
    assert detail is not None
    assert cut_name(detail.cut, made.settings.cutoff) == name


def test_only_what_the_axes_show_is_drawn() -> None:
    plot = drawn(result(FLAT, **{"cutoff.max_results": 30}), window=(9.6, 12.4), tuning=True)
    assert points(plot) == {"kept": ([10, 11, 12], [0.68, 0.70, 0.72])}
    line, bars = plot["data"][0], plot["data"][-1]
    # The line continues to both edges.
    assert list(line["x"]) == [9, 10, 11, 12, 13]
    assert list(bars["x"]) == [10.5, 11.5]


def test_a_far_pin_stands_first_as_the_cutoff_saw_it() -> None:
    hits = [
        Hit(Chunk(f"c{rank}", title="A mammoth" if rank == 40 else "A giant"), distance, rank)
        for rank, distance in enumerate(FLAT, start=1)
    ]
    pool = Pool(
        "giant vs mammoth",
        "demo",
        "l2",
        tuple(hits),
        queries=1,
        entities=(Entity("giant", ("c1",)), Entity("mammoth", ("c40",))),
    )
    on = {"entities.enabled": True, "cutoff.enabled": True, "cutoff.max_results": 5}
    plot = drawn(replay(pool, Settings().with_values(on)))
    assert points(plot)["pinned"] == ([1, 2], [0.5, 1.28])
    assert points(plot)["kept"][0] == [3, 4, 5]
    assert plot["layout"]["xaxis"]["range"] == [0.3, 10.7]


def test_what_fell_before_the_cutoff_stands_in_the_step_into_which_it_fell() -> None:
    """Ranks 2, 3 and 5 and the last fail their rules: the cutoff sees ranks 1, 4 and 6."""
    distances = (0.10, 0.20, 0.25, 0.30, 0.50, 0.80, 0.90)
    hits = tuple(
        Hit(Chunk(f"c{rank}", rule='{"contain": "owl"}' if rank in (2, 3, 5, 7) else None), distance, rank)
        for rank, distance in enumerate(distances, start=1)
    )
    on = {"query_must.enabled": True, "cutoff.max_results": 5}
    made = replay(Pool("giants", "demo", "l2", hits, queries=1), Settings().with_values(on))
    plot = drawn(made)
    found = points(plot)
    assert found["kept"][0] == [1, 2]
    assert found["dropped by cutoff"][0] == [3]
    between = [1 + 1 / 3, 1 + 2 / 3, 2.5, 4]
    assert found["dropped by query_must"][0] == pytest.approx(between)
    (band,) = [shape for shape in plot["layout"]["shapes"] if shape["type"] == "rect"]
    assert (band["y0"], band["y1"]) == (0.30, 0.80)
    placed = curve_plot.place(made, rows(made), cutoff_detail(made))
    folded = replace(placed, grades={"c5": 0}).folded("c3")
    assert [row.id for row in folded.rows] == ["c1", "c3", "c4", "c5", "c6"]


def test_what_fell_before_the_words_has_its_distance_alone_and_the_axis_says_so() -> None:
    distances = tuple(0.5 + 0.005 * i for i in range(BACKGROUND_FROM + 1))
    hits = tuple(
        Hit(
            Chunk(f"c{rank}", text="An owl." if rank == 1 else "", rule='{"contain": "elf"}' if rank == 2 else None),
            d,
            rank,
        )
        for rank, d in enumerate(distances, start=1)
    )
    on = {"query_must.enabled": True, "words.enabled": True, "cutoff.max_results": 5}
    made = replay(Pool("owl giants", "demo", "l2", hits, queries=1), Settings().with_values(on))
    detail = cutoff_detail(made)
    assert detail is not None
    unit, values = compared(made, detail)
    assert "minus" in unit
    assert "c2" not in values
    assert values["c1"] < distances[0]
    plot = drawn(made)
    assert points(plot)["dropped by query_must"][1] == [distances[1]]
    assert "↑ farther from the question<br>distance minus shared words; ✕ distance alone" in notes(plot)
    folded = curve_plot.place(made, rows(made), detail).folded(None)
    assert "c2" not in {row.id for row in folded.rows}


def test_after_reranking_few_have_a_score_and_by_distance_shows_all() -> None:
    on = {
        "quality.enabled": True,
        "quality.mode": "always",
        "quality.max_top_k": 4,
        "quality.reranker_top_k": 3,
        "quality.reranker_threshold": 0.3,
    }
    settings = result(CLIFFS, **on).settings
    plain = result(CLIFFS, **on).pool
    scores = dict(zip(("c1", "c2", "c3", "c4"), (0.4, 0.9, 0.2, 0.5), strict=True))
    hits = tuple(replace(hit, rerank_score=scores.get(hit.id)) for hit in plain.hits)
    scored = replace(plain, hits=hits, reranker=reranker_key(settings.quality))
    made = replay(scored, settings)
    assert not made.needs
    by_score = drawn(made)
    assert points(by_score)["kept"] == ([1, 2], [0.1, 0.5])  # the cliff of 0.1 is after 2
    assert any("1 − rerank score" in note for note in notes(by_score))
    by_distance = drawn(made, by_distance=True)
    assert sorted(x for xs, _ in points(by_distance).values() for x in xs) == [1, 2, 3, 4, 5, 6, 7]
    assert points(by_distance)["kept"] == ([2, 4], [0.3, 0.47])
    # A poor score and a place too far down look different.
    assert {"dropped by quality", "dropped by quality too far down"} < points(by_distance).keys()
    assert notes(by_distance) == {"↑ farther from the question<br>distance"}


def test_a_second_score_stands_beside_the_curve_on_an_axis_of_its_own() -> None:
    made = result(CLIFFS)
    assert curve_panel.other_scores(made) == {}
    lexical = {"c1": Score(2.0, "rank", 2), "c3": Score(7.5, "rank", 1)}
    hits = tuple(
        replace(hit, scores={"lexical": lexical[hit.id]} if hit.id in lexical else {}) for hit in made.pool.hits
    )
    made = replay(replace(made.pool, hits=hits), made.settings)
    others = curve_panel.other_scores(made)
    assert others == {"lexical": {"c1": -2.0, "c3": -7.5}}
    beside = drawn(made, second=("lexical", others["lexical"]))["data"][-1]
    assert (list(beside["x"]), list(beside["y"]), beside["yaxis"]) == ([1, 3], [-2.0, -7.5], "y3")
    by_lexical = result(CLIFFS, **{"cutoff.score": "lexical"}).settings
    assert list(curve_panel.other_scores(replay(made.pool, by_lexical))) == ["dense", "lexical"]


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
@settings(max_examples=30)
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
    chosen = {"cutoff.strategy": strategy, "cutoff.gap_threshold": threshold, "cutoff.max_results": k}
    made = result(tuple(distances), **chosen)
    for line in overlaid(made)["lines"]:
        kept_by_value = line["kept_by_value"]
        for value in (line["low"], line["value"], *(v for v, _ in kept_by_value)):
            kept = [n for start, n in kept_by_value if start <= value + 1e-9][-1]
            again = result(tuple(distances), **chosen | {line["path"]: value})
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
@settings(max_examples=30)
@given(
    gaps=st.lists(st.sampled_from((0.0, 0.01, 0.03, 0.1, 0.12, 0.3)), min_size=3, max_size=60),
    strategy=st.sampled_from(("gap", "fixed", "autocut", "adaptive_k", "otsu", "relative")),
    by=st.sampled_from((-1, 1)),
)
def test_one_more_or_less_is_kept_by_the_change_that_says_so(gaps: list[float], strategy: str, by: int) -> None:
    distances = [0.2]
    for gap in gaps:
        distances.append(distances[-1] + gap)
    chosen = {"cutoff.strategy": strategy, "cutoff.max_results": 8}
    made = result(tuple(distances), **chosen)
    change = change_by_one_hit(made, by, partial(replay, made.pool))
    if change is None:
        # A larger k may bring a new cliff, so that no limit alone keeps more than k.
        assert len(made.kept) in ((len(distances), 8) if by > 0 else (0,))
        return
    again = result(tuple(distances), **chosen | {change.path: change.new})
    before, after = ({hit.id for hit in each.kept} for each in (made, again))
    assert (set(change.came), set(change.went)) == (after - before, before - after)
    assert by * (len(after) - len(before)) >= 1
