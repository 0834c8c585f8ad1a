"""Widgets whose value can also change in other ways: by undo, a link or another widget. Most are for settings.

Writing such a value into a widget that the browser already shows is not safe. If the next run begins before the browser
has drawn it, the value is lost, and the browser reports the old one as the user's choice. So a new widget, which starts
with the value, replaces the old one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import streamlit as st

from ragfilter.ui.session import state

V = TypeVar("V")
OnChange = Callable[..., None]


def key_and_callback(name: str, value: Any, on_change: OnChange, *args: Any, labels: object = None) -> dict[str, Any]:
    """Key and callback for the widget called `name`, to be drawn with `value` as its default. `on_change` gets the
    choice and `args`. Pass `labels` if the options' labels can change: the browser identifies options by label."""
    key = key_of(name, value, labels)
    return {"key": key, "on_change": _changed, "args": (name, key, on_change, args)}


def draw_list(
    label: str, labels: Mapping[V, str], value: V | None, name: str, on_change: OnChange, *args: Any, **given: Any
) -> None:
    """Draw the list called `name`, with `labels` by value, showing `value`. `on_change` gets the
    user's choice and `args`; `given` goes to Streamlit."""
    options = list(labels)
    index = options.index(value) if value is not None and value in labels else None
    given |= key_and_callback(name, value, on_change, *args, labels=labels)
    st.selectbox(label, options, index, format_func=lambda each: labels.get(each, str(each)), **given)


def draw_buttons(label: str, options: Sequence[V], value: V, name: str, on_change: OnChange, *args: Any) -> None:
    """Draw the buttons called `name`, one for each of the `options`, with `value` pressed."""
    given = key_and_callback(name, value, on_change, *args)
    st.segmented_control(label, options, default=value, required=True, label_visibility="collapsed", **given)


def key_of(name: str, value: Any, labels: object = None) -> str:
    """The key for the widget called `name`, which must be drawn with `value` as its default. It stays the same while
    the widget itself is used, and changes to ``name--1`` once the value or the labels are changed in any other way."""
    counts, shown = state.session().replaced, state.session().shown
    key = current(name)
    known, shown_labels = shown.get(key, (value, labels))
    if st.session_state.get(key, known) != value or shown_labels != labels:
        count = counts[name] = counts.get(name, 0) + 1
        # The browser may still report the previous widget.
        shown.pop(_key(name, count - 2), None)
        key = current(name)
    shown[key] = value, labels
    return key


def current(name: str) -> str:
    """The current key of the widget called `name`."""
    return _key(name, state.session().replaced.get(name, 0))


def value_of(name: str, default: Any = None) -> Any:
    """The value in the widget called `name`; `default` if the last complete run did not draw it."""
    return st.session_state.get(current(name), default)


def entered(name: str) -> Any:
    """The user's entry in the form widget `name` or, until the browser has drawn it, in the one that it replaced."""
    for key, (known, _) in state.session().shown.items():
        if key.partition("--")[0] == name and st.session_state.get(key, known) != known:
            return st.session_state[key]
    return value_of(name)


def _changed(name: str, key: str, on_change: OnChange, args: tuple[Any, ...]) -> None:
    if key not in st.session_state:
        # A click on the link to another page took the focus from a box in a fragment. The browser reports the box
        # second and from its own page, so the other page begins again.
        st.switch_page(state.session().page)
    value, shown = st.session_state[key], state.session().shown
    known, labels = shown.get(key, (value, None))
    # Until the browser has drawn the new widget, it reports the old one's value.
    if key == current(name) or value != known:
        shown[key] = value, labels
        on_change(value, *args)


def _key(name: str, count: int) -> str:
    return f"{name}--{count}" if count else name
