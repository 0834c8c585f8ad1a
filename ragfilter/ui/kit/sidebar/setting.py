"""One setting as a widget: its value, whether it was changed, and a button that resets it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from ragfilter.layers.strategies.registry import STRATEGIES
from ragfilter.settings.config import Config
from ragfilter.settings.field import FieldInfo
from ragfilter.settings.schema import Settings
from ragfilter.text import numbers
from ragfilter.ui.look import html
from ragfilter.ui.look.prose import literal
from ragfilter.ui.session import state, widget

WORDS = {
    "late_interaction": "late interaction",
    "cross_encoder": "cross-encoder",
    "when_poor": "when poor",
    **{each.name: each.title for each in STRATEGIES if each.title},
}
WHEN_EMPTY = {"retrieval.source_pattern": "all files"}
"""The meaning of an empty text setting."""
NOTHING = {"cutoff.calibration": "nothing learned yet: see Tune"}
"""The text shown for an empty table."""
MARK, CHANGED = "●", "Changed."
"""The sign and word of a value that differs from the profile's."""
ORDERED = ("quality.min_top_k", "quality.max_top_k")
"""The first must not exceed the second, so moving one beyond the other moves both."""


def key(path: str, view: str = "set") -> str:
    """The widget key of a setting: ``set-cutoff-gap_threshold``. `view` separates two widgets of
    the same setting."""
    return f"{view}-{path.replace('.', '-')}"


def draw(
    info: FieldInfo, settings: Settings, own: Config, *, view: str = "set", label: str = ""
) -> None:
    """Draw the setting's widget. A value that differs from `own`, the profile with the
    environment's changes, is marked and gets a reset button."""
    value = settings.get(info.path)
    if info.table:
        # Tables cannot be typed in: they are learned, or loaded with a settings file.
        told = info.table.read(value).summary if value else NOTHING.get(info.path)
        if told is not None:
            html.draw(f'<p class="rf-aside">{html.text(info.label)}: {html.text(told)}</p>')
        return
    before = own.settings.get(info.path)
    changed = value != before
    # The container is the same whether the value is changed or not, because a widget that moves
    # loses the focus.
    with st.container(key=f"box-{key(info.path, view)}", gap=None):
        _widget(info, value, view, f"{MARK} {label or info.label}" if changed
                else label or info.label)  # fmt: skip
        if view == "set":
            tell_variable(info.path, value, own)
        if changed:
            variable = own.variable(info.path, before)
            st.button(
                said(info, before) + (f" ({variable})" if variable else ""),
                key=f"back-{key(info.path, view)}",
                icon=":material/undo:",
                type="tertiary",
                on_click=state.change,
                args=({info.path: before},),
                help="Back to the value of the environment variable."
                if variable
                else "Back to the profile's value.",
            )


def tell_variable(path: str, value: Any, own: Config) -> None:
    """Draw which environment variable gave a setting this value, if one did."""
    if variable := own.variable(path, value):
        html.draw(f'<p class="rf-aside">from the variable {html.text(variable)}</p>')


def said(info: FieldInfo, value: Any) -> str:
    """A value as it is written next to its label."""
    if info.type is bool:
        return "on" if value else "off"
    if info.type is float:
        return numbers.distance(value)
    return literal(word(str(value)) or WHEN_EMPTY.get(info.path, "empty"))


def word(choice: str) -> str:
    """The page's name for a choice."""
    return WORDS.get(choice, choice)


def changed(value: Any, path: str) -> None:
    """Apply what the user chose for a setting."""
    if value is None:
        return
    values = {path: value}
    if path in ORDERED:
        low, high = ORDERED
        other = high if path == low else low
        there = state.settings().get(other)
        values[other] = max(value, there) if other == high else min(value, there)
    state.change(values)


def _widget(info: FieldInfo, value: Any, view: str, label: str) -> None:
    given = widget.of(key(info.path, view), value, changed, info.path)
    given["help"] = f"{info.help} Unit: {info.unit}." if info.unit else info.help
    if info.choices and len(info.choices) <= 4 and info.name in ("strategy", "mode"):
        st.segmented_control(
            label, info.choices, default=value, format_func=word, required=True, width="stretch",
            **given,
        )  # fmt: skip
    elif info.choices:
        at = info.choices.index(value)
        st.selectbox(label, info.choices, at, format_func=word, filter_mode=None, **given)
    elif info.type is bool:
        st.toggle(label, value, **given)
    elif info.type is str:
        st.text_input(label, value, placeholder=WHEN_EMPTY.get(info.path), **given)
    elif info.ceiling is None:
        st.number_input(label, info.low, info.high, value, **given)
    else:
        # A value beyond the ceiling, from a file or a link, widens the slider.
        low, high = info.type(info.low or 0), info.type(max(info.ceiling, value))
        step = info.type(info.step or 1)
        form = "%d" if info.type is int else "%.1f" if info.unit == "times" else "%.3f"
        st.slider(label, low, high, value, step=step, format=form, **given)
