"""`ragfilter tune`: the settings that labelled queries justify. Source: docs/design.md#tune."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from ragfilter.basics.files import kind, write_text
from ragfilter.cli import output
from ragfilter.cli.app import command
from ragfilter.cli.labelled import LabelledOptions, warn_of
from ragfilter.cli.options import Filtering, Json, Place
from ragfilter.cli.output import OTHER_OUT
from ragfilter.errors import InputError
from ragfilter.evaluate import caveats, tuning_words
from ragfilter.evaluate.crossval import read_target
from ragfilter.evaluate.tune import Gain, TunedMeans, Tuning, tune_questions
from ragfilter.settings.config import to_toml
from ragfilter.settings.schema import field


@command()
def tune(
    labelled: LabelledOptions,
    place: Place,
    filtering: Filtering,
    measure: Annotated[str, "f1, f2, or the fewest tokens at a recall, such as tokens@0.8."] = "f1",
    folds: Annotated[
        int, typer.Option(min=2, max=1000, help="Number of cross-validation folds.")
    ] = 5,
    rerank: Annotated[bool, "Whether to try reranking too, which takes most of the time."] = True,
    strategy: Annotated[
        str | None, f"Use this strategy: {field('cutoff.strategy').allowed()}."
    ] = None,
    out: Annotated[Path | None, "Write the tuned settings to this TOML file."] = None,
    as_json: Json = False,
) -> None:
    """Find or learn the cutoff that suits your labelled queries best, and measure its gain.

    All figures are cross-validated: no query is measured with settings that were chosen on it.
    """
    loaded, user = filtering.load()
    target = read_target(measure)
    if strategy is not None:
        # Checked as the setting that it becomes.
        filtering.load({"--strategy": {"cutoff.strategy": strategy}})
    if out is not None and kind(out.parent) != "folder":
        # Fail before the minutes that tuning takes.
        raise InputError(f"{out} cannot be written: the folder does not exist.", remedy=OTHER_OUT)
    with labelled.open("tune", place, user) as (_, backends, labels, _unknown):
        warn_of(labels)
        tuning = tune_questions(
            labels, loaded.settings, backends, user, target=target, folds=folds, rerank=rerank,
            gathered=output.progress("gathered"), replayed=output.progress("replayed"),
        )  # fmt: skip
        head = place.head(backends.incomplete) | {"with_llm": labelled.llm}
        distances = f"{backends.collection.space}, by {backends.embedder.name}"
    if strategy is not None:
        if strategy not in tuning.strategies:
            raise InputError(
                f"Nothing was learned for {strategy}: {tuning.why_not}.",
                remedy="Label more queries, or use another strategy.",
            )
        tuning = tuning.only(strategy)
    settings = tuning.tuned.settings
    if out is not None:
        about = (
            f"# Tuned on the collection {place.collection}: {tuning.queries} labelled queries, "
            f"{tuning.target}, {date.today().isoformat()}.\n"
            f"# Distances: {distances}. Tune again for another model, space or reranker.\n"
        )
        write_text(out, about + to_toml(settings, loaded.profile), remedy=OTHER_OUT)
    changed = settings.changed_from(loaded.settings)
    if as_json:
        output.emit(head | document(tuning, changed, out))
    else:
        output.emit(text(tuning, place.collection, changed, out))


def document(tuning: Tuning, changed: dict[str, Any], file: Path | None) -> dict[str, Any]:
    """The document of `tune --json` after its head. `ci` is the 95% interval of the measure;
    for tokens, a gain's `mean` and `ci` are the tokens saved."""
    return {
        "queries": tuning.queries,
        "measure": str(tuning.target),
        "folds": tuning.folds,
        "candidates": tuning.candidates,
        "best_fixed_k": {"k": tuning.k, **_figures(tuning.best_fixed_k)},
        "oracle": _figures(tuning.oracle),
        "before": _figures(tuning.before),
        "after": {**_figures(tuning.tuned.means), "settings": changed},
        "gain_over_fixed_k": _gain(tuning.tuned.gain),
        # On labels that they have seen, the previous settings look too good.
        "gain_over_before": None if tuning.seen else _gain(tuning.tuned.gain_over_before),
        "seen": tuning.seen,
        "stands_in": tuning.stands_in,
        "calibrated_over": {name: _gain(gain) for name, gain in tuning.over_strategies.items()},
        "recall_dial": tuning.dial,
        "budget": tuning.budget and _figures(tuning.budget),
        "not_learned": tuning.why_not,
        "beats_fixed_k": tuning.beats_fixed_k,
        "strategies": [
            {"name": name, **_figures(each.means)} for name, each in tuning.strategies.items()
        ],
        "settings_file": file,
    }


def text(tuning: Tuning, collection: str, changed: dict[str, Any], file: Path | None) -> str:
    """The same as text."""
    target, tuned = tuning.target, tuning.tuned
    alone = {f"{name}, alone": each.means for name, each in tuning.strategies.items()}
    rows = {**tuning_words.compared_means(tuning), **alone}
    means = tuned.means
    lines = [
        f"{collection}: {tuning.queries} labelled queries, {tuning.candidates} candidates, "
        f"{tuning.folds}-fold cross-validation\n",
        output.table(
            ("", *tuning_words.cells(means, target)),
            [(name, *tuning_words.cells(each, target).values()) for name, each in rows.items()],
        ),
        f"{tuning_words.verdict(tuning)}: {tuning_words.gain_in(target.figure, tuned.gain.of)}.",
        ""
        if tuning.seen
        else f"Against the previous settings: "
        f"{tuning_words.gain_in(target.figure, tuned.gain_over_before.of)}.",
        caveats.unlabelled(means.kept, means.unlabelled, means.f1, means.f1_most),
        *tuning_words.notes(tuning),
        "\n"
        + "\n".join(
            f"{path} = {tuning_words.shown(path, value)}" for path, value in changed.items()
        )
        if changed
        else tuning_words.UNCHANGED,
        tuning_words.fixed_k(tuned.settings),
        "" if file is None else f"\nWritten to {file}; use it with --config {file}.",
    ]
    return "\n".join(filter(None, lines)) + "\n"


def _gain(gain: Gain) -> dict[str, Any]:
    return {"f1": gain.f1, "f2": gain.f2, "mean": gain.of.mean, "ci": gain.of.ends}


def _figures(means: TunedMeans) -> dict[str, Any]:
    return {
        "f1": means.f1,
        "f2": means.f2,
        "ci": means.of.ends,
        "precision": means.precision,
        "recall": means.recall,
        "f1_most": means.f1_most,
        "unlabelled": means.unlabelled,
        "mean_kept": means.kept,
        "mean_tokens": means.tokens,
    }
