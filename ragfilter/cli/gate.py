"""`ragfilter gate`: a check for a CI job. Source: docs/design.md#cli."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import Filtering, Json, Labelled, Place
from ragfilter.errors import InputError
from ragfilter.files import write_text
from ragfilter.text.numbers import counted, p_value, signed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragfilter.evaluate.baseline import Drop
    from ragfilter.evaluate.gate import Check, Limit
    from ragfilter.evaluate.junit import Case
    from ragfilter.workbench import Workbench

log = logging.getLogger(__name__)

BROKEN = 1
QUERY_WIDTH = 60
OTHER_FILE = "Name another file."
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
            help="Minimum mean of precision, recall, f1, kept or lost. Repeatable.",
        ),
    ] = None,
    most: Annotated[
        list[str] | None,
        typer.Option(
            "--max",
            metavar="FIGURE=NUMBER",
            help="Maximum mean of the same figures. Repeatable.",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", help="Compare with the figures in this file, query by query."),
    ] = None,
    max_drop: Annotated[
        list[str] | None,
        typer.Option(
            "--max-drop",
            metavar="FIGURE=NUMBER",
            help="Maximum drop of the mean precision, recall or f1 below the baseline. "
            "Repeatable. Default: recall=0.02 and f1=0.02. The recall or f1 of one query may never "
            "drop by 0.5 or more.",
        ),
    ] = None,
    update: Annotated[
        bool,
        typer.Option("--update-baseline", help="Write the current figures to the --baseline file."),
    ] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write the checks to this file as JUnit XML.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Fail if metrics on labelled queries break a limit or fall below a baseline.

    Exits with 1 if any does.
    """
    loaded = filtering.load()
    from ragfilter.evaluate import baseline as baselines
    from ragfilter.evaluate import gate as gating
    from ragfilter.evaluate import told
    from ragfilter.evaluate.measuring import labels_version
    from ragfilter.evaluate.run import evaluate

    limits = [gating.read_limit(given, least=True, option="--min") for given in least or ()]
    limits += [gating.read_limit(given, least=False, option="--max") for given in most or ()]
    given_drops = [_read_drop(given) for given in max_drop or ()]
    allowed = {limit.figure: limit.value for limit in given_drops} or baselines.DEFAULT_DROPS
    if baseline is None and (max_drop or update):
        raise InputError("The baseline is missing.", remedy="Pass its file with --baseline.")
    if not limits and baseline is None:
        raise InputError(
            "There is nothing to check.", remedy="Pass a limit such as --min f1=0.6, or --baseline."
        )
    # Before the minutes that measuring takes.
    before = None if baseline is None or update else baselines.read(baseline)
    user = filtering.user
    known = labelled.read_files()
    with place.open("gate") as bench:
        backends = parts.backends(bench, place.collection)
        found = known or labelled.read_set(bench, place.collection, user, loaded.settings)
        parts.tell_learned_elsewhere(loaded.settings, backends)
        labels, unknown = parts.visible_labels(found, backends, user, loaded.settings)
        parts.warn_few(labels)
        parts.warn_in_sample(loaded.settings, labels, place.collection)
        about = baselines.About(
            place.collection, _content(bench, place.collection), labels_version(labels),
            backends.embedder.name, backends.collection.space,
        )  # fmt: skip
        made = evaluate(
            labels.queries, labels.qrels, loaded.settings, backends, user,
            progress=parts.progress("queries"),
        )  # fmt: skip
        incomplete = backends.incomplete
    checks = gating.check(made, limits)
    drops: tuple[Drop, ...] = ()
    if before is not None:
        for words in baselines.stale(before, about):
            log.warning("the baseline is of %s; renew it with --update-baseline", words)
        missing = sorted(before.queries.keys() - {row.id for row in made.rows})
        if missing:
            log.warning(
                "%d of %d queries in the baseline were not measured, such as %r",
                len(missing), len(before.queries), missing[0],
            )  # fmt: skip
        new = [row.id for row in made.rows if row.id not in before.queries]
        if new:
            log.warning(
                "%d of %d queries are not in the baseline, such as %r, so they are not compared",
                len(new), len(made.rows), new[0],
            )  # fmt: skip
        drops = baselines.check_drops(before, made.rows, allowed)
    names = {row.id: parts.query_name(row.id, row.query, QUERY_WIDTH) for row in made.rows}
    if junit is not None:
        from ragfilter.evaluate.junit import junit as as_junit

        suite = as_junit(f"ragfilter gate {place.collection}", cases(checks, drops, names))
        write_text(junit, suite, remedy=OTHER_FILE)
    n = len(made.rows)
    mean = made.filtered
    if as_json:
        head = place.head(incomplete) | {
            "profile": loaded.profile,
            "queries": n,
            "f1": mean.f1,
            "f1_most": mean.f1_most,
            "unlabelled": mean.unlabelled,
            "unknown_labels": unknown,
        }
        parts.emit(parts.dumps(head | document(checks, drops)))
    else:
        head_line = (
            f"{place.collection}, profile {loaded.profile}{filtering.with_config}: "
            f"{counted(n, 'labelled query')}\n"
        )
        range_ = told.unlabelled(mean.mean_kept, mean.unlabelled, mean.f1, mean.f1_most)
        broken = text(checks, names) + drops_text(drops, names)
        parts.emit(head_line + broken + (f"{range_}\n" if range_ else ""))
    if update and baseline is not None:
        kept = baselines.dumps(baselines.of_rows(made.rows, about))
        write_text(baseline, kept, remedy=OTHER_FILE)
        parts.tell(f"Written to {baseline}: the figures of {counted(n, 'query')}.")
    return 0 if _passed(checks, drops) else BROKEN


def _content(bench: Workbench, name: str) -> str:
    """What the collection holds: the same wherever the same files are indexed. Of a collection
    that others made, its version."""
    collection = bench.collection(name)
    return collection.content or collection.version


def _passed(checks: tuple[Check, ...], drops: tuple[Drop, ...]) -> bool:
    return all(one.passed for one in checks) and all(one.passed for one in drops)


def document(checks: tuple[Check, ...], drops: tuple[Drop, ...] = ()) -> dict[str, Any]:
    """What `gate --json` prints, without the collection."""
    return {
        "passed": _passed(checks, drops),
        "drops": [
            {
                "figure": one.figure,
                "allowed": one.allowed,
                "before": one.before,
                "value": one.now,
                "p_value": one.p_value,
                "passed": one.passed,
                "severe": [{"id": i, "change": change} for i, change in one.severe],
                "lost": [{"id": i, "change": change} for i, change in one.worst],
            }
            for one in drops
        ],
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


def cases(
    checks: tuple[Check, ...], drops: tuple[Drop, ...], names: Mapping[str, str]
) -> list[Case]:
    """The checks as test cases; `names` are what queries are called, by id."""
    from ragfilter.evaluate.junit import Case

    made = []
    for one in checks:
        at = "at least" if one.limit.least else "at most"
        why = "" if one.passed else text((one,), names)
        made.append(Case(f"{one.limit.figure} {at} {one.limit.value:g}", why))
    for drop in drops:
        why = "" if drop.passed else drops_text((drop,), names)
        made.append(Case(f"{drop.figure} against the baseline", why))
    return made


def drops_text(drops: tuple[Drop, ...], names: Mapping[str, str]) -> str:
    """A line a figure; under a broken one the queries that lost most."""
    lines = []
    for one in drops:
        state = "ok" if one.passed else "BROKEN"
        may = "" if one.allowed is None else f", may drop {one.allowed:g}"
        lines.append(
            f"{state:6s}  mean {one.figure} {one.now:.3f}, baseline {one.before:.3f}: "
            f"{signed(-one.drop)}{may} ({p_value(one.p_value)})"
        )
        if one.severe:
            lost = counted(len(one.severe), "query")
            lines.append(f"        {lost} lost 0.5 or more at once")
        if not one.passed:
            lines += [f"        {signed(change)}  {names[i]}" for i, change in one.worst[:SHOWN]]
            rest = len(one.worst) - SHOWN
            lines += [f"        … and {rest} more; --json lists them"] if rest > 0 else []
    return "".join(f"{line}\n" for line in lines)


def _read_drop(given: str) -> Limit:
    """``recall=0.02``. Raises InputError."""
    from ragfilter.evaluate.baseline import DROPPING
    from ragfilter.evaluate.gate import read_limit

    limit = read_limit(given, least=False, option="--max-drop")
    if limit.figure not in DROPPING:
        raise InputError(
            f"--max-drop {given}: {limit.figure} cannot be compared with a baseline.",
            remedy=f"Use one of: {', '.join(DROPPING)}.",
        )
    return limit


def text(checks: tuple[Check, ...], names: Mapping[str, str]) -> str:
    """A line a limit; under a broken one the queries that are farthest beyond it."""
    lines = []
    for one in checks:
        sign = "≥" if one.limit.least else "≤"
        state = "ok" if one.passed else "BROKEN"
        lines.append(
            f"{state:6s}  mean {one.limit.figure} {one.mean:.3f}, wanted {sign} {one.limit.value:g}"
        )
        if not one.passed:
            lines += [f"        {value:.3f}  {names[i]}" for i, value in one.worst[:SHOWN]]
            rest = len(one.worst) - SHOWN
            lines += [f"        … and {rest} more; --json lists them"] if rest > 0 else []
    return "".join(f"{line}\n" for line in lines)
