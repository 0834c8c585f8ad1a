"""The sidebar: collection, profile, and the layers in their order.

Every control comes from `settings.fields()`. A layer's controls are drawn only while the layer is
on, and only those that its current choices use.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import streamlit as st

from ragfilter.judge.call import NO_LLM
from ragfilter.layers.base import LayerSpec
from ragfilter.layers.registry import LAYERS, SWITCHES
from ragfilter.report import LayerSummary, Summary
from ragfilter.settings import profiles
from ragfilter.settings.config import Config
from ragfilter.settings.field import FieldInfo
from ragfilter.settings.schema import Settings, field, fields
from ragfilter.ui.kit import clearance, costs
from ragfilter.ui.kit.sidebar import files, setting
from ragfilter.ui.kit.sidebar.setting import key as key
from ragfilter.ui.look import html
from ragfilter.ui.look.prose import quiet
from ragfilter.ui.session import collections, state, widget
from ragfilter.ui.session.author import MOST, author, sign
from ragfilter.ui.session.resources import Resources
from ragfilter.ui.session.visit import View, Visit

if TYPE_CHECKING:
    from streamlit.elements.lib.mutable_expander_container import ExpanderContainer

OTHERS = tuple(dict.fromkeys(f.section for f in fields() if f.section not in SWITCHES))
"""The sections without a switch."""
JUDGE_COSTS = "Runs last because it costs time and money. Only its button calls it."


def choose(visit: Visit) -> None:
    """Draw the product's name, and the choice of collection and profile."""
    user = state.onlooker()
    labels = {name: collections.label(each, user) for name, each in visit.collections.items()}
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
            st.selectbox(
                "Profile",
                list(profiles.PROFILES),
                list(profiles.PROFILES).index(state.session().profile),
                filter_mode=None,
                help="A named set of layers and values to start from.",
                **widget.of("profile-box", state.session().profile, state.choose_profile),
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
            help="Take back the last change of a setting or profile (Ctrl+Z)."
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
            help="Make the change again (Ctrl+Shift+Z)." if future else "There is nothing to redo.",
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
            max_chars=MOST,
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
        st.markdown(quiet("Layers, in order of execution"), help=costs.ORDER)
        for layer in LAYERS:
            if layer.switched:
                aside = asides.get(layer.name, "")
                _card(layer, settings, own, lines.get(layer.name), resources, aside)
    with _box(", ".join(OTHERS).capitalize(), key="others") as box:
        others = {name: [i for i in fields() if i.section == name] for name in OTHERS}
        for section, infos in others.items() if box.open else ():
            html.draw(f'<p class="rf-caption">{section.capitalize()}</p>')
            for info in infos:
                setting.draw(info, settings, own)
    if not box.open:
        _tell_closed([*chain.from_iterable(others.values())], settings, own)
    with st.container(key="settings-actions", horizontal=True, gap="small"):
        files.load(resources.deployment.data_dir)
        files.save(settings, resources.deployment.data_dir)


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
        back = f"{setting.CHANGED} The profile has it {'off' if on else 'on'}. " if switched else ""
        st.toggle(
            f"{f'{setting.MARK} ' if switched else ''}{layer.title} · {cost}",
            on,
            help=f"{back}{info.help} {costs.HELP[cost]}",
            disabled=no_llm and not on,
            width="stretch",
            **widget.of(key(info.path), on, setting.changed, info.path),
        )
        setting.tell_variable(info.path, on, own)
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
                clearance.draw_choice()
            if aside and not also:
                html.draw(f'<p class="rf-line">{html.text(aside)}</p>')
            used = [field(f"{name}.{each}") for each in layer.used(settings)]
            for info in used:
                if info.name in layer.first:
                    setting.draw(info, settings, own)
            more = [info for info in used if info.name not in layer.first]
            if more:
                with _box("More", key=f"more-{name}", type="compact") as box:
                    for info in more if box.open else ():
                        setting.draw(info, settings, own)
                if not box.open:
                    _tell_closed(more, settings, own)


def _tell_closed(infos: Sequence[FieldInfo], settings: Settings, own: Config) -> None:
    """Draw which settings of a closed box differ from the profile, and the environment variables
    that gave some."""
    changed = [i.label for i in infos if settings.get(i.path) != own.settings.get(i.path)]
    if changed:
        html.draw(
            f'<p class="rf-line">{setting.MARK} {setting.CHANGED[:-1]}: '
            f"{html.text(', '.join(changed))}.</p>"
        )
    named = (own.variable(info.path, settings.get(info.path)) for info in infos)
    if variables := ", ".join(filter(None, named)):
        html.draw(f'<p class="rf-line">From the environment: {html.text(variables)}.</p>')


def _box(label: str, **given: Any) -> ExpanderContainer:
    """A box whose content is drawn only while it is open: every widget costs each run a millisecond
    or more, and half of the sidebar's widgets are in closed boxes."""
    return st.expander(label, on_change="rerun", **given)


def _side_by_side(summary: Summary) -> str:
    """Draw how many hits each strategy would keep, to help choose one."""
    kept = " · ".join(f"{setting.word(name)} {n}" for name, n in summary.strategies)
    return f"keeps: {kept}" if kept else ""


def _choose_collection(name: str) -> None:
    state.session().collection = name
    state.session().chunk = None
    state.renew()
