"""`ragfilter rules import`: the rules of a file, each saved through the journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import Filtering, Json, Place, QrelsFile
from ragfilter.cli.rules.effect import Yes, effect_document, effect_of, effect_text, is_wanted
from ragfilter.cli.rules.group import FOUND, rules
from ragfilter.text.numbers import counted

if TYPE_CHECKING:
    from ragfilter.rules.rule_files import Change, Plan, Refusal

HELD = (
    "Correct the drafts that are held back and remove their remarks from the file, or add "
    "--with-doubts to save them as they are."
)


@command(rules, name="import")
def import_(
    file: Annotated[Path, typer.Argument(help="JSONL or CSV with id and query_must, or drafts.")],
    place: Place,
    filtering: Filtering,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only report what would be saved or refused.")
    ] = False,
    with_doubts: Annotated[
        bool, typer.Option("--with-doubts", help="Also save drafts with remarks.")
    ] = False,
    queries: Annotated[
        str | None,
        typer.Option(
            "--queries",
            help="Labelled queries (path of queries.jsonl, or demo or adsapi for their own), to "
            "see what the change does to them before it is saved.",
        ),
    ] = None,
    qrels: QrelsFile = None,
    yes: Yes = False,
    as_json: Json = False,
) -> int:
    """Save the rules of a file, each through the journal.

    Drafts with remarks are held back. Exits with 1 if any rule is held back or refused, and, with
    --queries, saves nothing that would lose labelled recall without asking.
    """
    from ragfilter.rules import rule_files as files

    with place.open("rules") as bench:
        store = bench.collection(place.collection)
        stored = {i: c.rule for i, c in store.catalogue().items()}
        parts.tell(store.incomplete)
        plan = files.plan(file, stored, with_doubts=with_doubts)
        saved, refusals = list[files.Change](), list(plan.refusals)
        effect = None
        if queries is not None:
            changes = {change.chunk_id: change.after for change in plan.changes}
            effect = effect_of(changes, bench, place, (queries, qrels), filtering)
        if not dry_run and not is_wanted(effect, yes=yes):
            return FOUND

        def report() -> None:
            what = place.collection, plan, saved, refusals
            if as_json:
                made = import_document(*what, dry_run=dry_run)
                parts.emit(parts.dumps(made | effect_document(effect)))
            else:
                parts.emit(import_text(*what, dry_run=dry_run))
                parts.emit(effect_text(effect))

        outcomes = (
            plan.changes
            if dry_run
            else files.save(
                plan.changes,
                store,
                bench.journal,
                who=bench.deployment.user,
                progress=parts.progress("rules saved"),
            )
        )
        with parts.at_the_end(report):
            for outcome in outcomes:
                if isinstance(outcome, files.Refusal):
                    refusals.append(outcome)
                else:
                    saved.append(outcome)
    return FOUND if refusals or plan.held else 0


def import_document(
    collection: str,
    plan: Plan,
    saved: Sequence[Change],
    refusals: Sequence[Refusal],
    *,
    dry_run: bool,
) -> dict[str, Any]:
    return {
        "collection": collection,
        "dry_run": dry_run,
        "would_save" if dry_run else "saved": [asdict(c) | {"kind": c.kind} for c in saved],
        "held_back": [asdict(c) | {"kind": c.kind} for c in plan.held],
        "unchanged": plan.unchanged,
        "skipped": plan.skipped,
        "refused": [asdict(refusal) for refusal in refusals],
    }


def import_text(
    collection: str,
    plan: Plan,
    saved: Sequence[Change],
    refusals: Sequence[Refusal],
    *,
    dry_run: bool,
) -> str:
    lines = [f"{c.kind}: {c.chunk_id}: {c.after or 'no rule'}" for c in saved] if dry_run else []
    lines += [_doubt("with doubts", change) for change in saved if change.doubts]
    lines += [_doubt("held back", change) for change in plan.held]
    for refusal in refusals:
        whose = f" ({refusal.chunk_id})" if refusal.chunk_id else ""
        lines.append(f"refused: line {refusal.line}{whose}: {refusal.error}")
    verb = "would be saved" if dry_run else "saved"
    lines.append(
        f"{collection}: {counted(len(saved), 'rule')} {verb}, {plan.unchanged} unchanged, "
        f"{counted(plan.skipped, 'line')} without a rule skipped, {len(refusals)} refused"
        + (f", {len(plan.held)} held back for doubts" if plan.held else "")
    )
    lines += [HELD] if plan.held else []
    return "\n".join(lines) + "\n"


def _doubt(what: str, change: Change) -> str:
    doubts = " ".join("; ".join(change.doubts).split())
    return f"{what}: line {change.line} ({change.chunk_id}): {doubts}"
