"""`ragfilter eval`: measure settings over queries, alone, side by side, or as a saved run. Source: Intelligent Chunk
Filtering, "Before/After Comparison Framework", "Experimental Tuning Process"; docs/design.md#evaluate."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Annotated

from ragfilter.cli import options, output
from ragfilter.cli.label_options import LabelledOptions, warn_in_sample, warn_of
from ragfilter.cli.program import command
from ragfilter.cli.report import compared_settings
from ragfilter.cli.runs import questions_text, rows_text, several_text, shown
from ragfilter.errors import InputError, SettingsError
from ragfilter.evaluate import evaluation, frame, measured_runs, query_sets, wording
from ragfilter.evaluate.query_records import QueryRecord, check_llm, measure, viewer_of
from ragfilter.evaluate.variants import Variant, judged, with_unfiltered
from ragfilter.judge import prompts as judge_prompts
from ragfilter.model import User
from ragfilter.settings.config import Config
from ragfilter.settings.profiles import PROFILES
from ragfilter.settings.schema import Settings
from ragfilter.text.numbers import counted

REFERENCE = "A: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides(options.Viewing):
    """Options for the settings to measure."""

    profile: Annotated[options.Texts, "--profile", "-p", f"Repeatable: {', '.join(PROFILES)}."] = None
    vary: Annotated[
        options.Texts,
        "Measure with each of these values of a setting. If given several times, with every combination.",
        {"metavar": "PATH=V,V,…"},
    ] = None
    prompts: Annotated[
        str, "Measure the judge with each of these prompts, or with all, and without it.", {"metavar": "A,B"}
    ] = ""
    against: Annotated[
        str | None,
        "Side A: a profile, a settings file, the name of saved settings, or the number of "
        "a run. Default: the unfiltered search.",
    ] = None

    @property
    def several(self) -> bool:
        """Whether more than one set of settings is measured."""
        return bool(len(self.profile or ()) > 1 or self.vary or self.prompts or self.against)

    def load(self) -> list[tuple[Config, User]]:
        """The settings of every profile, each with the user that they filter for."""
        names: list[str | None] = [*(self.profile or [])]
        names = names or ["llm-filter" if self.prompts else None]
        return [self._open(name, {}) for name in dict.fromkeys(names)]

    def variants(self) -> tuple[tuple[Variant, ...], str]:
        """The variants, and a note on refused combinations of values. Raises SettingsError if all are refused."""
        bases, axes = [loaded for loaded, _ in self.load()], self._axes()
        choices: dict[str, Settings] = {}
        refused: list[SettingsError] = []
        for base, values in product(bases, product(*axes.values())):
            changes = dict(zip(axes, values, strict=True))
            label = " ".join([f"{base.profile}{self.with_config}", *(f"{i}={v}" for i, v in changes.items())])
            try:
                choices[label] = self._open(base.profile, {"--vary": changes})[0].settings
            except SettingsError as error:
                refused.append(error)
        if not choices:
            raise refused[-1]
        note = f"{counted(len(refused), 'combination')} left out. {refused[-1]}" if refused else ""
        if not self.prompts:
            return tuple(Variant(name, "settings", each) for name, each in choices.items()), note
        prompts = dict.fromkeys(name.strip() for name in self.prompts.split(",") if name.strip())
        for name in prompts if self.prompts != "all" else ():
            # Validated as the setting that it becomes.
            self._open(bases[0].profile, {"--prompts": {"judge.prompt": name}})
        chosen = tuple(judge_prompts.variants()) if self.prompts == "all" else tuple(prompts)
        return judged(choices, chosen), note

    def _axes(self) -> dict[str, list[str]]:
        """Path of each varied setting → its values. Raises InputError."""
        axes: dict[str, list[str]] = {}
        for text in self.vary or ():
            path, _, values = text.partition("=")
            axes[path.strip()] = [value.strip() for value in values.split(",")]
        if len(axes) < len(self.vary or ()):
            raise InputError("--vary names a setting twice.", remedy="Give all its values once, with commas.")
        return axes


@command(name="eval", json=True)
def evaluate(
    labelled: LabelledOptions,
    place: options.Place,
    sides: Sides,
    save: Annotated[str, "Measure all alternatives too, and save a run for each profile.", {"metavar": "NAME"}] = "",
) -> None:
    """Measure settings on labelled queries, compared with the unfiltered search.

    Several profiles, values or prompts are measured side by side, with 95% intervals and paired tests. --set applies to
    every side except --against."""
    if save:
        options.refuse(
            "beside --save",
            vary=sides.vary,
            prompts=sides.prompts,
            against=sides.against,
            only=labelled.only,
            **{"except": labelled.leave_out},
        )
        _save(labelled, place, sides, save)
    elif sides.several:
        _several(labelled, place, sides)
    else:
        _alone(labelled, place, sides)


def _save(labelled: LabelledOptions, place: options.Place, sides: Sides, name: str) -> None:
    """Measure each set of settings with all its alternatives, and save it as a run of this name."""
    runs = []
    for loaded, user in sides.load():
        with labelled.open("eval", place, user) as (bench, backends, labels, _unknown):
            warn_of(labels)
            title = query_sets.title(labelled.queries, llm=labelled.llm, qrels=labelled.qrels)
            plan = measured_runs.plan(labels, title, loaded.profile, loaded.settings, backends, user, bench)
            run = bench.runs.begin(plan, who=bench.deployment.user, name=name)
            measured_runs.go_on(run, labels, bench.runs, backends, seen=output.progress("queries"))
            document, text = shown(measured_runs.load(bench.runs.get(run.id), bench.runs), bench)
            runs.append((document | {"incomplete": backends.incomplete}, text))
    documents = [document for document, _ in runs]
    output.show({"runs": documents} if runs[1:] else documents[0], *(text for _, text in runs))


def _alone(labelled: LabelledOptions, place: options.Place, sides: Sides) -> None:
    """Measure one set of settings, compared with the unfiltered search."""
    ((loaded, user),) = sides.load()
    settings, progress = loaded.settings, output.progress("queries")
    with labelled.open("eval", place, user) as (bench, backends, labels, unknown):
        warn_of(labels)
        options.warn_learned_elsewhere(settings, backends)
        head = {"unknown_labels": unknown, "profile": loaded.profile, "with_llm": labelled.llm}
        head["notes"] = warn_in_sample(settings, labels, place.collection)
        measured = evaluation.evaluate(labels.queries, labels.qrels, settings, backends, user, progress=progress)
        rows = frame.cells(measured.table)
        output.show(
            place.head(backends.incomplete) | head | evaluation.document(measured),
            f"{place.collection}, profile {loaded.profile}{sides.with_config}: "
            f"{counted(len(measured.rows), 'labelled query')}",
            rows_text(rows, bench.prices),
            questions_text(frame.questions(measured.records)),
            wording.unlabelled(rows[0]),
            wording.fell_back(sum(row.waiting for row in measured.rows)),
        )


def _several(labelled: LabelledOptions, place: options.Place, sides: Sides) -> None:
    """Measure settings side by side. If stopped early, report the finished queries."""
    variants, left_out = sides.variants()
    user = viewer_of(variants, sides.user)
    with labelled.open("eval", place, user, bare=not sides.prompts) as opened:
        if sides.against is not None:
            other = compared_settings(sides.against, opened.bench)
            variants = (Variant(f"{REFERENCE}{other.name}", "settings", other.settings), *variants)
        check_llm(variants, opened.bench.chat)
        notes = [left_out] if left_out else []
        labels = opened.labels
        if labels.qrels:
            warn_of(labels)
            for each in variants:
                notes += warn_in_sample(each.settings, labels, place.collection, each.name)
        compared = with_unfiltered(variants)
        reference = next((v.name for v in variants if sides.against), compared[0].name)
        records: list[QueryRecord] = []
        total = len(labels.labelled or labels.queries)

        def report() -> None:
            if not records and total:
                return
            done = len({record.id for record in records})
            rows = frame.rows(records, compared, against=reference)
            queries = frame.cells(frame.frame(records, by="query"))
            stopped = f"; stopped after {done} of {total}" if done < total else ""
            output.show(
                place.head(opened.backends.incomplete)
                | {
                    "queries": total,
                    "complete": done == total,
                    "unknown_labels": opened.unknown,
                    "with_llm": labelled.llm,
                    "notes": notes,
                    "against": reference,
                    "rows": frame.cells(rows),
                    "per_query": [
                        {**row, "ids": each.ids, "error": each.error}
                        for row, each in zip(queries, records, strict=True)
                    ],
                },
                f"{place.collection}: means over {counted(done, 'query')}{stopped}\n\n",
                several_text(records, rows, reference, opened.bench.prices, each_query=not sides.vary),
                *notes,
            )

        try:
            progress = output.progress("queries")
            for of_query in measure(labels, compared, opened.backends, user, timed=not sides.vary, progress=progress):
                records += of_query
        finally:
            report()
