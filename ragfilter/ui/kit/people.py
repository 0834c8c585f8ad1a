"""The users that a collection offers to choose from, and what each of them may not see.

They depend on the levels and departments of the whole collection, and never on a question. So the
choice does not reveal whether a hidden chunk would match.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.model import Chunk, User
from ragfilter.ui.kit.sidebar.examples import DEMO
from ragfilter.ui.session import state, widget
from ragfilter.ui.session.resources import Resources

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

    def lacking(self, user: User) -> str:
        """What the user would need to see everything; empty if they already do."""
        missing = [name for name in self.departments if name not in user.departments]
        parts = [f"level {self.level}"] if self.level > user.level else []
        if missing:
            word = "department" if len(missing) == 1 else "departments"
            parts.append(f"membership of the {word} {' and '.join(missing)}")
        return " and ".join(parts)


def groups(resources: Resources) -> Groups:
    """The levels and departments of the chosen collection, read again after a change made here.
    None of a collection that is too large to read as a whole."""
    name = state.session().collection
    known: dict[str, tuple[str, Groups]] = state.session().groups
    try:
        if name not in known or resources.bench.stores.of(name).outdated(known[name][0]):
            store = resources.bench.collection(name)
            known[name] = (store.version, Groups.of((store.catalogue() or {}).values()))
    except RagfilterError:
        return Groups(0, {})
    return known[name][1]


def offered(found: Groups) -> Mapping[str, User]:
    """The users to choose from: the demo's own, or those derived from the collection."""
    if state.session().collection != DEMO:
        return found.users
    from ragfilter.ingest import demo

    return demo.USERS


def choose(name: str, users: Mapping[str, User]) -> None:
    """Choose one of the users, in the widget called `name`."""
    now = next((each for each, user in users.items() if user == state.user()), None)
    st.selectbox(
        "Seen as",
        list(users),
        None if now is None else list(users).index(now),
        placeholder="someone else",
        filter_mode=None,
        help="The user whose view is shown. The name sets level and departments.",
        **widget.of(name, now, _become, users),
    )


def _become(name: str | None, users: Mapping[str, User]) -> None:
    if name is not None:
        state.session().user = users[name]


def note(found: Groups, user: User) -> str:
    """One sentence on what the collection holds that the user may not see; empty if nothing."""
    lacking = found.lacking(user)
    return f"Seeing everything here requires {lacking}." if lacking else ""
