"""The sweep keeps exactly the chunks that one replay per setting keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from calibrations import calibration
from hypothesis import given
from hypothesis import strategies as st

from ragfilter.engine.replay import replay
from ragfilter.evaluate.maps import axes, make
from ragfilter.evaluate.metrics import DEEPEST, prefixes, prefixes_of_pools
from ragfilter.evaluate.query_records import records_of
from ragfilter.evaluate.sweep import kept, plan, sweep
from ragfilter.evaluate.variants import variants
from ragfilter.layers.strategies.strategy import strategies
from ragfilter.library.filter import Filter
from ragfilter.model import Chunk, Entity, Hit, Pool, Score, User
from ragfilter.settings.config import load
from ragfilter.settings.schema import Settings

FULL = load(profile="full", environ={}).settings
LEARNED = calibration(beyond=1.5, weights={"way": -4.0, "words": 2.0}).json_text
SETTINGS = st.builds(
    lambda **values: FULL.with_values({k.replace("__", "."): v for k, v in values.items()}),
    cutoff__strategy=st.sampled_from([*strategies()]),
    cutoff__enabled=st.booleans(),
    cutoff__max_results=st.integers(1, 30),
    cutoff__min_results=st.integers(0, 4),
    cutoff__score=st.sampled_from(["", "own", "lexical", "none"]),
    cutoff__limits=st.sampled_from(["", "own=0.4", "dense=0.7 lexical=4"]),
    cutoff__relative_offset=st.sampled_from([0.1, 0.3, 0.6]),
    quality__enabled=st.booleans(),
    quality__mode=st.sampled_from(["when_poor", "always"]),
    quality__reranker_top_k=st.integers(1, 15),
    entities__enabled=st.booleans(),
    context__max_context_tokens=st.sampled_from([50, 200, 4000]),
)
DISTANCES = st.lists(st.integers(1, 1000), min_size=1, max_size=40, unique=True)


def pool(distances: list[int], space: str = "l2") -> Pool:
    hits = tuple(
        Hit(
            Chunk(f"c{i}", "word " * (i % 60), f"Title {i}", clearance=i % 3),
            distance / 500,
            i + 1,
            rerank_score=1 / (1 + i % 7),
            scores={
                "own": Score(i % 5 / 5, "similarity", 1 + i % 5),
                **({"lexical": Score(-1.0 - i, "rank", 1 + i)} if i % 3 else {}),
            },
        )
        for i, distance in enumerate(sorted(distances))
    )
    sides = (Entity("Title 3", ("c3",)), Entity("Title 9", ("c9",)))
    return Pool("title 3 vs title 9", "c", space, hits, sides, reranker="late_interaction")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("space", ["l2", "rank"])
def test_a_sweep_keeps_what_replay_keeps(space: str) -> None:
    @given(DISTANCES, st.lists(SETTINGS, min_size=1, max_size=6), st.integers(0, 2), st.booleans())
    def law(distances: list[int], settings: list[Settings], level: int, ordered: bool) -> None:
        given_pool, user = replace(pool(distances, space), scores_are_ranks=ordered), User(level)
        learned = {"cutoff.calibration": LEARNED.replace('"l2"', f'"{space}"')}
        settings = [each.with_values(learned) for each in settings]
        wanted = [replay(given_pool, each, user).kept for each in settings]
        assert [hits for hits, _ in kept(given_pool, plan(settings), user)] == wanted

    law()


def test_outcomes_of_a_pool_under_two_settings() -> None:
    one = pool([100, 110, 120, 900, 910])
    first = replace(one, entities=())
    off = {"clearance.enabled": False, "quality.enabled": False, "cutoff.strategy": "fixed"}
    two, four = (FULL.with_values({**off, "cutoff.max_results": k}) for k in (2, 4))
    made = sweep({"q": first}, {"q": {"c0": 1, "c2": 1, "c4": 0}}, [two, four])
    assert made["kept"].tolist() == [[2, 4]]
    assert made["precision"].tolist() == [[0.5, 0.5]]
    assert made["recall"].tolist() == [[0.5, 1.0]]
    assert made["f2"].tolist() == [[0.5, pytest.approx(5 * 0.5 / (4 * 0.5 + 1))]]
    assert made["tokens"][0, 0] < made["tokens"][0, 1]


def test_prefixes_go_on_where_the_ranking_ends() -> None:
    off = FULL.with_values({"clearance.enabled": False})
    made = prefixes_of_pools({"q": pool([1, 2, 3])}, {"q": {"c1": 1}}, off)
    # The last column is of nothing kept.
    assert made["kept"].tolist() == [[1, 2, *[3] * (DEEPEST - 2), 0]]
    assert made["recall"][0, :3].tolist() == [0, 1, 1]


def test_a_plain_search_counts_what_fits_the_prompt() -> None:
    """What does not fit is left out, and the next chunk is tried."""
    # A block's frame is 24 tokens, and four characters are one.
    hits = tuple(Hit(Chunk(f"c{n}", "x" * 4 * size), 0.1 * n, n) for n, size in enumerate((76, 176, 26, 26), start=1))
    settings = Settings().with_values({"context.max_context_tokens": 160})
    pool, labels = Pool("q", "c", "l2", hits), {"c1": 1, "c2": 1, "c3": 2}
    first = {
        "tokens": [100, 100, 150, 150],
        "kept": [1, 1, 2, 2],
        "precision": [1, 1, 1, 1],
        "recall": [1 / 3, 1 / 3, 2 / 3, 2 / 3],
    }
    made = prefixes_of_pools({"q": pool}, {"q": labels}, settings)
    assert {name: list(made[name][0, :4]) for name in first} == first

    plain = next(r for r in records_of("q", pool, labels, variants(settings)) if r.curve)
    curve = plain.curve
    assert curve
    assert curve.tokens == (100, 100, 150, 150)
    assert (plain.kept, plain.found, plain.unlabelled, plain.tokens) == (2, 2, 0, 150)
    assert plain.ids == ("c1", "c3")
    # Grades 1 and 2 are kept, of 1, 1 and 2: (1 + 2 / log2(3)) / (2 + 1 / log2(3) + 1 / 2).
    assert plain.ndcg == pytest.approx(0.72242, abs=1e-5)
    assert curve.ndcg == pytest.approx([0.31939, 0.31939, 0.72242, 0.72242], abs=1e-5)
    drawn = prefixes([curve])
    assert {name: list(drawn[name][0, :4]) for name in first} == first


def test_a_map_over_k_is_what_the_first_k_give() -> None:
    plain = load(profile="unfiltered", environ={}).settings.with_values({"retrieval.k": 12})
    pools, qrels = {"q": pool(list(range(1, 41)))}, {"q": {"c1": 1, "c6": 1}}
    assert axes(plain)[0] == "retrieval.k"
    assert "retrieval.k" not in axes(FULL)
    made = make(pools, qrels, plain, User(), "retrieval.k", "")
    first = prefixes_of_pools(pools, qrels, plain, User())["f1"][0]
    assert 12 in made.xs
    assert made.figures["f1"][:, 0].tolist() == [first[min(int(k), DEEPEST) - 1] for k in made.xs]


def test_a_map_of_hits_without_distances_is_replayed() -> None:
    gap = Filter("adaptive-gap")
    result = gap("trolls", [f"text {i}" for i in range(20)])
    qrels = {"q": {result.hits[0].id: 1}}
    made = make({"q": result.pool}, qrels, gap.settings, User(), *axes(gap.settings)[:2])
    assert made.at(made.nearest(gap.settings))["kept"] == len(result.kept) == 5
