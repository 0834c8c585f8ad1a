"""Widgets that show a value which can also change in other ways: by undo, a link, another widget.

Writing such a value into a widget that the browser already shows is not safe: if the next run
begins before the browser has drawn it, it is lost, and the browser reports the old value as the
user's choice. So the widget is replaced by a new one, which starts with the value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

Given = dict[str, Any]


def of(name: str, value: Any, on_change: Callable[..., None], *args: Any) -> Given:
    """Key and callback for the widget called `name`, which must be drawn with `value` as its
    default. `on_change` gets what the user chose, and `args`."""
    key = key_of(name, value)
    return {"key": key, "on_change": _changed, "args": (name, key, on_change, args)}


def key_of(name: str, value: Any) -> str:
    """The key for the widget called `name`, which must be drawn with `value` as its default.

    It stays the same while the widget itself is used, and is another one, ``name--1``, once the
    value was changed in any other way.
    """
    shown, key = _shown(), current(name)
    if st.session_state.get(key, shown.get(key, value)) != value:
        st.session_state.replaced[name] = st.session_state.replaced.get(name, 0) + 1
        key = current(name)
    shown[key] = value
    return key


def current(name: str) -> str:
    """The key that the widget called `name` has now."""
    count = st.session_state.setdefault("replaced", {}).get(name)
    return f"{name}--{count}" if count else name


def value_of(name: str, default: Any = None) -> Any:
    """What the widget called `name` shows, or `default` if it is not on the page."""
    return st.session_state.get(current(name), default)


def _changed(name: str, key: str, on_change: Callable[..., None], args: tuple[Any, ...]) -> None:
    value, shown = st.session_state[key], _shown()
    # Until the browser has drawn the new widget, it reports what the old one shows.
    if key == current(name) or value != shown.get(key):
        shown[key] = value
        on_change(value, *args)


def _shown() -> dict[str, Any]:
    """What each widget shows as far as the server knows, by key."""
    known: dict[str, Any] = st.session_state.setdefault("shown", {})
    return known
