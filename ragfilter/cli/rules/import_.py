"""`ragfilter rules import`: the rules of a file, saved as one step."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import Filtering, Json, Place
from ragfilter.cli.rules.effect import Saving, effect_document, effect_text
from ragfilter.cli.rules.group import FOUND, rules
from ragfilter.rules import rule_files as files
from ragfilter.rules.rule_files import FileChange, ImportPlan
from ragfilter.text.normalise import in_one_line
from ragfilter.text.numbers import counted

HELD = (
    "Correct the drafts held back and remove their remarks from the file, or add --with-doubts "
    "to save them as they are."
)


@command(rules, name="import")
def import_(
    file: Annotated[Path, typer.Argument(help="JSONL or CSV with id and query_must, or drafts.")],
    place: Place,
    filtering: Filtering,
    saving: Saving,
    with_doubts: Annotated[
        bool, typer.Option("--with-doubts", help="Also save drafts with remarks.")
    ] = False,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="Also remove the rules of chunks that the file does not name, as for going back "
            "to an earlier version of it.",
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Save the rules of a file as one step.

    Lines that cannot be used are listed and left out; drafts with remarks are held back. Exits
    with 1 if there are any, or if nothing was saved because labelled queries would lose recall.
    """
    viewer = filtering.viewer
    with place.open("rules") as bench:
        store = bench.collection(place.collection)
        every, incomplete = store.entries(), store.incomplete
        # A hidden chunk is refused like one that does not exist, and never pruned.
        stored = {i: chunk.rule for i, chunk in every.items() if viewer.sees(chunk)}
        plan = files.plan(file, stored, with_doubts=with_doubts, prune=prune)
        parts.tell(incomplete)
        after = {change.chunk_id: change.after for change in plan.changes}
        saved = saving.save(after, stored, bench, place, filtering)
    document = place.head(incomplete) | {"dry_run": saving.dry_run}
    document |= import_document(plan, saved=saved.done) | effect_document(saved.effect)
    text = import_text(place.collection, plan, saved=saved.done) + effect_text(saved.effect)
    parts.emit(document if as_json else text)
    return FOUND if plan.refusals or plan.held or not saved.wanted else 0


def import_document(plan: ImportPlan, *, saved: bool) -> dict[str, Any]:
    return {
        "saved" if saved else "would_save": [asdict(c) | {"kind": c.kind} for c in plan.changes],
        "held_back": [asdict(c) | {"kind": c.kind} for c in plan.held],
        "pruned": plan.pruned,
        "unchanged": plan.unchanged,
        "skipped": plan.skipped,
        "refused": [asdict(refusal) for refusal in plan.refusals],
    }


def import_text(collection: str, plan: ImportPlan, *, saved: bool) -> str:
    shown = () if saved else plan.changes
    lines = [f"{c.kind}: {c.chunk_id}: {c.after or 'no rule'}" for c in shown]
    lines += [_doubt("with doubts", change) for change in plan.changes if change.doubts]
    lines += [_doubt("held back", change) for change in plan.held]
    lines += [refusal.told for refusal in plan.refusals]
    verb = "saved" if saved else "would be saved"
    pruned = f" ({plan.pruned} of them removed, as the file lacks them)" if plan.pruned else ""
    lines.append(
        f"{collection}: {counted(len(plan.changes), 'rule')} {verb}{pruned}, {plan.unchanged} "
        f"unchanged, {counted(plan.skipped, 'line')} without a rule skipped, "
        f"{len(plan.refusals)} refused"
        + (f", {len(plan.held)} held back for doubts" if plan.held else "")
    )
    lines += [HELD] if plan.held else []
    return "\n".join(map(in_one_line, lines)) + "\n"


def _doubt(what: str, change: FileChange) -> str:
    doubts = " ".join("; ".join(change.doubts).split())
    return f"{what}: line {change.line} ({change.chunk_id}): {doubts}"
