"""Whose view the page shows: the choice of a user, what it changes, and the users to choose from.

Source: Adaptive Retrieval System, "Security Filtering"; docs/design.md#clearance. There is no
login: this previews what a user would see. The users depend on the levels and departments of the
whole collection, never on a question, so they do not reveal whether a hidden chunk would match.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.model import Chunk, User
from ragfilter.ui.look.prose import literal
from ragfilter.ui.session import link, state, widget
from ragfilter.ui.session.resources import Resources, open_resources

USER, OPERATOR = "User", "Operator"
LEVEL, DEPARTMENTS = "user-level", "user-departments"
MAX_LEVEL = 5


def draw_chip() -> None:
    """Draw whose view the page shows; a click opens the choice of another one.

    User and operator are never part of a profile or settings file.
    """
    session = state.session()
    groups_here = groups(open_resources())
    users = offered_users(groups_here)
    on = state.CLEARANCE not in session.changes
    with st.popover(f"Viewing as {literal(seen_as(users))}", key="viewing", type="tertiary"):
        if on:
            _draw_choice(groups_here, users)
        st.toggle(
            "Clearance",
            on,
            help="Hides what this user may not see. No profile, file or link switches it off.",
            **widget.of(
                "set-clearance-enabled", on, lambda on: state.change({state.CLEARANCE: on})
            ),
        )


def _draw_choice(groups_here: Groups, users: Mapping[str, User]) -> None:
    session, user = state.session(), state.session().user
    chosen = OPERATOR if session.operator else USER
    st.segmented_control(
        "View as",
        (USER, OPERATOR),
        default=chosen,
        required=True,
        label_visibility="collapsed",
        **widget.of("view-as", chosen, lambda view: state.put(view == OPERATOR, "operator")),
    )
    choose_user("seen-as", users)
    st.slider(
        "Level",
        0,
        max(MAX_LEVEL, user.level),
        user.level,
        help="Chunks of a higher level are hidden.",
        **widget.of(LEVEL, user.level, lambda level: _become(level=level)),
    )
    # In the order in which they were chosen; a user's are sorted.
    names: list[str] = widget.value_of(DEPARTMENTS, [])
    names = names if sorted(names) == list(user.departments) else list(user.departments)
    st.multiselect(
        "Departments",
        list(dict.fromkeys((*groups_here.departments, *names))),
        names,
        placeholder="none",
        accept_new_options=True,
        help="Chunks of other departments are hidden. Those of this collection are offered; type "
        "any other.",
        **widget.of(
            DEPARTMENTS, names, lambda names: _become(departments=link.departments(",".join(names)))
        ),
    )


def seen_as(users: Mapping[str, User]) -> str:
    """Who looks, in a few words: ``Guest``, ``level 2 · treasury``, ``operator``."""
    user = state.user()
    if user.unrestricted:
        return "everyone"
    if state.session().operator:
        return OPERATOR.lower()
    named = next((name for name, each in users.items() if each == user), None)
    return named or " · ".join((f"level {user.level}", *user.departments))


def _become(**changed: Any) -> None:
    state.session().user = replace(state.session().user, **changed)


GUEST, ALL = "Guest", "All departments"


@dataclass(frozen=True, slots=True)
class Groups:
    """The highest level that occurs above 0, and the highest level in each department."""

    level: int
    departments: Mapping[str, int]

    @staticmethod
    def of(chunks: Iterable[Chunk]) -> Groups:
        level, departments = 0, dict[str, int]()
        for chunk in chunks:
            if chunk.clearance is None:
                continue
            level = max(level, chunk.clearance)
            if chunk.department:
                known = departments.get(chunk.department, 0)
                departments[chunk.department] = max(known, chunk.clearance)
        return Groups(level, dict(sorted(departments.items())))

    @property
    def users(self) -> dict[str, User]:
        """A guest, one user of each department, and one who sees everything."""
        names = tuple(self.departments)
        each = {name: User(level, (name,)) for name, level in self.departments.items()}
        everything = {ALL: User(self.level, names)} if self.level or names else {}
        return {GUEST: User(), **each, **everything}


def groups(resources: Resources) -> Groups:
    """The levels and departments of the chosen collection; none if it is too large to read."""
    name = state.session().collection
    known: dict[str, tuple[str, Groups]] = state.session().groups
    try:
        if name not in known or resources.bench.stores.of(name).outdated(known[name][0]):
            store = resources.bench.collection(name)
            known[name] = (store.version, Groups.of((store.catalogue() or {}).values()))
    except RagfilterError:
        return Groups(0, {})
    return known[name][1]


def offered_users(groups_here: Groups) -> Mapping[str, User]:
    """The users to choose from: the demo's own, or those derived from the collection."""
    if state.session().collection != "demo":
        return groups_here.users
    from ragfilter.ingest import demo

    return demo.USERS


def choose_user(name: str, users: Mapping[str, User]) -> None:
    """Choose one of the users, in the widget called `name`."""
    now = next((each for each, user in users.items() if user == state.session().user), None)
    widget.select(
        "Seen as", {each: each for each in users}, now, name,
        lambda name: state.put(users.get(name, state.session().user), "user"),
        placeholder="someone else", filter_mode=None,
    )  # fmt: skip
