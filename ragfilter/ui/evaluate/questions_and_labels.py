"""The questions and labels of a set. Questions are edited as text, one per line, loaded from files
or taken from the history. Labels are reviewed, with disagreements and an LLM's proposals."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import pandas as pd
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from ragfilter.basics.files import as_files, by_name
from ragfilter.errors import InputError
from ragfilter.evaluate import labelling, query_sets
from ragfilter.evaluate.labelled_queries import Labels
from ragfilter.evaluate.labelling import Request
from ragfilter.evaluate.query_files import read_import, write
from ragfilter.model import Chunk
from ragfilter.stores.label_book import ASKED, LABELLED, UNCOUNTED, Label, Maker, conflicts
from ragfilter.stores.relabel import choices, settle
from ragfilter.text import numbers
from ragfilter.text.numbers import counted
from ragfilter.text.titles import query_id
from ragfilter.ui import jobs
from ragfilter.ui.jobs import Job
from ragfilter.ui.kit import grid
from ragfilter.ui.kit.labelled_sets import ChosenSet, counts_llm_labels
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import literal, message
from ragfilter.ui.session import state

COLUMNS = {"question": st.column_config.TextColumn(width=320)}
DEPTH = 10
"""How many chunks per question an LLM labels, in addition to those that people have labelled."""


def draw_questions(chosen: ChosenSet) -> None:
    """Draw the editor for the set's questions. Raises StoreError."""
    book, collection, name = chosen.book, chosen.collection, chosen.name
    # Start from the stored text after saving, or when another set is chosen.
    revision = f"{collection}-{name}-{state.session().sets_saved}"
    # A demo's own questions are not stored in the workspace.
    built_in = name in (LABELLED, ASKED) or not book.queries(collection, name)
    of_set = book, collection, name, chosen.chunks, chosen.user
    stored = query_sets.questions(*of_set) if chosen.sets[name] else {}
    filled = state.session().edited_sets.setdefault(revision, stored)
    left, right = st.columns((1.6, 1), gap="medium")
    with left:
        about = "Changing the name renames the set. Built-in sets are saved as copies."
        start, key, hint = "" if built_in else name, f"set-name-{revision}", "A name for your own set"
        title = st.text_input("Name of the set", start, key=key, persist_state="session", placeholder=hint, help=about)
        about = "Add, change or delete lines, then save. Line breaks within a question show as spaces and are kept. "
        about += "Labels belong to the exact wording: rewording a question hides them; restoring it brings them back."
        start, key = "\n".join(map(one_line, filled.values())), f"set-text-{revision}"
        text = st.text_area("Questions, one per line", start, 260, key=key, persist_state="session", help=about)
        with elements.row("set-actions", "top"):
            save = partial(_save, chosen, None if built_in else name, revision, filled)
            empty, about = not lines(text) or not title.strip(), "" if title.strip() else "Name the set first."
            elements.button("Save", "set-save", save, type="primary", disabled=empty, about=about)
            none = not chosen.sets[ASKED] or name == ASKED
            about = "Adds questions asked on Inspect that are not in the list yet."
            add = partial(_add_asked, chosen, key)
            elements.button("Add asked questions", "set-from-history", add, disabled=none, about=about)
            with st.popover("Remove set", disabled=built_in):
                about, label = "Cannot be undone. Labels stay with their questions.", f"Remove {literal(name)}"
                elements.button(label, "set-remove", _remove, chosen, type="primary", disabled=built_in, about=about)
            if stored:
                parts = 1 + counts_llm_labels()
                about = (
                    "queries.jsonl, BEIR's qrels.tsv and TREC's qrels.txt. An LLM's labels are separate (qrels-llm)."
                )
                archive, file = lambda: packed(*query_sets.exported(*of_set)[:parts]), f"{collection}-labels.zip"
                elements.download("Export", "set-export", archive, file, about)
    with right:
        _files(chosen)


def one_line(text: str) -> str:
    """A question as one line, with a space for each line break."""
    return " ".join(text.splitlines()).strip()


def lines(text: str) -> list[str]:
    """The questions in a text, without duplicates."""
    return list(dict.fromkeys(filter(None, map(one_line, text.split("\n")))))


def with_ids(questions: list[str], before: Mapping[str, str]) -> dict[str, str]:
    """Questions by id. Unchanged ones keep their id; new ones get an id from their words."""
    known: dict[str, dict[str, str]] = {}
    for i, text in before.items():
        known.setdefault(one_line(text), {})[i] = text.strip()
    by_id: dict[str, str] = {}
    for line in questions:
        by_id |= known.get(line, {query_id(line): line})
    return by_id


def packed(labels: Labels, by_llm: Labels | None = None) -> bytes:
    """A zip file of the queries and their labels in BEIR's and TREC's formats. An LLM's labels are
    in separate files. TREC files are left out if the format cannot hold an id."""
    out = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(out, "w") as archive:
        paths = write(labels, Path(folder), "beir", by_llm=by_llm)
        with suppress(InputError):
            paths += write(labels, Path(folder), "trec", by_llm=by_llm)[1:]
        for path in paths:
            archive.write(path, path.name)
    return out.getvalue()


def _files(chosen: ChosenSet) -> None:
    emptied = state.session().sets_saved
    about = "BEIR's queries.jsonl, a CSV file with a column text, query or question, or lines. Its name names the set."
    questions = st.file_uploader("From a file", ["jsonl", "csv", "txt"], key=f"set-file-{emptied}", help=about)
    kinds, about = ["tsv", "txt", "qrels", "trec"], "BEIR or TREC qrels. Credited to a labeller named after the file."
    qrels = st.file_uploader("With its labels", kinds, key=f"set-qrels-{emptied}", help=about)
    about = "They count only if “Count an LLM's labels” is on."
    by_llm = qrels is not None and st.checkbox("An LLM made these labels", key=f"set-by-llm-{emptied}", help=about)
    # Name what has arrived, so that a file still uploading is not silently left out.
    label = f"Import questions{' and labels' if qrels else ''}" if questions else "Import"
    about = "Saves the file's questions as a set." if questions else "Drop a file first."
    elements.button(label, "set-import", _import, chosen, questions, qrels, by_llm, disabled=not questions, about=about)


@state.notice_errors()
def _save(chosen: ChosenSet, name: str | None, revision: str, before: Mapping[str, str]) -> None:
    title = str(st.session_state[f"set-name-{revision}"]).strip()
    questions = lines(st.session_state[f"set-text-{revision}"])
    if title != name:
        query_sets.check_new(chosen.book, chosen.collection, title)
    by_id = with_ids(questions, before)
    chosen.book.put_set(chosen.collection, title, by_id, before=before if title == name else {})
    if name is not None and title != name:
        if chosen.book.queries(chosen.collection, name) == before:
            chosen.book.remove_set(chosen.collection, name)
            titles = {query_sets.title(name, llm=llm): query_sets.title(title, llm=llm) for llm in (False, True)}
            chosen.resources.bench.runs.retitle(chosen.collection, titles)
        else:
            state.notice(f"Somebody else has changed the set {name!r}, so it is kept beside {title!r}.")
    _saved(title)
    st.toast(message(f"Saved {title} with {counted(len(questions), 'question')}."))


@state.notice_errors()
def _add_asked(chosen: ChosenSet, key: str) -> None:
    history = chosen.book.queries(chosen.collection, ASKED)
    text = str(st.session_state.get(key) or "")
    st.session_state[key] = "\n".join(lines("\n".join([text, *map(one_line, history.values())])))


@state.notice_errors()
def _remove(chosen: ChosenSet) -> None:
    chosen.book.remove_set(chosen.collection, chosen.name)
    _saved(None)
    st.toast(message(f"Removed the set {chosen.name}. The labels of its questions stay."))


@state.notice_errors()
def _import(chosen: ChosenSet, questions: UploadedFile, qrels: UploadedFile | None, by_llm: bool) -> None:
    warnings: list[str] = []
    with as_files(questions, qrels) as paths:
        by_id, rows = read_import(paths[0], paths[1] if qrels else None, tell=warnings.append)
        warnings = [by_name(each, paths) for each in warnings]
    visible = {i for i, chunk in chosen.chunks.items() if chosen.user.sees(chunk)}
    title = Path(questions.name).stem
    book, collection, who = chosen.book, chosen.collection, qrels.name if qrels else ""
    maker: Maker = "llm" if by_llm else "human"
    of_set = book, collection, title, by_id, rows, visible
    missing = query_sets.import_set(*of_set, who=who, made_by=maker, otherwise="Rename the file, or remove the set.")
    _saved(title)
    if missing:
        lost, is_ = counted(len(missing), "labelled id"), "is" if len(missing) == 1 else "are"
        state.notice(f"{lost} {is_} not in the collection, such as {missing[0]!r}. Their labels do not count.")
    for each in warnings:
        state.notice(f"{each}.")
    counts = f"{counted(len(by_id), 'question')} and {counted(len(rows), 'label')}"
    st.toast(message(f"Imported {title} with {counts}."))


def _saved(name: str | None) -> None:
    state.session().query_set = name
    state.session().sets_saved += 1


def draw_labels(chosen: ChosenSet) -> None:
    """Draw the counts, the conflicts, and labels without a chunk. Raises StoreError."""
    seen = chosen.labels
    st.markdown(message(told(seen)))
    _conflicts(seen, chosen.chunks)
    _lost(chosen)
    if any(label.made_by == "llm" for label in seen):
        elements.aside(query_sets.agreed(seen).sentence)
    _propose(chosen)


def told(labels: tuple[Label, ...]) -> str:
    """Who labelled how many chunks."""
    if not labels:
        return "Nobody has labelled a chunk yet. Open one on Inspect and press 2, 1 or 0."
    counts = Counter((label.made_by, label.who) for label in labels)
    by = [f"{who}{' (LLM)' if kind == 'llm' else ''} {numbers.count(n)}" for (kind, who), n in counts.most_common()]
    questions = {label.query for label in labels}
    return f"{counted(len(labels), 'label')} on {counted(len(questions), 'question')}: {', '.join(by)}."


def _conflicts(labels: tuple[Label, ...], catalogue: Mapping[str, Chunk]) -> None:
    parted = conflicts(labels)
    if not parted:
        if labels:
            elements.aside("No two people disagree.")
        return
    elements.heading("Disagreements")
    elements.aside("The latest label counts. Click a row to open the chunk and resolve the conflict.")
    judged = [(first.query, first.chunk_id) for first, *_ in parted]
    names = [catalogue[i].name if i in catalogue else f"{i} (no longer there)" for _, i in judged]
    words = ["; ".join(label.words for label in labels) for labels in parted]
    table = pd.DataFrame({"question": [query for query, _ in judged], "chunk": names, "said": words})
    row = grid.draw_clickable(table, map(" ".join, judged), name="conflicts", columns=COLUMNS)
    if row is not None:
        query, chunk_id = judged[row]
        state.open_chunk(chunk_id)
        state.open_inspect(query, state.session().profile, state.session().changes)


def _lost(chosen: ChosenSet) -> None:
    """Draw the labels without a chunk. A click assigns a label to a chunk."""
    standing, places = chosen.book.standing(chosen.collection), chosen.book.quotations(chosen.collection)
    lost = [label for label in standing if label.chunk_id.startswith(UNCOUNTED)]
    store = chosen.resources.bench.collection(chosen.collection)
    chunks = store.chunks([*chosen.chunks]) if lost else {}
    rows = choices(places, lost, chunks.values(), chosen.user)
    if not rows:
        return
    elements.heading("Labels without a chunk")
    elements.aside("They do not count: several chunks or none hold their text. Click the right one, or label again.")
    listed = [
        (label.query, place.quote, *((chunks[i].name, chunks[i].text) if i else (None, None)))
        for label, place, i in rows
    ]
    table = pd.DataFrame(listed, columns=["question", "judged", "chunk", "text"])
    ids = [f"{label.id} {i}" for label, _, i in rows]
    row = grid.draw_clickable(table, ids, name="lost-labels", columns=COLUMNS, box="lost")
    if row is not None and rows[row][2]:
        settle(chosen.book, rows[row][0], chunks[rows[row][2]])
        st.rerun()
    gone = [label.id for label, _, i in rows if not i]
    if gone and not chosen.page_run.incomplete:
        what = f"Remove {counted(len(gone), 'label')} whose text is gone"
        elements.button(what, "remove-gone", state.notice_errors()(chosen.book.take_back), gone)


def _propose(chosen: ChosenSet) -> None:
    """Draw what LLM labels would cost, then the button that asks for them. Raises StoreError."""
    session, resources = state.session(), chosen.resources
    if resources.bench.chat is None:
        elements.aside("An LLM can propose labels if OPENAI_API_KEY or OPENAI_BASE_URL is set.")
        return
    if session.proposing is not None:
        stop = "Stops after the current call. Labels so far are kept."
        count = jobs.wait_for_result(session.proposing, "proposing", "Asking the LLM", stop=stop)
        session.proposing = None
        if count is not None:
            st.toast(f"The LLM made {counted(count, 'label')}.")
            st.rerun()
    # The estimate is valid until a chunk, its clearance or a label changes.
    versions = (resources.bench.version_seen(chosen.collection, state.user()), chosen.book.version(chosen.collection))
    wanted = chosen.collection, chosen.name, chosen.page_run.settings, state.user(), versions
    backends = resources.backends(chosen.collection)
    if session.bill is None or session.bill[0] != wanted:
        none = not chosen.sets[chosen.name]
        if elements.button("What would LLM labels cost?", "propose-cost", disabled=none):
            of_set = chosen.book, chosen.collection, chosen.name, chosen.chunks, chosen.user
            with st.spinner("Looking up the chunks …"):
                questions, standing = query_sets.questions(*of_set).values(), chosen.book.standing(chosen.collection)
                settings, user = chosen.page_run.settings, state.user()
                asked = labelling.requests(questions, standing, settings, backends, user, depth=DEPTH)
                session.bill = wanted, tuple(asked)
            st.rerun()
        return
    requests = session.bill[1]
    bill = labelling.bill(requests, backends, resources.bench.prices)
    st.markdown(message(bill.sentence))
    about, none = "Its labels are marked, and count only if you turn them on under More.", not bill.chunks
    elements.button("Propose labels", "propose", _ask_llm, chosen, requests, type="primary", disabled=none, about=about)


def _ask_llm(chosen: ChosenSet, requests: tuple[Request, ...]) -> None:
    """Ask in the background; every answer is stored as it arrives."""
    resources, collection, settings = chosen.resources, chosen.collection, chosen.page_run.settings
    backends, book = resources.backends(collection), chosen.book

    def work(job: Job[int]) -> int:
        kept, calls = 0, sum(len(each.prompts) for each in requests)
        timeout_s = resources.bench.deployment.answer_timeout_s
        proposals = labelling.propose(requests, settings, backends, timeout_s=timeout_s)
        for number, each in enumerate(proposals, start=1):
            kept += labelling.keep(each, book, collection, backends)
            if not job.tell(number, calls):
                break
        return kept

    state.session().bill = None
    state.session().proposing = resources.jobs.start(state.user(), object(), work)
