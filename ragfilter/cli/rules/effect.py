"""Shows the effect of a rule change on labelled queries before it is saved, and asks for
confirmation if they would lose relevant chunks.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.labelled import QuerySelection, read_labels
from ragfilter.cli.options import SET_HELP, DryRun, Filtering, Place, QrelsFile
from ragfilter.errors import InputError
from ragfilter.evaluate import measure
from ragfilter.evaluate.beir import Labels
from ragfilter.evaluate.effect import Effect, LabelledQuestions, document, make_labelled
from ragfilter.evaluate.proposed import Evidence
from ragfilter.evaluate.rule_matrix import RuleRow
from ragfilter.model import User
from ragfilter.text.numbers import counted, signed

if TYPE_CHECKING:
    from ragfilter.settings.schema import Settings
    from ragfilter.workbench import Workbench


@dataclass(frozen=True, slots=True)
class Saved:
    """The outcome of a change: its effect, if it was measured; `wanted` is False if labelled
    queries would lose relevant chunks and nobody agreed; `done` says whether it was saved."""

    effect: Effect | None
    wanted: bool
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Options: what to measure before rules are changed, and whether to ask."""

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

    def measure(
        self,
        rules: Mapping[str, str | None],
        bench: Workbench,
        place: Place,
        filtering: Filtering,
    ) -> Effect | None:
        """The effect of `rules` (by chunk id) on labelled queries, or on all that were asked;
        reports what the labels lack. None if it is not wanted, or if no queries were named and the
        workspace has no labels."""
        from ragfilter.evaluate import stored
        from ragfilter.stores.labels import ASKED

        if not rules or (self.queries is None and self.yes):
            return None
        loaded, user = filtering.load()
        settings = loaded.settings
        labelled, asked = (self.queries, self.qrels), {}
        if labelled == (ASKED, None):
            asked = stored.questions(bench.labels, place.collection, ASKED)
        try:
            known, settings = labels_of(labelled, bench, place, user, settings)
        except InputError:
            if not asked:
                raise
            known = Labels(asked, {})
        if known is None:
            return None
        backends, show = parts.backends(bench, place.collection), parts.progress("queries")
        pools = measure.gather_all(asked or known.labelled, settings, backends, user, progress=show)
        return make_labelled(pools, known.qrels, settings, user).effect(rules)

    def agrees(self, effect: Effect | None) -> bool:
        """Whether to save even if labelled queries lose relevant chunks; asks for confirmation."""
        if effect is None or not effect.loses_relevant or self.yes:
            return True
        if sys.stdin.isatty():
            typer.echo(effect_text(effect), err=True, nl=False)
            return typer.confirm("Labelled queries would lose relevant chunks. Save?", err=True)
        parts.tell(
            "Nothing was saved: labelled queries would lose relevant chunks. Add --yes to save."
        )
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving(Asking):
    """Options: whether to save a change of rules, and what to measure before."""

    dry_run: DryRun = False

    def save(
        self,
        rules: Mapping[str, str | None],
        expected: Mapping[str, str | None],
        bench: Workbench,
        place: Place,
        filtering: Filtering,
    ) -> Saved:
        """Save `rules` (by chunk id) as one step, unless it is not wanted. Raises what
        `steps.save_all` raises."""
        from ragfilter.rules import steps

        effect = self.measure(rules, bench, place, filtering)
        if self.dry_run:
            return Saved(effect, wanted=True, done=False)
        wanted = self.agrees(effect)
        if wanted:
            steps.save_all(
                bench.collection(place.collection),
                bench.journal,
                rules=rules,
                expected=expected,
                who=bench.deployment.user,
            )
        return Saved(effect, wanted=wanted, done=wanted)


def labels_of(
    labelled: tuple[str | None, str | None],
    bench: Workbench,
    place: Place,
    user: User,
    settings: Settings,
) -> tuple[Labels | None, Settings]:
    """The labelled queries that were named, otherwise all in the workspace, None if it has none;
    and the settings to gather them with. Reports what named labels lack."""
    from ragfilter.evaluate import stored

    queries, qrels = labelled
    if queries is None:
        parts.refuse_without("--queries", qrels=qrels)
    else:
        read = read_labels(QuerySelection(), queries, qrels, bench, place.collection, user)
        return read, settings
    # Nobody asked for these queries, so do not pay an LLM for them.
    settings = settings.with_values({"query_must.enabled": True, "judge.enabled": False})
    catalogue = bench.collection(place.collection).entries()
    return stored.everything(bench.labels, place.collection, catalogue, user), settings


def gather_labelled(
    labelled: tuple[str | None, str | None],
    bench: Workbench,
    place: Place,
    filtering: Filtering,
) -> LabelledQuestions | None:
    """The labelled queries that were named, or all of the workspace, with their pools, to measure
    proposed rules on; None if there are none."""
    loaded, user = filtering.load()
    given = loaded.settings.with_values({"query_must.enabled": True})
    read, given = labels_of(labelled, bench, place, user, given)
    if read is None:
        return None
    backends, show = parts.backends(bench, place.collection), parts.progress("queries")
    pools = measure.gather_all(read.labelled, given, backends, user, progress=show)
    return make_labelled(pools, read.qrels, given, user)


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
        said = [
            f"{what} {', '.join(ids)}"
            for what, ids in (
                ("loses relevant", row.lost_relevant), ("loses", others), ("gains", row.gained),
            )
            if ids
        ]  # fmt: skip
        lines.append(f"{row.id}: {'; '.join(said)} ({row.query})")
    changed = f"{len(effect.rows)} of {counted(effect.queries, 'query')} change"
    if effect.before and effect.after:
        changed += ": " + ", ".join(
            f"{name} {was:.3f} → {now:.3f}"
            for name, was, now in (
                ("precision", effect.before.precision, effect.after.precision),
                ("recall", effect.before.recall, effect.after.recall),
                ("F1", effect.before.f1, effect.after.f1),
            )
        )
    lines.append(changed)
    if effect.short:
        need = "needs" if effect.short == 1 else "need"
        lines.append(
            f"{counted(effect.short, 'query')} {need} a new search, and may then keep more: too "
            "few of the chunks found so far would pass."
        )
    return "\n".join(lines) + "\n"
