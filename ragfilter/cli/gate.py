"""`ragfilter gate`: a check for a CI job. Source: docs/design.md#cli."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ragfilter.basics.files import write_text
from ragfilter.cli import options, output
from ragfilter.cli.label_options import QUERIES, LabelledOptions, warn_in_sample, warn_of
from ragfilter.cli.options import File, Texts
from ragfilter.cli.program import command
from ragfilter.errors import InputError
from ragfilter.evaluate import frame, wording
from ragfilter.evaluate import regression_gate as gating
from ragfilter.evaluate.evaluation import evaluate
from ragfilter.evaluate.labelled_queries import labels_version
from ragfilter.settings.schema import Settings
from ragfilter.stores.relabel import mapped_share
from ragfilter.text.numbers import counted

log = logging.getLogger(__name__)

BROKEN = 1
OTHER_FILE = "Name another file."
FIGURE = {"metavar": "FIGURE=NUMBER"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions(LabelledOptions):
    """The labelled queries, which are not needed for a log."""

    queries: Annotated[str, QUERIES] = ""


@command(json=True)
def gate(
    labelled: GateOptions,
    place: options.Place,
    filtering: options.Filtering,
    least: Annotated[Texts, "--min", "Minimum mean of a figure. Repeatable.", FIGURE] = None,
    most: Annotated[Texts, "--max", "Maximum mean of a figure. Repeatable.", FIGURE] = None,
    baseline: Annotated[File, "Compare with the figures in this file."] = None,
    max_drop: Annotated[Texts, "Maximum drop of a mean; default: recall=0.02 f1=0.02.", FIGURE] = None,
    update: Annotated[bool, "--update-baseline", "Write --baseline, unless a limit is broken."] = False,
    watch: Annotated[File, "Compare this log's questions (JSON lines) with --baseline, without labels."] = None,
    junit: Annotated[File, "Write the checks to this file as JUnit XML."] = None,
) -> int:
    """Fail if metrics on labelled queries break a limit or fall below a baseline.

    Also fails if the baseline's queries or relevant chunks are missing, unless --only or --except selects queries.
    Exits with 1 if any check fails."""
    if watch is not None:
        options.refuse(
            "beside --watch",
            min=least,
            max=most,
            max_drop=max_drop,
            update_baseline=update,
            junit=junit,
            queries=labelled.queries,
        )
        return _watch(watch, baseline, place.collection)
    if not labelled.queries:
        raise InputError("The questions are missing.", remedy="Pass --queries, or --watch LOG.")
    loaded, user = filtering.load()
    settings = loaded.settings
    limits = [gating.read_limit(text, "least", option="--min") for text in least or ()]
    limits += [gating.read_limit(text, "most", option="--max") for text in most or ()]
    drops = [gating.read_limit(text, "most", option="--max-drop", among=gating.RATIOS) for text in max_drop or ()]
    if baseline is None and (max_drop or update):
        raise InputError("The baseline is missing.", remedy="Pass its file with --baseline.")
    if update:
        options.refuse("beside --update-baseline", max_drop=max_drop)
    if not limits and baseline is None:
        raise InputError("There is nothing to check.", remedy="Pass a limit such as --min f1=0.6, or --baseline.")
    # Fail before minutes of measuring.
    before = None if baseline is None or update else gating.read(baseline)
    with labelled.open("gate", place, user) as (bench, backends, labels, unknown):
        options.warn_learned_elsewhere(settings, backends)
        warn_of(labels)
        learned = warn_in_sample(settings, labels, place.collection)
        collection = bench.collection(place.collection)
        now = gating.BaselineOrigin(
            collection=place.collection,
            collection_version=bench.workspace.content_of(collection, user),
            labels_version=labels_version(labels),
            model=backends.embedder.name,
            space=collection.space,
            settings=settings.changed_from(Settings()),
        )
        measured = evaluate(labels.queries, labels.qrels, settings, backends, user, progress=output.progress("queries"))
        incomplete = backends.incomplete
        mapped = mapped_share(bench.labels.quotations(place.collection))
    rows = gating.reached(measured.records)
    allowed = {**gating.DEFAULT_DROPS, **{each.figure: each.limit for each in drops}}
    partly = bool(labelled.only or labelled.leave_out)
    gate = gating.decide(rows, limits, baseline=before, now=now, allowed=allowed, partly=partly, mapped=mapped)
    for note in gate.notes:
        log.warning("%s", note)
    if junit is not None:
        write_text(junit, gating.junit(gate, place.collection, labels.queries), remedy=OTHER_FILE)
    n, waiting, own = len(rows), int(rows["waiting"].sum()), frame.cells(measured.table)[0]
    head = place.head(incomplete) | {
        "profile": loaded.profile,
        "queries": n,
        **{name: own[name] for name in ("f1", "f1_most", "unlabelled")},
        "waiting": waiting,
        "unknown_labels": unknown,
        "with_llm": labelled.llm,
        "notes": [*learned, *gate.notes],
    }
    failing = gate.failing
    output.show(
        head | gate.document,
        f"{place.collection}, profile {loaded.profile}{filtering.with_config}: {counted(n, 'labelled question')}",
        *(f"{'ok' if one.passed else 'BROKEN':6s}  {one.line}" for one in gate.every),
        f"{counted(failing, 'question')} to look at:" if failing else "",
        *(f"        {line}" for line in gating.broken(reversed(gate.every), labels.queries)),
        gate.verdict,
        wording.unlabelled(own),
        wording.fell_back(waiting),
    )
    if update and baseline is not None and not gate.passed:
        output.tell(f"Not written: {baseline}, because a limit is broken.")
    elif update and baseline is not None:
        write_text(baseline, gating.to_baseline(rows, now).dumps(), remedy=OTHER_FILE)
        output.tell(f"Written to {baseline}: the figures of {counted(n, 'question')}.")
    return 0 if gate.passed else BROKEN


def _watch(log_file: Path, baseline: Path | None, collection: str) -> int:
    """Compare a log with the baseline of its collection. Returns 1 if something moved."""
    if baseline is None:
        raise InputError("The baseline is missing.", remedy="Pass its file with --baseline.")
    before = gating.read(baseline)
    if collection not in (before.collection, options.Place().collection):
        raise InputError(
            f"The baseline is of the collection {before.collection!r}, not {collection!r}.",
            remedy="Pass the baseline of that collection.",
        )
    was, now = gating.answers(before), gating.read_log(log_file, before.collection)
    shifts = gating.shifts(was, now)
    if not shifts:
        raise InputError(
            "There are too few questions to compare.", remedy=f"At least {gating.MIN_QUERIES} on each side are needed."
        )
    verdict = gating.what_moved(shifts, who=gating.mover(was, now))
    output.show(
        {"queries": len(now), "drift": shifts, "verdict": verdict},
        f"{log_file.name}, {before.collection}: {counted(len(now), 'question')}",
        *(f"{'MOVED' if shift.moved else 'ok':6s}  {shift}" for shift in shifts),
        verdict,
    )
    return BROKEN if verdict else 0
