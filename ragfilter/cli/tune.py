"""`ragfilter tune`, `recalibrate` and `fit-reranker`: the best settings for labels. Source: docs/design.md#tune."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from ragfilter.basics.files import kind, write_text
from ragfilter.cli import options, output
from ragfilter.cli.label_options import LabelledOptions, QueryOptions, warn_of
from ragfilter.cli.program import command
from ragfilter.cli.runs import rows_text
from ragfilter.engine.gather import Backends
from ragfilter.errors import InputError
from ragfilter.evaluate import query_sets, wording
from ragfilter.evaluate.crossval import CHOSEN_BY, Target, read_target
from ragfilter.evaluate.frame import flat
from ragfilter.evaluate.labelled_queries import Labels
from ragfilter.evaluate.learning import fit_reranker as fit
from ragfilter.evaluate.query_records import completed_pools
from ragfilter.evaluate.recalibrate import carried, start
from ragfilter.evaluate.tuning import MARGIN, Figures, Tuning, tune_questions, wide_settings
from ragfilter.layers.quality import always_reranks
from ragfilter.settings.config import to_toml
from ragfilter.settings.schema import Settings, field_info
from ragfilter.stores.label_book import ASKED
from ragfilter.text.numbers import counted

WRITTEN = "Written to {0}; use it with --config {0}."


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningOptions:
    """How to tune, and where to write the settings."""

    measure: Annotated[str, "f1, f2, or the fewest tokens at a recall, such as tokens@0.8."] = "f1"
    folds: Annotated[int, "Number of cross-validation folds.", {"min": 2, "max": 1000}] = 5
    rerank: Annotated[bool, "Whether to try reranking too, which takes most of the time."] = True
    out: Annotated[options.File, "Write the settings to this TOML file."] = None

    @property
    def target(self) -> Target:
        """What to tune for. Raises InputError, also if `out` has no folder: before minutes of tuning, not after."""
        if self.out is not None and kind(self.out.parent) != "folder":
            raise InputError(f"{self.out} cannot be written: the folder does not exist.", remedy=output.OTHER_OUT)
        return read_target(self.measure)

    def write(self, settings: Settings, profile: str, how: str, backends: Backends) -> None:
        """Write the settings to `out`, with a comment on `how` they were found, and where. Raises InputError."""
        where = backends.collection
        about = (
            f"# {how}.\n# Collection {where.name}, {date.today().isoformat()}. Distances: "
            f"{where.space}, by {backends.embedder.name}.\n"
        )
        assert self.out is not None
        write_text(self.out, about + to_toml(settings, profile), remedy=output.OTHER_OUT)


@command(json=True)
def tune(
    labelled: LabelledOptions,
    place: options.Place,
    filtering: options.Filtering,
    wish: TuningOptions,
    strategy: Annotated[options.Text, f"Use this strategy: {field_info('cutoff.strategy').allowed()}."] = None,
) -> None:
    """Find or learn the cutoff that suits your labelled queries best, and measure its gain.

    All figures are cross-validated: no query is measured with settings that were chosen on it."""
    loaded, user = filtering.load()
    target, out = wish.target, wish.out
    if strategy is not None:
        # Validated as the setting that it becomes.
        filtering.load({"--strategy": {"cutoff.strategy": strategy}})
    with labelled.open("tune", place, user) as (_, backends, labels, _unknown):
        warn_of(labels)
        tuning, _ = tune_questions(
            labels,
            loaded.settings,
            backends,
            user,
            target=target,
            folds=wish.folds,
            rerank=wish.rerank,
            gathered=output.progress("gathered"),
            replayed=output.progress("replayed"),
        )
        head = place.head(backends.incomplete) | {"with_llm": labelled.llm}
    if strategy is not None:
        if strategy not in tuning.strategies:
            raise InputError(
                f"Nothing was learned for {strategy}: {tuning.why_not}.",
                remedy="Label more queries, or use another strategy.",
            )
        tuning = tuning.only(strategy)
    settings = tuning.tuned.settings
    if out is not None:
        how = f"Tuned on {tuning.queries} labelled queries, {tuning.target}"
        wish.write(settings, loaded.profile, how, backends)
    changed = settings.changed_from(loaded.settings)
    output.show(head | tuned_document(tuning, changed, out), tuned_text(tuning, place.collection, changed, out))


def tuned_document(tuning: Tuning, changed: dict[str, Any], file: Path | None) -> dict[str, Any]:
    """The JSON document of `tune --json` without its head. `ci` is the 95% interval of the measure;
    for tokens, a gain's `mean` and `ci` are the tokens saved."""
    return {
        "queries": tuning.queries,
        "measure": str(tuning.target),
        "folds": tuning.folds,
        "candidates": tuning.candidates,
        "best_fixed_k": {"k": tuning.k, **_figures(tuning, tuning.best_fixed_k)},
        "oracle": _figures(tuning, tuning.oracle),
        "before": _figures(tuning, tuning.before),
        "after": {**_figures(tuning, tuning.tuned.means), "settings": changed},
        "gain_over_fixed_k": _gain(tuning, tuning.tuned.gain),
        # The previous settings look too good on labels that they have seen.
        "gain_over_before": None if tuning.seen else _gain(tuning, tuning.tuned.gain_over_before),
        "seen": tuning.seen,
        "stands_in": tuning.stands_in,
        "calibrated_over": {name: _gain(tuning, each) for name, each in tuning.over_strategies.items()},
        "recall_dial": tuning.dial,
        "budget": tuning.budget and _figures(tuning, tuning.budget),
        "not_learned": tuning.why_not,
        "beats_fixed_k": tuning.beats_fixed_k,
        "strategies": [{"name": name, **_figures(tuning, each.means)} for name, each in tuning.strategies.items()],
        "settings_file": file,
    }


def tuned_text(tuning: Tuning, collection: str, changed: dict[str, Any], file: Path | None) -> str:
    """The result of tuning as text."""
    target, tuned = tuning.target, tuning.tuned
    table = rows_text(wording.compared_rows(tuning), measure=target.figure)
    return output.text_of(
        f"{collection}: {tuning.queries} labelled queries, {tuning.candidates} candidates, "
        f"{tuning.folds}-fold cross-validation\n\n{table}\n",
        f"{wording.verdict(tuning)}: {wording.gain_in(target.figure, tuned.gain)}.",
        ""
        if tuning.seen
        else f"Against the previous settings: {wording.gain_in(target.figure, tuned.gain_over_before)}.",
        wording.unlabelled(flat(tuned.means)),
        *wording.notes(tuning),
        "\n" if changed else wording.UNCHANGED,
        *(f"{path} = {wording.shown(path, value)}" for path, value in changed.items()),
        "" if file is None else f"\n{WRITTEN.format(file)}",
    )


def _gain(tuning: Tuning, differences: Figures) -> dict[str, Any]:
    gained = tuning.gain(differences)
    return {name: differences[name].mean for name in ("f1", "f2")} | {"mean": gained.mean, "ci": gained.ends}


def _figures(tuning: Tuning, figures: Figures) -> dict[str, Any]:
    means = {name: each.mean for name, each in figures.items()}
    return {
        **{name: means[name] for name in ("f1", "f2", "precision", "recall", "f1_most", "unlabelled")},
        "ci": figures[tuning.target.figure].ends,
        "mean_kept": means["kept"],
        "mean_tokens": means["tokens"],
    }


@command(name="fit-reranker", json=True)
def fit_reranker(
    labelled: LabelledOptions,
    place: options.Place,
    filtering: options.Filtering,
    depth: Annotated[int, "Hits of each query to score.", {"min": 2, "max": 500}] = 20,
    out: Annotated[options.File, "Write the settings with the fit to this TOML file."] = None,
) -> None:
    """Fit a reranker's scores, of any range, to your labels, so that thresholds apply to them.

    Without a fit, such scores only order the chunks."""
    loaded, user = filtering.load()
    settings = loaded.settings
    if settings.quality.reranker == "none":
        raise InputError("No reranker is chosen.", remedy="Set quality.reranker.")
    plain = settings.with_values({"quality.enabled": False})
    with labelled.open("fit-reranker", place, user) as (bench, backends, labels, _unknown):
        pools = completed_pools(labels.labelled, plain, backends, user, progress=output.progress("gathered"))
        reranker = bench.reranker(settings.quality)
        fitted = fit(pools, labels.qrels, reranker, depth=depth, progress=output.progress("scored"))
        head = place.head(backends.incomplete)
    values = {"quality.reranker_slope": fitted.slope, "quality.reranker_offset": fitted.offset}
    if out is not None:
        write_text(out, to_toml(settings.with_values(values), loaded.profile), remedy=output.OTHER_OUT)
    output.show(
        head | asdict(fitted) | {"settings": values, "settings_file": out},
        f"{reranker.name}: {fitted.hits} hits of {fitted.queries} queries, {fitted.relevant} relevant",
        *(f"{path} = {value:g}" for path, value in values.items()),
        "" if out is None else WRITTEN.format(out),
    )


REFUSED = 1


@command(json=True)
def recalibrate(
    given: QueryOptions,
    place: options.Place,
    filtering: options.Filtering,
    wish: TuningOptions,
    old: Annotated[options.File, "--from", "The settings in use (TOML).", {"callback": options.settings_file}] = None,
    margin: Annotated[float, "The largest loss that counts as no worse.", {"min": 0, "max": 1}] = MARGIN,
) -> int:
    """Tune again after a change of embedding model, space, reranker, chunking or corpus.

    Uses the existing labels. Writes nothing and exits with 1 unless the new settings are shown to be no worse on the
    same questions. Without labels, estimates thresholds from the recorded questions, which is a guess."""
    if old is not None:
        options.refuse("beside --from", config=filtering.config)
        filtering = replace(filtering, config=old)
    loaded, user = filtering.load()
    target, before, gathered = wish.target, loaded.settings, output.progress("gathered")
    tuning: Tuning | None = None
    with place.open("recalibrate") as bench:
        backends = place.backends(bench)
        catalogue = bench.collection(place.collection).entries()
        labels = (
            given.read(bench, place, user, bare=True)
            or query_sets.everything(bench.labels, place.collection, catalogue, user)
            or Labels(bench.labels.queries(place.collection, ASKED), {})
        )
        if labels.qrels:
            warn_of(labels)
            tuning, _ = tune_questions(
                labels,
                start(before, loaded.profile),
                backends,
                user,
                target=target,
                folds=wish.folds,
                rerank=wish.rerank or always_reranks(before.quality),
                replaces=before,
                gathered=gathered,
                replayed=output.progress("replayed"),
            )
            settings = tuning.tuned.settings
        elif labels.queries:
            wide = wide_settings(before, rerank=False)
            pools = completed_pools(labels.queries, wide, backends, user, progress=gathered)
            settings = carried(before, pools.values())
        else:
            raise InputError(
                f"The collection {place.collection} has neither labels nor recorded questions.",
                remedy="Pass --queries with a file of questions, and --qrels with their labels.",
            )
        head = place.head(backends.incomplete)
    no_worse = tuning is None or tuning.loses_at_most(margin)
    written = wish.out if no_worse else None
    questions = counted(len(labels.queries), "question")
    if written is not None:
        guess = f"Carried over without labels by {questions}: a guess"
        how = f"Recalibrated on {counted(len(labels.qrels), 'labelled query')}, {target}"
        wish.write(settings, loaded.profile, how if tuning else guess, backends)
    document = head | {"queries": len(labels.queries), "guess": tuning is None}
    document |= {"settings": settings.changed_from(before), "settings_file": written}
    lines = [f"{wording.GUESS}\n\n"]
    if tuning is not None:
        document |= {"measure": str(target), "margin": margin, "no_worse": no_worse, "stands_in": tuning.stands_in}
        for side, means in (("before", tuning.before), ("after", tuning.tuned.means)):
            document[side] = {name: means[name] for name in CHOSEN_BY}
        document["difference"] = tuning.tuned.gain_over_before
        table = output.table(wording.SIDES, wording.sides(tuning))
        lines = [f"\n{table}\n", wording.no_worse(tuning, margin), wording.stands_in(tuning)]
    lines += wording.changed(before, settings) or ["Nothing changes."]
    lines += [wording.untouched_limits(settings), f"\n{WRITTEN.format(written)}" if written else ""]
    output.show(document, f"{place.collection}: {questions}", *lines)
    return 0 if no_worse else REFUSED
