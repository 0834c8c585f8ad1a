"""The sidebar: collection, profile, and one line per layer in the order in which they act.

Every control comes from `settings.fields()`: its value, whether it was changed, and a button that
resets it. A layer draws its controls only while its line is open, and only the ones that its
current choices use, because every widget costs each run a millisecond or more.
"""

from __future__ import annotations

from functools import partial

import streamlit as st

from ragfilter.basics.files import TextFiles
from ragfilter.judge.call import NO_LLM
from ragfilter.layers.base import Cost, LayerSpec
from ragfilter.layers.registry import LAYERS
from ragfilter.report.summary import effects, layer_line
from ragfilter.settings import config, profiles
from ragfilter.settings.config import Config
from ragfilter.settings.schema import Settings, field, fields
from ragfilter.text import numbers
from ragfilter.ui.look import html
from ragfilter.ui.resources import Resources
from ragfilter.ui.session import state, widget
from ragfilter.ui.session.views import MAX_NAME, View, Visit, author, set_author

ORDER_HELP = (
    "Each layer gets what the one above lets through: hidden chunks go first, then rules and "
    "distances decide for free, and layers that cost time and money come last."
)
COST_HELP: dict[Cost, str] = {
    "free": "Free: decided in milliseconds, without the store or a model.",
    "store query": "Costs one store query per side when the question is asked; its controls are free.",
    "local model": "Runs a model on this machine if the first results are poor. Its scores are cached.",
    "API call": "Sends chunks to the reranker's endpoint if the first results are poor. Its scores are cached.",
    "LLM call": "Costs one LLM call, made only when you press its button. The answer is cached.",
}
"""A sentence on each cost."""


OTHERS = tuple(dict.fromkeys(f.section for f in fields() if f.section not in {each.name for each in LAYERS}))
"""The sections of settings outside the layers."""
SETTINGS = "settings"
"""The line for these sections."""


def choose(visit: Visit, *, steps: bool = True, reset: bool = True) -> None:
    """Draw the product's name, the choice of collection and profile, and undo, redo and
    reset. A page that draws these itself passes `steps=False` or `reset=False`."""
    # Leave out the count for a user from whom chunks may be hidden.
    counted = state.onlooker().unrestricted
    labels = {
        name: name
        + (f" · {numbers.chunks(each.count)}" if counted else "")
        + ("" if each.complete else " · incomplete")
        for name, each in visit.collections.items()
    }
    with st.sidebar:
        html.draw('<div class="rf-brand"><i></i><b>ragfilter</b></div>')
        chosen, profile = state.session().collection, state.session().profile
        called, _, date = state.settings_label().partition(" (")
        widget.select(
            "Collection",
            labels,
            chosen if chosen in labels else None,
            "collection-box",
            state.open_collection,
            placeholder="none yet",
            disabled=not labels,
        )
        with st.container(key="profile", gap=None):
            offered = {name: name for name in profiles.PROFILES} | {profile: called}
            widget.select("Profile", offered, profile, "profile-box", state.choose_profile, filter_mode=None)
            if date:
                html.draw(f'<p class="rf-line">{html.text(date.rstrip(")"))}, from {profile}</p>')
            if steps:
                _steps(reset=reset)


def _steps(*, reset: bool) -> None:
    """Draw the buttons to undo, redo and reset changes, each only if it has an effect."""
    session = state.session()
    with st.container(key="steps", horizontal=True, gap="small"):
        if session.past:
            html.button("Undo", "undo", state.undo, type="tertiary", shortcut="Ctrl+Z")
        if session.future:
            html.button("Redo", "redo", state.redo, type="tertiary", shortcut="Ctrl+Shift+Z")
        if reset:
            draw_reset("Reset")


def draw_reset(label: str) -> None:
    """Draw the button that resets to the profile, if anything differs from it."""
    if changed := state.changed():
        titles = {f"{each.name}.enabled": each.title for each in LAYERS}
        change_list = ", ".join(
            f"{titles.get(path) or field(path).label} {widget.value_text(field(path), value)}"
            for path, value in changed.items()
        )
        html.button(
            label, "reset", state.reset, type="tertiary", about=f"Undoes these changes to the profile: {change_list}."
        )


def draw(visit: Visit, view: View | None) -> None:
    """Draw one line per layer in the order in which they act, and one for everything else.

    Layers that changed nothing are folded into one line, unless somebody changed their settings.
    `view` is None if there is no result.
    """
    with st.sidebar, st.container(key="layers", gap=None):
        if visit.collections:
            _layers(visit, view)
        draw_more(visit)


def _layers(visit: Visit, view: View | None) -> None:
    settings, own = visit.settings, state.own()
    did = effects(view.shown) if view is not None else {}
    layers = [each for each in LAYERS if each.name != "clearance" and each.settings_names]
    busy = [each for each in layers if did.get(each.name) or _changed(each, settings, own)]
    folded = len(layers) - len(busy)
    every = _is_open("idle")
    if busy or every:
        came = f"<i>{numbers.chunks(view.summary.retrieved)}</i>" if view else ""
        words = f"<span>Layers, in order</span>{came}"
        html.draw(f'<p class="rf-caption" title="{html.text(ORDER_HELP)}">{words}</p>')
    for layer in layers:
        if every or layer in busy:
            _line(layer, settings, own, visit.resources, view, did.get(layer.name, ""))
    if folded:
        label = numbers.counted(folded, "layer" if view or not busy else "other layer")
        _opener("idle", f"{label} changed nothing" if view else label)


def _changed(layer: LayerSpec, settings: Settings, own: Config) -> bool:
    """Whether a setting of the layer differs from the profile."""
    return bool(getattr(settings, layer.name) != getattr(own.settings, layer.name))


def _is_open(name: str) -> bool:
    return bool(st.session_state.get(f"open-{name}"))


def _opener(name: str, label: str, about: str | None = None) -> None:
    """Draw the button that opens or closes the contents of a line, with the tooltip `about`."""
    is_open = _is_open(name)
    html.button(
        label,
        f"line-{name}",
        state.keep,
        not is_open,
        f"open-{name}",
        icon="expand_more" if is_open else "chevron_right",
        type="tertiary",
        icon_position="right",
        width="stretch",
        about=about,
    )


def _line(layer: LayerSpec, settings: Settings, own: Config, resources: Resources, view: View | None, did: str) -> None:
    """Draw a layer's switch, name and result, and its controls if they are open."""
    name, on, cost = layer.name, layer.enabled(settings), layer.cost(settings)
    no_llm = cost == "LLM call" and resources.bench.chat is None
    mark = f"{widget.MARK} " if _changed(layer, settings, own) else ""
    with st.container(key=f"layer-{name}", horizontal=True, gap=None, vertical_alignment="center"):
        if layer.switched:
            path = f"{name}.enabled"
            st.toggle(
                layer.title,
                on,
                disabled=no_llm and not on,
                label_visibility="collapsed",
                **widget.of(widget.setting_key(path), on, widget.apply_choice, path),
            )
        about = field(f"{name}.enabled").help if layer.switched else None
        _opener(name, f"**{mark}{layer.title}** {did if on else 'off'}", about)
    if _is_open(name):
        with st.container(key=f"inside-{name}", gap=None):
            _tell(layer, settings, own, view, no_llm=no_llm)
            for each in layer.used(settings) if on else ():
                kept = dict(view.summary.strategies) if view and each == "strategy" else {}
                widget.draw_setting(field(f"{name}.{each}"), settings, own, kept=kept)


def _tell(layer: LayerSpec, settings: Settings, own: Config, view: View | None, *, no_llm: bool) -> None:
    """Draw the layer's result, purpose and cost, and whether it is on in the profile."""
    on = layer.enabled(settings)
    acting = layer_line(view.shown.trace(layer.name), view.shown) if view else ""
    words = NO_LLM if no_llm else acting if on else layer.off(settings)
    sign = html.sign(layer.mark, f"layer-{layer.name}") if on else ""
    html.draw(f'<p class="rf-line rf-did">{sign}{html.text(words)}</p>')
    if not layer.switched:
        return
    info = field(f"{layer.name}.enabled")
    about = [info.help, COST_HELP[layer.cost(settings)]]
    if on != own.settings.get(info.path):
        about.insert(0, f"It is {'off' if on else 'on'} in the profile.")
    html.draw(f'<p class="rf-line">{html.text(" ".join(about))}</p>')
    widget.tell_variable(info.path, on, own)


def draw_more(visit: Visit) -> None:
    """Draw the settings outside the layers, the settings files, and the visitor's name."""
    settings, own = visit.settings, state.own()
    others = [info for info in fields() if info.section in OTHERS]
    changed = any(settings.get(info.path) != own.settings.get(info.path) for info in others)
    _opener(SETTINGS, f"{f'{widget.MARK} ' if changed else ''}More settings")
    if not _is_open(SETTINGS):
        return
    with st.container(key=f"inside-{SETTINGS}", gap=None):
        for info in others:
            widget.draw_setting(info, settings, own)
        _files(settings, visit.resources.bench.workspace.files)
        st.text_input(
            "Your name",
            author(),
            max_chars=MAX_NAME,
            help="Recorded with your labels, votes, runs and rule edits.",
            **widget.of("author-box", author(), set_author),
        )


def _files(settings: Settings, files: TextFiles) -> None:
    """Draw the form that saves the settings under a name, their download, the saved settings with
    their buttons, and the upload of a file, which is loaded completely or not at all."""
    with st.form("save-as", border=False):
        st.text_input(
            "Save settings as",
            key="settings-name",
            placeholder="strict",
            help="Saved in the workspace, for this page and for `ragfilter query --config NAME`. "
            "Saving under an existing name replaces those settings.",
        )
        st.form_submit_button("Save", key="save-as-button", on_click=_save, args=(settings, files))
    text = partial(config.to_toml, settings, state.session().profile)
    html.download("Download", "download-settings", text, "ragfilter.toml")
    if there := config.saved_names(files):
        name = st.selectbox("Saved settings", there, key="settings-saved")
        forget = state.tell_errors()(config.forget)
        with st.container(horizontal=True, gap="small"):
            html.button("Load", "load-saved", _load, files, name)
            html.button("Delete", "delete-saved", forget, files, name)
    st.file_uploader(
        "Load a settings file",
        type="toml",
        key="settings-file",
        max_upload_size=1,
        on_change=_load_file,
        help="A downloaded file, or any that `ragfilter query --config` reads. Undo restores the earlier settings.",
    )


@state.tell_errors()
def _save(settings: Settings, files: TextFiles) -> None:
    name = st.session_state["settings-name"].strip()
    config.save(files, name, config.to_toml(settings, state.session().profile))
    st.session_state["settings-saved"] = name


@state.tell_errors()
def _load(files: TextFiles, name: str) -> None:
    state.load(config.find_saved(files, name).read_bytes(), name)


@state.tell_errors()
def _load_file() -> None:
    upload = st.session_state["settings-file"]
    if upload is not None:
        state.load(upload.getvalue(), upload.name)
