"""The Rules page under AppTest, read as a curator reads it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st

from ragfilter.ui.rules import editor


def open_rules(page: Any) -> Any:
    """Open the Rules page in the session of `page`."""
    page.at.switch_page("pages/rules.py")
    return page.run()


def settled(page: Any) -> Any:
    """The page once the labelled questions are gathered: the run that waits for them redraws it."""
    return page.run()


def typing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], Any]:
    """Replaces the component that sends the rule while it is typed, which AppTest does not have,
    with a field that a test fills. Returns a function that types into a page and pauses."""

    def draw(*, key: str, on_text_change: Callable[[], None]) -> None:
        def send() -> None:
            st.session_state[key] = SimpleNamespace(text=st.session_state["typed-so-far"])
            on_text_change()

        st.text_input("Typed so far", key="typed-so-far", on_change=send)

    def type_on(page: Any, text: str) -> Any:
        page.at.text_input(key="typed-so-far").set_value(text)
        return page.run()

    monkeypatch.setattr(editor, "_while_typing", draw)
    return type_on
