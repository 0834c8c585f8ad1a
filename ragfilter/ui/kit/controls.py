"""The controls on every page: in the sidebar the collection, the profile and one line per layer, in the order in which
they act; above the page, the user whose view it shows.

A setting's control shows its value and whether it was changed, and has a button that resets it. A layer draws its
controls only while its line is open, and only the ones that its current choices use, because every widget costs each
run a millisecond or more.

There is no login: choosing a user previews what they would see. The departments of the whole collection are offered for
every question, so they do not reveal whether a hidden chunk would match. Sources: Adaptive Retrieval System, "Security
Filtering"; docs/design.md#clearance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from ragfilter.basics.files import TextFiles
from ragfilter.errors import RagfilterError
from ragfilter.judge.call import NO_LLM
from ragfilter.layers.layer import Cost, LayerSpec
from ragfilter.layers.registry import LAYERS
from ragfilter.model import User
from ragfilter.results.summary import effects, layer_line
from ragfilter.settings import config, profiles
from ragfilter.settings.config import Config
from ragfilter.settings.field import FieldInfo
from ragfilter.settings.schema import MIN_LABELLED, Settings, field_info, fields
from ragfilter.text import numbers
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import literal
from ragfilter.ui.resources import CacheSpec, Resources, open_resources
from ragfilter.ui.session import link, state, widget
from ragfilter.ui.session.page_run import PageRun, View

ORDER_HELP = (
    "Each layer gets what the one above lets through. The counts are of all retrieved chunks, not only of the "
    "first ones, which plain search finds."
)
COST_HELP: dict[Cost, str] = {
    "free": "Free: decided in milliseconds, without the store or a model.",
    "store query": "Costs one more store query per thing compared when the question is asked. Its controls are free.",
    "local model": "Runs a model on this machine if the first results are poor. Its scores are cached.",
    "API call": "Sends chunks to the reranker's endpoint if the first results are poor. Its scores are cached.",
    "LLM call": "Costs one LLM call, made only when you press its button. The answer is cached.",
}


def draw_choices(page_run: PageRun, *, undo: bool = True, reset: bool = True) -> None:
    """Draw the product's name, the choice of collection and profile, and undo, redo and
    reset. A page that draws these itself passes `undo=False` or `reset=False`."""
    # Leave out the count for a user from whom chunks may be hidden.
    counted = state.listing_user().unrestricted
    labels = {}
    for name, info in page_run.collections.items():
        facts = (name, numbers.chunk_count(info.count) if counted else "", "" if info.complete else "incomplete")
        labels[name] = " · ".join(filter(None, facts))
    with st.sidebar:
        elements.draw('<div class="rf-brand"><i></i><b>ragfilter</b></div>')
        collection, profile = state.session().collection, state.session().profile
        called, _, date = state.settings_label().partition(" (")
        given = {"placeholder": "none yet", "disabled": not labels}
        widget.draw_list("Collection", labels, collection or None, "collection-box", state.open_collection, **given)
        with st.container(key="profile", gap=None):
            offered = {name: name for name in profiles.PROFILES} | {profile: called}
            widget.draw_list("Profile", offered, profile, "profile-box", state.choose_profile, filter_mode=None)
            if date:
                elements.draw(f'<p class="rf-line">{elements.text(date.rstrip(")"))}, from {profile}</p>')
            if undo:
                _undo_buttons(reset=reset)


def _undo_buttons(*, reset: bool) -> None:
    """Draw the buttons to undo, redo and reset changes, each only if it has an effect."""
    session = state.session()
    with elements.row("steps", "top"):
        if session.past:
            about = "Undoes the last change of settings."
            elements.button("Undo", "undo", state.undo, type="tertiary", shortcut="Ctrl+Z", about=about)
        if session.future:
            about = "Redoes the change of settings."
            elements.button("Redo", "redo", state.redo, type="tertiary", shortcut="Ctrl+Shift+Z", about=about)
        if reset:
            draw_reset("Reset")


def draw_reset(label: str) -> None:
    """Draw the button that resets to the profile, if anything differs from it."""
    if changed := state.changes_since_reset():
        titles = {f"{each.name}.enabled": each.title for each in LAYERS}
        changes = ", ".join(
            f"{titles.get(path) or field_info(path).label} {value_text(field_info(path), value)}"
            for path, value in changed.items()
        )
        about = f"Undoes these changes to the profile: {changes}."
        elements.button(label, "reset", state.reset, type="tertiary", about=about)


def draw(page_run: PageRun, view: View | None) -> None:
    """Draw one line per layer in the order in which they act, and one for everything else. Layers that changed nothing
    are folded into one line, unless somebody changed their settings. `view` is None if there is no result."""
    start = state.reset_target()
    changed = {field_info(path).section for path in page_run.settings.changed_from(start.settings)}
    with st.sidebar, st.container(key="layers", gap=None):
        if page_run.collections:
            _layers(page_run, start, changed, view)
        _more(page_run, start, changed)


def _layers(page_run: PageRun, start: Config, changed: set[str], view: View | None) -> None:
    did = effects(view.shown) if view is not None else {}
    layers = [each for each in LAYERS if each.name != "clearance" and each.settings_names]
    busy = [each for each in layers if did.get(each.name) or each.name in changed]
    every = "idle" in state.session().open_lines
    if busy or every:
        came = f"<i>{numbers.count(view.summary.retrieved)} retrieved</i>" if view else ""
        title = elements.text(ORDER_HELP)
        elements.draw(f'<p class="rf-caption" title="{title}"><span>Layers, in order</span>{came}</p>')
    for layer in layers if every else busy:
        _line(layer, page_run, start, view, did.get(layer.name, ""), changed=layer.name in changed)
    if folded := len(layers) - len(busy):
        label = numbers.counted(folded, "layer" if view or not busy else "other layer")
        _opener("idle", f"{label} changed nothing" if view else label)


def _opener(name: str, label: str, about: str | None = None) -> None:
    """Draw the button that opens or closes the contents of a line, with the tooltip `about`."""
    look: dict[str, Any] = {"type": "tertiary", "icon_position": "right", "width": "stretch", "about": about}
    icon = "expand_more" if name in state.session().open_lines else "chevron_right"
    elements.button(label, f"line-{name}", _toggle, name, icon=icon, **look)


def _toggle(name: str) -> None:
    state.session().open_lines ^= {name}


def _line(layer: LayerSpec, page_run: PageRun, start: Config, view: View | None, did: str, *, changed: bool) -> None:
    """Draw a layer's switch, name and result; if the line is open, also its purpose, cost and controls."""
    name, settings = layer.name, page_run.settings
    on, cost = layer.enabled(settings), layer.cost(settings)
    no_llm = cost == "LLM call" and page_run.resources.bench.chat is None
    switch = field_info(f"{name}.enabled") if layer.switched else None
    with st.container(key=f"layer-{name}", horizontal=True, gap=None, vertical_alignment="center"):
        if switch is not None:
            given = widget.key_and_callback(setting_key(switch.path), on, apply_choice, switch.path)
            st.toggle(layer.title, on, disabled=no_llm and not on, label_visibility="collapsed", **given)
        mark = f"{MARK} " if changed else ""
        _opener(name, f"**{mark}{layer.title}** {did if on else 'off'}", switch.help if switch else None)
    if name not in state.session().open_lines:
        return
    with st.container(key=f"inside-{name}", gap=None):
        acting = layer_line(view.shown.trace(name), view.shown) if view else ""
        words = NO_LLM if no_llm else acting if on else layer.off(settings)
        sign = elements.sign(layer.mark, f"layer-{name}") if on else ""
        elements.draw(f'<p class="rf-line rf-did">{sign}{elements.text(words)}</p>')
        if switch is not None:
            differs = "" if on == start.settings.get(switch.path) else f"It is {'off' if on else 'on'} in the profile. "
            elements.draw(f'<p class="rf-line">{elements.text(f"{differs}{switch.help} {COST_HELP[cost]}")}</p>')
            tell_variable(switch.path, on, start)
        for each in layer.used(settings) if on else ():
            kept = dict(view.summary.strategies) if view and each == "strategy" else {}
            draw_setting(field_info(f"{name}.{each}"), settings, start, kept=kept)


def _more(page_run: PageRun, start: Config, changed: set[str]) -> None:
    """Draw the settings outside the layers, the settings files, and the visitor's name."""
    layers = {each.name for each in LAYERS}
    _opener("settings", f"{MARK} More settings" if changed - layers else "More settings")
    if "settings" not in state.session().open_lines:
        return
    with st.container(key="inside-settings", gap=None):
        for info in fields():
            if info.section not in layers:
                draw_setting(info, page_run.settings, start)
        _files(page_run)
        about = "Recorded with your labels, votes, runs and rule edits."
        given = widget.key_and_callback("author-box", state.author(), state.set_author)
        st.text_input("Your name", state.author(), max_chars=state.MAX_NAME, help=about, **given)


def _files(page_run: PageRun) -> None:
    """Draw the forms that save, download, load and delete settings. A file is loaded completely or not at all."""
    files = page_run.resources.bench.workspace.files
    text = partial(config.to_toml, page_run.settings, state.session().profile)
    with st.form("save-as", border=False):
        about = (
            "Saved in the workspace, for this page and for `ragfilter query --config NAME`. "
            "Saving under an existing name replaces those settings."
        )
        st.text_input("Save settings as", key="settings-name", placeholder="strict", help=about)
        st.form_submit_button("Save", key="save-as-button", on_click=_save, args=(text, files))
    elements.download("Download", "download-settings", text, "ragfilter.toml")
    if saved := config.saved_names(files):
        name = st.selectbox("Saved settings", saved, key="settings-saved")
        with elements.row(align="top"):
            elements.button("Load", "load-saved", _load, files, name)
            elements.button("Delete", "delete-saved", state.notice_errors()(config.forget), files, name)
    about = "A downloaded file, or any that `ragfilter query --config` reads. Undo restores the earlier settings."
    st.file_uploader(
        "Load a settings file", "toml", key="settings-file", max_upload_size=1, on_change=_load_file, help=about
    )


@state.notice_errors()
def _save(text: Callable[[], str], files: TextFiles) -> None:
    name = st.session_state["settings-name"].strip()
    config.save(files, name, text())
    st.session_state["settings-saved"] = name


@state.notice_errors()
def _load(files: TextFiles, name: str) -> None:
    state.load_settings_file(config.find_saved(files, name).read_bytes(), name)


@state.notice_errors()
def _load_file() -> None:
    upload = st.session_state["settings-file"]
    if upload is not None:
        state.load_settings_file(upload.getvalue(), upload.name)


CHOICE_LABELS = {
    "late_interaction": "late interaction",
    "cross_encoder": "cross-encoder",
    "http": "by HTTP",
    "when_poor": "when poor",
}
WHEN_EMPTY = {"retrieval.source_pattern": "all files", "cutoff.score": "distance"}
"""The meaning of an empty text setting."""
UNLEARNED = "not learned yet; see Tune"
NOTHING = {"cutoff.calibration": UNLEARNED}
"""The text shown for an empty table."""
MARK = "●"
"""The sign of a value that differs from the profile."""
STRATEGY, LEARNED = "cutoff.strategy", "calibrated"
ORDERED = ("quality.min_top_k", "quality.max_top_k")
"""The first must not exceed the second, so moving one past the other moves both."""


def setting_key(path: str, prefix: str = "set") -> str:
    """A setting's widget key, ``set-cutoff-gap_threshold``. `prefix` separates two widgets."""
    return f"{prefix}-{path.replace('.', '-')}"


def draw_setting(
    info: FieldInfo, settings: Settings, start: Config, *, prefix: str = "set", kept: Mapping[str, int] | None = None
) -> None:
    """Draw the setting's widget. A value that differs from `start`, the profile in this environment, is marked
    and gets a reset button. `kept` is how many chunks each strategy of the cutoff would keep."""
    value = settings.get(info.path)
    if info.table:
        # Nobody can type a table: it is learned, or loaded from a settings file.
        note = info.table.model_validate(value).summary if value else NOTHING.get(info.path)
        if note is not None:
            elements.draw(f'<p class="rf-aside">{elements.text(info.label)}: {elements.text(note)}</p>')
        return
    before = start.settings.get(info.path)
    is_changed = value != before
    # The container is the same whether or not the value is changed, because a widget that moves loses focus.
    with st.container(key=f"box-{setting_key(info.path, prefix)}", gap=None):
        _widget(info, value, prefix, f"{MARK} {info.label}" if is_changed else info.label, kept or {})
        if prefix == "set":
            tell_variable(info.path, value, start)
        if is_changed:
            variable = start.variable(info.path, before)
            label = value_text(info, before) + (f" ({variable})" if variable else "")
            key, back, about = f"back-{setting_key(info.path, prefix)}", {info.path: before}, "Back to this value."
            elements.button(label, key, state.change_settings, back, icon="undo", type="tertiary", about=about)


def tell_variable(path: str, value: Any, start: Config) -> None:
    """Draw the environment variable that gave a setting this value, if one did."""
    if variable := start.variable(path, value):
        elements.draw(f'<p class="rf-aside">from the variable {elements.text(variable)}</p>')


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
        words = (
            f"“Suggest settings” on Tune learns the strategy {LEARNED} from at least {MIN_LABELLED} labelled questions."
        )
        state.notice(f"{words} Apply the suggestion there.")
        return
    values = {path: value}
    if path in ORDERED:
        low, high = ORDERED
        other, further = (high, max) if path == low else (low, min)
        values[other] = further(value, state.settings().get(other))
    state.change_settings(values)


def _widget(info: FieldInfo, value: Any, prefix: str, label: str, kept: Mapping[str, int]) -> None:
    names = {each: choice_label(each) for each in info.choices or ()}
    if info.path == STRATEGY:
        names |= {each: f"{each} · {n}" for each, n in kept.items()}
        if state.settings().cutoff.calibration is None:
            names[LEARNED] = f"{LEARNED} · {UNLEARNED}"
    given = widget.key_and_callback(setting_key(info.path, prefix), value, apply_choice, info.path, labels=names)
    unit = f" Unit: {info.unit}." if info.unit else ""
    given["help"] = f"`{info.path}`: {info.help}{unit}"
    if info.choices and len(info.choices) <= 4 and info.name in ("strategy", "mode"):
        st.segmented_control(
            label, info.choices, default=value, format_func=choice_label, required=True, width="stretch", **given
        )
    elif info.choices:
        st.selectbox(label, [*names], [*names].index(value), format_func=names.__getitem__, filter_mode=None, **given)
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


USER, OPERATOR = "User", "Operator"
LEVEL, DEPARTMENTS = "user-level", "user-departments"
MAX_LEVEL = 5
OFFERED: CacheSpec[tuple[str, ...]] = CacheSpec(16)
"""The departments of each collection."""


def draw_viewer() -> None:
    """Draw whose view the page shows, which no profile or settings file names. A click opens the choice of another."""
    on = state.CLEARANCE not in state.session().changes
    with st.popover(f"Viewing as {literal(_viewer())}", key="viewing", type="tertiary"):
        if on:
            _choose_viewer()
        about = "Hides what this user must not see. No profile, file or link turns it off."
        given = widget.key_and_callback(setting_key(state.CLEARANCE), on, apply_choice, state.CLEARANCE)
        st.toggle("Clearance", on, help=about, **given)


def _viewer() -> str:
    """The viewer in a few words: ``Guest``, ``level 2 · treasury``, ``operator``."""
    user = state.user()
    if user.unrestricted:
        return "everyone"
    if state.session().operator:
        return OPERATOR.lower()
    name = next((name for name, each in _offered_users().items() if each == user), None)
    return name or " · ".join((f"level {user.level}", *user.departments))


def _choose_viewer() -> None:
    session, user = state.session(), state.session().user
    role = OPERATOR if session.operator else USER
    widget.draw_buttons(
        "Role", (USER, OPERATOR), role, "view-as", lambda role: state.set_field(role == OPERATOR, "operator")
    )
    choose_user("seen-as")
    given = widget.key_and_callback(LEVEL, user.level, lambda level: _become(level=level))
    about = "Chunks of a higher level are hidden."
    st.slider("Level", 0, max(MAX_LEVEL, user.level), user.level, help=about, **given)
    # Keep the order in which they were chosen; the user's own are sorted.
    names: list[str] = widget.value_of(DEPARTMENTS, [])
    names = names if sorted(names) == list(user.departments) else list(user.departments)
    offered = list(dict.fromkeys((*departments(open_resources()), *names)))
    given = widget.key_and_callback(
        DEPARTMENTS, names, lambda names: _become(departments=link.parse_departments(",".join(names)))
    )
    about = "Chunks of other departments are hidden. Choose from this collection's, or type another."
    st.multiselect("Departments", offered, names, placeholder="none", accept_new_options=True, help=about, **given)


def _become(**changes: Any) -> None:
    state.session().user = replace(state.session().user, **changes)


def choose_user(name: str) -> None:
    """Draw the list of users as the widget called `name`."""
    users = _offered_users()
    current = next((each for each, user in users.items() if user == state.session().user), None)

    def become(chosen: str) -> None:
        state.session().user = users.get(chosen, state.session().user)

    labels = {each: each for each in users}
    widget.draw_list("User", labels, current, name, become, placeholder="someone else", filter_mode=None)


def _offered_users() -> Mapping[str, User]:
    """The users to choose from: the demo's own, or a guest."""
    if state.session().collection != "demo":
        return {"Guest": User()}
    from ragfilter.ingest import bundled

    return bundled.DEMO_USERS


def departments(resources: Resources) -> tuple[str, ...]:
    """The departments of the chosen collection; none if it is too large to read, or cannot be read."""
    name = state.session().collection
    try:
        store = resources.bench.collection(name).snapshot()

        def names() -> tuple[str, ...]:
            chunks = (store.catalogue() or {}).values()
            return tuple(sorted({chunk.department for chunk in chunks if chunk.department}))

        return resources.cache(OFFERED).of((name, store.content or store.version), names)
    except RagfilterError:
        return ()
