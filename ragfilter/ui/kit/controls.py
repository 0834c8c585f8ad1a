"""The sidebar: collection, profile, and the layers in their order.

Every control comes from `settings.fields()`: its value, whether it was changed, and a button that
resets it. A layer's controls are drawn only while the layer is on, and only those that its current
choices use.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import streamlit as st

from ragfilter.judge.call import NO_LLM
from ragfilter.layers.base import Cost, LayerSpec
from ragfilter.layers.registry import LAYERS, SWITCHES
from ragfilter.layers.strategies.registry import STRATEGIES
from ragfilter.report import LayerSummary, Summary
from ragfilter.settings import profiles
from ragfilter.settings.config import Config
from ragfilter.settings.field import FieldInfo
from ragfilter.settings.schema import Settings, field, fields
from ragfilter.text import numbers
from ragfilter.ui.kit import settings_files, view_as
from ragfilter.ui.look import html
from ragfilter.ui.look.prose import literal, quiet
from ragfilter.ui.session import state, widget
from ragfilter.ui.session.resources import Resources
from ragfilter.ui.session.visit import MOST_NAME, View, Visit, author, collection_label, sign

if TYPE_CHECKING:
    from streamlit.elements.lib.mutable_expander_container import ExpanderContainer

ORDER_HELP = (
    "Each layer works on what the one above lets through. Clearance comes first so that nothing "
    "hidden reaches a model. Rules come before distances so that chunks which the question rules "
    "out do not shape the curve. Expensive layers come later, when fewer chunks are left: free "
    "layers replay in milliseconds, a local model takes tenths of a second per question, and an "
    "LLM takes seconds and tokens and is asked only by its button."
)
COST_HELP: dict[Cost, str] = {
    "free": "Free: decided in milliseconds, without the store or a model.",
    "store query": "Costs one store query per side when the question is asked; its controls are "
    "free.",
    "local model": "Runs a model on this machine if the first results are poor. Its scores are "
    "cached.",
    "LLM call": "Costs one LLM call, only when its button is pressed. The answer is cached.",
}
"""What each cost means, in a sentence."""


CHOICE_LABELS = {
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


def draw_setting(
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
    is_changed = value != before
    # The container is the same whether the value is changed or not, because a widget that moves
    # loses the focus.
    with st.container(key=f"box-{key(info.path, view)}", gap=None):
        _widget(info, value, view, f"{MARK} {label or info.label}" if is_changed
                else label or info.label)  # fmt: skip
        if view == "set":
            tell_variable(info.path, value, own)
        if is_changed:
            variable = own.variable(info.path, before)
            st.button(
                value_text(info, before) + (f" ({variable})" if variable else ""),
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


def value_text(info: FieldInfo, value: Any) -> str:
    """A value as it is written next to its label."""
    if info.value_type is bool:
        return "on" if value else "off"
    if info.value_type is float:
        return numbers.distance(value)
    return literal(choice_label(str(value)) or WHEN_EMPTY.get(info.path, "empty"))


def choice_label(choice: str) -> str:
    """The page's name for a choice."""
    return CHOICE_LABELS.get(choice, choice)


def apply_choice(value: Any, path: str) -> None:
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
    given = widget.of(key(info.path, view), value, apply_choice, info.path)
    given["help"] = f"{info.help} Unit: {info.unit}." if info.unit else info.help
    if info.choices and len(info.choices) <= 4 and info.name in ("strategy", "mode"):
        st.segmented_control(
            label, info.choices, default=value, format_func=choice_label, required=True,
            width="stretch", **given,
        )  # fmt: skip
    elif info.choices:
        at = info.choices.index(value)
        st.selectbox(label, info.choices, at, format_func=choice_label, filter_mode=None, **given)
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


OTHERS = tuple(dict.fromkeys(f.section for f in fields() if f.section not in SWITCHES))
"""The sections without a switch."""
JUDGE_COSTS = "Runs last because it costs time and money. Only its button calls it."


def choose(visit: Visit) -> None:
    """Draw the product's name, and the choice of collection and profile."""
    user = state.onlooker()
    labels = {name: collection_label(each, user) for name, each in visit.collections.items()}
    names = list(labels)
    with st.sidebar:
        with st.container(key="choices", gap="small"):
            html.draw('<div class="rf-brand"><i></i><b>ragfilter</b></div>')
            chosen = state.session().collection
            shown = chosen if chosen in names else None
            st.selectbox(
                "Collection",
                names,
                names.index(chosen) if shown else None,
                format_func=lambda name: labels.get(name, name),
                help="The collection to search, with its size and distance metric.",
                placeholder="none yet",
                disabled=not names,
                **widget.of("collection-box", shown, _choose_collection, labels=labels),
            )
            profile = state.session().profile
            called = state.profile_label()
            st.selectbox(
                "Profile",
                list(profiles.PROFILES),
                list(profiles.PROFILES).index(profile),
                filter_mode=None,
                format_func=lambda name: called if name == profile else name,
                help="A named set of layers and values to start from.",
                **widget.of("profile-box", profile, state.choose_profile, labels=called),
            )
        about = profiles.PROFILES[state.session().profile].help
        html.draw(f'<p class="rf-hint">{html.text(about)}</p>')
        _steps()


def _steps() -> None:
    """Draw the buttons to undo, redo and reset changes."""
    changed, past, future = state.changed(), state.session().past, state.session().future
    with st.container(key="steps", horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Undo",
            key="undo",
            icon=":material/undo:",
            on_click=state.undo,
            disabled=not past,
            shortcut="Ctrl+Z",
            help="Undo the last change to a setting or the profile (Ctrl+Z)."
            if past
            else "No setting has been changed yet.",
        )
        st.button(
            "Redo",
            key="redo",
            icon=":material/redo:",
            on_click=state.redo,
            disabled=not future,
            shortcut="Ctrl+Shift+Z",
            help="Redo the change you undid (Ctrl+Shift+Z)."
            if future
            else "There is nothing to redo.",
        )
        st.button(
            "Reset",
            key="reset",
            icon=":material/restart_alt:",
            on_click=state.reset,
            disabled=not changed,
            help=f"Go back to the profile. Settings that differ from it: {changed}."
            if changed
            else "No setting differs from the profile.",
        )


def draw(visit: Visit, view: View | None) -> None:
    """Draw one card per layer, then the other settings, the actions on all of them and the
    visitor's name. `view` is None if there is no result."""
    if visit.collections:
        with st.sidebar:
            _layers(visit, view)
    draw_author()


def draw_author() -> None:
    """Draw the field for the visitor's name."""
    with st.sidebar:
        st.text_input(
            "Your name",
            author(),
            max_chars=MOST_NAME,
            help="Recorded with your labels, votes, runs and rule edits.",
            **widget.of("author-box", author(), sign),
        )


def _layers(visit: Visit, view: View | None) -> None:
    settings, own, resources = visit.settings, state.own(), visit.resources
    lines, cut, judged = {}, "", ""
    if view is not None:
        from ragfilter.ui.kit import judge_words

        lines = {layer.name: layer for layer in view.summary.layers}
        cut = _side_by_side(view.summary)
        judged = judge_words.card(view.result, resources.prices)
    asides = {"cutoff": cut, "judge": judged or JUDGE_COSTS}
    with st.container(key="layers", gap=None):
        st.markdown(quiet("Layers, in order of execution"), help=ORDER_HELP)
        for layer in LAYERS:
            if layer.switched:
                aside = asides.get(layer.name, "")
                _card(layer, settings, own, lines.get(layer.name), resources, aside)
    with _box(", ".join(OTHERS).capitalize(), key="others") as box:
        others = {name: [i for i in fields() if i.section == name] for name in OTHERS}
        for section, infos in others.items() if box.open else ():
            html.draw(f'<p class="rf-caption">{section.capitalize()}</p>')
            for info in infos:
                draw_setting(info, settings, own)
    if not box.open:
        _tell_closed([*chain.from_iterable(others.values())], settings, own)
    with st.container(key="settings-actions", horizontal=True, gap="small"):
        settings_files.load(resources.deployment.data_dir)
        settings_files.save(settings, resources.deployment.data_dir)


def _card(
    layer: LayerSpec,
    settings: Settings,
    own: Config,
    line: LayerSummary | None,
    resources: Resources,
    aside: str,
) -> None:
    name, on, cost = layer.name, layer.enabled(settings), layer.cost(settings)
    no_llm = cost == "LLM call" and resources.bench.chat is None
    info = field(f"{name}.enabled")
    with st.container(key=f"layer-{name}", border=True, gap=None):
        switched = on != own.settings.get(info.path)
        back = f"{CHANGED} The profile has it {'off' if on else 'on'}. " if switched else ""
        st.toggle(
            f"{f'{MARK} ' if switched else ''}{layer.title} · {cost}",
            on,
            help=f"{back}{info.help} {COST_HELP[cost]}",
            disabled=no_llm and not on,
            width="stretch",
            **widget.of(key(info.path), on, apply_choice, info.path),
        )
        tell_variable(info.path, on, own)
        acting = "" if line is None else line.line
        said = NO_LLM if no_llm else acting if on else layer.off(settings)
        drops = on and line is not None and line.n_out < line.n_in
        sign = html.sign(layer.mark, f"layer-{name}") if drops else ""
        # Reserve height for texts that change with a slider of the same card.
        room = {2: "rf-two", 5: "rf-five"}.get(layer.line_height, "")
        also = f"<span>{html.text(aside)}</span>" if on and aside and name == "judge" else ""
        if said or also:
            html.draw(
                f'<p class="rf-line {room if on else ""}" title="{html.text(said)}">{sign}'
                f"{html.text(said)}{also}</p>"
            )
        if on:
            if name == "clearance":
                view_as.draw_choice()
            if aside and not also:
                html.draw(f'<p class="rf-line">{html.text(aside)}</p>')
            used = [field(f"{name}.{each}") for each in layer.used(settings)]
            for info in used:
                if info.name in layer.first:
                    draw_setting(info, settings, own)
            more = [info for info in used if info.name not in layer.first]
            if more:
                with _box("More", key=f"more-{name}", type="compact") as box:
                    for info in more if box.open else ():
                        draw_setting(info, settings, own)
                if not box.open:
                    _tell_closed(more, settings, own)


def _tell_closed(infos: Sequence[FieldInfo], settings: Settings, own: Config) -> None:
    """Draw which settings of a closed box differ from the profile, and the environment variables
    that gave some."""
    changed = [i.label for i in infos if settings.get(i.path) != own.settings.get(i.path)]
    if changed:
        html.draw(f'<p class="rf-line">{MARK} {CHANGED[:-1]}: {html.text(", ".join(changed))}.</p>')
    named = (own.variable(info.path, settings.get(info.path)) for info in infos)
    if variables := ", ".join(filter(None, named)):
        html.draw(f'<p class="rf-line">From the environment: {html.text(variables)}.</p>')


def _box(label: str, **given: Any) -> ExpanderContainer:
    """A box whose content is drawn only while it is open: every widget costs each run a millisecond
    or more, and half of the sidebar's widgets are in closed boxes."""
    return st.expander(label, on_change="rerun", **given)


def _side_by_side(summary: Summary) -> str:
    """Draw how many hits each strategy would keep, to help choose one."""
    kept = " · ".join(f"{choice_label(name)} {n}" for name, n in summary.strategies)
    return f"keeps: {kept}" if kept else ""


def _choose_collection(name: str) -> None:
    state.session().collection = name
    state.session().chunk = None
    state.renew()
