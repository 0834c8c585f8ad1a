"""What one browser session remembers: plain values and the page's replays, under a few names.

`changes` has the settings that differ from the profile, and is the only record of them. Widgets
show it and write to it through callbacks, so a widget that is not drawn loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, ParamSpec, cast

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from ragfilter.engine.replays import Replays
from ragfilter.errors import RagfilterError, SettingsError
from ragfilter.layers.clearance import with_clearance
from ragfilter.model import UNRESTRICTED, User
from ragfilter.rules.overview import WORDS
from ragfilter.settings.config import Config, of_profile
from ragfilter.settings.schema import Settings
from ragfilter.text.characters import whole
from ragfilter.ui.session import link

P = ParamSpec("P")
OPERATOR = "operator"
CLEARANCE = "clearance.enabled"
"""The one setting that only a hand changes here, and no profile, file, link or variable."""
ON = {CLEARANCE: True}
SWITCHED_OFF = (
    "Clearance is switched off, so everyone sees everything here, in answers and exports as well. "
    "The layer's switch turns it on again."
)
SEEN_BY_OPERATOR = (
    "You see everything here as the operator, including what is hidden from the user. Prompts, "
    "answers and exports keep to the user's view."
)
MOST_STEPS = 200
"""How many changes of settings can be undone."""
WINDOWS = CUT, FIFTY, ALL = "Around the cut", "First 50", "All"
"""The ranges of ranks that the curve offers, besides any range chosen by number."""
PANELS = ("Answer", "Prompt", "Chunk", "Judge", "Rounds", "Debug")


@dataclass(frozen=True, slots=True)
class PoolReach:
    """How far a pool was gathered. Only asking changes it, not moving a slider."""

    pool_size: int
    wanted: int
    user: User
    source_pattern: str = ""


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question that was asked: its text, the collection and its version, and how far it
    reached."""

    query: str
    collection: str
    version: str
    reach: PoolReach


def begin() -> None:
    """Fill a new session from the address bar; does not change a session that is already filled.

    Raises SettingsError if the environment holds an invalid setting.
    """
    if "changes" in st.session_state:
        if _went_back():
            _reopen()
        return
    opened = link.read(st.query_params.to_dict())
    st.session_state.update(
        profile=opened.profile,
        changes=_without_clearance(opened.changes),
        query=opened.query,
        collection=opened.collection,
        pending=bool(opened.query),
        unscored=opened.unscored,
        notices=[],
        ignored=list(opened.refused),
        asked=None,
        chunk=None,
        panel=PANELS[0],
        zoom=None,
        drafts={},
        past=[],
        future=[],
        operator=opened.look.get(link.VIEW) == OPERATOR,
        user=opened.user,
        look=dict(opened.look),
        shared={},
        present=opened.present,
        compared=dict(opened.compared),
        replays=Replays(),
    )
    st.session_state.filter = opened.look.get(link.FILTER, "")
    rule = opened.look.get(link.RULE)
    st.session_state["filter-rule"] = rule if rule in WORDS else None


def _went_back() -> bool:
    """Whether the user went back or forward in the browser. Only the browser knows: while a run is
    in progress, the address may lag behind anyway."""
    context = get_script_run_ctx()
    moved = context is not None and context.is_history_navigation
    return moved and st.query_params.to_dict() != st.session_state.shared


def _reopen() -> None:
    """Restore the state in the address bar. Undo returns to the state before."""
    opened = link.read(st.query_params.to_dict())
    _move(opened.profile, _keeping_clearance(opened.changes))
    st.session_state.update(
        query=opened.query,
        collection=opened.collection or st.session_state.collection,
        user=opened.user,
        present=opened.present,
        unscored=opened.unscored,
        pending=bool(opened.query),
    )
    if opened.compared:
        st.session_state.compared = dict(opened.compared)
    st.session_state.ignored += opened.refused
    if not opened.query:
        st.session_state.asked = None


def looked() -> None:
    """Restore what the link was looking at, once its question has been answered."""
    look = st.session_state.pop("look", None) or {}
    if link.CHUNK in look:
        st.session_state.chunk = look[link.CHUNK]
    if look.get(link.PANEL) in PANELS:
        st.session_state.panel = look[link.PANEL]
    places = look.get(link.PLACES, "")
    if places in WINDOWS:
        st.session_state.zoom, st.session_state.window = None, places
    low, dash, high = places.partition("-")
    if dash and low.isdecimal() and high.isdecimal() and len(low + high) < 12:
        low_high = int(low), int(high)
        if 0 < low_high[0] < low_high[1]:
            st.session_state.zoom, st.session_state.window = low_high, None


def whole_link(nameable: Collection[str]) -> dict[str, str]:
    """The parameters of a link to exactly this page: question, settings, and what is open. Empty if
    no question was asked. The open chunk is included only if it is `nameable`, because links are
    passed on."""
    shared: dict[str, str] = st.session_state.shared
    if not shared:
        return {}
    zoom, chunk = st.session_state.zoom, st.session_state.chunk
    window = st.session_state.get("window") or CUT
    look = {
        link.CHUNK: chunk if chunk in nameable else "",
        link.PANEL: "" if st.session_state.panel == PANELS[0] else st.session_state.panel,
        link.PLACES: f"{zoom[0]}-{zoom[1]}" if zoom else "" if window == CUT else window,
        link.FILTER: st.session_state.get("filter") or "",
        link.RULE: st.session_state.get("filter-rule") or "",
        link.VIEW: OPERATOR if st.session_state.operator else "",
    }
    return shared | {name: value for name, value in look.items() if value}


def replays() -> Replays:
    """The replays of this session."""
    kept: Replays = st.session_state.replays
    return kept


def settings() -> Settings:
    """The current settings."""
    return link.settings(st.session_state.profile, ON | st.session_state.changes)


def as_viewed(settings: Settings) -> Settings:
    """`settings` with clearance on, unless it was switched off by hand."""
    return with_clearance(settings, user())


def user() -> User:
    """The user as whom the page is viewed: one who sees everything if clearance was switched off by
    hand."""
    return UNRESTRICTED if _is_off() else cast(User, st.session_state.user)


def onlooker() -> User:
    """Who looks at a page that lists chunks: an operator sees everything."""
    return UNRESTRICTED if st.session_state.operator else user()


def become(user: User) -> None:
    """View the page as `user`."""
    st.session_state.user = user


def keep(value: Any, name: str) -> None:
    """Keep in the session what was chosen in a widget."""
    st.session_state[name] = value


def change(values: Mapping[str, Any]) -> None:
    """Change settings by dotted path. If the result is invalid, nothing changes and the page says
    why."""
    name = st.session_state.profile
    try:
        changed = link.settings(name, {**ON, **st.session_state.changes, **values})
    except SettingsError as error:
        notice(str(error))
        return
    _move(name, changed.changed_from(link.settings(name, ON)))


def take(profile: str, changes: Mapping[str, Any]) -> None:
    """Use a profile and its changes, as from a saved run. Can be undone."""
    _move(profile, _keeping_clearance(changes))
    st.session_state.settle = True


def reset() -> None:
    """Restore the profile with the environment's changes."""
    _move(st.session_state.profile, _without_clearance(link.beginning(st.session_state.profile)))


def choose_profile(name: str) -> None:
    """Switch to another profile, with the environment's changes. Settings tuned by hand are kept
    unless they are invalid with the new profile; the page says if so. Local scores are fetched, as
    for a question."""
    own = link.beginning(st.session_state.profile)
    tuned = {path: value for path, value in st.session_state.changes.items()
             if path not in own or own[path] != value}  # fmt: skip
    changes = link.beginning(name)
    try:
        changes = link.settings(name, {**changes, **tuned}).changed_from(of_profile(name))
    except SettingsError as error:
        notice(f"What was tuned does not go together with {name}. {error}")
    _move(name, _keeping_clearance(changes))
    st.session_state.settle = True


def load(content: bytes, name: str) -> None:
    """Load the settings in a file, all or none, with the current profile if the file names none.
    Raises SettingsError."""
    profile, changes = link.from_file(content, name, st.session_state.profile)
    _move(profile, _keeping_clearance(changes))
    st.session_state.settle = True


def undo() -> None:
    """Restore the settings before the last change."""
    _step(st.session_state.past, st.session_state.future)


def redo() -> None:
    """Restore the change that was undone last."""
    _step(st.session_state.future, st.session_state.past)


def _move(profile: str, changes: dict[str, Any]) -> None:
    before = (st.session_state.profile, st.session_state.changes)
    if before == (profile, changes):
        return
    st.session_state.past = [*st.session_state.past[1 - MOST_STEPS :], before]
    st.session_state.future = []
    st.session_state.profile, st.session_state.changes = profile, changes


def _is_off() -> bool:
    return CLEARANCE in st.session_state.changes


def _without_clearance(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {path: value for path, value in changes.items() if path != CLEARANCE}


def _keeping_clearance(changes: Mapping[str, Any]) -> dict[str, Any]:
    """`changes` with clearance as it is now."""
    return _without_clearance(changes) | ({CLEARANCE: False} if _is_off() else {})


def _step(taken: list[Any], target: list[Any]) -> None:
    if taken:
        target.append((st.session_state.profile, st.session_state.changes))
        st.session_state.profile, st.session_state.changes = taken.pop()


def own() -> Config:
    """The settings that a reset restores."""
    made = link.own(st.session_state.profile)
    settings, origins = made.settings.with_values(ON), _without_clearance(made.origins)
    return replace(made, settings=settings, origins=origins)


def changed() -> int:
    """How many settings a reset would change."""
    return len(settings().changed_from(own().settings))


def ask(query: str) -> None:
    """Ask a question, from the box or from an example."""
    st.session_state.query = whole(query)
    st.session_state.pending = True


def renew() -> None:
    """Ask the same question again, because the collection changed or the pool is too small."""
    if asked() is not None:
        st.session_state.pending = "again"


def open_chunk(chunk_id: str | None) -> None:
    """Show a chunk in the panel, and select its row in the table."""
    if chunk_id:
        st.session_state.chunk = chunk_id
        st.session_state.panel = "Chunk"


def drafts() -> dict[str, str]:
    """Unsaved text in the rule editor by chunk, for the current collection."""
    every: dict[str, dict[str, str]] = st.session_state.drafts
    return every.setdefault(st.session_state.collection or "", {})


def bases(collection: str | None = None) -> dict[str, str | None]:
    """The stored rule from which each chunk's unsaved text started, for a collection, by default
    the current one."""
    every: dict[str, dict[str, str | None]] = st.session_state.setdefault("rule-bases", {})
    return every.setdefault(collection or st.session_state.collection or "", {})


def notice(message: str) -> None:
    """Show a message once at the top of the page."""
    st.session_state.notices.append(message)


@contextmanager
def tell_errors() -> Iterator[None]:
    """Show an error in here at the top of the page. Callbacks are decorated with it."""
    try:
        yield
    except RagfilterError as error:
        notice(str(error))


def then_page(act: Callable[P, None]) -> Callable[P, None]:
    """`act` as a callback in a fragment, after which the whole page runs, because other parts show
    what it changes."""

    @wraps(act)
    def acting(*args: P.args, **kwargs: P.kwargs) -> None:
        act(*args, **kwargs)
        st.rerun()

    return acting


def ignore(message: str) -> None:
    """Show once at the top of the page that a value was ignored."""
    st.session_state.ignored.append(message)


def notices() -> tuple[list[str], list[str]]:
    """Return and clear the ignored values of links and files, and the other messages. The first
    message says if this page shows more than its user may see."""
    ignored, said = st.session_state.ignored, st.session_state.notices
    st.session_state.ignored, st.session_state.notices = [], []
    if _is_off():
        said = [SWITCHED_OFF, *said]
    elif st.session_state.operator and not st.session_state.present:
        said = [SEEN_BY_OPERATOR, *said]
    return ignored, said


def asked() -> AskedQuestion | None:
    return cast("AskedQuestion | None", st.session_state.asked)


def share(*, unscored: bool = False, more: Mapping[str, str] | None = None) -> None:
    """Update the link to what is shown. `unscored`: rerank scores are wanted, and a button offers
    them. `more` are parameters that a page adds."""
    put = asked()
    params = link.write(
        query=put.query if put else "",
        collection=st.session_state.collection or "",
        profile=st.session_state.profile,
        changes=_without_clearance(st.session_state.changes),
        unscored=unscored,
        user=st.session_state.user,
        present=st.session_state.present,
    ) | dict(more or {})
    st.session_state.shared = st.session_state.unshown = params


def show_address() -> None:
    """Update the address bar. That keeps the browser as busy as drawing a small chart, so call it
    after what the user waits for."""
    params: dict[str, str] | None = st.session_state.pop("unshown", None)
    if params is not None and st.query_params.to_dict() != params:
        st.query_params.from_dict(params)
