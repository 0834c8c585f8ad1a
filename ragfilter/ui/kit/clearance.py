"""The choice of whose view the page shows, what it changes, and which users may see a chunk.

Source: Adaptive Retrieval System, "Security Filtering"; docs/design.md#clearance. There is no
login: this only simulates what a user would see, and the page says so.
"""

from __future__ import annotations

import streamlit as st

from ragfilter.model import User
from ragfilter.ui.kit import people
from ragfilter.ui.look import html
from ragfilter.ui.session import link, state, widget
from ragfilter.ui.session.resources import open_resources

USER, OPERATOR = "User", "Operator"
LEVEL, DEPARTMENTS = "user-level", "user-departments"
MOST_LEVEL = 5
AS_USER = "Hidden chunks are left out as if they did not exist."
AS_OPERATOR = "You see everything. Prompts, answers and exports keep to the user's view."
SENT_AS_USER = ("Answer", "Prompt", "Judge", "Debug")
"""Panels whose content is always made as the user, even if an operator looks."""


def draw_choice() -> None:
    """Draw the choice between user and operator, with what it currently means."""
    operator = bool(state.session().operator)
    chosen = OPERATOR if operator else USER
    st.segmented_control(
        "View as",
        (USER, OPERATOR),
        default=chosen,
        required=True,
        help="User: this page shows what someone of the level and department below would see. "
        "Operator: it also names what is hidden from them, with the reason. Whichever you choose, "
        "no hidden chunk is sent to a model or leaves in an export. There is no login here: in "
        "production your service passes the user's level to the library.",
        **widget.of("view-as", chosen, _choose),
    )
    html.draw(f'<p class="rf-line rf-two">{AS_OPERATOR if operator else AS_USER}</p>')
    _draw_user()


def _draw_user() -> None:
    """Draw the user's level and departments. They are never part of a profile or settings file."""
    user = state.user()
    found = people.groups(open_resources())
    people.choose("seen-as", people.offered(found))
    st.slider(
        "User's clearance",
        0,
        max(MOST_LEVEL, user.level),
        user.level,
        help="Chunks of a higher level are hidden. Unit: level.",
        **widget.of(LEVEL, user.level, _set_level),
    )
    # In the order in which they were chosen; those of a user are sorted.
    names: list[str] = widget.value_of(DEPARTMENTS, [])
    names = names if sorted(names) == list(user.departments) else list(user.departments)
    st.multiselect(
        "User's departments",
        list(dict.fromkeys((*found.departments, *names))),
        names,
        placeholder="none",
        accept_new_options=True,
        help="Chunks of other departments are hidden. Those of this collection are offered; type "
        "any other.",
        **widget.of(DEPARTMENTS, names, _set_departments),
    )
    if not state.session().operator and (said := people.note(found, user)):
        html.draw(f'<p class="rf-line">{html.text(said)}</p>')


def _set_level(level: int) -> None:
    state.session().user = User(level, state.user().departments)


def _set_departments(names: list[str]) -> None:
    departments = link.departments(",".join(names))
    state.session().user = User(state.user().level, departments)


def note(panel: str, user: User) -> None:
    """Tell an operator that this panel shows the user's view."""
    if not user.unrestricted and state.session().operator and panel in SENT_AS_USER:
        html.draw(f'<p class="rf-aside">Made as the user: {html.text(called(user))}.</p>')


def called(user: User) -> str:
    """``level 1, department referee``."""
    names = " and ".join(user.departments)
    department = f"department {names}" if names else "no department"
    return f"level {user.level}, {department}"


def _choose(view: str) -> None:
    state.session().operator = view == OPERATOR
