"""Saves and loads settings: under a name in the workspace, or as a TOML file.

A file is loaded completely or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.settings import config, saved
from ragfilter.settings.schema import Settings
from ragfilter.ui.look import prose
from ragfilter.ui.session import state

MOST_MB = 1
DELETED = "settings-deleted"
"""The name and TOML of the settings that were deleted last."""


def save(settings: Settings, workspace: Path) -> None:
    """Draw the form that saves the settings under a name, and the download button."""
    with st.popover(
        "Save",
        key="save-settings",
        icon=":material/save:",
        help="Keep these settings under a name, or as a TOML file.",
    ):
        with st.form("save-as", border=False):
            st.text_input(
                "Name",
                key="settings-name",
                placeholder="strict",
                help="Saved in the workspace, for this page and for `ragfilter query --config "
                "NAME`. Saving under an existing name replaces those settings.",
            )
            st.form_submit_button(
                "Save",
                key="save-as-button",
                on_click=_save,
                args=(settings, workspace),
                help="Save the profile and your changes to it.",
            )
        _said("saved")
        st.download_button(
            "Download",
            # Generated on click: a file made for every slider move would be removed again before
            # long.
            data=partial(config.to_toml, settings, state.session().profile),
            file_name="ragfilter.toml",
            mime="application/toml",
            key="download-settings",
            icon=":material/download:",
            on_click="ignore",
            help="Download these settings as TOML, for `ragfilter query --config` and the library.",
        )


def load(workspace: Path) -> None:
    """Draw the list of saved settings, the upload of a settings file, and the last error."""
    with st.popover(
        "Load",
        key="load-settings",
        icon=":material/upload_file:",
        help="Load saved settings or a TOML file.",
    ):
        there = saved.names(workspace)
        name = st.selectbox(
            "Saved settings",
            there,
            key="settings-saved",
            placeholder="none yet; Save keeps these",
            disabled=not there,
            help="Kept in the workspace. Undo goes back to what was set before.",
        )
        with st.container(horizontal=True, gap="small"):
            st.button(
                "Load",
                key="load-saved",
                type="primary",
                disabled=not name,
                on_click=_take,
                args=(workspace, name),
                help="Apply these settings.",
            )
            st.button(
                "Delete",
                key="delete-saved",
                disabled=not name,
                on_click=_delete,
                args=(workspace, name),
                help="Delete the settings saved under this name. The current settings stay.",
            )
            deleted, toml = st.session_state.get(DELETED, ("", ""))
            if deleted and deleted not in there:
                st.button(
                    f"Restore {prose.literal(deleted)}",
                    key="restore-saved",
                    on_click=_restore,
                    args=(workspace, deleted, toml),
                    help="Saves the last deleted settings again.",
                )
        st.file_uploader(
            "Settings file",
            type="toml",
            key="settings-file",
            max_upload_size=MOST_MB,
            on_change=_load,
            help="A file downloaded with Save, or any file that `ragfilter query --config` "
            "reads. Undo goes back to what was set before.",
        )
        _said("loaded")


def _said(what: str) -> None:
    """Draw the outcome of the last save or load."""
    error, done = st.session_state.get(f"settings-{what}-told", ("", ""))
    if error:
        st.error(prose.message(error))
    elif done:
        st.markdown(prose.quiet(prose.message(done)))


def _tell(what: str, *, error: str = "", done: str = "") -> None:
    st.session_state[f"settings-{what}-told"] = error, done


@contextmanager
def _telling(what: str) -> Iterator[None]:
    """Tell an error in here. Callbacks are decorated with it."""
    try:
        yield
    except (RagfilterError, OSError) as error:
        _tell(what, error=str(error))


@_telling("saved")
def _save(settings: Settings, workspace: Path) -> None:
    name = st.session_state["settings-name"].strip()
    saved.save(workspace, name, config.to_toml(settings, state.session().profile))
    st.session_state["settings-saved"] = name
    _tell("saved", done=f"Saved as {name}.")


@_telling("loaded")
def _delete(workspace: Path, name: str) -> None:
    toml = saved.find(workspace, name).read_text(encoding="utf-8", errors="replace")
    saved.delete(workspace, name)
    st.session_state[DELETED] = name, toml
    _tell("loaded", done=f"Deleted {name}.")


@_telling("loaded")
def _restore(workspace: Path, name: str, toml: str) -> None:
    saved.save(workspace, name, toml)
    st.session_state["settings-saved"] = name
    _tell("loaded", done=f"Restored {name}.")


@_telling("loaded")
def _take(workspace: Path, name: str) -> None:
    _read(saved.find(workspace, name).read_bytes(), name)


@_telling("loaded")
def _load() -> None:
    given = st.session_state["settings-file"]
    if given is None:
        _tell("loaded")
    else:
        _read(given.getvalue(), given.name)


def _read(content: bytes, name: str) -> None:
    state.load(content, name)
    _tell("loaded", done=f"Loaded {name}: profile {state.session().profile}.")
