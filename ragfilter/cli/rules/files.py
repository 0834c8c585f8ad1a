"""`ragfilter rules export` and `import`: the rules as a file, and the rules of a file saved as one
step."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from ragfilter.cli.app import command
from ragfilter.cli.options import Filtering, Json, Place, Viewing
from ragfilter.cli.output import show, warn, write
from ragfilter.cli.rules.select import FOUND, Saving, Where, rules, select_rules
from ragfilter.rules import rule_files
from ragfilter.rules.rule_files import FileChange, ImportPlan
from ragfilter.text.normalise import in_one_line
from ragfilter.text.numbers import counted

HELD = (
    "Correct the drafts held back and remove their remarks from the file, or add --with-doubts "
    "to save them as they are."
)


@command(rules)
def export(
    place: Place,
    viewing: Viewing,
    out: Annotated[Path | None, "Output file: JSONL, or .csv. Default: standard output."] = None,
    where: Where = None,
) -> None:
    """Write the rules as JSONL, or as CSV: id, title and query_must.

    Rules edited later are listed as changed since this export, if it has all rules that were edited
    before, and goes to a file or pipe.
    """
    with place.open("rules") as bench:
        # Read before the rules, so that no edit counts as exported that is not in the file.
        last_edit = bench.journal.last_edit(place.collection)
        edited = bench.journal.edited_since_export(place.collection)
        chunks = bench.collection(place.collection).entries()
    user = viewing.viewer
    lacking = (i for i in edited if i not in chunks or not user.sees(chunks[i]))
    has_all_edited = user.unrestricted or not any(lacking)
    selected = select_rules(place, viewing, where)
    if rule_files.is_csv(out):
        text = rule_files.csv_text(selected.chunks)
    else:
        text = "".join(rule_files.lines(selected.chunks))
    prefix = f"{place.collection}: {len(selected.chunks)} rules written to "
    written = write(text, out, prefix)
    # What is not in the file still counts as changed since the last export.
    if written and not where and has_all_edited and not selected.incomplete:
        with place.open("rules") as bench:
            bench.journal.mark_exported(place.collection, last_edit)


@command(rules, name="import")
def import_(
    file: Annotated[Path, "JSONL or CSV with id and query_must, or drafts."],
    place: Place,
    filtering: Filtering,
    saving: Saving,
    with_doubts: Annotated[bool, "Also save drafts with remarks."] = False,
    prune: Annotated[bool, "Also remove the rules of chunks that the file does not name."] = False,
    as_json: Json = False,
) -> int:
    """Save the rules of a file as one step.

    Lines that cannot be used are listed and left out; drafts with remarks are held back. Exits
    with 1 if there are any, or if nothing was saved because labelled queries would lose recall.
    """
    user = filtering.viewer
    with place.open("rules") as bench:
        store = bench.collection(place.collection)
        chunks, incomplete = store.entries(), store.incomplete
        # A hidden chunk is refused like one that does not exist, and never pruned.
        stored = {i: chunk.rule for i, chunk in chunks.items() if user.sees(chunk)}
        plan = rule_files.plan(file, stored, with_doubts=with_doubts, prune=prune)
        warn(incomplete)
        after = {change.chunk_id: change.after for change in plan.changes}
        saved = saving.save(after, stored, bench, place, filtering)
    document: dict[str, Any] = place.head(incomplete) | {
        "dry_run": saving.dry_run,
        "saved" if saved.done else "would_save": [*map(_document, plan.changes)],
        "held_back": [*map(_document, plan.held)],
        "pruned": plan.pruned,
        "unchanged": plan.unchanged,
        "skipped": plan.skipped,
        "refused": plan.refusals,
    }
    text = _import_text(place.collection, plan, saved=saved.done) + saved.text
    show(document | saved.document, text, as_json=as_json)
    return FOUND if plan.refusals or plan.held or not saved.wanted else 0


def _document(change: FileChange) -> dict[str, Any]:
    return asdict(change) | {"kind": change.kind}


def _import_text(collection: str, plan: ImportPlan, *, saved: bool) -> str:
    shown = () if saved else plan.changes
    lines = [f"{c.kind}: {c.chunk_id}: {c.after or 'no rule'}" for c in shown]
    lines += [_doubts("with doubts", change) for change in plan.changes if change.doubts]
    lines += [_doubts("held back", change) for change in plan.held]
    lines += [refusal.message for refusal in plan.refusals]
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


def _doubts(what: str, change: FileChange) -> str:
    doubts = " ".join("; ".join(change.doubts).split())
    return f"{what}: line {change.line} ({change.chunk_id}): {doubts}"
