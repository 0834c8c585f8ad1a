"""`ragfilter gate`: a check for a CI job. Source: docs/design.md#cli."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ragfilter.basics.files import write_text
from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.labelled import LabelledOptions, warn_in_sample, warn_of
from ragfilter.cli.options import Filtering, Json, Place
from ragfilter.errors import InputError
from ragfilter.evaluate import baseline as baselines
from ragfilter.evaluate import gate as gating
from ragfilter.evaluate import gate_words, told
from ragfilter.evaluate import limits as limiting
from ragfilter.evaluate.baseline import DROPPING
from ragfilter.evaluate.gate import Gate
from ragfilter.evaluate.measuring import labels_version
from ragfilter.evaluate.run import evaluate
from ragfilter.text.numbers import counted

log = logging.getLogger(__name__)

BROKEN = 1
OTHER_FILE = "Name another file."
figures = partial(typer.Option, metavar="FIGURE=NUMBER")


@command()
def gate(
    labelled: LabelledOptions,
    place: Place,
    filtering: Filtering,
    least: Annotated[
        list[str] | None,
        figures("--min", help="Minimum mean of precision, recall, f1, kept or lost. Repeatable."),
    ] = None,
    most: Annotated[
        list[str] | None, figures("--max", help="Maximum mean of the same figures. Repeatable.")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="Compare with the figures in this file, query by query.")
    ] = None,
    max_drop: Annotated[
        list[str] | None,
        figures(
            help="Maximum drop of the mean precision, recall or f1 below the baseline. "
            "Repeatable. Unless set: recall=0.02 and f1=0.02. The recall or f1 of one query may "
            "never drop by 0.5 or more."
        ),
    ] = None,
    update: Annotated[
        bool,
        typer.Option(
            "--update-baseline",
            help="Write the current figures to the --baseline file, unless a limit is broken.",
        ),
    ] = False,
    junit: Annotated[
        Path | None, typer.Option(help="Write the checks to this file as JUnit XML.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Fail if metrics on labelled queries break a limit or fall below a baseline.

    Also fails if queries or relevant chunks of the baseline are gone, unless --only or --except
    chooses among the queries. Exits with 1 if any check fails.
    """
    loaded, user = filtering.load()
    settings = loaded.settings
    limits = [limiting.read_limit(given, least=True, option="--min") for given in least or ()]
    limits += [limiting.read_limit(given, least=False, option="--max") for given in most or ()]
    allowed = {**baselines.DEFAULT_DROPS, **dict(map(_read_drop, max_drop or ()))}
    if baseline is None and (max_drop or update):
        raise InputError("The baseline is missing.", remedy="Pass its file with --baseline.")
    if update:
        parts.refuse_beside("--update-baseline", max_drop=max_drop)
    if not limits and baseline is None:
        raise InputError(
            "There is nothing to check.", remedy="Pass a limit such as --min f1=0.6, or --baseline."
        )
    # Fail before the minutes that measuring takes.
    before = None if baseline is None or update else baselines.read(baseline)
    from ragfilter.stores.export import content_of

    with labelled.open("gate", place, user) as (bench, backends, labels, unknown):
        parts.tell_learned_elsewhere(settings, backends)
        warn_of(labels)
        learned = warn_in_sample(settings, labels, place.collection)
        collection = bench.collection(place.collection)
        about = baselines.About(
            place.collection,
            content_of(bench.workspace, collection, user),
            labels_version(labels), backends.embedder.name, collection.space,
        )  # fmt: skip
        made = evaluate(
            labels.queries, labels.qrels, settings, backends, user,
            progress=parts.progress("queries"),
        )  # fmt: skip
        incomplete = backends.incomplete
    reached = limiting.of_rows(made.rows)
    gate = gating.decide(
        reached, limits,
        before=None if before is None else (before, about),
        allowed=allowed,
        partly=bool(labelled.only or labelled.leave_out),
    )  # fmt: skip
    for note in gate.notes:
        log.warning("%s", note)
    if junit is not None:
        suite = gate_words.suite(gate, place.collection, labels.queries)
        write_text(junit, suite, remedy=OTHER_FILE)
    n, mean = len(made.rows), made.filtered
    waiting = sum(row.waiting for row in made.rows)
    head = place.head(incomplete) | {
        "profile": loaded.profile,
        "queries": n,
        "f1": mean.f1,
        "f1_most": mean.f1_most,
        "unlabelled": mean.unlabelled,
        "waiting": waiting,
        "unknown_labels": unknown,
        "with_llm": labelled.llm,
        "notes": [*learned, *gate.notes],
    }
    lines = [
        f"{place.collection}, profile {loaded.profile}{filtering.with_config}: "
        f"{counted(n, 'labelled question')}",
        *(f"{'ok' if one.passed else 'BROKEN':6s}  {gate_words.line(one)}" for one in gate.every),
        *_broken(gate, labels.queries),
        told.unlabelled(mean.mean_kept, mean.unlabelled, mean.f1, mean.f1_most),
        told.fell_back(waiting),
    ]
    text = "".join(f"{line}\n" for line in lines if line)
    parts.emit(head | gating.document(gate) if as_json else text)
    if update and baseline is not None and not gate.passed:
        parts.tell(f"Not written: {baseline}, because a limit is broken.")
    elif update and baseline is not None:
        kept = baselines.dumps(baselines.of_reached(reached, about))
        write_text(baseline, kept, remedy=OTHER_FILE)
        parts.tell(f"Written to {baseline}: the figures of {counted(n, 'question')}.")
    return 0 if gate.passed else BROKEN


def _read_drop(given: str) -> tuple[str, float]:
    """Parse ``recall=0.02``. Raises InputError."""
    limit = limiting.read_limit(given, least=False, option="--max-drop", among=DROPPING)
    return limit.figure, limit.value


def _broken(gate: Gate, texts: Mapping[str, str]) -> Iterator[str]:
    """The questions that break the checks."""
    reasons = gate_words.broken(gate)
    if reasons:
        breaks = "breaks" if len(reasons) == 1 else "break"
        yield f"{counted(len(reasons), 'question')} {breaks} the gate:"
        yield from (f"        {line}" for line in gate_words.listed(reasons, texts))
