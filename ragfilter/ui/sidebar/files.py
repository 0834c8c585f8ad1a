"""Settings from a file: what the command line reads is taken over here, whole or not at all."""

from __future__ import annotations

import streamlit as st

from ragfilter.errors import SettingsError
from ragfilter.ui.look import prose
from ragfilter.ui.session import state

MOST_MB = 1


def load() -> None:
    """The place for a settings file, and what was wrong with the last one."""
    with st.popover(
        "Load",
        key="load-settings",
        icon=":material/upload_file:",
        help="Take the settings of a TOML file.",
    ):
        st.file_uploader(
            "Settings file",
            type="toml",
            key="settings-file",
            max_upload_size=MOST_MB,
            on_change=_load,
            help="As Settings downloads it, and as `ragfilter query --config` reads it. Undo goes "
            "back to what was set before.",
        )
        if st.session_state.get("settings-refused"):
            st.error(prose.message(st.session_state["settings-refused"]))


def _load() -> None:
    st.session_state["settings-refused"] = ""
    given = st.session_state["settings-file"]
    if given is None:
        return
    try:
        state.load(given.getvalue(), given.name)
    except SettingsError as error:
        st.session_state["settings-refused"] = str(error)
