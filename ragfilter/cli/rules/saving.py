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
from ragfilter.cli.labelled import QueryOptions
from ragfilter.cli.options import DryRun, Filtering, Place
from ragfilter.cli.output import progress, tell
from ragfilter.evaluate import measure
from ragfilter.evaluate.effect import Effect, LabelledQuestions, document, make_labelled
from ragfilter.text.numbers import counted

if TYPE_CHECKING:
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

    @property
    def document(self) -> dict[str, Any]:
        """The key `effect`, if one was measured."""
        return effect_document(self.effect)

    @property
    def text(self) -> str:
        """The same as text."""
        return effect_text(self.effect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving(QueryOptions):
    """Options: whether to save a change of rules, what to measure before, and whether to ask. If no
    queries are named, all labelled ones of the workspace count, or none with `yes`."""

    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Save even if labelled queries lose recall.")
    ] = False
    dry_run: DryRun = False

    def weigh(self, rules: Rules, bench: Workbench, place: Place, filtering: Filtering) -> Saved:
        """Measure the change and decide whether to save it; asks for confirmation if labelled
        queries would lose relevant chunks."""
        effect = None
        if rules and not (self.queries is None and self.yes):
            known = gather_labelled(self, bench, place, filtering, bare=True)
            effect = None if known is None else known.effect(rules)
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

    def _agrees(self, effect: Effect | None) -> bool:
        if effect is None or not effect.loses_relevant or self.yes:
            return True
        if sys.stdin.isatty():
            typer.echo(effect_text(effect), err=True, nl=False)
            return typer.confirm("Labelled queries would lose relevant chunks. Save?", err=True)
        tell("Nothing was saved: labelled queries would lose relevant chunks. Add --yes to save.")
        return False


def gather_labelled(
    options: QueryOptions,
    bench: Workbench,
    place: Place,
    filtering: Filtering,
    *,
    bare: bool = False,
) -> LabelledQuestions | None:
    """The named queries, or all labelled ones of the workspace, with their pools; None if there are
    none. With `bare`, the named ones need no labels."""
    from ragfilter.evaluate import query_sets

    loaded, user = filtering.load()
    # Rules count even if the settings switch them off.
    settings = loaded.settings.with_values({"query_must.enabled": True})
    labels = options.read(bench, place.collection, user, bare=bare)
    if labels is None:
        # Nobody asked for these queries, so do not pay an LLM for them.
        settings = settings.with_values({"judge.enabled": False})
        catalogue = bench.collection(place.collection).entries()
        labels = query_sets.everything(bench.labels, place.collection, catalogue, user)
        if labels is None:
            return None
    queries = labels.queries if bare and options.queries else labels.labelled
    store = backends(bench, place.collection)
    pools = measure.gather_all(queries, settings, store, user, progress=progress("queries"))
    return make_labelled(pools, labels.qrels, settings, user)


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
        lines.append(
            f"new search needed, which may find more chunks that pass: "
            f"{counted(effect.short, 'query')}"
        )
    return "\n".join(lines) + "\n"
