"""What one browser session remembers: plain values, and the replays of the page, under few names.

`changes` has the settings that differ from the profile, and is the only record of them. Widgets
show it and write to it through callbacks, so a control that is not drawn loses nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from ragfilter.errors import SettingsError
from ragfilter.model import User
from ragfilter.rules.overview import WORDS
from ragfilter.settings.config import Config
from ragfilter.settings.schema import Settings
from ragfilter.text.characters import whole
from ragfilter.ui.session import link
from ragfilter.ui.session.replays import Replays

OPERATOR = "operator"
MOST_STEPS = 200
"""How many changes of settings can be undone."""
WINDOWS = CUT, FIFTY, ALL = "Around the cut", "First 50", "All"
"""Which ranks the curve shows, but for any that are chosen by number."""
PANELS = ("Answer", "Prompt", "Chunk", "Judge", "Rounds", "Debug")


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a pool was gathered. Sliders do not change it; asking does."""

    pool_size: int
    wanted: int
    user: User
    source_pattern: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that was put: what was asked, of which version of which collection, how wide."""

    query: str
    collection: str
    version: str
    reach: Reach


def begin() -> None:
    """Fill a new session from the address bar; later runs leave it alone.

    Raises SettingsError if the environment holds a bad setting.
    """
    if "changes" in st.session_state:
        # Streamlit forgets what a box holds while another page is open.
        st.session_state.setdefault("question", st.session_state.typed)
        if _went_back():
            _reopen()
        st.session_state.typed = st.session_state.question
        return
    opened = link.read(st.query_params.to_dict())
    st.session_state.update(
        profile=opened.profile,
        changes=dict(opened.changes),
        question=opened.query,
        typed=opened.query,
        collection=opened.collection,
        pending=bool(opened.query),
        unscored=opened.unscored,
        fresh=False,
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


def show(where: str, value: Any) -> None:
    """Let a widget show `value`, without disturbing one that does. On another page a widget of the
    same key is a new one, which begins with its default.

    What an interrupted run wrote may never have been sent. The browser would begin with the default
    and report it as the reader's choice, so it is written again until a run comes to its end.
    """
    context = get_script_run_ctx()
    page = context.page_script_hash if context is not None else ""
    shown: dict[str, str] = st.session_state.setdefault("shown_on", {})
    unsent: set[str] = st.session_state.setdefault("unsent", set())
    if shown.get(where) != page or where in unsent or st.session_state.get(where) != value:
        st.session_state[where] = value
        shown[where] = page
        unsent.add(where)


def finished() -> None:
    """A run of the page has come to its end: all that it wrote was sent."""
    st.session_state.unsent = set()


def _went_back() -> bool:
    """Whether the browser moved in its history. Only it can tell: while a run is still under way,
    the address may lag behind in any case."""
    context = get_script_run_ctx()
    moved = context is not None and context.is_history_navigation
    return moved and st.query_params.to_dict() != st.session_state.shared


def _reopen() -> None:
    """Take up what the address says now, as it was shared then. Undo goes back to what was."""
    opened = link.read(st.query_params.to_dict())
    _move(opened.profile, dict(opened.changes))
    st.session_state.update(
        question=opened.query,
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
    """Once the question of a copied link is there: what it was copied with."""
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
    """The parameters of a link that shows this very page: question, settings and what is looked
    at. Empty before there is anything to ask. The open chunk is in it only if it is `nameable`:
    links are passed on."""
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
    """The settings in force."""
    return link.settings(st.session_state.profile, st.session_state.changes)


def user() -> User:
    """Whom the page is seen as, where the clearance layer is on."""
    return cast(User, st.session_state.user)


def become(user: User) -> None:
    """See the page as `user`."""
    st.session_state.user = user


def departments(text: str) -> tuple[str, ...]:
    """The departments in ``ops, referee``, each once."""
    return link.departments(text)


def change(values: Mapping[str, Any]) -> None:
    """Change settings by dotted path. What the settings refuse is not taken, and said."""
    name = st.session_state.profile
    try:
        changed = link.settings(name, {**st.session_state.changes, **values})
    except SettingsError as error:
        notice(str(error))
        return
    _move(name, changed.changed_from(link.base(name)))


def take(profile: str, changes: Mapping[str, Any]) -> None:
    """Put a profile and its changes in force, as a saved run has them; undo leads back."""
    _move(profile, dict(changes))
    st.session_state.settle = True


def reset() -> None:
    """Back to the profile as the environment wants it."""
    _move(st.session_state.profile, link.beginning(st.session_state.profile))


def choose_profile(name: str) -> None:
    """Another profile, as the environment wants it. What was tuned by hand stays tuned, but for
    what cannot go together with the new profile, which is said. Local scores are fetched, as for a
    question."""
    own = link.beginning(st.session_state.profile)
    tuned = {path: value for path, value in st.session_state.changes.items()
             if path not in own or own[path] != value}  # fmt: skip
    changes = link.beginning(name)
    try:
        changes = link.settings(name, {**changes, **tuned}).changed_from(link.base(name))
    except SettingsError as error:
        notice(f"What was tuned does not go together with {name}. {error}")
    _move(name, changes)
    st.session_state.settle = True


def load(content: bytes, name: str) -> None:
    """Take the settings of a file, all or none; of the present profile, where it names none.
    Raises SettingsError."""
    _move(*link.from_file(content, name, st.session_state.profile))
    st.session_state.settle = True


def undo() -> None:
    """The settings as they were before the last change."""
    _step(st.session_state.past, st.session_state.future)


def redo() -> None:
    """The change that was undone last, again."""
    _step(st.session_state.future, st.session_state.past)


def _move(profile: str, changes: dict[str, Any]) -> None:
    before = (st.session_state.profile, st.session_state.changes)
    if before == (profile, changes):
        return
    st.session_state.past = [*st.session_state.past[1 - MOST_STEPS :], before]
    st.session_state.future = []
    st.session_state.profile, st.session_state.changes = profile, changes


def _step(source: list[Any], target: list[Any]) -> None:
    if source:
        target.append((st.session_state.profile, st.session_state.changes))
        st.session_state.profile, st.session_state.changes = source.pop()


def own() -> Config:
    """What a reset goes back to."""
    return link.own(st.session_state.profile)


def changed() -> int:
    """How many settings a reset would bring back."""
    return len(settings().changed_from(own().settings))


def ask(query: str) -> None:
    """Put a question, from the box or from an example."""
    st.session_state.question = whole(query)
    st.session_state.pending = True


def renew() -> None:
    """Put the same question again: the collection changed, or the pool is to be wider."""
    if asked() is not None:
        st.session_state.pending = "again"


def open_chunk(chunk_id: str | None) -> None:
    """Show a chunk in the panel; the table then selects its row."""
    if chunk_id:
        st.session_state.chunk = chunk_id
        st.session_state.panel = "Chunk"


def drafts() -> dict[str, str]:
    """What was typed into the rule editor and not saved, by chunk, of the present collection."""
    every: dict[str, dict[str, str]] = st.session_state.drafts
    return every.setdefault(st.session_state.collection or "", {})


def notice(message: str) -> None:
    """Say something once, at the top of the page."""
    st.session_state.notices.append(message)


def ignore(message: str) -> None:
    """Say once, at the top of the page, that a value was ignored."""
    st.session_state.ignored.append(message)


def notices() -> tuple[list[str], list[str]]:
    """The values that a link or file gave in vain, and what else was to be said; forget both."""
    ignored, said = st.session_state.ignored, st.session_state.notices
    st.session_state.ignored, st.session_state.notices = [], []
    return ignored, said


def asked() -> Asked | None:
    return cast("Asked | None", st.session_state.asked)


def share(*, unscored: bool = False, more: Mapping[str, str] | None = None) -> None:
    """Work out the address that leads back to what is shown. `unscored`: rerank scores are wanted,
    and a button offers them. `more` is what a page adds of its own."""
    put = asked()
    params = link.write(
        query=put.query if put else "",
        collection=st.session_state.collection or "",
        profile=st.session_state.profile,
        changes=st.session_state.changes,
        unscored=unscored,
        user=user(),
        present=st.session_state.present,
    ) | dict(more or {})
    st.session_state.shared = st.session_state.unshown = params


def show_address() -> None:
    """Bring the address bar in line with what was shared. The browser is busy with it for as long
    as with a small chart: so what one waits for comes before."""
    params: dict[str, str] | None = st.session_state.pop("unshown", None)
    if params is not None and st.query_params.to_dict() != params:
        st.query_params.from_dict(params)
