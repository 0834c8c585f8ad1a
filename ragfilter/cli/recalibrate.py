"""`ragfilter recalibrate`: settings that fit again after a change. Source: docs/design.md#tune."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from ragfilter.basics.files import kind, write_text
from ragfilter.cli import access, output
from ragfilter.cli.app import command
from ragfilter.cli.labelled import QueryOptions, warn_of
from ragfilter.cli.options import Filtering, Json, Place, refuse_beside, settings_file
from ragfilter.cli.output import OTHER_OUT
from ragfilter.errors import InputError
from ragfilter.evaluate import tuning_words
from ragfilter.evaluate.crossval import read_target
from ragfilter.evaluate.labelled_queries import Labels
from ragfilter.evaluate.recalibrate import (
    MARGIN,
    Recalibration,
    carry_over,
    recalibrate_questions,
)
from ragfilter.settings.config import to_toml
from ragfilter.settings.schema import Settings
from ragfilter.text.numbers import counted

REFUSED = 1


@command()
def recalibrate(
    given: QueryOptions,
    place: Place,
    filtering: Filtering,
    old: Annotated[
        Path | None,
        typer.Option("--from", help="The settings in use (TOML).", callback=settings_file),
    ] = None,
    measure: Annotated[str, "f1, f2, or the fewest tokens at a recall, such as tokens@0.8."] = "f1",
    margin: Annotated[
        float, typer.Option(min=0, max=1, help="The largest loss that counts as no worse.")
    ] = MARGIN,
    folds: Annotated[
        int, typer.Option(min=2, max=1000, help="Number of cross-validation folds.")
    ] = 5,
    rerank: Annotated[bool, "Whether to try reranking too, which takes most of the time."] = True,
    out: Annotated[Path | None, "Write the new settings to this TOML file."] = None,
    as_json: Json = False,
) -> int:
    """Derive the settings anew after a change of embedding model, space, reranker, chunking or
    corpus.

    Uses the labels that exist, and exits with 1 without writing anything unless the new settings
    are shown to be no worse on the same questions. Without labels, thresholds are carried over by
    the recorded questions, which is a guess.
    """
    if old is not None:
        refuse_beside("--from", config=filtering.config)
        filtering = replace(filtering, config=old)
    loaded, user = filtering.load()
    target = read_target(measure)
    if out is not None and kind(out.parent) != "folder":
        raise InputError(f"{out} cannot be written: the folder does not exist.", remedy=OTHER_OUT)
    with place.open("recalibrate") as bench:
        from ragfilter.evaluate import query_sets
        from ragfilter.stores.labels import ASKED

        backends = access.backends(bench, place.collection)
        catalogue = bench.collection(place.collection).entries()
        labels = given.read(bench, place.collection, user, bare=True)
        labels = labels or query_sets.everything(bench.labels, place.collection, catalogue, user)
        labels = labels or Labels(bench.labels.queries(place.collection, ASKED), {})
        made: Recalibration | None = None
        if labels.qrels:
            warn_of(labels)
            made = recalibrate_questions(
                labels, loaded.settings, backends, user, profile=loaded.profile, target=target,
                margin=margin, folds=folds, rerank=rerank,
                gathered=output.progress("gathered"), replayed=output.progress("replayed"),
            )  # fmt: skip
            settings = made.tuning.tuned.settings
        elif labels.queries:
            settings = carry_over(
                labels.queries, loaded.settings, backends, user,
                gathered=output.progress("gathered"),
            )  # fmt: skip
        else:
            raise InputError(
                f"The collection {place.collection} has neither labels nor recorded questions.",
                remedy="Pass --queries with a file of questions, and --qrels with their labels.",
            )
        head = place.head(backends.incomplete)
        distances = f"{backends.collection.space}, by {backends.embedder.name}"
    no_worse = made is None or made.no_worse
    if out is not None and no_worse:
        how = (
            f"Carried over without labels by {counted(len(labels.queries), 'question')}: a guess"
            if made is None
            else f"Recalibrated on {counted(len(labels.qrels), 'labelled query')}, {target}"
        )
        about = (
            f"# {how}.\n# Collection {place.collection}, {date.today().isoformat()}. "
            f"Distances: {distances}.\n"
        )
        write_text(out, about + to_toml(settings, loaded.profile), remedy=OTHER_OUT)
    changed = settings.changed_from(loaded.settings)
    written = out if no_worse else None
    if as_json:
        output.emit(head | _document(made, labels, changed, written))
    else:
        output.emit(_text(made, labels, loaded.settings, settings, place.collection, written))
    return 0 if no_worse else REFUSED


def _document(
    made: Recalibration | None, labels: Labels, changed: dict[str, Any], file: Path | None
) -> dict[str, Any]:
    """The document of `recalibrate --json` after its head. `before` and `after` have the mean and
    the 95% interval of each figure, `difference` those of after minus before."""
    document: dict[str, Any] = {
        "queries": len(labels.queries), "guess": made is None, "settings": changed,
        "settings_file": file,
    }  # fmt: skip
    if made is None:
        return document
    tuning = made.tuning
    sides = {
        "before": tuning.before.each,
        "after": tuning.tuned.means.each,
        "difference": tuning.tuned.gain_over_before.each,
    }
    return document | {
        "measure": str(tuning.target), "margin": made.margin, "no_worse": made.no_worse,
        "stands_in": tuning.stands_in,
    } | {
        side: {name: asdict(each) for name, each in figures.items()}
        for side, figures in sides.items()
    }  # fmt: skip


def _text(
    made: Recalibration | None,
    labels: Labels,
    before: Settings,
    after: Settings,
    collection: str,
    file: Path | None,
) -> str:
    """The same as text."""
    questions = counted(len(labels.queries), "question")
    lines = [f"{collection}: {questions}"]
    if made is None:
        lines.append(f"{tuning_words.GUESS}\n")
    else:
        lines += ["", output.table(tuning_words.SIDES, tuning_words.sides(made))]
        lines += [tuning_words.no_worse(made), tuning_words.stands_in(made.tuning), ""]
    lines += tuning_words.changed(before, after) or ["Nothing changes."]
    lines.append("" if file is None else f"\nWritten to {file}; use it with --config {file}.")
    return "\n".join(line for i, line in enumerate(lines) if line or i == 1) + "\n"
