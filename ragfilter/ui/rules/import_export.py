"""Rules to and from files: JSONL for git, CSV for spreadsheets. An import begins with a dry run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from ragfilter.basics.files import as_files
from ragfilter.errors import InputError
from ragfilter.rules import rule_files
from ragfilter.rules.rule_files import FileChange, ImportPlan, RefusedLine
from ragfilter.text.numbers import counted
from ragfilter.ui.kit.rule_editor import desk
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.look.prose import message
from ragfilter.ui.rules import bulk_change

FILE, DOUBTS = "files-file", "files-doubts"
PAGE = 20


def draw(work: Desk) -> None:
    """Draw export and import."""
    left, right = st.columns(2, gap="medium")
    with left:
        _export(work)
    with right:
        _import(work)


def _export(work: Desk) -> None:
    # Read before the rules, so that no edit counts as exported that is not in the file.
    last_edit = work.resources.bench.journal.last_edit(work.collection)
    work = desk.lay(work.collection, work.settings, work.resources)
    chunks = [chunk for chunk in work.chunks.values() if chunk.rule]
    st.markdown(
        f"**Export** {counted(len(chunks), 'rule')} for version control, where `ragfilter rules "
        "check` and `rules test` check them."
    )
    with st.container(key="files-export", horizontal=True, gap="small"):
        for name, kind, make in (
            ("JSONL", "application/x-ndjson", lambda: "".join(rule_files.lines(chunks))),
            ("CSV", "text/csv", lambda: rule_files.csv_text(chunks)),
        ):
            st.download_button(
                name,
                data=partial(_exported, make, work, last_edit),
                file_name=f"{work.collection}-rules.{name.lower()}",
                mime=kind,
                key=f"files-{name.lower()}",
                icon=":material/download:",
                disabled=not chunks,
                # A run that the click started could remove the file before the browser has it.
                on_click="ignore",
                help="The table marks rules edited after this export as changed."
                if work.user.unrestricted
                else "Contains only what you may see. Changed rules stay marked in the table.",
            )


def _exported(make: Callable[[], str], work: Desk, last_edit: int) -> str:
    text = make()
    # Under clearance the file may lack rules, and the page must not show whether it does.
    if work.user.unrestricted:
        work.resources.bench.journal.mark_exported(work.collection, last_edit)
    return text


def _import(work: Desk) -> None:
    st.markdown("**Import** JSONL or CSV with id and query_must, or drafts.")
    file = st.file_uploader(
        "File of rules", type=["jsonl", "csv"], key=FILE, help="UTF-8, up to 200 MB."
    )
    if file is None:
        return
    with_doubts = st.checkbox("With doubts", key=DOUBTS, help="Includes drafts with remarks.")
    stored = {i: chunk.rule for i, chunk in work.chunks.items()}
    try:
        with as_files(file) as (path,):
            plan = rule_files.plan(path, stored, with_doubts=with_doubts)
    except InputError as error:
        st.error(message(str(error)))
        return
    _planned(work, plan)


def _planned(work: Desk, plan: ImportPlan) -> None:
    st.markdown(
        f"{counted(len(plan.changes), 'rule')} to save, {plan.unchanged} unchanged, "
        f"{len(plan.held)} held back for doubts, {len(plan.refusals)} refused."
    )
    refused = [f"{_where(each)}: {each.error}" for each in plan.refusals]
    held = [f"{_where(each)}: {'; '.join(each.doubts)}" for each in plan.held]
    if left_out := [*refused, *held]:
        shown = left_out[bulk_change.page("files-left-out", len(left_out), PAGE)]
        st.warning("\n".join(f"- {message(each)}" for each in shown))
    if plan.changes:
        rules = {change.chunk_id: change.after for change in plan.changes}
        bulk_change.offer(work, rules, "Import", key="files")


def _where(each: FileChange | RefusedLine) -> str:
    return f"line {each.line} {each.chunk_id}".rstrip()
