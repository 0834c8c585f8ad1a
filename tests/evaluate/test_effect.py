"""The effect of a rule change on small pools, calculated by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragfilter.evaluate.effect import make_labelled
from ragfilter.model import Chunk, Hit, Pool, User
from ragfilter.rules.rule import Rule, read_text, texts_of
from ragfilter.settings.schema import Settings

TROLL = '{"contain_one_of":[["troll"]]}'
OWL = '{"contain_one_of":[["owl"]]}'
FIRST_2 = Settings().with_values({"retrieval.k": 2, "cutoff.enabled": False, "query_must.enabled": True})


def pool(query: str, *chunks: Chunk) -> Pool:
    hits = (Hit(chunk, 0.1 * rank, rank) for rank, chunk in enumerate(chunks, start=1))
    return Pool(query, "demo", "l2", tuple(hits))


TROLLS = pool("a troll", Chunk("t", rule=TROLL), Chunk("o", rule=OWL), Chunk("x"), Chunk("y"))
OWLS = pool("an owl", Chunk("t", rule=TROLL), Chunk("o", rule=OWL), Chunk("x"), Chunk("y"))
POOLS = {"trolls": TROLLS, "owls": OWLS}
QRELS = {"trolls": {"t": 1}, "owls": {"o": 1, "x": 1, "y": 0}}


def test_a_rule_that_is_removed_lets_its_chunk_in_and_pushes_another_out() -> None:
    made = make_labelled(POOLS, QRELS, FIRST_2).effect({"o": None})
    assert (made.queries, made.labelled, made.loses_relevant) == (2, 2, False)
    (row,) = made.rows
    assert (row.id, row.gained, row.lost, row.lost_relevant) == ("trolls", ("o",), ("x",), ())
    # Trolls: one of two kept is relevant, before and after. Owls: both are.
    assert made.before == made.after
    assert made.before is not None
    assert (made.before.precision, made.before.recall) == (0.75, 1.0)


def test_lost_relevant_chunks_come_first() -> None:
    # Now no question meets the troll's rule, and every question lets the owl in.
    made = make_labelled(POOLS, QRELS, FIRST_2).effect({"t": read_text(OWL), "o": None})
    assert [(row.id, row.lost_relevant) for row in made.rows] == [("trolls", ("t",)), ("owls", ("x",))]
    assert made.loses_relevant
    assert made.before is not None
    assert made.after is not None
    assert made.before.recall - made.after.recall == pytest.approx((1 + 1 / 2) / 2)
    first = made.rows[0]
    assert first.before is not None
    assert first.after is not None
    assert (first.before.recall, first.after.recall) == (1.0, 0.0)


def test_queries_without_labels_change_and_have_no_figures() -> None:
    made = make_labelled(POOLS, {}, FIRST_2).effect({"o": None})
    (row,) = made.rows
    assert (row.before, row.after, made.before, made.labelled) == (None, None, None, 0)
    assert not made.loses_relevant


def test_what_the_user_may_not_see_has_no_effect() -> None:
    secret = tuple(replace(hit, chunk=replace(hit.chunk, clearance=3)) if hit.id == "o" else hit for hit in TROLLS.hits)
    barred = FIRST_2.with_values({"clearance.enabled": True})
    hidden = {"trolls": replace(TROLLS, hits=secret)}
    assert make_labelled(hidden, QRELS, barred).effect({"o": None}).rows == ()
    assert len(make_labelled(hidden, QRELS, barred, User(3)).effect({"o": None}).rows) == 1


def test_nothing_changes_where_the_layer_is_off_or_the_rule_means_the_same() -> None:
    off = FIRST_2.with_values({"query_must.enabled": False})
    assert make_labelled(POOLS, QRELS, off).effect({"o": None, "t": read_text(OWL)}).rows == ()
    assert make_labelled(POOLS, QRELS, FIRST_2).effect({"o": read_text(OWL), "elsewhere": None}).rows == ()


def test_a_rule_that_still_passes_but_pins_no_longer_loses_its_chunk() -> None:
    # Only the pin keeps the owl, which is beyond what the first two take.
    behind = pool("an owl", *map(Chunk, "abc"), Chunk("o", rule=OWL))
    pins = FIRST_2.with_values(
        {"query_must.pin": True, "cutoff.enabled": True, "cutoff.strategy": "fixed", "cutoff.max_results": 1}
    )
    labelled = make_labelled({"q": behind}, {"q": {"o": 1}}, pins)
    made = labelled.effect({"o": Rule(contain_none_of=("x",))})
    (row,) = made.rows
    assert (row.lost, row.lost_relevant, made.loses_relevant) == (("o",), ("o",), True)


def test_questions_left_with_too_little_need_a_new_search() -> None:
    made = make_labelled(POOLS, QRELS, FIRST_2)
    assert made.effect({"x": read_text(OWL)}).short == 0
    # Nothing but the troll is left for trolls, and nothing but the owl for owls.
    changes = dict.fromkeys(("x", "y"), Rule(contain="boat"))
    assert made.effect(changes).short == 2
    after = made.renew({i: Chunk(i, rule=text) for i, text in texts_of(changes).items()})
    assert after.short == {"trolls", "owls"}
    # Nor does a later change make the old hits enough.
    assert after.effect({"x": None}).short == 2
    whole = {name: replace(each, exhaustive=True) for name, each in POOLS.items()}
    assert make_labelled(whole, QRELS, FIRST_2).effect(changes).short == 0
