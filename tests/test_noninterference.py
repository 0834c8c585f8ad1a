"""Hidden chunks change nothing that is made as their user: they are added, moved and removed, and
every export stays exactly the same, apart from times.

Only users who cannot see anything are told so, and which level they need.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from stores import large
from test_no_leak import (
    ACTIONS,
    QUERIES,
    Ports,
    background_of_few,  # noqa: F401
    choices,
    exports,
    sees,
    users,
    worlds,
)

from ragfilter.answer.answer import AnswerStream
from ragfilter.answer.context_packing import pack
from ragfilter.cli.query import query_text
from ragfilter.engine.pipeline import search_and_filter
from ragfilter.engine.replay import replay, replay_as_user
from ragfilter.errors import InputError
from ragfilter.layers.cutoff import cutoff_detail
from ragfilter.layers.references import preview_expansion
from ragfilter.model import Chunk, Entity, Hit, Pool, PoolResult, User
from ragfilter.protocols import Delta, Message
from ragfilter.results.document import document, trace_text
from ragfilter.results.rows import rows
from ragfilter.results.summary import summary, why_this_many
from ragfilter.settings.schema import Settings
from ragfilter.ui.inspect import curve_plot

TIMES = re.compile(r"""\bms=[\d.e-]+|["']\w*ms["']: [\d.e-]+| *[\d,.]*\d m?s\b *|\btime +""")


class Steady(Ports):
    """Fakes whose models always give the same output for a text."""

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return [crc32(text.encode()) % 1000 / 1000 for text in texts]

    def stream(self, messages: Sequence[Message], **_: object) -> Iterator[Delta]:
        said = "\n".join(message.content for message in messages)
        for chunk_id in sorted(set(re.findall(r"id\d\dz", said))):
            action = ACTIONS[crc32(chunk_id.encode()) % len(ACTIONS)]
            yield Delta(f"{chunk_id} -> {action}\n")


def made_as_the_user(result: PoolResult) -> str:
    """Everything that is shown or saved as the user, without times."""
    view = replay_as_user(result)
    shown = rows(result)
    points = curve_plot.place(view, shown, cutoff_detail(view))
    told = (
        exports(result),
        query_text(result, profile="full", every=True),
        repr(points),
        repr(curve_plot.around_cut(view, points, cutoff_detail(view))),
        repr([(need.kind, need.chunk_ids, need.why) for need in result.needs]),
    )
    return TIMES.sub("", "\n".join(told))


def asked(query: str, settings: Settings, ports: Ports, user: User, *, pushed: bool) -> str:
    """Everything a user sees of a question, including a refusal."""
    try:
        backends = ports.backends()
        result = search_and_filter(query, settings, large(backends) if pushed else backends, user)
    except InputError as error:
        return str(error)
    made = AnswerStream(query, pack(result.kept, settings), ports, ports, timeout_s=1).read()
    seen = [c.id for c in ports.all.values() if sees(user, c)]
    previews = [preview_expansion(i, ports, settings, user, query=query) for i in seen]
    return TIMES.sub("", "\n".join((made_as_the_user(result), repr(made), repr(previews))))


@pytest.mark.slow
@examples(max_examples=150, deadline=None)
@given(worlds(), choices(), users, st.sampled_from(QUERIES), st.booleans(), st.data())
def test_hidden_chunks_change_nothing_that_a_user_gets(
    world: Ports, values: dict[str, Any], user: User, query: str, pushed: bool, data: st.DataObject
) -> None:
    settings = Settings().with_values({**values, "retrieval.pool_size": 10, "retrieval.k": 3})
    with_them = Steady(world.all, world.distances, random.Random(0))
    seen = {i: c for i, c in world.all.items() if sees(user, c)}
    if not seen:
        return
    without = Steady(seen, world.distances, random.Random(0))
    moved = Steady(
        world.all,
        {i: d if i in seen else data.draw(st.floats(0.0, 1.4, allow_nan=False)) for i, d in world.distances.items()},
        random.Random(0),
    )
    alone = asked(query, settings, without, user, pushed=pushed)
    assert asked(query, settings, with_them, user, pushed=pushed) == alone
    assert asked(query, settings, moved, user, pushed=pushed) == alone


def pool(*hits: tuple[str, float, int]) -> Pool:
    return Pool(
        "q",
        "demo",
        "l2",
        tuple(Hit(Chunk(i, f"text {i}", clearance=level), d, rank) for rank, (i, d, level) in enumerate(hits, start=1)),
        entities=(Entity("a", tuple(i for i, _, _ in hits)),),
    )


SEEN = (("a", 0.10, 0), ("b", 0.18, 0), ("c", 0.45, 0))
HIDDEN = [
    # what is next to the chunks that the user sees
    (("x", 0.05, 1),),
    (("x", 0.15, 1),),
    (("x", 0.25, 1), ("y", 0.44, 2)),
    (("x", 0.90, 3),),
]


@pytest.mark.parametrize("hidden", HIDDEN)
def test_rank_gap_and_confidence_are_those_of_what_the_user_sees(hidden: tuple[tuple[str, float, int], ...]) -> None:
    settings = Settings().with_values({"clearance.enabled": True, "confidence.high_below": 0.5})
    mixed = replay(pool(*sorted([*SEEN, *hidden], key=lambda hit: hit[1])), settings)
    made = rows(mixed)
    assert [(row.rank, row.id, row.confidence) for row in made] == [(1, "a", "high"), (2, "b", "high"), (3, "c", "low")]
    assert [None if row.gap is None else round(row.gap, 2) for row in made] == [None, 0.08, 0.27]
    assert [hit.id for hit in replay_as_user(mixed).kept] == [hit.id for hit in mixed.kept]
    # An operator sees where hidden chunks are, and how many.
    assert len(rows(mixed, as_operator=True)) == 3 + len(hidden)
    told = "1 chunk hidden" if len(hidden) == 1 else f"{len(hidden)} chunks hidden"
    every = summary(mixed, as_operator=True)
    assert told in [line for _, line in every.layers]


def test_a_user_who_may_see_nothing_is_told_the_level_and_no_more() -> None:
    settings = Settings().with_values({"clearance.enabled": True})
    documents = []
    for hits in ([("x", 0.1, 4)], [("x", 0.7, 1), ("y", 0.8, 4)]):
        result = replay(pool(*hits), settings)
        made = document(result)
        for layer in made["layers"]:
            del layer["ms"]
        documents.append(made)
        assert (made["status"], made["max_security_level"]) == ("insufficient_clearance", 4)
        assert (made["hits"], made["retrieved"], made["hidden"]) == ([], 0, None)
        assert "Ask someone with clearance level 4." in why_this_many(result)
        assert "status insufficient_clearance" in trace_text(result)
    assert json.dumps(documents[0]) == json.dumps(documents[1])
