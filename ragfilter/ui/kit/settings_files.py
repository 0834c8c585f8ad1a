"""Saves and loads settings: under a name in the workspace, or as a TOML file.

A file is loaded completely or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import streamlit as st

from ragfilter.basics.files import TextFiles
from ragfilter.errors import RagfilterError
from ragfilter.settings import config, saved
from ragfilter.settings.schema import Settings
from ragfilter.ui.look import prose
from ragfilter.ui.session import state

MAX_MB = 1
TOLD = "settings-told"
"""The error or success of the last action."""
DELETED = "settings-deleted"
"""The name and TOML of the settings that were deleted last."""


def draw(settings: Settings, files: TextFiles) -> None:
    """Draw the form that saves the settings under a name, their download, what was saved before
    with its buttons, and the upload of a file."""
    with st.form("save-as", border=False):
        st.text_input(
            "Save settings as",
            key="settings-name",
            placeholder="strict",
            help="Saved in the workspace, for this page and for `ragfilter query --config NAME`. "
            "Saving under an existing name replaces those settings.",
        )
        with st.container(horizontal=True, gap="small"):
            st.form_submit_button(
                "Save", key="save-as-button", on_click=_save, args=(settings, files)
            )
    st.download_button(
        "Download",
        # Generated on click: a file made for every slider move would be removed again before long.
        data=partial(config.to_toml, settings, state.session().profile),
        file_name="ragfilter.toml",
        mime="application/toml",
        key="download-settings",
        on_click="ignore",
    )
    there = saved.names(files)
    deleted, toml = st.session_state.get(DELETED, ("", ""))
    if there or deleted:
        name = st.selectbox("Saved settings", there, key="settings-saved", disabled=not there)
        with st.container(horizontal=True, gap="small"):
            st.button(
                "Load", key="load-saved", disabled=not name, on_click=_take, args=(files, name)
            )
            st.button(
                "Delete", key="delete-saved", disabled=not name, on_click=_delete,
                args=(files, name),
            )  # fmt: skip
            if deleted and deleted not in there:
                st.button(
                    f"Restore {prose.literal(deleted)}", key="restore-saved", on_click=_restore,
                    args=(files, deleted, toml),
                )  # fmt: skip
    st.file_uploader(
        "Load a settings file",
        type="toml",
        key="settings-file",
        max_upload_size=MAX_MB,
        on_change=_load,
        help="A downloaded file, or any that `ragfilter query --config` reads. Undo goes back to "
        "what was set before.",
    )
    error, done = st.session_state.get(TOLD, ("", ""))
    if error:
        st.error(prose.message(error))
    elif done:
        st.markdown(prose.quiet(prose.message(done)))


def _tell(*, error: str = "", done: str = "") -> None:
    st.session_state[TOLD] = error, done


@contextmanager
def _telling() -> Iterator[None]:
    """Tell an error in here. Callbacks are decorated with it."""
    try:
        yield
    except (RagfilterError, OSError) as error:
        _tell(error=str(error))


@_telling()
def _save(settings: Settings, files: TextFiles) -> None:
    name = st.session_state["settings-name"].strip()
    saved.save(files, name, config.to_toml(settings, state.session().profile))
    st.session_state["settings-saved"] = name
    _tell(done=f"Saved as {name}.")


@_telling()
def _delete(files: TextFiles, name: str) -> None:
    toml = saved.find(files, name).read_text(encoding="utf-8", errors="replace")
    saved.delete(files, name)
    st.session_state[DELETED] = name, toml
    _tell(done=f"Deleted {name}.")


@_telling()
def _restore(files: TextFiles, name: str, toml: str) -> None:
    saved.save(files, name, toml)
    st.session_state["settings-saved"] = name
    _tell(done=f"Restored {name}.")


@_telling()
def _take(files: TextFiles, name: str) -> None:
    _read(saved.find(files, name).read_bytes(), name)


@_telling()
def _load() -> None:
    given = st.session_state["settings-file"]
    if given is None:
        _tell()
    else:
        _read(given.getvalue(), given.name)


def _read(content: bytes, name: str) -> None:
    state.load(content, name)
    _tell(done=f"Loaded {name}: profile {state.session().profile}.")
