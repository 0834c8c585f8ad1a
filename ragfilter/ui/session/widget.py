"""Widgets that show a value which can also change in other ways: by undo, a link, another widget.

Writing such a value into a widget that the browser already shows is not safe: if the next run
begins before the browser has drawn it, it is lost, and the browser reports the old value as the
user's choice. So the widget is replaced by a new one, which starts with the value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import streamlit as st

from ragfilter.ui.session import state

V = TypeVar("V")
Given = dict[str, Any]


def of(
    name: str, value: Any, on_change: Callable[..., None], *args: Any, labels: object = None
) -> Given:
    """Key and callback for the widget called `name`, which must be drawn with `value` as its
    default. `on_change` gets what the user chose, and `args`. `labels` name the options, if
    they can change: the browser knows an option by its label."""
    key = key_of(name, value, labels)
    return {"key": key, "on_change": _changed, "args": (name, key, on_change, args)}


def select(
    label: str,
    labels: Mapping[V, str],
    value: V | None,
    name: str,
    on_change: Callable[..., None],
    *args: Any,
    **given: Any,
) -> None:
    """Draw the list called `name`, with these labels of values, that shows `value`. `on_change`
    gets what the user chose, and `args`; `given` goes to Streamlit."""
    options = list(labels)
    st.selectbox(
        label, options, options.index(value) if value is not None and value in labels else None,
        format_func=lambda each: labels.get(each, str(each)),
        **of(name, value, on_change, *args, labels=labels), **given,
    )  # fmt: skip


def key_of(name: str, value: Any, labels: object = None) -> str:
    """The key for the widget called `name`, which must be drawn with `value` as its default.

    It stays the same while the widget itself is used, and is another one, ``name--1``, once the
    value was changed in any other way, or the labels were.
    """
    counts, shown = state.session().replaced, state.session().shown
    key = current(name)
    known, shown_labels = shown.get(key, (value, labels))
    if st.session_state.get(key, known) != value or shown_labels != labels:
        count = counts[name] = counts.get(name, 0) + 1
        # The one before may still be reported.
        shown.pop(_key(name, count - 2), None)
        key = current(name)
    shown[key] = value, labels
    return key


def current(name: str) -> str:
    """The key that the widget called `name` has now."""
    return _key(name, state.session().replaced.get(name, 0))


def value_of(name: str, default: Any = None) -> Any:
    """What the widget called `name` shows; `default` if the last complete run did not draw it."""
    return st.session_state.get(current(name), default)


def entered(name: str) -> Any:
    """What the user has entered in the widget called `name`, which is part of a form, or in the one
    that it has replaced if the browser has not drawn that yet."""
    for key, (known, _) in state.session().shown.items():
        if key.partition("--")[0] == name and st.session_state.get(key, known) != known:
            return st.session_state[key]
    return value_of(name)


def _changed(name: str, key: str, on_change: Callable[..., None], args: tuple[Any, ...]) -> None:
    value, shown = st.session_state[key], state.session().shown
    known, labels = shown.get(key, (value, None))
    # Until the browser has drawn the new widget, it reports what the old one shows.
    if key == current(name) or value != known:
        shown[key] = value, labels
        on_change(value, *args)


def _key(name: str, count: int) -> str:
    return f"{name}--{count}" if count else name
