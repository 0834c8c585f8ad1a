"""Adding data: drop files, preview the chunks, name the collection, index.

Uploaded files stay in a folder of the workspace until they are indexed or discarded."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from ragfilter.errors import InputError
from ragfilter.indexing.order import Order
from ragfilter.indexing.queue import queue_of
from ragfilter.ingest import csv_file
from ragfilter.ingest.load import SUFFIXES, load, stage
from ragfilter.ingest.records import COLUMNS, SHORTEST, ReadOptions, Record
from ragfilter.stores.base import check_name
from ragfilter.text.numbers import counted
from ragfilter.ui.kit import problems
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import literal, message
from ragfilter.ui.resources import Resources
from ragfilter.ui.session import state
from ragfilter.ui.session.page_run import PageRun
from ragfilter.ui.session.state import StagedUpload

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

NEW = ""
LARGEST, SHOWN, MAX_TOLD, MOST_READ = 4000, 6, 5, 50
GUESSES = {
    "text": ("text", "content", "body", "description", "answer"),
    "id": ("id", "_id", "nr", "number", "key"),
    "title": ("title", "name", "heading", "subject", "question"),
}
MAPPED = {
    "text": ("Text column", "The column that is searched and read."),
    "id": ("Id column", "Names each chunk. Rows without one are numbered."),
    "title": ("Title column", "Shown above each chunk."),
    "clearance": ("Clearance column", "Clearance level needed to see the row; 0 is public."),
    "department": ("Department column", "Only users in this department see the row."),
}
FIXED_MODEL = "RAGFILTER_EMBEDDING_MODEL sets it for every new collection."
ANY_MODEL = (
    "A sentence-transformers name or path, or openai:NAME for embeddings over the OpenAI protocol. The collection is "
    "queried with the same model."
)


@st.fragment
@problems.show_errors()
def draw(page_run: PageRun) -> None:
    """Draw the upload, the preview, and the button that indexes the files."""
    elements.heading("Add data")
    resources = page_run.resources
    limit = resources.bench.deployment.max_upload_mb
    kinds, about = ["Files", "Folder"], "Any number of files, or a whole folder with its contents."
    folder = st.segmented_control("What to upload", kinds, default="Files", key="upload-kind", help=about) == "Folder"
    uploads = st.file_uploader(
        "Files to index",
        accept_multiple_files="directory" if folder else True,
        key=f"uploads-{state.session().uploads_emptied}-{folder}",
        max_upload_size=limit,
        help=f"{' '.join(SUFFIXES)}, at most {limit:,} MB together, zips unpacked. JSON and YAML "
        "must be OpenAPI descriptions.",
    )
    upload = _upload(uploads, resources)
    if upload is None:
        elements.aside("Drop files to see how they are split before they are indexed.")
        return
    # Above the preview, so that the next action is in view.
    slot = st.container()
    reading = _reading(upload) if upload.files else ReadOptions()
    records, unreadable = _preview(upload, reading)
    refused = [*upload.refused, *unreadable]
    if not (records or refused):
        refused = [InputError("There is no text in these files.", remedy="Drop others.")]
    with slot:
        if records:
            _index(page_run, upload, reading, records[0].place)
        else:
            _discard_button()
        _refusals(refused)
    if records:
        _chunks(records)


def _upload(uploads: Sequence[UploadedFile], resources: Resources) -> StagedUpload | None:
    before = state.session().upload
    ids = "".join(f"{each.file_id}/" for each in uploads)
    key = hashlib.sha256(ids.encode()).hexdigest()[:24]
    if before is not None and before.key == key and before.folder.is_dir():
        return before
    _delete_files()
    if not uploads:
        return None
    queue_of(resources.bench).sweep()
    folder = queue_of(resources.bench).uploads / key
    shutil.rmtree(folder, ignore_errors=True)
    limit = resources.bench.deployment.max_upload_mb * 1_000_000
    refused = stage(((each.name, each.getvalue()) for each in uploads), folder, limit=limit)
    files = tuple(sorted(file for file in folder.rglob("*") if file.is_file()))
    upload = state.session().upload = StagedUpload(key, folder, files, refused)
    return upload


def _discard() -> None:
    _delete_files()
    _empty_box()


def _delete_files() -> None:
    upload, state.session().upload = state.session().upload, None
    if upload is not None:
        shutil.rmtree(upload.folder, ignore_errors=True)


def _empty_box() -> None:
    state.session().upload = None
    state.session().uploads_emptied += 1


def _preview(upload: StagedUpload, reading: ReadOptions) -> tuple[tuple[Record, ...], list[InputError]]:
    """The first chunks and the errors up to there; cached until files or options change. Raises InputError."""
    preview = state.session().preview
    if preview is None or preview[0] != (upload.key, reading):
        unreadable: list[InputError] = []
        lenient = replace(reading, skip=unreadable.append)
        records = tuple(islice(load(upload.folder, reading=lenient), MOST_READ)) if upload.files else ()
        preview = state.session().preview = (upload.key, reading), records, unreadable
    return preview[1:]


def _reading(upload: StagedUpload) -> ReadOptions:
    plain = ReadOptions()
    headings = True
    if any(file.suffix.lower() in (".md", ".markdown") for file in upload.files):
        about = "One chunk per section, titled with the headings above it."
        headings = st.toggle("Split Markdown at its headings", value=True, key="cut-headings", help=about)
    left, right = st.columns(2)
    about = "Characters. The bundled embedding model reads about the first 1,000."
    size = left.slider("Longest chunk", SHORTEST, LARGEST, plain.size, 50, key="cut-size", help=about)
    about = "Characters that a chunk repeats from the end of the previous one."
    overlap = right.slider("Overlap", 0, size // 2, min(plain.overlap, size // 2), 10, key="cut-overlap", help=about)
    return ReadOptions(size, overlap, headings, _columns(upload.files))


def _columns(files: Sequence[Path]) -> dict[str, str]:
    # The columns of all CSV files, with the number of characters in their first cells.
    names: dict[str, int] = {}
    for file in files:
        # The preview reports unreadable files.
        with suppress(InputError):
            names |= csv_file.columns(file) if file.suffix.lower() == ".csv" else {}
    if not names:
        return {}
    elements.aside("Columns of the CSV files. Others are kept as metadata.")
    chosen: dict[str, str] = {}
    with elements.row("columns", "top"):
        for field, (label, about) in MAPPED.items():
            options = list(names) if field == "text" else [NEW, *names]
            at, words = options.index(_guess(field, options, names)), {NEW: "none"} | {name: name for name in names}
            picked = st.selectbox(
                label, options, at, key=f"column-{field}", format_func=words.__getitem__, help=about, width=180
            )
            if picked and picked not in chosen.values():
                chosen[field] = picked
            elif not picked and names.keys() & {field, f"_{field}"}:
                # Otherwise a column with the field's own name would be read.
                chosen[field] = NEW
    if all(field == column for field, column in chosen.items()) and {"text", "id"} <= {*chosen}:
        return {}
    return chosen


def _guess(field: str, options: Sequence[str], lengths: Mapping[str, int]) -> str:
    """The column named after the field or else, for the text, the longest column that belongs to no other field."""
    lower = {name.lower(): name for name in reversed(options)}
    wanted = GUESSES.get(field, (field,) if field in COLUMNS else ())
    free = [name for name in options if name.lower() not in (*GUESSES["id"], *GUESSES["title"], *COLUMNS)] or options
    other = max(free, key=lambda name: lengths[name]) if field == "text" else NEW
    return next((lower[name] for name in wanted if name in lower), other)


def _chunks(records: Sequence[Record]) -> None:
    more = " or more" if len(records) == MOST_READ else ""
    first = f"The first {SHOWN} of " if len(records) > SHOWN else ""
    elements.aside(f"{first}{counted(len(records), 'chunk')}{more}")
    with st.container(key="first-chunks", gap="xsmall"):
        for record in records[:SHOWN]:
            chunk = record.chunk
            facts = [chunk.source, f"page {chunk.page}" if chunk.page is not None else ""]
            facts += [f"{len(chunk.text):,} characters"]
            st.markdown(f"**{literal(chunk.title or chunk.id)}**")
            elements.aside(" · ".join(filter(None, facts)))
            st.text(chunk.text)


def _refusals(refused: Sequence[InputError]) -> None:
    if not refused:
        return
    listed = "\n".join(f"- {message(str(error))}" for error in refused[:MAX_TOLD])
    more = len(refused) - MAX_TOLD
    st.warning(f"Left out:\n\n{listed}" + (f"\n- and {more} more" if more > 0 else ""))


def _index(page_run: PageRun, upload: StagedUpload, reading: ReadOptions, first: str) -> None:
    """The form and button that index. `first` is the place of the first record."""
    bench, problem = page_run.resources.bench, ""
    names = {NEW: "a new one"} | {info.name: info.name for info in page_run.collections.values() if info.ours}
    about = "In an existing one, chunks with the same id are replaced."
    target = st.selectbox("Collection", names, key="upload-target", format_func=names.__getitem__, help=about)
    if target:
        name, model = target, page_run.collections[target].embedder
        elements.aside(f"Embedding model: {model}.")
    else:
        # The name of the first file that is read, if a new collection can have it.
        stem = next((f.stem for f in upload.files if first.startswith(f"{f.relative_to(upload.folder)}, ")), "")
        suggested = re.sub(r"[^A-Za-z0-9._]+", "-", stem).strip("._-")
        suggested = "" if _problem(suggested, page_run.resources) else suggested
        about = "3 to 512 letters, digits, dots, hyphens or underscores."
        name = st.text_input("Name", suggested, key="upload-name", help=about).strip()
        problem = _problem(name, page_run.resources) if name else ""
        if problem:
            st.error(message(problem))
        fixed, usual = bool(bench.deployment.embedding_model), bench.embedder.name
        about = FIXED_MODEL if fixed else ANY_MODEL
        model = st.text_input("Embedding model", usual, key="upload-model", disabled=fixed, help=about).strip() or usual
    order = Order(name, str(upload.folder), lenient=True, temporary=True, embedder=model, reading=reading)
    about = f"Embeds the chunks with {literal(model)}. You can leave this page in the meantime."
    about = about if name else "Name the collection first."
    put, off = partial(_put, page_run.resources, order, not target), not name or bool(problem)
    with elements.row():
        elements.button("Index", "index", put, icon="play_arrow", type="primary", disabled=off, about=about)
        _discard_button()


def _discard_button() -> None:
    elements.button("Discard", "discard-uploads", _discard, about="Discards these files. Nothing has been indexed.")


def _problem(name: str, resources: Resources) -> str:
    """Why a new collection cannot be called `name`; empty if it can. Raises StoreError."""
    if name in {info.name for info in resources.bench.collections()}:
        return f"There is a collection {name} already. Choose it above to add to it."
    if any(job.status.open and job.order.collection == name for job in queue_of(resources.bench).jobs()):
        return f"{name} is being indexed. Wait until that is done, or use another name."
    try:
        check_name(name)
    except InputError as error:
        return str(error)
    return ""


@state.then_page
def _put(resources: Resources, order: Order, new: bool) -> None:
    """Queue the indexing job, which takes over the files."""
    # Checked here, because a job without its model would fail after taking over the files.
    resources.bench.load_embedder(order.embedder).prepare()
    # Another tab may have taken the name since.
    if new and (problem := _problem(order.collection, resources)):
        state.notice(problem)
        return
    state.queue_indexing(order, queue_of(resources.bench))
    _empty_box()
    st.session_state["upload-name"] = ""
