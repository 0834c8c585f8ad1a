"""Changes to many rules: Bulk makes one change to all filtered rows, Files exports and imports rules. A change is
previewed, with its effect and a diff, and saved as one step. Files are JSONL for git or CSV for spreadsheets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import ndiff
from functools import partial

import streamlit as st

from ragfilter.basics.files import as_files
from ragfilter.errors import InputError, RagfilterError, StoreError
from ragfilter.rules import bulk, edits, rule_files
from ragfilter.rules.bulk import RuleChange
from ragfilter.rules.rule import AnyRule, ValidChanges, in_words, read_rule
from ragfilter.rules.rule_files import FileChange, ImportPlan, RefusedLine
from ragfilter.text.numbers import counted
from ragfilter.ui.kit import grid
from ragfilter.ui.kit.rule_editor import rule_effect, visible_collection
from ragfilter.ui.kit.rule_editor.visible_collection import VisibleCollection
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import literal, message
from ragfilter.ui.rules import listed_rows
from ragfilter.ui.session import asking, state

GROUP, SPELLINGS, REPLACE, SET = "Add a group", "Add spellings", "Replace a term", "Set a rule"
REMOVE = "Remove the rule"
ACTIONS = {GROUP: f"{GROUP} to", SPELLINGS: f"{SPELLINGS} to", REPLACE: f"{REPLACE} in", SET: "Set", REMOVE: "Remove"}
"""The kinds of change, with the button's words before the number of rules."""
KIND, FILE, DOUBTS = "bulk-kind", "files-file", "files-doubts"
FIELDS = TERM, TERMS, RULE, NEW = "bulk-term", "bulk-terms", "bulk-rule", "bulk-new"
PAGE, LEFT_OUT = 5, 20
LOOKS = {"+": "rf-in", "-": "rf-out"}


def offer(visible: VisibleCollection, rules: ValidChanges, action: str, *, key: str) -> None:
    """Draw the effect of storing `rules`, the button that stores them, and every change. `action`
    names the change: ``Remove``, ``Add the group x to``."""
    if not rules:
        elements.empty("Nothing would change.", "The rules already have this change.")
        return
    sure = rule_effect.confirm(visible, rules, f"{key}-sure")
    label = literal(f"{action} {counted(len(rules), 'rule')}")
    about = "Saves them as one step, which you can undo."
    elements.button(label, f"{key}-save", save, visible, rules, type="primary", disabled=not sure, about=about)
    diffs = [(visible.name(i), read_rule(visible.chunks[i].rule), rule) for i, rule in rules.items()]
    draw_diffs(diffs, f"{key}-changes")
    rule_effect.wait(visible)


def save(visible: VisibleCollection, rules: ValidChanges) -> None:
    """Store `rules` as one step, unless a rule has changed since the page read it."""
    bench = visible.resources.bench
    collection, expected = bench.collection(visible.collection), {i: visible.chunks[i].rule for i in rules}
    try:
        saved = edits.save_all(collection, bench.journal, rules=rules, expected=expected, who=state.author())
    except RagfilterError as error:
        # A StoreError itself says what was saved.
        put_outcome(str(error) if isinstance(error, StoreError) else f"Not saved: {error}", good=False)
    else:
        put_outcome(f"Changed {counted(len(saved), 'rule')}.", good=True)
        asking.update_after_edits(visible.resources)


def put_outcome(words: str, *, good: bool) -> None:
    """Keep the outcome of an action, which is shown until the next one."""
    state.session().rules.bulk_outcome = (words, good)


def draw_diffs(diffs: Sequence[tuple[str, AnyRule | None, AnyRule | None]], key: str) -> None:
    """Draw each change as a title with its added and removed lines, by sign and colour, and the
    names of the parts between them, one page at a time."""
    for title, before, after in diffs[grid.choose_page(key, len(diffs), PAGE)]:
        elements.draw(f'<div class="rf-diff"><b>{elements.text(title)}</b><pre>{_diff(before, after)}</pre></div>')


def _diff(before: AnyRule | None, after: AnyRule | None) -> str:
    old, new = (["no rule"] if rule is None else rule.pretty.splitlines() for rule in (before, after))
    return "\n".join(
        f'<span class="{LOOKS.get(line[0], "")}">{line[0]} {elements.text(line[2:])}</span>'
        for line in ndiff(old, new)
        if line[0] in LOOKS or '":' in line
    )


def draw(visible: VisibleCollection) -> None:
    """Draw the filter, the choice of change, its preview and the button that saves it."""
    listed_rows.draw_filter(visible)
    kind = st.segmented_control(
        "Change", ACTIONS, key=KIND, default=GROUP, required=True, persist_state="session", on_change=_forget
    )
    try:
        change = _change(str(kind))
    except InputError as error:
        if any(st.session_state.get(name) for name in FIELDS):
            elements.aside(in_words(error))
        return
    plan = bulk.plan(change, [row.chunk for row in listed_rows.selected(visible)])
    if plan.refused:
        first, why = next(iter(plan.refused.items()))
        refused = counted(len(plan.refused), "rule")
        st.error(message(f"{refused} cannot be changed, such as {first}: {why}"))
    offer(visible, plan.after, ACTIONS[str(kind)], key="bulk")


def _forget() -> None:
    """Clear the fields, because their terms were meant for another change."""
    for name in FIELDS:
        st.session_state.pop(name, None)


def _change(kind: str) -> RuleChange:
    """The change described by the form. Raises InputError, RuleError."""
    if kind == REMOVE:
        return bulk.remove()
    if kind == SET:
        hint, about = '{"contain_one_of": [["term", "other spelling"]]}', "Replaces the rule of every chunk."
        text = st.text_area("Rule", key=RULE, persist_state="session", placeholder=hint, help=about)
        if not text or not text.strip():
            raise InputError("There is no rule.", remedy="Write one.")
        return bulk.set_rule(text)
    if kind == GROUP:
        return bulk.add_group(_terms("Terms of the new group"))
    about = "Changes every group that contains this term."
    term = st.text_input("Existing term", key=TERM, persist_state="session", help=about)
    if kind == SPELLINGS:
        return bulk.add_spellings(term or "", _terms("Spellings to add"))
    new = st.text_input("Replacement term", key=NEW, persist_state="session", help="Replaces the existing term.")
    return bulk.replace_term(term or "", new or "")


def _terms(label: str) -> list[str]:
    terms, about = st.session_state.get(TERMS, []), "The question must contain one of them."
    hint = "Type a term and press Enter"
    return st.multiselect(
        label, terms, key=TERMS, persist_state="session", accept_new_options=True, placeholder=hint, help=about
    )


def draw_files(visible: VisibleCollection) -> None:
    """Draw export and import."""
    left, right = st.columns(2, gap="medium")
    with left:
        _export(visible)
    with right:
        _import(visible)


def _export(visible: VisibleCollection) -> None:
    # Read before the rules, so that only edits in the file count as exported.
    last_edit = visible.resources.bench.journal.last_edit(visible.collection)
    visible = visible_collection.current(visible.collection, visible.settings, visible.resources)
    chunks = [chunk for chunk in visible.chunks.values() if chunk.rule]
    where = "for version control, where `ragfilter rules check` and `rules test` check them."
    st.markdown(f"**Export** {counted(len(chunks), 'rule')} {where}")
    with elements.row("files-export", "top"):
        about = "The table marks rules edited after this export as changed."
        if not visible.user.unrestricted:
            about = "Contains only what you can see. Changed rules stay marked in the table."
        texts = {"JSONL": lambda: "".join(rule_files.lines(chunks)), "CSV": lambda: rule_files.csv_text(chunks)}
        for name, make in texts.items():
            export, file = partial(_exported, make, visible, last_edit), f"{visible.collection}-rules.{name.lower()}"
            elements.download(name, f"files-{name.lower()}", export, file, about, disabled=not chunks)


def _exported(make: Callable[[], str], visible: VisibleCollection, last_edit: int) -> str:
    text = make()
    # With clearance on, the file may lack rules, and the page must not reveal whether it does.
    if visible.user.unrestricted:
        visible.resources.bench.journal.mark_exported(visible.collection, last_edit)
    return text


def _import(visible: VisibleCollection) -> None:
    st.markdown("**Import** JSONL or CSV with id and query_must, or drafts.")
    file = st.file_uploader("File of rules", type=["jsonl", "csv"], key=FILE, help="UTF-8, up to 200 MB.")
    if file is None:
        return
    with_doubts = st.checkbox("With doubts", key=DOUBTS, help="Includes drafts with remarks.")
    stored = {i: chunk.rule for i, chunk in visible.chunks.items()}
    try:
        with as_files(file) as (path,):
            plan = rule_files.plan(path, stored, with_doubts=with_doubts)
    except InputError as error:
        st.error(message(str(error)))
        return
    _planned(visible, plan)


def _planned(visible: VisibleCollection, plan: ImportPlan) -> None:
    st.markdown(
        f"{counted(len(plan.changes), 'rule')} to save, {plan.unchanged} unchanged, "
        f"{len(plan.held)} held back for doubts, {len(plan.refusals)} refused."
    )
    refused = [f"{_where(each)}: {each.error}" for each in plan.refusals]
    doubtful = [f"{_where(each)}: {'; '.join(each.doubts)}" for each in plan.held]
    if left_out := [*refused, *doubtful]:
        shown = left_out[grid.choose_page("files-left-out", len(left_out), LEFT_OUT)]
        st.warning("\n".join(f"- {message(each)}" for each in shown))
    if plan.changes:
        rules = {change.chunk_id: change.after for change in plan.changes}
        offer(visible, rules, "Import", key="files")


def _where(each: FileChange | RefusedLine) -> str:
    return f"line {each.line} {each.chunk_id}".rstrip()
