"""The sentences for an audience: every passage is counted once, for the layer that dropped it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from ragfilter.engine.replay import replay
from ragfilter.layers.registry import LAYERS
from ragfilter.model import Chunk, Hit, Pool, PoolResult, User
from ragfilter.results.summary import DropGroup, Story, sentences, story
from ragfilter.settings.schema import Settings

ARMOR = json.dumps({"contain_one_of": [["armor class 7", "ac 7"]]})
THIEF = json.dumps({"contain": "thief"})


def result(*hits: Hit, user: User = User(), **settings: Any) -> PoolResult:
    ranked = tuple(replace(hit, rank=rank) for rank, hit in enumerate(hits, start=1))
    values = {"retrieval.k": 4, "query_must.enabled": True, **settings}
    pool = Pool("cleric against armor class 6", "demo", "l2", ranked, queries=1)
    return replay(pool, Settings().with_values(values), user)


def hit(i: str, distance: float, **fields: object) -> Hit:
    return Hit(Chunk(i, **{"text": "a" * 400, **fields}), distance, 0)  # type: ignore[arg-type]


HITS = (
    hit("best", 0.2),
    hit("seven", 0.21, rule=ARMOR),
    hit("good", 0.25),
    hit("thief", 0.3, rule=THIEF),
    hit("other", 0.32, rule=ARMOR),
    hit("far", 0.6),
)


def test_a_result_is_told_in_three_sentences(snapshot: SnapshotAssertion) -> None:
    told = story(result(*HITS))
    assert told.drops == (
        DropGroup("query_must", "were about another armor class", ("seven", "other")),
        DropGroup("query_must", "were for other questions", ("thief",)),
        DropGroup("cutoff", "came after the cliff", ("far",), "cutoff.gap_threshold"),
    )
    # 24 tokens of frame and 100 of text per chunk: four without the filter, two with it.
    assert sentences(told, 2.0, "$") == snapshot
    # A price without its currency says nothing.
    assert sentences(told, 2.0) == sentences(told) == snapshot


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"cutoff.strategy": "autocut", "cutoff.min_results": 0},
        {"cutoff.strategy": "car"},
        {"cutoff.gap_threshold": 1.0, "cutoff.distance_offset": 0.2},
        {"cutoff.strategy": "relative"},
        {"cutoff.strategy": "fixed", "cutoff.max_results": 2},
        {"cutoff.enabled": False},
        {"cutoff.gap_threshold": 1.0, "cutoff.max_results": 100},
    ],
    ids=str,
)
def test_the_cutoff_s_words_follow_the_strategy_that_cut(settings: dict[str, Any], snapshot: SnapshotAssertion) -> None:
    deep = settings.get("cutoff.strategy") == "relative"
    far = [hit(f"far{n}", 1.0 + n / 100) for n in range(60 if deep else 0)]
    hits = (hit("a", 0.2), hit("b", 0.21), hit("c", 0.22), hit("d", 0.5), hit("e", 0.51), *far)
    made = result(*hits, **{"cutoff.max_results": 70, **settings})
    assert [fall.words for fall in story(made).drops] == snapshot


FAR = DropGroup("cutoff", "came after the cliff", ("a", "b", "c"))
CLASS = DropGroup("query_must", "were about another armor class", ("d",))


STORIES = [
    Story(0, 0, 0, (), 0, 0, 0),
    Story(0, 0, 0, (), 0, 0, 0, "You may see none."),
    Story(1, 1, 0, (), 1, 9, 9),
    Story(9, 2, 0, (), 2, 9, 9),
    Story(3, 0, 0, (), 3, 9, 0, "Ask.", drops_from_unfiltered=(FAR,)),
    Story(6, 1, 0, (), 6, 9, 3, drops_from_unfiltered=(CLASS, FAR, CLASS, CLASS)),
    Story(9, 4, 0, (), 2, 9, 18, beyond=2),
    Story(2, 2, 1, (), 1, 9, 1200),
    Story(9, 3, 0, (), 5, 9, 3, drops_from_unfiltered=(FAR,), beyond=3),
]


def test_every_number_has_its_words(snapshot: SnapshotAssertion) -> None:
    assert [sentences(told) for told in STORIES] == snapshot
    assert sentences(STORIES[3], loss="It lost “X”.") == ("It lost “X”.", *sentences(STORIES[3])[:-1])


def test_what_no_llm_has_judged_yet_says_so(snapshot: SnapshotAssertion) -> None:
    said = sentences(story(result(*HITS, **{"judge.enabled": True})))
    assert said[1] == snapshot


def test_every_layer_that_drops_says_why_in_words() -> None:
    silent = {layer.name for layer in LAYERS if layer.plain is None}
    # They drop nothing: they pin, move up, and shorten.
    assert silent == {"entities", "prune", "words"}


def test_what_a_user_may_not_see_is_counted_nowhere() -> None:
    secret = hit("secret", 0.1, clearance=3)
    on = {"clearance.enabled": True}
    assert story(result(secret, *HITS, **on)) == story(result(*HITS, **on))
    barred = story(result(secret, **on))
    assert sentences(barred) == (result(secret, **on).message,)


FOUND = st.tuples(st.floats(0, 2), st.sampled_from([None, ARMOR, THIEF, "{"]))


@given(st.lists(FOUND, max_size=12), st.booleans(), st.booleans())
def test_all_that_was_found_is_kept_or_fell_once(
    found: list[tuple[float, str | None]], quality: bool, cutoff: bool
) -> None:
    hits = [hit(str(n), d, rule=r) for n, (d, r) in enumerate(sorted(found, key=lambda f: f[0]))]
    made = result(*hits, **{"quality.enabled": quality, "cutoff.enabled": cutoff})
    told = story(made)
    fell = [i for fall in told.drops for i in fall.ids]
    assert sorted(fell + [h.id for h in made.kept]) == sorted(h.id for h in made.hits)
    assert told.found == len(hits)
