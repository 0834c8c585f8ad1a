"""Whose view the page shows: choosing a user, applying the choice, and the users on offer.

Source: Adaptive Retrieval System, "Security Filtering"; docs/design.md#clearance. There is no
login: this previews what a user would see. It offers the departments of the whole
collection for every question, so they do not reveal whether a hidden chunk would match.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.model import User
from ragfilter.ui.look.prose import literal
from ragfilter.ui.resources import Resources, ShelfSpec, open_resources
from ragfilter.ui.session import link, state, widget

USER, OPERATOR = "User", "Operator"
LEVEL, DEPARTMENTS = "user-level", "user-departments"
MAX_LEVEL = 5
NAMES: ShelfSpec[tuple[str, ...]] = ShelfSpec(16)
"""The departments of each collection."""


def draw_chip() -> None:
    """Draw whose view the page shows. A click opens the choice of another user.

    No profile or settings file names a user or operator.
    """
    session = state.session()
    on = state.CLEARANCE not in session.changes
    with st.popover(f"Viewing as {literal(seen_as())}", key="viewing", type="tertiary"):
        if on:
            _draw_choice()
        st.toggle(
            "Clearance",
            on,
            help="Hides what this user must not see. No profile, file or link turns it off.",
            **widget.of("set-clearance-enabled", on, widget.apply_choice, state.CLEARANCE),
        )


def _draw_choice() -> None:
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
    choose_user("seen-as")
    st.slider(
        "Level",
        0,
        max(MAX_LEVEL, user.level),
        user.level,
        help="Chunks of a higher level are hidden.",
        **widget.of(LEVEL, user.level, lambda level: _become(level=level)),
    )
    # Keep the order in which they were chosen; the user's own are sorted.
    names: list[str] = widget.value_of(DEPARTMENTS, [])
    names = names if sorted(names) == list(user.departments) else list(user.departments)
    st.multiselect(
        "Departments",
        list(dict.fromkeys((*departments(open_resources()), *names))),
        names,
        placeholder="none",
        accept_new_options=True,
        help="Chunks of other departments are hidden. Choose from this collection's, or type another.",
        **widget.of(DEPARTMENTS, names, _belong),
    )


def seen_as() -> str:
    """The viewer in a few words: ``Guest``, ``level 2 · treasury``, ``operator``."""
    user = state.user()
    if user.unrestricted:
        return "everyone"
    if state.session().operator:
        return OPERATOR.lower()
    user_name = next((name for name, each in offered_users().items() if each == user), None)
    return user_name or " · ".join((f"level {user.level}", *user.departments))


def _belong(names: list[str]) -> None:
    _become(departments=link.departments(",".join(names)))


def _become(**changed: Any) -> None:
    state.session().user = replace(state.session().user, **changed)


def departments(resources: Resources) -> tuple[str, ...]:
    """The departments of the chosen collection; none if it is too large to read."""
    name, known = state.session().collection, state.session().departments
    try:
        if name not in known or resources.bench.stores.of(name).outdated(known[name][0]):
            store = resources.bench.collection(name).snapshot()
            indexed = store.content or store.version

            def read() -> tuple[str, ...]:
                every = {chunk.department for chunk in (store.catalogue() or {}).values()}
                return tuple(sorted(filter(None, every)))

            known[name] = store.version, resources.shelf(NAMES).of((name, indexed), read)
    except RagfilterError:
        return ()
    return known[name][1]


def offered_users() -> Mapping[str, User]:
    """The users to choose from: the demo's own, or a guest."""
    if state.session().collection != "demo":
        return {"Guest": User()}
    from ragfilter.ingest import demo

    return demo.USERS


def choose_user(name: str) -> None:
    """Draw the list of users as the widget called `name`."""
    users = offered_users()
    now = next((each for each, user in users.items() if user == state.session().user), None)
    widget.select(
        "Seen as",
        {each: each for each in users},
        now,
        name,
        lambda name: state.put(users.get(name, state.session().user), "user"),
        placeholder="someone else",
        filter_mode=None,
    )
