"""A gate in words, the same on the page, on the command line and in JUnit. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from ragfilter.evaluate.baseline import Drop, Gone
from ragfilter.evaluate.gate import Gate
from ragfilter.evaluate.junit import Case, junit
from ragfilter.evaluate.limits import SHARES, Check, Limit
from ragfilter.text.numbers import apart, counted, p_value, signed
from ragfilter.text.titles import query_name

NAMES = {
    "precision": "precision", "recall": "recall", "f1": "F1", "kept": "kept chunks",
    "lost": "lost relevant chunks",
}  # fmt: skip
WIDTH = 60
SHOWN = 20
"""How many of the questions are listed where there is little room."""


def line(one: Check | Drop | Gone) -> str:
    """What was checked, and what came out; not whether it passed."""
    if isinstance(one, Check):
        return f"mean {NAMES[one.limit.figure]} {one.mean:.3f}, {_at(one.limit)}"
    if isinstance(one, Gone):
        return _gone(one)
    severe = f"; {counted(len(one.severe), 'question')} lost 0.5 or more" if one.severe else ""
    return (
        f"mean {NAMES[one.figure]} {one.now:.3f}, baseline {one.before:.3f}: {signed(-one.drop)}, "
        f"may drop {one.allowed:g} ({p_value(one.p_value)}){severe}"
    )


def broken(gate: Gate) -> dict[str, str]:
    """Why each question breaks the gate, by its id. Those that the baseline names come first,
    because a limit on a mean also names questions that are as they were."""
    return _broken(reversed(gate.every))


def listed(reasons: Mapping[str, str], texts: Mapping[str, str]) -> list[str]:
    """The first `SHOWN` questions of `broken`, each in one line with why. `texts` has the questions
    by id."""
    lines = [
        f"{query_name(i, texts.get(i, ''), WIDTH)}: {why}"
        for i, why in islice(reasons.items(), SHOWN)
    ]
    more = len(reasons) - SHOWN
    return [*lines, f"… and {more} more"] if more > 0 else lines


def suite(gate: Gate, collection: str, texts: Mapping[str, str]) -> str:
    """The checks as JUnit XML, with the questions that break each of them."""
    cases = []
    for one in gate.every:
        why = "" if one.passed else "\n".join([line(one), *listed(_broken([one]), texts)])
        cases.append(Case(_name(one), why))
    return junit(f"ragfilter gate {collection}", cases)


def _broken(checks: Iterable[Check | Drop | Gone]) -> dict[str, str]:
    reasons: dict[str, list[str]] = {}
    for one in checks:
        for query_id, reason in [] if one.passed else _reasons(one):
            reasons.setdefault(query_id, []).append(reason)
    return {query_id: ", ".join(found) for query_id, found in reasons.items()}


def _name(one: Check | Drop | Gone) -> str:
    if isinstance(one, Drop):
        return f"{NAMES[one.figure]} against the baseline"
    if isinstance(one, Gone):
        return "questions and relevant chunks of the baseline"
    return f"{NAMES[one.limit.figure]} {_at(one.limit)}"


def _at(limit: Limit) -> str:
    return f"at {'least' if limit.least else 'most'} {limit.value:g}"


def _gone(gone: Gone) -> str:
    if gone.passed:
        return "all questions and relevant chunks of the baseline are there"
    fewer = sum(fewer for _, fewer in gone.relevant)
    what = [counted(len(gone.queries), "question")] if gone.queries else []
    what += [counted(fewer, "relevant chunk")] if fewer else []
    return f"missing since the baseline: {', '.join(what)}; if that is intended, renew it"


def _reasons(one: Check | Drop | Gone) -> list[tuple[str, str]]:
    """Each question that breaks a check, with the reason, worst first."""
    if isinstance(one, Drop):
        return [(i, f"{NAMES[one.figure]} {signed(change)}") for i, change in one.worst]
    if isinstance(one, Gone):
        gone = [(i, "not measured") for i in one.queries]
        return [*gone, *((i, f"{fewer} fewer relevant") for i, fewer in one.relevant)]
    limit, sign = one.limit, "<" if one.limit.least else ">"
    return [(i, f"{NAMES[limit.figure]} {_beyond(limit, value, sign)}") for i, value in one.worst]


def _beyond(limit: Limit, value: float, sign: str) -> str:
    if limit.figure in SHARES:
        return apart(value, sign, limit.value)
    return f"{value:g} {sign} {limit.value:g}"
