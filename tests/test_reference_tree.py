"""The tree of a chunk's references: what EXPAND_1, 3 and 5 would bring in, calculated by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from referring import CHUNKS

from ragfilter.engine.replay import replay
from ragfilter.model import Chunk, Hit, Pool, PoolResult
from ragfilter.settings.config import load
from ragfilter.settings.schema import Settings
from ragfilter.ui.inspect.reference_tree import Neighbourhood, ReferenceTree, read_neighbours, tree_of

PLAIN = load(profile="adaptive-gap", environ={}).settings
ALL_ON = PLAIN.with_values({"clearance.enabled": True, "query_must.enabled": True})


class Store:
    """Only what `read_neighbours` needs, with a count of what it is asked for."""

    def __init__(self) -> None:
        self.all = {chunk.id: chunk for chunk in CHUNKS}
        self.fetched: list[str] = []

    def catalogue(self) -> Mapping[str, Chunk]:
        return {c.id: Chunk(c.id, refs=c.refs, clearance=c.clearance, rule=c.rule, loaded=False) for c in CHUNKS}

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        self.fetched += ids
        return {i: self.all[i] for i in ids if i in self.all}


def result(settings: Settings, query: str = "who may") -> PoolResult:
    """Root and a are near, d is far."""
    near = [("root", 0.1), ("a", 0.2), ("d", 1.5)]
    by_id = {chunk.id: chunk for chunk in CHUNKS}
    hits = tuple(Hit(by_id[i], d, rank) for rank, (i, d) in enumerate(near, start=1))
    return replay(Pool(query, "world", "l2", hits), settings)


def known() -> Neighbourhood:
    return read_neighbours("root", Store())  # type: ignore[arg-type]


def tree(*given: Any, **options: Any) -> ReferenceTree:
    made = tree_of(*given, **options)
    assert made is not None
    return made


def lines(made: ReferenceTree) -> list[tuple[str, int, str]]:
    return [(node.id, node.step, node.status) for node in made.nodes]


def test_each_chunk_stands_below_the_one_that_names_it_with_what_became_of_it() -> None:
    made = tree("root", known(), result(PLAIN))
    assert lines(made) == [
        ("a", 1, "kept"),
        ("c", 2, "new"),
        ("ruled", 3, "new"),
        ("d", 3, "dropped"),
        ("e", 4, "new"),
        ("f", 5, "new"),
        ("b", 1, "new"),
        ("secret", 2, "new"),
        ("deep", 3, "new"),
    ]
    # gone is in no collection; g is beyond the fifth step. "A\nabout a" has nine bytes, as has B.
    assert (made.not_followed, made.names) == ({"unknown": 1}, ("gone (unknown)",))
    assert made.sums[1] == (2, 1, 6)
    assert [made.sums[depth][:2] for depth in (3, 5)] == [(7, 6), (9, 8)]


def test_as_a_user_nothing_hidden_is_named_nor_walked_through() -> None:
    made = tree("root", known(), result(ALL_ON))
    assert [i for i, _, _ in lines(made)] == ["a", "c", "d", "e", "f", "b"]
    assert made.not_followed == {"hidden": 1, "unknown": 1, "ruled": 1}
    assert made.names == ("Ruled (its rule fails)",)
    assert "ecret" not in repr(made)
    assert "gone" not in repr(made)


def test_an_operator_reads_the_names_of_what_stays_hidden() -> None:
    made = tree("root", known(), result(ALL_ON), as_operator=True)
    assert [i for i, _, _ in lines(made)] == ["a", "c", "d", "e", "f", "b"]
    assert made.names == ("gone (unknown)", "Secret plan (hidden)", "Ruled (its rule fails)")


def test_the_limit_counts_what_is_left_beyond() -> None:
    for most, expected in [(1, ["a"]), (3, ["a", "c", "b"])]:
        settings = PLAIN.with_values({"judge.max_expansion": most})
        made = tree("root", known(), result(settings))
        assert [i for i, _, _ in lines(made)] == expected
        assert made.not_followed["beyond"] > 0, most


def test_while_the_judge_waits_nothing_counts_as_kept() -> None:
    settings = load(profile="llm-filter", environ={}).settings
    assert lines(tree("root", known(), result(settings)))[0] == ("a", 1, "waits")
    # A chunk that is too far away to stay unjudged waits too, since a verdict may keep it.
    settings = settings.with_values({"judge.max_chunks": 1, "judge.oversample": 10.0})
    assert [hit.id for hit in result(settings).kept] == ["root"]
    assert lines(tree("root", known(), result(settings)))[0] == ("a", 1, "waits")


def test_the_store_is_asked_once_whatever_the_settings_are_then() -> None:
    store = Store()
    around = read_neighbours("root", store)  # type: ignore[arg-type]
    store.fetched.clear()
    for settings in (PLAIN, ALL_ON, PLAIN.with_values({"judge.max_expansion": 2})):
        assert tree("root", around, result(settings)).nodes
    assert store.fetched == []
