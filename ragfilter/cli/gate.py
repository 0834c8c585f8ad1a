"""`ragfilter gate`: a check for a CI job. Source: docs/design.md#cli."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import Filtering, Json, Labelled, Place
from ragfilter.errors import InputError

if TYPE_CHECKING:
    from ragfilter.evaluate.gate import Check

BROKEN = 1
SHOWN = 10


@command()
def gate(
    labelled: Labelled,
    place: Place,
    filtering: Filtering,
    least: Annotated[
        list[str] | None,
        typer.Option(
            "--min",
            metavar="FIGURE=NUMBER",
            help="The least mean of precision, recall, f1, kept or lost. Repeatable.",
        ),
    ] = None,
    most: Annotated[
        list[str] | None,
        typer.Option(
            "--max",
            metavar="FIGURE=NUMBER",
            help="The largest mean of the same figures. Repeatable.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Check that the filter keeps its figures on labelled queries. Exits with 1 if not."""
    loaded = filtering.load()
    from ragfilter.cli.eval import score
    from ragfilter.evaluate import gate as gating

    limits = [gating.read_limit(text, least=True) for text in least or ()]
    limits += [gating.read_limit(text, least=False) for text in most or ()]
    if not limits:
        raise InputError("There is nothing to check.", remedy="Give --min f1=0.6, for example.")
    made, told = score(labelled, place, filtering, loaded.settings)
    checks = gating.check(made, limits)
    n = len(made.rows)
    if as_json:
        head = {"collection": place.collection, "profile": loaded.profile, "queries": n}
        parts.emit(parts.dumps(head | document(checks) | told))
    else:
        head_line = f"{place.collection}, profile {loaded.profile}: {n} labelled queries\n"
        parts.emit(head_line + text(checks))
    return 0 if all(one.passed for one in checks) else BROKEN


def document(checks: tuple[Check, ...]) -> dict[str, Any]:
    """What `gate --json` prints, without the collection."""
    return {
        "passed": all(one.passed for one in checks),
        "checks": [
            {
                "figure": one.limit.figure,
                "at": "least" if one.limit.least else "most",
                "limit": one.limit.value,
                "value": one.mean,
                "passed": one.passed,
                "beyond": [{"id": i, "value": value} for i, value in one.worst],
            }
            for one in checks
        ],
    }


def text(checks: tuple[Check, ...]) -> str:
    """A line a limit; under a broken one the queries that are farthest beyond it."""
    lines = []
    for one in checks:
        sign = "≥" if one.limit.least else "≤"
        state = "ok" if one.passed else "BROKEN"
        lines.append(
            f"{state:6s}  mean {one.limit.figure} {one.mean:.3f}, wanted {sign} {one.limit.value:g}"
        )
        if not one.passed:
            lines += [f"        {value:.3f}  {query_id}" for query_id, value in one.worst[:SHOWN]]
            rest = len(one.worst) - SHOWN
            lines += [f"        … and {rest} more; --json lists them"] if rest > 0 else []
    return "\n".join(lines) + "\n"
