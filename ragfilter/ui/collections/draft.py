"""Uploaded files that are not indexed yet: where they are, how they will be split, and a
preview."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from ragfilter.errors import InputError
from ragfilter.indexing.queue import UPLOADS, Queue
from ragfilter.ingest.csv_file import columns
from ragfilter.ingest.load import load
from ragfilter.ingest.reading import ReadOptions
from ragfilter.ingest.records import Record
from ragfilter.ingest.uploads import stage
from ragfilter.ui.session.resources import Resources

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

SHOWN = 6
TURNED_DOWN = "turned-down"
MARKDOWN = (".md", ".markdown")


@dataclass(frozen=True, slots=True)
class UploadDraft:
    """Uploads in a folder of their own. `refused` are the errors of files that were not
    accepted."""

    key: str
    folder: Path
    files: tuple[Path, ...]
    refused: tuple[InputError, ...]

    @property
    def has_markdown(self) -> bool:
        return any(file.suffix.lower() in MARKDOWN for file in self.files)

    def columns(self) -> dict[str, int]:
        """The columns of all CSV files, with the number of characters in their first cells. Skips
        files that cannot be read."""
        found: dict[str, int] = {}
        for file in self.files:
            if file.suffix.lower() == ".csv":
                try:
                    found |= columns(file)
                except InputError:
                    # The preview reports the error.
                    continue
        return found


@dataclass(frozen=True, slots=True)
class Preview:
    """The first chunks of the files, and the errors up to there."""

    records: tuple[Record, ...]
    refused: tuple[InputError, ...]


def of(uploads: Sequence[UploadedFile], resources: Resources) -> UploadDraft | None:
    """The draft of the current uploads; earlier ones are deleted. Raises InputError."""
    before: UploadDraft | None = st.session_state.get("draft-uploads")
    ids = "".join(f"{upload.file_id}/" for upload in uploads)
    key = hashlib.sha256(ids.encode()).hexdigest()[:24]
    if before is not None and before.key == key and before.folder.is_dir():
        return before
    _throw_away()
    if not uploads:
        return None
    st.session_state.pop(TURNED_DOWN, None)
    Queue(resources.bench.workspace.path).sweep()
    folder = resources.bench.workspace.path / UPLOADS / key
    shutil.rmtree(folder, ignore_errors=True)
    limit = resources.deployment.max_upload_mb * 1_000_000
    refused = stage(((each.name, each.getvalue()) for each in uploads), folder, limit=limit)
    files = tuple(sorted(file for file in folder.rglob("*") if file.is_file()))
    draft = UploadDraft(key, folder, files, refused)
    st.session_state["draft-uploads"] = draft
    return draft


def turn_down(draft: UploadDraft) -> None:
    """Reject a draft without anything to index: empty the upload box, and keep the reasons."""
    discard()
    st.session_state[TURNED_DOWN] = draft.refused


def turned_down() -> tuple[InputError, ...]:
    """The reasons why nothing of the last upload was accepted; empty if something was."""
    refused: tuple[InputError, ...] = st.session_state.get(TURNED_DOWN, ())
    return refused


def discard() -> None:
    """Delete the uploads and the messages about them, and empty the upload box."""
    st.session_state.pop(TURNED_DOWN, None)
    _throw_away()
    let_go()


def _throw_away() -> None:
    draft: UploadDraft | None = st.session_state.pop("draft-uploads", None)
    if draft is not None:
        shutil.rmtree(draft.folder, ignore_errors=True)


def let_go() -> None:
    """Hand the files over to an indexing job, and empty the upload box."""
    st.session_state.pop("draft-uploads", None)
    st.session_state["uploads-emptied"] = st.session_state.get("uploads-emptied", 0) + 1


def preview(draft: UploadDraft, reading: ReadOptions) -> Preview:
    """The first chunks, cached until the files or the way of splitting them change. Raises
    InputError."""
    key = (draft.key, reading)
    kept = st.session_state.get("draft-preview")
    if kept is not None and kept[0] == key:
        made: Preview = kept[1]
        return made
    refused: list[InputError] = []
    lenient = replace(reading, skip=refused.append)
    records = tuple(islice(load(draft.folder, reading=lenient), SHOWN))
    made = Preview(records, tuple(refused))
    st.session_state["draft-preview"] = (key, made)
    return made
