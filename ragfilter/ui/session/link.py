"""The address bar: query, collection, profile and changed settings of a session, which it opens. A link that names a
profile describes the whole state, ignores the reader's environment, and so shows the same result everywhere. It has no
secret."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlencode

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from ragfilter.errors import SettingsError
from ragfilter.model import User
from ragfilter.rules.overview import WORDS
from ragfilter.settings import config, profiles
from ragfilter.settings.config import Given, of_profile
from ragfilter.text.normalise import mend_characters
from ragfilter.ui.look import elements
from ragfilter.ui.session import state
from ragfilter.ui.session.state import CUT, KEY, PANELS, WINDOWS, Session

QUERY, COLLECTION, PROFILE = "q", "collection", "profile"
CHUNK, PANEL, WINDOW, ROLE, FILTER, RULE = "chunk", "panel", "places", "view", "filter", "rule"
"""The open parts of the page. Inspect puts them only into a copied link, because updating the address bar takes
the browser as long as drawing a small chart. Rules puts its chunk into the address."""
PART, TEXT, TYPES, SOURCES, STATES = "part", "text", "types", "sources", "states"
"""The open part of the Rules page and its filter."""
SEPARATOR = ";"
"""Stands between the values of a filter."""
BUTTON = (
    '<button type="button" class="rf-copy" title="Copies a link with the question, settings, '
    "user, open chunk and panel, ranks shown and filter. A chunk that this user cannot see is left "
    'out."><i aria-hidden="true">link</i><span>Link</span></button>'
    '<p class="rf-unseen" role="status"></p>'
)
LINKED_PARTS = (CHUNK, PANEL, WINDOW, FILTER, RULE, ROLE, PART, TEXT, TYPES, SOURCES, STATES)
UNSCORED = "unscored"
"""In the link if rerank scores were wanted but not fetched, so that the link shows the same result."""
LEVEL, DEPARTMENTS = "level", "departments"
"""The user of the page. These are not settings, so they have their own parameters."""
PRESENT = "present"
"""In the link if the page is shown to an audience."""
OPEN = "open"
PARTS = {"tuning": "cut_controls", "evidence": "evidence", "recorded": "use_trace", "labelling": "labelling"}
"""The open parts of Inspect and Evaluate, ``open=tuning,evidence``, with the session's fields."""
SIDES = ("a", "b")
QUERY_SET = "set"
"""The Compare page: each side by its word, ``a=full``, with the settings in which it differs from a
profile, ``a.cutoff.max_results=5``; and the query set, if there is one."""
NAMES = (QUERY, COLLECTION, PROFILE, UNSCORED, LEVEL, DEPARTMENTS, PRESENT, OPEN, *LINKED_PARTS, *SIDES, QUERY_SET)
OPERATOR = "operator"


def read(params: Mapping[str, str]) -> Session:
    """The session that `params` describe. Invalid values are skipped and listed in `notices`. Raises SettingsError if
    the link names no profile and the environment is invalid."""
    params = {mend_characters(name): mend_characters(value) for name, value in params.items()}
    named = params.get(PROFILE, "")
    known = named in profiles.PROFILES
    name = named if known else config.load().profile
    notices = [f"There is no profile {named!r}; {name} is used instead."] if named and not known else []
    wanted = {k: v for k, v in params.items() if k not in NAMES and not _is_compared(k)}
    changes, errors = _take(name, {} if known else state.environment_changes(name), wanted)
    level = params.get(LEVEL, "0")
    if not (level.isascii() and level.isdigit() and len(level) < 10):
        errors.append(f"The level {level!r} is not a whole number; 0 is used instead.")
        level = "0"
    query, opened = params.get(QUERY, "").strip(), params.get(OPEN, "").split(",")
    look = {name: params[name].strip() for name in LINKED_PARTS if params.get(name, "").strip()}
    parts: dict[str, Any] = {field: part in opened for part, field in PARTS.items()}
    return Session(
        name,
        state.settings_of(name, changes).changed_from(of_profile(name)),
        query=query,
        pending="question" if query else "",
        collection=params.get(COLLECTION, "").strip(),
        unscored=UNSCORED in params,
        user=User(int(level), parse_departments(params.get(DEPARTMENTS, ""))),
        operator=look.get(ROLE) == OPERATOR,
        present=PRESENT in params,
        opened={PART: "", **look},
        compared={k: v.strip() for k, v in params.items() if _is_compared(k) and v.strip()},
        notices=[*notices, *errors],
        **parts,
    )


def _is_compared(name: str) -> bool:
    return name in (*SIDES, QUERY_SET) or name.startswith(tuple(f"{side}." for side in SIDES))


def parse_departments(text: str) -> tuple[str, ...]:
    """The departments in ``ops, referee``, each once."""
    return tuple(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))


def _take(profile: str, changes: dict[str, Any], wanted: dict[str, str]) -> tuple[dict[str, Any], list[str]]:
    """`changes` with the wanted values that are valid, and errors for the others."""
    left = wanted
    while True:
        errors: dict[str, str] = {}
        for path, value in left.items():
            try:
                of_profile(profile, Given("the link", {**changes, path: value}))
            except SettingsError as error:
                errors[path] = str(error)
            else:
                changes = {**changes, path: value}
        # A later value may permit an earlier one, such as a minimum above the profile's maximum.
        if len(errors) == len(left):
            return changes, list(errors.values())
        left = {path: left[path] for path in errors}


def write(session: Session, *, unscored: bool = False) -> dict[str, str]:
    """The link parameters of this session. `unscored`: a button offers rerank scores."""
    user = session.user
    params = {
        QUERY: session.asked.query if session.asked else "",
        COLLECTION: session.collection,
        PROFILE: session.profile,
        UNSCORED: "true" if unscored else "",
        PRESENT: "true" if session.present else "",
        OPEN: ",".join(name for name, field in PARTS.items() if getattr(session, field)),
        LEVEL: str(user.level) if user.level else "",
        DEPARTMENTS: ",".join(user.departments),
    }
    changes = state.without_clearance(session.changes)
    params = {name: value for name, value in params.items() if value}
    return params | {path: _text(value) for path, value in sorted(changes.items())}


def write_side(letter: str, word: str, changes: Mapping[str, Any]) -> dict[str, str]:
    """The parameters of one side of a comparison."""
    return {letter: word} | {f"{letter}.{path}": _text(v) for path, v in sorted(changes.items())}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def open_session() -> None:
    """Fill a new session from the address bar, or follow it if the user went back or forward. Undo then restores the
    earlier state. Raises SettingsError if the environment holds an invalid setting."""
    if KEY not in st.session_state:
        session = st.session_state[KEY] = read(st.query_params.to_dict())
        session.changes = state.without_clearance(session.changes)
        st.session_state.filter = session.opened.get(FILTER, "")
        rule = session.opened.get(RULE)
        st.session_state["filter-rule"] = rule if rule in WORDS else None
    elif _went_back():
        before, session = read(st.query_params.to_dict()), state.session()
        state.use_settings(before.profile, before.changes)
        for name in ("query", "pending", "unscored", "user", "present", "opened", *PARTS.values()):
            setattr(session, name, getattr(before, name))
        session.collection = before.collection or session.collection
        session.compared = before.compared or session.compared
        session.notices += before.notices
        if not session.query:
            session.asked = None


def _went_back() -> bool:
    """Whether the user went back or forward in the browser. Only the browser knows, because the
    address also lags behind during a run."""
    context = get_script_run_ctx()
    moved = context is not None and context.is_history_navigation
    return moved and st.query_params.to_dict() != state.session().shared


def open_linked_parts() -> None:
    """Open the parts that the link names, once its question is answered."""
    session = state.session()
    look, session.opened = session.opened, {}
    session.chunk = look.get(CHUNK, session.chunk)
    if look.get(PANEL) in PANELS:
        session.panel = look[PANEL]
    session.evidence |= CHUNK in look or PANEL in look
    if look.get(WINDOW) in WINDOWS:
        session.window = look[WINDOW]


def parts_to_share(nameable: Collection[str]) -> dict[str, str]:
    """The open parts that the address bar lacks. People share links, so the open chunk has to be `nameable`."""
    session = state.session()
    look = {
        CHUNK: (session.chunk or "") if session.chunk in nameable else "",
        PANEL: "" if session.panel == PANELS[0] else session.panel,
        WINDOW: "" if session.window == CUT else session.window,
        FILTER: st.session_state.get("filter") or "",
        RULE: st.session_state.get("filter-rule") or "",
        ROLE: OPERATOR if session.operator else "",
    }
    return {name: value for name, value in look.items() if value}


def update(*, unscored: bool = False, more: Mapping[str, str] | None = None) -> None:
    """Update the link to the shown state. `more` has parameters that a page adds."""
    session = state.session()
    session.shared = session.unshown = write(session, unscored=unscored) | dict(more or {})


def show_address() -> None:
    """Update the address bar. Call this after what the user waits for: it takes as long as drawing a small chart."""
    session = state.session()
    params, session.unshown = session.unshown, None
    if params is not None and st.query_params.to_dict() != params:
        st.query_params.from_dict(params)


def draw_button(slot: DeltaGenerator, nameable: Collection[str]) -> None:
    """Draw the button in `slot` that copies the link, if a question was asked. `nameable` is as in `parts_to_share`."""
    if shared := state.session().shared:
        with slot:
            data = urlencode(shared | parts_to_share(nameable))
            elements.mount("session/copy_link.js", BUTTON, key="copy-link", data=data, width="content")
