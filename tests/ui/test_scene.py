"""The picture for an audience, as a plot."""

from __future__ import annotations

from typing import Any

from ragfilter.engine.replay import replay
from ragfilter.model import Chunk, Hit, Pool
from ragfilter.report.story import story
from ragfilter.settings.config import of_profile
from ragfilter.ui.present import scene

DISTANCES = (0.10, 0.14, 0.17, *(0.60 + n / 100 for n in range(37)))


def drawn(after: int) -> tuple[Any, list[tuple[float, float, str]]]:
    """The scene after so many steps: its plot, and place and text of the first three passages."""
    hits = tuple(Hit(Chunk(f"c{i}", "text"), d, i) for i, d in enumerate(DISTANCES, start=1))
    result = replay(Pool("Who?", "rules", "l2", hits), of_profile("adaptive-gap"))
    plot = scene.plot(result, story(result), after=after, before=after)
    points = plot.data[0]
    return plot, list(zip(points.x, points.y, points.text, strict=True))[:3]


def test_what_is_left_is_spread_over_the_height_in_the_last_scene_alone() -> None:
    plot, before = drawn(0)
    assert before == [(1, 0.10, ""), (2, 0.14, ""), (3, 0.17, "")]
    (band,) = plot.layout.shapes
    assert band.x1 == 5.6
    plot, after = drawn(1)
    assert [text.strip() for _, _, text in after] == ["1 · c1", "2 · c2", "3 · c3"]
    (band,) = plot.layout.shapes
    # The axis is that of the lanes below.
    assert band.x1 == 5.6
    assert [x for x, _, _ in after] == [1, 2, 3]
    heights = [y for _, y, _ in after]
    assert heights[0] < heights[1] < heights[2]
    assert heights[2] - heights[0] > 0.5 * (band.y1 - band.y0)
