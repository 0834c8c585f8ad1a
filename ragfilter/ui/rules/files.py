"""Rules to and from files: JSONL for git, CSV for spreadsheets. An import begins with a dry run."""

from __future__ import annotations

import tempfile
from pathlib import Path

import streamlit as st

from ragfilter.errors import InputError
from ragfilter.rules import rule_files
from ragfilter.rules.rule_files import Change, Plan, Refusal
from ragfilter.text.numbers import counted
from ragfilter.ui.look import html
from ragfilter.ui.rules import bulk, desk, diff, effect, labelled
from ragfilter.ui.rules.desk import Desk

FILE, DOUBTS, PRUNE, SURE = "files-file", "files-doubts", "files-prune", "files-sure"
MOST_SHOWN = 20


def draw(work: Desk) -> None:
    """Both directions."""
    left, right = st.columns(2, gap="medium")
    with left:
        _export(work)
    with right:
        _import(work)


def _export(work: Desk) -> None:
    # Read before the rules, so that no edit counts as exported that the file lacks.
    last_edit = work.resources.bench.journal.last_edit(work.collection)
    work = desk.lay(work.collection, work.settings, work.resources)
    chunks = [chunk for chunk in work.chunks.values() if chunk.rule]
    html.draw(
        f'<p class="rf-say"><b>Export</b> {counted(len(chunks), "rule")}, by chunk id. The file is '
        "meant for version control: <code>ragfilter rules lint</code> and <code>rules test</code> "
        "check it there.</p>"
    )
    with st.container(key="files-export", horizontal=True, gap="small"):
        for name, kind, make in (
            ("JSONL", "application/x-ndjson", lambda: "".join(rule_files.lines(chunks))),
            ("CSV", "text/csv", lambda: rule_files.csv_text(chunks)),
        ):
            st.download_button(
                name,
                data=make,
                file_name=f"{work.collection}-rules.{name.lower()}",
                mime=kind,
                key=f"files-{name.lower()}",
                icon=":material/download:",
                disabled=not chunks,
                on_click=_exported,
                args=(work, last_edit),
                help="Rules edited after this export count as changed in the table."
                if work.user.unrestricted
                else "Holds what you may see; what counts as changed in the table stays.",
            )


def _exported(work: Desk, last_edit: int) -> None:
    # Under clearance the file may lack rules, and whether this one does must not show.
    if not work.user.unrestricted:
        return
    work.resources.bench.journal.mark_exported(work.collection, last_edit)


def _import(work: Desk) -> None:
    html.draw(
        '<p class="rf-say"><b>Import</b> JSONL or CSV with id and query_must, or drafts. You see '
        "what would change before anything is saved.</p>"
    )
    bulk.said()
    file = st.file_uploader(
        "File of rules", type=["jsonl", "csv"], key=FILE, help="Read as UTF-8, up to 200 MB."
    )
    if file is None:
        return
    with_doubts = st.checkbox(
        "With doubts", key=DOUBTS, help="Also takes drafts that carry remarks."
    )
    prune = st.checkbox(
        "Remove other rules",
        key=PRUNE,
        help="Also removes the rules of chunks that the file does not name, as for going back to "
        "an earlier version of it.",
    )
    try:
        plan = _plan(work, file.name, file.getvalue(), with_doubts=with_doubts, prune=prune)
    except InputError as error:
        html.draw(f'<p class="rf-verdict rf-bad" role="alert">{html.text(error)}</p>')
        return
    _planned(work, plan)


def _plan(work: Desk, name: str, content: bytes, *, with_doubts: bool, prune: bool) -> Plan:
    stored = {i: chunk.rule for i, chunk in work.chunks.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rules.csv" if name.lower().endswith(".csv") else "rules.jsonl")
        path.write_bytes(content)
        try:
            return rule_files.plan(path, stored, with_doubts=with_doubts, prune=prune)
        except InputError as error:
            message = error.message.replace(str(path), name)
            raise InputError(message, remedy=error.remedy) from None


def _planned(work: Desk, plan: Plan) -> None:
    pruned = (
        f" ({plan.pruned} of them removals, as the file lacks these rules)" if plan.pruned else ""
    )
    html.draw(
        f'<p class="rf-verdict">{counted(len(plan.changes), "rule")} to save{pruned}, '
        f"{plan.unchanged} unchanged, {len(plan.held)} held back for doubts, {len(plan.refusals)} "
        "refused.</p>"
    )
    refused = "".join(
        f"<li>{_where(each)}: {html.text(each.error)}</li>" for each in plan.refusals[:MOST_SHOWN]
    )
    held = "".join(
        f"<li>{_where(each)}: {html.text('; '.join(each.doubts))}</li>"
        for each in plan.held[:MOST_SHOWN]
    )
    if refused or held:
        html.draw(f'<div class="rf-effect"><ul>{refused}{held}</ul></div>')
    if not plan.changes:
        return
    after = {change.chunk_id: change.after for change in plan.changes}
    before = {change.chunk_id: change.before for change in plan.changes}
    sure = effect.confirm(work, after, SURE)
    st.button(
        f"Save {counted(len(after), 'rule')}",
        key="files-save",
        type="primary",
        on_click=bulk.save,
        args=(work, after, before, "import"),
        disabled=not sure,
        help="Saves all of them as one step, which can be undone under History.",
    )
    diff.draw_all(
        [(work.chunks[c.chunk_id].name, c.before, c.after) for c in plan.changes], "files-changes"
    )
    labelled.wait(work)


def _where(each: Change | Refusal) -> str:
    return f"line {each.line} {html.text(each.chunk_id)}".rstrip()
