"""Shows the effect of a rule change on labelled queries before it is saved, and asks for
confirmation if they would lose relevant chunks.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.cli.access import backends
from ragfilter.cli.labelled import QuerySelection, read_labels
from ragfilter.cli.options import SET_HELP, DryRun, Filtering, Place, QrelsFile, refuse_without
from ragfilter.cli.output import progress, tell
from ragfilter.errors import InputError
from ragfilter.evaluate import measure
from ragfilter.evaluate.effect import Effect, LabelledQuestions, document, make_labelled
from ragfilter.evaluate.labelled_queries import Labels
from ragfilter.evaluate.proposed import Evidence
from ragfilter.evaluate.rule_matrix import RuleRow
from ragfilter.text.numbers import counted, signed

if TYPE_CHECKING:
    from ragfilter.model import User
    from ragfilter.settings.schema import Settings
    from ragfilter.workbench import Workbench

Rules = Mapping[str, str | None]
"""Rule texts by chunk id, None for no rule."""


@dataclass(frozen=True, slots=True)
class Saved:
    """The outcome of a change: its effect, if it was measured; `wanted` is False if labelled
    queries would lose relevant chunks and nobody agreed; `done` says whether it was saved."""

    effect: Effect | None
    wanted: bool
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Options: whether to save a change of rules, what to measure before, and whether to ask."""

    queries: Annotated[
        str | None,
        typer.Option(
            "--queries",
            help="Labelled queries on which to check the change before it is saved. Default: all "
            "labelled queries of the workspace, or none with --yes. `asked` also counts questions "
            f"without labels. {SET_HELP}",
        ),
    ] = None
    qrels: QrelsFile = None
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Save even if labelled queries lose recall.")
    ] = False
    dry_run: DryRun = False

    def weigh(self, rules: Rules, bench: Workbench, place: Place, filtering: Filtering) -> Saved:
        """Measure the change and decide whether to save it; asks for confirmation if labelled
        queries would lose relevant chunks."""
        effect = self._measure(rules, bench, place, filtering)
        if self.dry_run:
            return Saved(effect, wanted=True, done=False)
        wanted = self._agrees(effect)
        return Saved(effect, wanted=wanted, done=wanted)

    def save(
        self, rules: Rules, expected: Rules, bench: Workbench, place: Place, filtering: Filtering
    ) -> Saved:
        """Save `rules` as one change, unless it is not wanted. Raises what `edits.save_all`
        raises."""
        from ragfilter.rules import edits

        saved = self.weigh(rules, bench, place, filtering)
        if saved.done:
            store, who = bench.collection(place.collection), bench.deployment.user
            edits.save_all(store, bench.journal, rules=rules, expected=expected, who=who)
        return saved

    def _measure(
        self, rules: Rules, bench: Workbench, place: Place, filtering: Filtering
    ) -> Effect | None:
        """The effect of `rules` on labelled queries, or on all that were asked. None if it is not
        wanted, or if no queries were named and the workspace has no labels."""
        from ragfilter.evaluate import query_sets
        from ragfilter.stores.labels import ASKED

        if not rules or (self.queries is None and self.yes):
            return None
        loaded, user = filtering.load()
        settings = loaded.settings
        labelled, asked = (self.queries, self.qrels), {}
        if labelled == (ASKED, None):
            asked = query_sets.questions(bench.labels, place.collection, ASKED)
        try:
            known, settings = labels_of(labelled, bench, place, user, settings)
        except InputError:
            if not asked:
                raise
            known = Labels(asked, {})
        if known is None:
            return None
        questions = asked or known.labelled
        return _gather(questions, known, settings, bench, place, user).effect(rules)

    def _agrees(self, effect: Effect | None) -> bool:
        if effect is None or not effect.loses_relevant or self.yes:
            return True
        if sys.stdin.isatty():
            typer.echo(effect_text(effect), err=True, nl=False)
            return typer.confirm("Labelled queries would lose relevant chunks. Save?", err=True)
        tell("Nothing was saved: labelled queries would lose relevant chunks. Add --yes to save.")
        return False


def labels_of(
    labelled: tuple[str | None, str | None],
    bench: Workbench,
    place: Place,
    user: User,
    settings: Settings,
) -> tuple[Labels | None, Settings]:
    """The labelled queries that were named, otherwise all in the workspace, None if it has none;
    and the settings to gather them with. Reports what named labels lack."""
    from ragfilter.evaluate import query_sets

    queries, qrels = labelled
    if queries is None:
        refuse_without("--queries", qrels=qrels)
    else:
        labels = read_labels(QuerySelection(), queries, qrels, bench, place.collection, user)
        return labels, settings
    # Nobody asked for these queries, so do not pay an LLM for them.
    settings = settings.with_values({"query_must.enabled": True, "judge.enabled": False})
    catalogue = bench.collection(place.collection).entries()
    return query_sets.everything(bench.labels, place.collection, catalogue, user), settings


def gather_labelled(
    labelled: tuple[str | None, str | None], bench: Workbench, place: Place, filtering: Filtering
) -> LabelledQuestions | None:
    """The labelled queries that were named, or all of the workspace, with their pools, to measure
    proposed rules on; None if there are none."""
    loaded, user = filtering.load()
    settings = loaded.settings.with_values({"query_must.enabled": True})
    labels, settings = labels_of(labelled, bench, place, user, settings)
    if labels is None:
        return None
    return _gather(labels.labelled, labels, settings, bench, place, user)


def _gather(
    questions: Mapping[str, str],
    labels: Labels,
    settings: Settings,
    bench: Workbench,
    place: Place,
    user: User,
) -> LabelledQuestions:
    store = backends(bench, place.collection)
    pools = measure.gather_all(questions, settings, store, user, progress=progress("queries"))
    return make_labelled(pools, labels.qrels, settings, user)


def loss_remarks(chunk_id: str, evidence: Evidence) -> tuple[str, ...]:
    """The queries that would lose a chunk by its proposed rule, as doubts about it."""
    lost = evidence.losses.get(chunk_id, ())
    return tuple(f"labelled relevant, but would be dropped: {query}" for query in lost)


def row_text(row: RuleRow) -> str:
    """A row of the matrix in short form."""
    figures = [
        counted(row.queries, "query"),
        f"blocks {row.blocks}",
        f"passes {row.passes}",
        counted(len(row.conflicts), "conflict"),
    ]
    if row.delta_f1 is not None and row.delta_recall is not None:
        figures.append(
            f"without it F1 {signed(row.delta_f1, 4)}, recall {signed(row.delta_recall, 4)}"
        )
    return ", ".join(figures)


def change_text(before: Rules, after: Rules) -> str:
    """The rules before and after a change, as a diff."""
    return "".join(
        f"{i}\n- {before[i] or 'no rule'}\n+ {rule or 'no rule'}\n" for i, rule in after.items()
    )


def effect_document(effect: Effect | None) -> dict[str, Any]:
    """The key `effect`, if one was measured."""
    return {} if effect is None else {"effect": document(effect)}


def effect_text(effect: Effect | None) -> str:
    """The effect of a change on queries as text, those that lose relevant chunks first."""
    if effect is None:
        return ""
    lines = []
    for row in effect.rows:
        others = [i for i in row.lost if i not in row.lost_relevant]
        changes = {"loses relevant": row.lost_relevant, "loses": others, "gains": row.gained}
        listed = "; ".join(f"{what} {', '.join(ids)}" for what, ids in changes.items() if ids)
        lines.append(f"{row.id}: {listed} ({row.query})")
    changed = f"{len(effect.rows)} of {counted(effect.queries, 'query')} change"
    if effect.before and effect.after:
        before, after = effect.before, effect.after
        changed += (
            f": precision {before.precision:.3f} → {after.precision:.3f}, "
            f"recall {before.recall:.3f} → {after.recall:.3f}, F1 {before.f1:.3f} → {after.f1:.3f}"
        )
    lines.append(changed)
    if effect.short:
        need = "needs" if effect.short == 1 else "need"
        lines.append(
            f"{counted(effect.short, 'query')} {need} a new search, and may then keep more: too "
            "few of the chunks found so far would pass."
        )
    return "\n".join(lines) + "\n"
