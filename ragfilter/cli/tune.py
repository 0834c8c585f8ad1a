"""`ragfilter tune`: the settings that labelled queries justify. Source: docs/design.md#tune."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from ragfilter.basics.files import kind, write_text
from ragfilter.cli import output
from ragfilter.cli.app import command
from ragfilter.cli.labelled import LabelledOptions, warn_of
from ragfilter.cli.options import OTHER_OUT, Filtering, Json, Place
from ragfilter.cli.output import table
from ragfilter.errors import InputError
from ragfilter.evaluate import caveats, told
from ragfilter.evaluate import tune as tuning
from ragfilter.evaluate.candidates import gathering
from ragfilter.evaluate.crossval import Target, read_target
from ragfilter.evaluate.labels import labels_version
from ragfilter.evaluate.learning import Provenance
from ragfilter.evaluate.measure import gather_all
from ragfilter.evaluate.tune import Gain, TunedMeans, Tuning
from ragfilter.settings.config import to_toml
from ragfilter.settings.schema import field


@command()
def tune(
    labelled: LabelledOptions,
    place: Place,
    filtering: Filtering,
    measure: Annotated[
        str,
        typer.Option(
            help="What to tune for: f1, f2 (recall counts twice), or the fewest tokens at a "
            "given recall, such as tokens@0.8."
        ),
    ] = "f1",
    folds: Annotated[
        int, typer.Option(min=2, max=1000, help="Number of cross-validation folds.")
    ] = 5,
    rerank: Annotated[
        bool,
        typer.Option(
            "--rerank/--no-rerank",
            help="Whether to try reranking too, which takes most of the time.",
        ),
    ] = True,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="Use this cutoff strategy even if others score higher: "
            f"{field('cutoff.strategy').allowed()}."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the tuned settings to this TOML file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find or learn the cutoff that suits your labelled queries best, and measure its gain.

    All figures are cross-validated: no query is measured with settings that were chosen on it.
    """
    loaded, user = filtering.load()
    aim = read_target(measure)
    if loaded.settings.judge.enabled:
        raise InputError(
            "The judge is on, and tuning cannot replay LLM answers.",
            remedy="Tune without it: --set judge.enabled=false.",
        )
    if strategy is not None:
        # Checked as the setting that it becomes.
        filtering.load({"--strategy": {"cutoff.strategy": strategy}})
    if out is not None and kind(out.parent) != "folder":
        # Fail before the minutes that tuning takes.
        raise InputError(f"{out} cannot be written: the folder does not exist.", remedy=OTHER_OUT)
    with labelled.open("tune", place, user) as (_, backends, labels, _unknown):
        if len(labels.labelled) < 2:
            raise InputError(
                "Cross-validation needs at least two labelled queries.",
                remedy="Label more queries, at least 20 for meaningful figures.",
            )
        warn_of(labels)
        wide = gathering(loaded.settings, rerank=rerank)
        pools = gather_all(
            labels.labelled, wide, backends, user, progress=output.progress("gathered")
        )
        embedder = backends.embedder.name
        head = place.head(backends.incomplete) | {"with_llm": labelled.llm}
    made = tuning.tune(
        pools, labels.qrels, loaded.settings, user,
        target=aim, folds=folds, rerank=rerank,
        provenance=Provenance(labels_version(labels), date.today().isoformat()),
        progress=output.progress("replayed"),
    )  # fmt: skip
    if strategy is not None:
        if strategy not in made.strategies:
            raise InputError(
                f"Nothing was learned for {strategy}: {made.why_not}.",
                remedy="Label more queries, or use another strategy.",
            )
        made = made.only(strategy)
    if out is not None:
        about = (
            f"# Tuned on the collection {place.collection}: {made.queries} labelled queries, "
            f"{made.target}, {date.today().isoformat()}.\n"
            f"# Distances: {next(iter(pools.values())).space}, by {embedder}. "
            "Tune again for another model, space or reranker.\n"
        )
        write_text(out, about + to_toml(made.tuned.settings, loaded.profile), remedy=OTHER_OUT)
    changed = made.tuned.settings.changed_from(loaded.settings)
    file = None if out is None else str(out)
    shown = document(made, changed, file)
    output.emit(head | shown if as_json else text(made, place.collection, changed, file))


def document(made: Tuning, changed: dict[str, Any], file: str | None) -> dict[str, Any]:
    """The document of `tune --json` after its head. `ci` is the 95% interval of the measure;
    for tokens, a gain's `mean` and `ci` are the tokens saved."""
    return {
        "queries": made.queries,
        "measure": str(made.target),
        "folds": made.folds,
        "candidates": made.candidates,
        "best_fixed_k": {"k": made.k, **_figures(made.best_fixed_k)},
        "oracle": _figures(made.oracle),
        "before": _figures(made.before),
        "after": {**_figures(made.tuned.means), "settings": changed},
        "gain_over_fixed_k": _gain(made.tuned.gain),
        # On labels that they have seen, the previous settings look too good.
        "gain_over_before": None if made.seen else _gain(made.tuned.gain_over_before),
        "seen": made.seen,
        "stands_in": made.stands_in,
        "calibrated_over": {name: _gain(gain) for name, gain in made.over_strategies.items()},
        "recall_dial": dict(made.dial),
        "budget": made.budget and _figures(made.budget),
        "not_learned": made.why_not,
        "beats_fixed_k": made.beats_fixed_k,
        "strategies": [
            {"name": name, **_figures(each.means)} for name, each in made.strategies.items()
        ],
        "settings_file": file,
    }


def text(made: Tuning, collection: str, changed: dict[str, Any], file: str | None) -> str:
    """The same as text."""
    rows = [
        (f"best fixed k, {made.k}", made.best_fixed_k),
        ("before, saw labels" if made.seen else "before", made.before),
        *((f"{name}, tuned", each.means) for name, each in made.strategies.items()),
        ("tuned", made.tuned.means),
        ("oracle", made.oracle),
    ]
    figure, tuned = made.target.figure, made.tuned
    against = f"Against the previous settings: {told.gain_in(figure, tuned.gain_over_before.of)}."
    columns = ("", figure, "95% interval", *(name for name in _OTHERS if name != figure))
    head = [told.NAMES.get(name, name) for name in columns]
    means = tuned.means
    range_ = caveats.unlabelled(means.kept, means.unlabelled, means.f1, means.f1_most)
    lines = [
        f"{collection}: {made.queries} labelled queries, {made.candidates} candidates, "
        f"{made.folds}-fold cross-validation\n",
        table(head, [_row(name, means, made.target) for name, means in rows]),
        f"{told.verdict(made)}: {told.gain_in(figure, tuned.gain.of)}.",
        *([] if made.seen else [against]),
        *([range_] if range_ else []),
        *told.notes(made),
        "",
        *(f"{path} = {told.shown(path, value)}" for path, value in changed.items()),
        *([] if changed else [told.UNCHANGED]),
        *([fixed] if (fixed := told.fixed_k(tuned.settings)) else []),
    ]
    if file is not None:
        lines += ["", f"Written to {file}; use it with --config {file}."]
    return "\n".join(lines) + "\n"


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


_OTHERS: Mapping[str, Callable[[TunedMeans], str]] = {
    "precision": lambda means: f"{means.precision:.3f}",
    "recall": lambda means: f"{means.recall:.3f}",
    "f1": lambda means: f"{means.f1:.3f}",
    "F1 upper bound": lambda means: f"{means.f1_most:.3f}",
    "chunks": lambda means: f"{means.kept:.1f}",
    "tokens": lambda means: f"{means.tokens:,.0f}",
}
"""The columns after that of the measure, which is left out here."""


def _row(name: str, means: TunedMeans, target: Target) -> tuple[str, ...]:
    """A row of the table; its name says if the recall is too low."""
    return (
        f"{name} (recall under {target.recall:g})" if means.recall < target.recall else name,
        _round(means.of.mean),
        caveats.between_ends(means.of, _round),
        *(show(means) for column, show in _OTHERS.items() if column != target.figure),
    )


def _round(value: float) -> str:
    """Token counts have no decimals."""
    return f"{value:,.0f}" if value > 1 else f"{value:.3f}"
