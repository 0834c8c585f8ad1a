"""Widgets whose value can also change in other ways: by undo, a link or another widget. Most are for settings, from
`settings.fields()`.

Writing such a value into a widget that the browser already shows is not safe. If the next run begins before the browser
has drawn it, the value is lost, and the browser reports the old one as the user's choice. So a new widget, which starts
with the value, replaces the old one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import streamlit as st

from ragfilter.settings.config import Config
from ragfilter.settings.field import FieldInfo
from ragfilter.settings.schema import MIN_LABELLED, Settings
from ragfilter.text import numbers
from ragfilter.ui.look import html
from ragfilter.ui.look.prose import literal
from ragfilter.ui.session import state

V = TypeVar("V")
PAGE = "page"
"""The page that began last."""
Given = dict[str, Any]


def of(name: str, value: Any, on_change: Callable[..., None], *args: Any, labels: object = None) -> Given:
    """Key and callback for the widget called `name`, which must be drawn with `value` as its
    default. `on_change` gets the user's choice and `args`. Pass the `labels` of the options if
    they can change, because the browser identifies options by label."""
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
    """Draw the list called `name`, with `labels` by value, showing `value`. `on_change` gets the
    user's choice and `args`; `given` goes to Streamlit."""
    options = list(labels)
    st.selectbox(
        label,
        options,
        options.index(value) if value is not None and value in labels else None,
        format_func=lambda each: labels.get(each, str(each)),
        **of(name, value, on_change, *args, labels=labels),
        **given,
    )


def choose(label: str, options: Sequence[V], value: V, name: str, on_change: Callable[..., None], *args: Any) -> None:
    """Draw the buttons called `name`, one for each of the `options`, with `value` pressed."""
    given = of(name, value, on_change, *args)
    st.segmented_control(label, options, default=value, required=True, label_visibility="collapsed", **given)


def key_of(name: str, value: Any, labels: object = None) -> str:
    """The key for the widget called `name`, which must be drawn with `value` as its default.

    It stays the same while the widget itself is used, and changes to ``name--1`` once the value or the labels are
    changed in any other way."""
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
    """The user's entry in the form widget called `name` or, if the browser has not drawn it yet, in
    the widget that it replaced."""
    for key, (known, _) in state.session().shown.items():
        if key.partition("--")[0] == name and st.session_state.get(key, known) != known:
            return st.session_state[key]
    return value_of(name)


def _changed(name: str, key: str, on_change: Callable[..., None], args: tuple[Any, ...]) -> None:
    if key not in st.session_state:
        # A click on the link to another page took the focus from a box in a fragment. The browser reports the box
        # second and from its own page, so the other page begins again.
        st.switch_page(st.session_state[PAGE])
    value, shown = st.session_state[key], state.session().shown
    known, labels = shown.get(key, (value, None))
    # Until the browser has drawn the new widget, it reports the old one's value.
    if key == current(name) or value != known:
        shown[key] = value, labels
        on_change(value, *args)


def _key(name: str, count: int) -> str:
    return f"{name}--{count}" if count else name


CHOICE_LABELS = {
    "late_interaction": "late interaction",
    "cross_encoder": "cross-encoder",
    "http": "by HTTP",
    "when_poor": "when poor",
}
WHEN_EMPTY = {"retrieval.source_pattern": "all files", "cutoff.score": "distance"}
"""The meaning of an empty text setting."""
NOTHING = {"cutoff.calibration": "nothing learned yet: see Tune"}
"""The text shown for an empty table."""
MARK = "●"
"""The sign of a value that differs from the profile."""
STRATEGY, LEARNED = "cutoff.strategy", "calibrated"
UNLEARNED = f"needs {MIN_LABELLED} labelled questions"
ORDERED = ("quality.min_top_k", "quality.max_top_k")
"""The first must not exceed the second, so moving one past the other moves both."""


def setting_key(path: str, view: str = "set") -> str:
    """A setting's widget key, ``set-cutoff-gap_threshold``. `view` separates two widgets."""
    return f"{view}-{path.replace('.', '-')}"


def draw_setting(
    info: FieldInfo, settings: Settings, own: Config, *, view: str = "set", kept: Mapping[str, int] | None = None
) -> None:
    """Draw the setting's widget. A value that differs from `own`, the profile with the environment's changes, is marked
    and gets a reset button. `kept` is how many chunks each strategy of the cutoff would keep."""
    value = settings.get(info.path)
    if info.table:
        # Nobody can type a table: it is learned, or loaded from a settings file.
        note = info.table.model_validate(value).summary if value else NOTHING.get(info.path)
        if note is not None:
            html.draw(f'<p class="rf-aside">{html.text(info.label)}: {html.text(note)}</p>')
        return
    before = own.settings.get(info.path)
    is_changed = value != before
    # The container is the same whether or not the value is changed, because a widget that moves loses focus.
    with st.container(key=f"box-{setting_key(info.path, view)}", gap=None):
        _widget(info, value, view, f"{MARK} {info.label}" if is_changed else info.label, kept or {})
        if view == "set":
            tell_variable(info.path, value, own)
        if is_changed:
            variable = own.variable(info.path, before)
            label = value_text(info, before) + (f" ({variable})" if variable else "")
            key, about = f"back-{setting_key(info.path, view)}", "Back to this value."
            html.button(label, key, state.change, {info.path: before}, icon="undo", type="tertiary", about=about)


def tell_variable(path: str, value: Any, own: Config) -> None:
    """Draw the environment variable that gave a setting this value, if one did."""
    if variable := own.variable(path, value):
        html.draw(f'<p class="rf-aside">from the variable {html.text(variable)}</p>')


def value_text(info: FieldInfo, value: Any) -> str:
    """A value as text for use next to its label."""
    if info.value_type is bool:
        return "on" if value else "off"
    if info.value_type is float:
        return numbers.distance(value)
    return literal(choice_label(str(value)) or WHEN_EMPTY.get(info.path, "empty"))


def choice_label(choice: str) -> str:
    """The page's name for a choice."""
    return CHOICE_LABELS.get(choice, choice)


def apply_choice(value: Any, path: str) -> None:
    """Apply the user's choice for a setting."""
    if value is None:
        return
    if path == STRATEGY and value == LEARNED and state.settings().cutoff.calibration is None:
        state.notice(f"The strategy {LEARNED} {UNLEARNED}: “Suggest settings” on Tune learns it.")
        return
    values = {path: value}
    if path in ORDERED:
        low, high = ORDERED
        other = high if path == low else low
        there = state.settings().get(other)
        values[other] = max(value, there) if other == high else min(value, there)
    state.change(values)


def _widget(info: FieldInfo, value: Any, view: str, label: str, kept: Mapping[str, int]) -> None:
    names = {each: choice_label(each) for each in info.choices or ()}
    if info.path == STRATEGY:
        names |= {each: f"{each} · {n}" for each, n in kept.items()}
        if state.settings().cutoff.calibration is None:
            names[LEARNED] = f"{LEARNED} · {UNLEARNED}"
    given = of(setting_key(info.path, view), value, apply_choice, info.path, labels=names)
    unit = f" Unit: {info.unit}." if info.unit else ""
    given["help"] = f"`{info.path}`: {info.help}{unit}"
    if info.choices and len(info.choices) <= 4 and info.name in ("strategy", "mode"):
        st.segmented_control(
            label, info.choices, default=value, format_func=choice_label, required=True, width="stretch", **given
        )
    elif info.choices:
        at = [*names].index(value)
        st.selectbox(label, [*names], at, format_func=names.__getitem__, filter_mode=None, **given)
    elif info.value_type is bool:
        st.toggle(label, value, **given)
    elif info.value_type is str:
        st.text_input(label, value, placeholder=WHEN_EMPTY.get(info.path), **given)
    elif info.ceiling is None:
        st.number_input(label, info.low, info.high, value, **given)
    else:
        # A value beyond the ceiling, from a file or a link, widens the slider.
        low, high = info.value_type(info.low or 0), info.value_type(max(info.ceiling, value))
        step = info.value_type(info.step or 1)
        form = "%d" if info.value_type is int else "%.1f" if info.unit == "times" else "%.3f"
        st.slider(label, low, high, value, step=step, format=form, **given)
