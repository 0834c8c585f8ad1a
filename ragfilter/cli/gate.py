"""`ragfilter gate`: a check for a CI job. Source: docs/design.md#cli."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.commands import app
from ragfilter.cli.options import (
    CollectionName,
    ConfigFile,
    DataDir,
    Departments,
    Except,
    Json,
    Level,
    Only,
    ProfileName,
    QrelsFile,
    QueriesFile,
    SetValues,
    Verbose,
)
from ragfilter.errors import InputError

if TYPE_CHECKING:
    from ragfilter.evaluate.gate import Check

BROKEN = 1
SHOWN = 10


@app.command()
def gate(
    queries: QueriesFile,
    qrels: QrelsFile = None,
    collection: CollectionName = "demo",
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
    profile: ProfileName = None,
    config: ConfigFile = None,
    values: SetValues = None,
    level: Level = None,
    department: Departments = None,
    only: Only = None,
    leave_out: Except = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    verbose: Verbose = 0,
) -> int:
    """Check that the filter keeps its figures on labelled queries. Exits with 1 if not."""
    parts.start_logging(verbose)
    loaded = parts.load_config(profile, config, values, {})
    user = parts.user_of(level, department, values)
    from ragfilter.evaluate import gate as gating
    from ragfilter.evaluate import labels, run

    limits = [gating.read_limit(text, least=True) for text in least or ()]
    limits += [gating.read_limit(text, least=False) for text in most or ()]
    if not limits:
        raise InputError("There is nothing to check.", remedy="Give --min f1=0.6, for example.")
    labelled = labels.choose(
        labels.load(queries, qrels), only=only or (), leave_out=leave_out or ()
    )
    with parts.open_for(data_dir, "gate") as bench:
        backends = parts.backends(bench, collection)
        unknown = parts.unknown_labels(labelled, backends)
        made = run.evaluate(
            labelled.queries, labelled.qrels, loaded.settings, backends, user,
            progress=parts.progress("queries"),
        )  # fmt: skip
    checks = gating.check(made, limits)
    if as_json:
        head = {"collection": collection, "profile": loaded.profile, "queries": len(made.rows)}
        parts.emit(parts.dumps(head | document(checks) | {"unknown_labels": unknown}))
    else:
        head_line = f"{collection}, profile {loaded.profile}: {len(made.rows)} labelled queries\n"
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
