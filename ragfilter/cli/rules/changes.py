"""`ragfilter rules bulk`, `import`, `undo` and `redo`, which save changes as one step; `history`; and `export`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ragfilter.cli import output
from ragfilter.cli.options import MAX_NUMBER, File, Filtering, Place, Text, Texts, Viewing
from ragfilter.cli.program import command
from ragfilter.cli.rules.select import FOUND, OneChunk, Saving, Where, change_text, effect_text, rules, select
from ragfilter.errors import InputError
from ragfilter.rules import bulk as changes
from ragfilter.rules import edits, rule_files
from ragfilter.rules.journal import Edit, Step, Turn
from ragfilter.rules.overview import brief
from ragfilter.rules.rule import read_rule, texts_of
from ragfilter.text.normalise import in_one_line
from ragfilter.text.numbers import counted

ONE = "Pass one of --set-rule, --add-group, --spellings-of, --replace and --remove."
HELD = (
    "Correct the drafts held back and remove their remarks from the file, or add --with-doubts "
    "to save them as they are."
)
EditId = Annotated[int | None, "--edit", "An edit, with everything changed in its step.", {"min": 1, "max": MAX_NUMBER}]
MAX_LISTED = 5


@command(rules, json=True)
def bulk(
    place: Place,
    filtering: Filtering,
    saving: Saving,
    where: Where = None,
    set_rule: Annotated[Text, "Set this rule (JSON) for every chunk."] = None,
    group: Annotated[Texts, "--add-group", "Term of a new group. Repeatable."] = None,
    anchor: Annotated[Text, "--spellings-of", "Add --spelling to groups with this term."] = None,
    spellings: Annotated[Texts, "--spelling", "Term to add. Repeatable."] = None,
    swap: Annotated[
        tuple[str, str] | None, typer.Option("--replace", metavar="OLD NEW", help="Replace a term.")
    ] = None,
    remove: Annotated[bool, "Remove the rules."] = False,
) -> int:
    """Change all rules of a selection in one step, or none if one cannot be written.

    Exits with 1 if it leaves out unreadable rules, or saves nothing because labelled queries would lose recall."""
    if (anchor is None) != (not spellings):
        raise InputError("--spellings-of and --spelling must be used together.", remedy="Pass both, or neither.")
    wanted: list[changes.RuleChange] = []
    if set_rule is not None:
        wanted.append(changes.set_rule(set_rule))
    if group:
        wanted.append(changes.add_group(group))
    if anchor is not None:
        wanted.append(changes.add_spellings(anchor, spellings or ()))
    if swap is not None:
        wanted.append(changes.replace_term(*swap))
    if remove:
        wanted.append(changes.remove())
    if len(wanted) != 1:
        raise InputError("Exactly one change is required.", remedy=ONE)
    (change,) = wanted
    with place.open("rules") as bench:
        selected = select(bench, place.collection, where, user=filtering.viewer)
        if not selected.chunks:
            raise InputError("No chunk matches --where.", remedy="Check its ids, titles and types.")
        plan = changes.plan(change, selected.chunks)
        saved = saving.save(plan.after, plan.before, bench, place, filtering)
    document = place.head(selected.incomplete) | {"dry_run": saving.dry_run, "saved": saved.done, **output.plain(plan)}
    output.show(
        document | {"effect": saved.effect},
        "" if saved.done else change_text(plan.before, texts_of(plan.after)),
        *(f"refused: {i}: {why}" for i, why in plan.refused.items()),
        f"{place.collection}: {change.label}: {counted(len(plan.after), 'rule')} "
        f"{'changed' if saved.done else 'would be changed'}, {len(plan.unchanged)} unchanged, "
        f"{len(plan.refused)} refused",
        effect_text(saved.effect),
    )
    return 0 if saved.wanted and not plan.refused else FOUND


@command(rules)
def export(
    place: Place,
    viewing: Viewing,
    out: Annotated[File, "Output file: JSONL, or .csv. Default: standard output."] = None,
    where: Where = None,
) -> None:
    """Write the rules as JSONL, or as CSV: id, title and query_must.

    Later edits are listed as changed since this export, if it has all rules that were edited before and goes to a file
    or pipe."""
    user = viewing.viewer
    with place.open("rules") as bench:
        # Read before the rules, so that no edit missing from the file counts as exported.
        last_edit = bench.journal.last_edit(place.collection)
        edited = bench.journal.edited_since_export(place.collection)
        chunks = bench.collection(place.collection).entries()
        selected = select(bench, place.collection, [*(where or ()), "rule=any"], user=user)
    lacking = (i for i in edited if i not in chunks or not user.sees(chunks[i]))
    has_all_edited = user.unrestricted or not any(lacking)
    is_csv = rule_files.is_csv(out)
    text = rule_files.csv_text(selected.chunks) if is_csv else "".join(rule_files.lines(selected.chunks))
    written = output.write(text, out, f"{place.collection}: {len(selected.chunks)} rules written to ")
    # Edits that are not in the file still count as changed since the last export.
    if written and not where and has_all_edited and not selected.incomplete:
        with place.open("rules") as bench:
            bench.journal.mark_exported(place.collection, last_edit)


@command(rules, name="import", json=True)
def import_(
    file: Annotated[Path, "JSONL or CSV with id and query_must, or drafts."],
    place: Place,
    filtering: Filtering,
    saving: Saving,
    with_doubts: Annotated[bool, "Also save drafts with remarks."] = False,
) -> int:
    """Save the rules of a file as one step.

    Unusable lines are listed and left out; drafts with remarks are held back. Exits with 1 if there are any, or if
    nothing was saved because labelled queries would lose recall."""
    user = filtering.viewer
    with place.open("rules") as bench:
        chunks, incomplete = place.entries(bench)
        # A hidden chunk is refused like one that does not exist.
        stored = {i: chunk.rule for i, chunk in chunks.items() if user.sees(chunk)}
        plan = rule_files.plan(file, stored, with_doubts=with_doubts)
        after = {change.chunk_id: change.after for change in plan.changes}
        saved = saving.save(after, stored, bench, place, filtering)
    document = place.head(incomplete) | {"dry_run": saving.dry_run, "saved": saved.done, **output.plain(plan)}
    lines = map(in_one_line, _import_lines(place.collection, plan, saved=saved.done))
    output.show(document | {"effect": saved.effect}, *lines, effect_text(saved.effect))
    return FOUND if plan.refusals or plan.held or not saved.wanted else 0


def _import_lines(collection: str, plan: rule_files.ImportPlan, *, saved: bool) -> Iterator[str]:
    if not saved:
        for each in plan.changes:
            yield f"{each.kind}: {each.chunk_id}: {each.after.text if each.after else 'no rule'}"
    for what, listed in {"with doubts": plan.changes, "held back": plan.held}.items():
        for each in listed:
            if each.doubts:
                yield f"{what}: line {each.line} ({each.chunk_id}): {'; '.join(each.doubts)}"
    yield from (refusal.message for refusal in plan.refusals)
    yield (
        f"{collection}: {counted(len(plan.changes), 'rule')} {'saved' if saved else 'would be saved'}, "
        f"{plan.unchanged} unchanged, {counted(plan.skipped, 'line')} without a rule skipped, "
        f"{len(plan.refusals)} refused" + (f", {len(plan.held)} held back for doubts" if plan.held else "")
    )
    if plan.held:
        yield HELD


@command(rules, json=True)
def history(
    place: Place,
    chunk: OneChunk = None,
    edit: EditId = None,
    limit: Annotated[int, "Maximum number of edits.", {"min": 1, "max": MAX_NUMBER}] = 20,
) -> None:
    """List the edits of rules, newest first.

    Rules changed in one step share a line; --json and a chunk's own history list each."""
    _check_one(chunk, edit)
    with place.open("rules") as bench:
        bench.collection(place.collection)
        journal = bench.journal
        if edit is not None:
            edits = journal.step(edit)
            if not edits or edits[0].collection != place.collection:
                raise InputError(
                    f"{place.collection} has no edit {edit}.", remedy="`ragfilter rules history` lists them."
                )
            before, after = ({e.chunk_id: getattr(e, side) for e in edits} for side in ("before", "after"))
            output.show(edits, change_text(before, after))
            return
        edits = journal.history(place.collection, chunk, limit=limit)
        steps = tuple(Step(edit, 1, int(edit.state == "done")) for edit in edits)
        if chunk is None and not output.as_json:
            steps = journal.steps(place.collection, limit=limit)
    if steps or output.as_json:
        heads = ("edit", "when", "who", "kind", "state", "chunk", "rule")
        output.show(edits, output.table(heads, map(_row, steps)))
    else:
        output.tell("No rule has been edited yet.")


@command(rules, json=True)
def undo(place: Place, filtering: Filtering, saving: Saving, chunk: OneChunk = None, edit: EditId = None) -> int:
    """Undo the last change of the collection, the last edit of one chunk, or any edit.

    Exits with 1 if nothing was undone because labelled queries would lose recall."""
    return _turn("undo", place, filtering, saving, chunk, edit)


@command(rules, json=True)
def redo(place: Place, filtering: Filtering, saving: Saving, chunk: OneChunk = None, edit: EditId = None) -> int:
    """Redo the last undone change, the last one of a chunk, or any.

    Exits with 1 if nothing was redone because labelled queries would lose recall."""
    return _turn("redo", place, filtering, saving, chunk, edit)


def _turn(kind: Turn, place: Place, filtering: Filtering, saving: Saving, chunk: str | None, edit: int | None) -> int:
    _check_one(chunk, edit)
    turned: tuple[Edit, ...] = ()
    with place.open("rules") as bench:
        store, journal = bench.collection(place.collection), bench.journal
        entries = edits.plan_turn(kind, store, journal, edit_id=edit, chunk_id=chunk)
        after = {entry.chunk_id: entry.after for entry in entries}
        saved = saving.weigh({i: read_rule(text) for i, text in after.items()}, bench, place, filtering)
        if saved.done:
            who = bench.deployment.user
            turned = edits.turn(kind, store, journal, who=who, edit_id=edit, chunk_id=chunk)
    document: dict[str, Any] = {"saved": saved.done, "edits": turned}
    lines = [f"{e.kind} of edit {e.of}: the rule of {e.chunk_id} is {e.after or 'none'}\n" for e in turned]
    if saving.dry_run:
        document["changes"] = after
        lines = [f"the rule of {i} would be {rule or 'none'}\n" for i, rule in after.items()]
    more = len(lines) - MAX_LISTED
    lines[MAX_LISTED:] = [f"and {more} more; --json lists them\n"] if more > 0 else []
    output.show(document | {"effect": saved.effect}, "".join([*lines, effect_text(saved.effect)]))
    return 0 if saved.wanted else FOUND


def _check_one(chunk: str | None, edit: int | None) -> None:
    if chunk is not None and edit is not None:
        raise InputError("A chunk and --edit were both given.", remedy="Pass only one of them.")


def _row(step: Step) -> tuple[object, ...]:
    edit = step.edit
    alone = step.size == 1
    return (
        edit.id,
        edit.at.isoformat(sep=" ", timespec="seconds"),
        edit.who,
        edit.kind,
        edit.state if step.done in (0, step.size) else f"{step.done} of {step.size} done",
        edit.chunk_id if alone else counted(step.size, "chunk"),
        f"{brief(read_rule(edit.before))} -> {brief(read_rule(edit.after))}" if alone else "one step",
    )
