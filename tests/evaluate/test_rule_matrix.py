"""The matrix of rules: figures calculated by hand, and fast removal of rules equal to a full replay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragfilter.evaluate.effect import make_labelled
from ragfilter.evaluate.rule_matrix import build_matrix, build_parts
from ragfilter.layers import cutoff, layer
from ragfilter.model import Chunk, Entity, Hit, Pool, User
from ragfilter.rules.match import check
from ragfilter.rules.rule import Rule, parse
from ragfilter.settings.config import load
from ragfilter.settings.schema import Settings

TROLL = '{"contain_one_of":[["troll","trolls"]]}'
OWL = '{"contain_one_of":[["owl"]]}'
NEVER = '{"contain":"unicorn"}'
FIRST_2 = Settings().with_values({"retrieval.k": 2, "cutoff.enabled": False})

CHUNKS = (
    Chunk("t", rule=TROLL),
    Chunk("o", rule=OWL),
    Chunk("x"),
    Chunk("n", rule=NEVER),
    Chunk("y"),
    Chunk("far", rule=OWL),
)


def pool(query: str, *chunks: Chunk) -> Pool:
    hits = (Hit(chunk, 0.1 * rank, rank) for rank, chunk in enumerate(chunks, start=1))
    return Pool(query, "demo", "l2", tuple(hits))


POOLS = {
    # Kept: t, x. The owl is blocked, and n is too far down to be considered.
    "trolls": pool("a troll", *CHUNKS),
    # Kept: o, x. The troll is blocked although it is labelled relevant.
    "owls": pool("an owl", *CHUNKS),
    # Kept: x, y. All three rules block.
    "boats": pool("a boat", *CHUNKS),
}
QRELS = {"trolls": {"t": 1}, "owls": {"o": 1, "t": 1}, "boats": {"y": 1}}


def test_figures_by_hand() -> None:
    made = build_matrix(POOLS, QRELS, CHUNKS, FIRST_2)
    assert (made.queries, made.labelled, made.waiting) == (3, 3, 0)
    rows = {row.rule.text: row for row in made.rules}
    assert [row.chunk_ids for row in rows.values()] == [("t",), ("n",), ("o", "far")]
    troll, owl, never = rows[TROLL], rows[OWL], rows[NEVER]
    assert (troll.queries, troll.blocks, troll.passes, troll.overlap) == (3, 2, 1, 0)
    assert troll.conflicts == (("owls", "t"),)
    assert (troll.precision, troll.fires) == (0.5, "sometimes")
    # Owls would keep t, o: F1 1 instead of 1/2. Boats t, x instead of x, y: 0 instead of 2/3.
    assert troll.delta_f1 == pytest.approx((1 / 2 - 2 / 3) / 3)
    assert troll.delta_recall == pytest.approx((1 / 2 - 1) / 3)
    # Trolls would keep t, o, as good as t, x; boats o, x.
    assert (owl.queries, owl.blocks, owl.passes, owl.precision) == (3, 2, 1, 1.0)
    assert owl.delta_f1 == pytest.approx(-2 / 3 / 3)
    # Only for boats is n considered; x and n would be kept.
    assert (never.queries, never.blocks, never.passes, never.fires) == (1, 1, 0, "always")
    assert never.delta_f1 == pytest.approx(-2 / 3 / 3)


def test_a_block_that_another_layer_would_have_made_is_overlap() -> None:
    near = pool("boat", Chunk("x"), Chunk("t", rule=TROLL), Chunk("y"))
    cut = Settings().with_values({"cutoff.strategy": "fixed", "cutoff.max_results": 1})
    # The first k of retrieval are looked at, and the cutoff keeps one of them.
    (row,) = build_matrix({"q": near}, {"q": {"x": 1}}, CHUNKS[:1], cut).rules
    assert (row.blocks, row.overlap, row.delta_f1) == (1, 1, 0.0)


def test_without_labels_there_are_counts_only() -> None:
    made = build_matrix(POOLS, {}, CHUNKS, FIRST_2)
    assert (made.queries, made.labelled, made.crowding) == (3, 0, ())
    for row in made.rules:
        assert (row.precision, row.delta_f1, row.delta_recall, row.conflicts) == (None, None, None, ())
    assert sum(row.blocks for row in made.rules) == 5


def test_a_rule_that_is_never_retrieved_never_fires() -> None:
    elsewhere = Chunk("elsewhere", rule='{"contain":"gnome"}')
    row = build_matrix(POOLS, QRELS, [elsewhere], FIRST_2).rules[0]
    assert (row.queries, row.blocks, row.fires, row.precision) == (0, 0, "never", None)


def test_chunks_without_a_rule_that_crowd() -> None:
    made = build_matrix(POOLS, QRELS, CHUNKS, FIRST_2)
    (row,) = made.crowding
    assert (row.chunk_id, row.retrieved, row.irrelevant, row.kept) == ("x", 3, 3, 3)


def test_hidden_chunks_are_left_out() -> None:
    barred = FIRST_2.with_values({"clearance.enabled": True})
    chunks = tuple(replace(c, clearance=2) if c.id == "t" else c for c in CHUNKS)
    pools = {name: pool(p.query, *chunks) for name, p in POOLS.items()}
    assert TROLL not in {row.rule.text for row in build_matrix(pools, QRELS, chunks, barred).rules}
    seen = build_matrix(pools, QRELS, chunks, barred, User(2))
    assert seen == build_matrix(POOLS, QRELS, CHUNKS, FIRST_2)


def test_groups_and_terms_have_rows_of_their_own() -> None:
    # With other spaces than the rule as saved.
    rule = '{"contain_none_of": ["owl"], "contain_one_of": [["troll", "trolls"], ["cave"]]}'
    chunk = Chunk("t", rule=rule)
    pools = {
        "met": pool("a troll in a cave", chunk, Chunk("x")),
        "no cave": pool("a troll", chunk, Chunk("x")),
        "owl": pool("troll, owl and cave", chunk, Chunk("x")),
    }
    qrels = {"met": {"t": 1}, "no cave": {"t": 1}, "owl": {"x": 1}}
    first = FIRST_2.with_values({"retrieval.k": 1})
    rows = {row.place: row for row in build_parts(parse(rule), pools, qrels, [chunk], first)}
    assert set(rows) == {
        "contain_one_of[0]",
        "contain_one_of[0][0]",
        "contain_one_of[0][1]",
        "contain_one_of[1]",
        "contain_none_of[0]",
    }
    cave, owl = rows["contain_one_of[1]"], rows["contain_none_of[0]"]
    assert (cave.queries, cave.blocks, cave.conflicts) == (1, 1, (("no cave", "t"),))
    assert cave.delta_f1 == pytest.approx(1 / 3)
    assert (owl.queries, owl.blocks, owl.precision) == (1, 1, 1.0)
    assert owl.delta_f1 == pytest.approx(-1 / 3)
    singular, plural = rows["contain_one_of[0][0]"], rows["contain_one_of[0][1]"]
    assert (singular.queries, singular.passes, singular.blocks) == (1, 1, 0)
    assert singular.delta_recall == pytest.approx(-1 / 3)
    assert (plural.queries, plural.fires) == (0, "never")
    assert next(iter(rows)) == "contain_one_of[1]"


WORDS = ("owl", "troll", "cave 2", "boat")
TERMS = st.sampled_from(WORDS)
RULES = st.one_of(
    st.none(),
    st.builds(lambda a, b: json.dumps({"contain_one_of": [[a, b]]}), TERMS, TERMS),
    st.builds(lambda a, b: json.dumps({"contain": a, "contain_none_of": [b]}), TERMS, TERMS),
)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[dict[str, Pool], dict[str, dict[str, int]], list[Chunk]]:
    n = draw(st.integers(1, 30))
    chunks = [
        Chunk(
            f"c{i}",
            draw(TERMS),
            draw(TERMS),
            rule=draw(RULES),
            clearance=draw(st.sampled_from((0, 0, 0, 2))),
            refs=tuple(f"c{ref}" for ref in draw(st.lists(st.integers(0, n), max_size=2))),
        )
        for i in range(n)
    ]
    pools, qrels = {}, {}
    for name in ("one", "two"):
        query = " or ".join(draw(st.lists(TERMS, min_size=1, max_size=2)))
        order = draw(st.permutations(chunks))
        steps = draw(st.lists(st.sampled_from((0.0, 0.02, 0.15)), min_size=n, max_size=n))
        hits = [Hit(chunk, 0.5 + sum(steps[: i + 1]), i + 1) for i, chunk in enumerate(order)]
        sides = draw(st.lists(st.permutations([c.id for c in chunks]), max_size=2))
        entities = tuple(Entity(draw(TERMS), tuple(ids[:5])) for ids in sides)
        pools[name] = Pool(query, "demo", "l2", tuple(hits), entities)
        qrels[name] = {c.id: draw(st.integers(0, 1)) for c in chunks}
    return pools, qrels, chunks


PROFILES = ("full", "query-must", "adaptive-gap+entities", "adaptive-retrieval", "llm-filter")


@pytest.fixture(scope="module")
def from_few() -> Iterator[None]:
    """Lower the number of hits needed for a background from 50 to 4."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (layer, cutoff):
            patch.setattr(module, "BACKGROUND_FROM", 4)
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("from_few")
@given(worlds(), st.sampled_from(PROFILES), st.sampled_from((0, 2)), st.booleans(), st.sampled_from((3, 20)))
@settings(max_examples=50)
def test_removing_a_rule_is_what_the_whole_replay_says(
    world: tuple[dict[str, Pool], dict[str, dict[str, int]], list[Chunk]],
    profile: str,
    level: int,
    diverse: bool,
    depth: int,
) -> None:
    pools, qrels, chunks = world
    chosen = load(profile=profile, environ={}).settings.with_values(
        {
            "query_must.enabled": True,
            "retrieval.k": 3,
            "words.depth": depth,
            "quality.min_top_k": 3,
            "quality.max_top_k": 4,
            "cutoff.max_results": 4,
            "diversity.enabled": diverse,
            "context.max_context_tokens": 100,
        }
    )
    user = User(level)
    matrix = build_matrix(pools, qrels, chunks, chosen, user)
    for row in matrix.rules:
        effect = make_labelled(pools, qrels, chosen, user).effect(dict.fromkeys(row.chunk_ids))
        assert effect.before is not None
        assert effect.after is not None
        assert row.delta_f1 == pytest.approx(effect.after.f1 - effect.before.f1, abs=1e-9)
        assert row.delta_recall == pytest.approx(effect.after.recall - effect.before.recall, abs=1e-9)
        # A rule that held may have pinned its chunks, so without it other chunks may come in.
        assert isinstance(row.rule, Rule)
        blocked = [q for q in effect.rows if not check(row.rule, q.query).passes]
        kept = sum(len({*change.gained} & {*row.chunk_ids}) for change in blocked)
        assert row.blocks - row.overlap == kept
