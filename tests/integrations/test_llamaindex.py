"""The filter in LlamaIndex, with its real package."""

from __future__ import annotations

import logging
import math
from typing import Any

import pytest
from llama_index.core.schema import NodeWithScore, TextNode

import ragfilter as rf

QUERY = "How strong is a troll?"
GAP = (0.12, 0.18, 0.22, 0.35, 0.50)
UNSQUARED = (0.9, 1.0, 1.06, 1.14)
"""Their squares have a cliff after the third; they have none."""


def nodes(scores: tuple[float | None, ...]) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(text=f"Trolls, part {i}."), score=score) for i, score in enumerate(scores)]


def kept(given: list[NodeWithScore], **adapter: Any) -> list[int]:
    """The positions of the nodes that stay; each must be one of those passed."""
    made = rf.Filter("adaptive-gap").as_llamaindex(**adapter)
    found = made.postprocess_nodes(given, query_str=QUERY)
    return [next(i for i, node in enumerate(given) if node is one) for one in found]


def test_the_callers_own_nodes_stay_best_first() -> None:
    assert kept(nodes(GAP[::-1]), metric="l2") == [4, 3, 2, 1]
    similar = nodes(tuple(1 - distance for distance in GAP))
    assert kept(similar, metric="similarity", exponential=False) == [0, 1, 2, 3]
    assert kept(nodes((None,) * 5)) == [0, 1, 2, 3, 4]
    assert kept(nodes(UNSQUARED), metric="euclidean", exponential=False) == [0, 1, 2]
    assert kept(nodes((0.5, 9.0, 7.0)), metric="rank") == [1, 2, 0]


def test_the_exponential_scores_of_its_chroma_store_are_turned_back() -> None:
    # 1 - exp(-d) shrinks the later gaps: if it were taken for a similarity, another cliff would be found.
    scores = nodes(tuple(math.exp(-distance) for distance in (0.9, 1.0, 1.25, 1.34)))
    assert kept(scores, metric="l2", exponential=True) == [0, 1]
    assert kept(scores, metric="similarity") == [0, 1, 2, 3]
    # So far away that its score is 0: it has no distance, and only the order is used.
    assert kept(nodes((0.9, 0.0)), metric="l2", exponential=True) == [0, 1]


@pytest.mark.parametrize("metric", ["similarity", "l2"])
def test_scores_that_may_be_exponential_are_warned_of(metric: Any, caplog: pytest.LogCaptureFixture) -> None:
    flt = rf.Filter("adaptive-gap")
    with caplog.at_level(logging.WARNING):
        flt.as_llamaindex(metric=metric, exponential=False)
        flt.as_llamaindex(metric="rank")
        assert not caplog.messages
        flt.as_llamaindex(metric=metric)
    assert "Pass exponential=True" in caplog.text


@pytest.mark.parametrize("metric", [None, "similarity", "rank"])
def test_exponential_scores_need_the_metric_of_their_distances(metric: Any) -> None:
    with pytest.raises(rf.RagfilterError, match="only if their metric is named"):
        rf.Filter("adaptive-gap").as_llamaindex(metric=metric, exponential=True)
