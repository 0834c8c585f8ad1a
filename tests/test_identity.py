"""The user is not a setting, and one method decides what they can see: for values of any type, on
every way out, both in the store's own condition and in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from test_no_leak import (
    EXPORTS,
    STRANGE_CLEARANCES,
    STRANGE_DEPARTMENTS,
    allowed,
    background_of_few,  # noqa: F401
    check,
    everything,
    handed,
    names_of,
    sees,
)

from ragfilter.answer.answer import messages
from ragfilter.answer.context_packing import pack
from ragfilter.cli.query import query_text
from ragfilter.engine.replay import replay, replay_as_user
from ragfilter.errors import InputError, SettingsError
from ragfilter.layers.references import preview_expansion
from ragfilter.model import MAX_LEVEL, Chunk, Entity, Hit, Judgement, Pool, PoolResult, User, Verdict
from ragfilter.publish import reports
from ragfilter.publish.reports import ReportOrigin
from ragfilter.results.rows import references, rows, visible_ids
from ragfilter.results.verdicts import judge_prompt
from ragfilter.settings import config
from ragfilter.settings.schema import Settings
from ragfilter.ui.inspect.reference_tree import Neighbourhood
from ragfilter.ui.session import link
from ragfilter.ui.session.state import Session

NAMES = ("ops", "hr", "law", "5", "None", "nan")
LEVELS = (0, 1, 2, 3, 100, MAX_LEVEL)
THEIRS = ((), *((name,) for name in NAMES), NAMES[:3], NAMES[3:])
USERS = [User(level, theirs) for level in LEVELS for theirs in THEIRS]
NUMBERS = (*range(-2, 5), *map(np.int32, range(-2, 5)), 2**31, -(2**64), 1e300, -0.0, b"\x00", "1", "²", MAX_LEVEL)
CLEARANCES = (*NUMBERS, *STRANGE_CLEARANCES)
DEPARTMENTS = (None, *NAMES, *map(str.encode, NAMES), 5, 5.0, *STRANGE_DEPARTMENTS)


def test_a_user_sees_a_true_level_and_department_of_theirs_and_nothing_else() -> None:
    for clearance, department in product(CLEARANCES, DEPARTMENTS):
        chunk = Chunk("c", clearance=clearance, department=department)
        for user in USERS:
            assert user.sees(chunk) is allowed(user, clearance, department), (user, chunk)
            assert user.sees(chunk) is (user.refusal(chunk) == ""), (user, chunk)


# -- every way out, 10,000 cases in all ------------------------------------------------------------

ACCESS: list[tuple[Any, Any]] = [
    *((level, name) for level in (0, 0, 1, 2) for name in (None, None, "ops", "hr")),
    *((level, None) for level in STRANGE_CLEARANCES),
    *((0, name) for name in STRANGE_DEPARTMENTS),
]
SWITCHED: list[dict[str, Any]] = [
    {"cutoff.enabled": False},
    {"entities.enabled": True},
    {"judge.enabled": True},
    {"judge.enabled": True, "cutoff.enabled": False, "judge.min_relevance": 0.0},
    {"quality.enabled": True, "quality.reranker": "none", "query_must.enabled": True},
    {"retrieval.source_pattern": "a.json", "retrieval.k": 2, "cutoff.enabled": False},
    {"query_must.enabled": True, "query_must.pin": True, "words.enabled": True},
    {
        "words.enabled": True,
        "quality.enabled": True,
        "quality.good_by": "background",
        "quality.reranker": "none",
        "cutoff.strategy": "relative",
    },
]
CHOSEN = [Settings().with_values({"clearance.enabled": True, **values}) for values in SWITCHED]


def world(access: Sequence[tuple[Any, Any]]) -> list[Chunk]:
    """Chunks that each refer to all others; every second one has a rule that holds."""
    names = [names_of(number) for number in range(len(access))]
    return [
        Chunk(
            chunk_id,
            f"{text} is open.",
            f"{title} giant",
            source=("a.json", "b.json")[number % 2],
            refs=tuple(other for other, _, _ in names if other != chunk_id),
            clearance=clearance,
            department=department,
            rule='{"contain": "giant"}' if number % 2 else None,
        )
        for number, ((chunk_id, title, text), (clearance, department)) in enumerate(zip(names, access, strict=True))
    ]


def result_of(chunks: Sequence[Chunk], user: User, settings: Settings) -> PoolResult:
    """A result over a pool that was gathered for everyone: the last chunk is reached only by
    references, and a judge expanded every chunk in its prompt."""
    hits = tuple(Hit(chunk, 0.1 * rank, rank) for rank, chunk in enumerate(chunks[:-1], start=1))
    asked = tuple(hit.id for hit in hits if sees(user, hit.chunk))
    pool = Pool(
        "giant vs troll",
        "demo",
        "l2",
        hits,
        entities=(Entity("giant", tuple(hit.id for hit in hits)),),
        judgements=(Judgement(asked, tuple(Verdict(i, "EXPAND", 5) for i in asked)),),
        reachable=tuple(Hit(chunk, 1.2, 0, "expansion") for chunk in chunks[-1:]),
        references=tuple(replace(chunk, text="", title="", loaded=False) for chunk in chunks),
    )
    return replay(pool, settings, user)


def seen_hits(result: PoolResult) -> str:
    made = replay_as_user(result)
    return repr([(h.id, h.chunk.title, h.chunk.text) for h in (*made.hits, *made.kept)])


def expansions(result: PoolResult) -> str:
    """The chunks that an expansion of each visible chunk would bring in."""
    every = [hit.chunk for hit in (*result.pool.hits, *result.pool.reachable)]
    known = Neighbourhood({chunk.id: chunk for chunk in every})
    roots = [chunk.id for chunk in every if sees(result.user, chunk)]
    settings, user = result.settings, result.user
    return "\n".join(
        each for i in roots for each in everything([*preview_expansion(i, known, settings, user).values()])
    )


def judges_prompts(result: PoolResult) -> str:
    """The prompts for a judge, before and after it was called."""
    waiting = replay(replace(result.pool, judgements=()), result.settings, result.user)
    return repr([judge_prompt(waiting), judge_prompt(result)])


def html_report(result: PoolResult) -> str:
    origin = ReportOrigin("demo", "v1", "model", "l2", result.user, datetime(2026, 1, 1, tzinfo=UTC))
    return reports.of_query(result, "full", origin)


SINKS: dict[str, Callable[[PoolResult], str]] = {
    **EXPORTS,
    "hits": seen_hits,
    "rows": lambda result: repr((rows(result), visible_ids(result))),
    "references": lambda result: repr(references(result)),
    "terminal": lambda result: query_text(result, profile="full", every=True),
    "prompt": lambda result: repr(messages(result.query, pack(result.kept, result.settings))),
    "judge's prompt": judges_prompts,
    "expansions": expansions,
    "library": handed,
    "report": html_report,
}
CASES = 10_000 // len(SINKS) + 1


@pytest.mark.slow
@examples(max_examples=CASES)
@given(st.lists(st.sampled_from(ACCESS), min_size=2, max_size=6), st.sampled_from(USERS), st.sampled_from(CHOSEN))
def test_no_way_out_names_what_is_hidden(access: list[tuple[Any, Any]], user: User, settings: Settings) -> None:
    hidden = [
        name
        for number, (clearance, department) in enumerate(access)
        if not allowed(user, clearance, department)
        for name in names_of(number)
    ]
    result = result_of(world(access), user, settings)
    for sink in SINKS.values():
        check(hidden, sink(result))


def test_every_way_out_names_what_is_seen_so_that_the_law_above_can_fail() -> None:
    results = [result_of(world([(0, None)] * 4), User(), settings) for settings in CHOSEN]
    for name, sink in SINKS.items():
        assert name == "summary" or any(seen in sink(each) for each in results for seen in names_of(0)), name


# -- no setting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [-1, 1.0, True, None, "1", np.int64(1), MAX_LEVEL + 1])
def test_a_level_that_is_none_is_refused(level: Any) -> None:
    with pytest.raises(InputError, match=r"level is .* must be a whole number"):
        User(level)


@pytest.mark.parametrize("name", ["level", "department", "departments"])
def test_a_place_of_settings_that_names_a_user_is_refused_by_name(name: str, tmp_path: Path) -> None:
    file = tmp_path / "tuned.toml"
    file.write_text(f"[clearance]\nenabled = true\n{name} = 3\n", encoding="utf-8")
    told = rf"no setting 'clearance.{name}' \(from .*tuned.toml\)"
    with pytest.raises(SettingsError, match=told):
        config.load(file=file, environ={})
    variable = f"RAGFILTER_CLEARANCE__{name.upper()}"
    with pytest.raises(SettingsError, match=variable):
        config.load(environ={variable: "3"})
    opened = link.read({"profile": "full", f"clearance.{name}": "3"})
    assert (opened.user, opened.changes) == (User(), {})
    assert f"no setting 'clearance.{name}'" in opened.notices[0]


names = st.text(st.characters(exclude_characters=",", exclude_categories=("Cs",)), max_size=8)
pages_users = st.builds(
    User, st.integers(0, 10**9 - 1), st.lists(names.map(str.strip).filter(bool), unique=True, max_size=3).map(tuple)
)


@given(pages_users)
def test_a_link_brings_its_user_back_beside_the_settings(user: User) -> None:
    params = link.write(Session("adaptive-gap", {}, collection="c", user=user))
    opened = link.read(params)
    assert (opened.user, opened.notices, opened.changes) == (user, [], {})
    assert ("level" in params, "departments" in params) == (user.level > 0, user.departments != ())


def test_a_link_with_another_level_is_the_publics() -> None:
    for level in ["-1", "1.5", "", "high", "²", "9" * 5000]:
        opened = link.read({"profile": "full", "level": level})
        assert opened.user == User(), level
        assert ["is not a whole number; 0 is used" in why for why in opened.notices] == [True], level
