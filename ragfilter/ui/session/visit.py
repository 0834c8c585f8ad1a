"""What a run of the page draws: the visit, and the view of its question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.model import Result, User
from ragfilter.report import Row, Summary, rows, summary
from ragfilter.settings.schema import Settings
from ragfilter.ui.main import problems
from ragfilter.ui.session import collections, state
from ragfilter.ui.session.resources import Resources, open_resources
from ragfilter.ui.session.state import Asked

if TYPE_CHECKING:
    from ragfilter.stores.chroma.store import CollectionInfo


@dataclass(frozen=True, slots=True)
class Visit:
    """Where the visitor is: the collections, the settings in force, and what the server holds."""

    settings: Settings
    collections: Mapping[str, CollectionInfo]
    resources: Resources

    @property
    def collection(self) -> CollectionInfo | None:
        """The chosen collection, None if there is none."""
        return self.collections.get(st.session_state.collection)

    @property
    def incomplete(self) -> str:
        """Why the chosen collection may lack chunks, as it is now; empty if it lacks none.
        Raises StoreError."""
        return self.resources.bench.collection(st.session_state.collection).incomplete

    @property
    def ready(self) -> bool:
        """Whether a question can be put."""
        return self.collection is not None and self.collection.count > 0


@dataclass(frozen=True)
class View:
    """One question and its result. Every panel takes this one value."""

    asked: Asked
    result: Result
    """Everything that was decided, what its user may not see included."""
    operator: bool
    resources: Resources

    @property
    def user(self) -> User:
        """Whom the result is for."""
        return self.result.user

    @cached_property
    def mine(self) -> Result:
        """The result as its user sees it."""
        return state.replays().as_user(self.result)

    @property
    def shown(self) -> Result:
        """The result as the page shows it: everything to an operator."""
        return self.result if self.operator else self.mine

    @cached_property
    def summary(self) -> Summary:
        """The figures of what is shown."""
        return summary(self.shown, as_operator=self.operator)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The hits that are shown."""
        return rows(self.shown, as_operator=self.operator)

    @cached_property
    def exported(self) -> tuple[Row, ...]:
        """The hits that the user may take along."""
        return rows(self.mine) if self.operator else self.rows


def begin() -> Visit:
    """Open the workspace. If that fails, the page says why and ends here."""
    try:
        with st.spinner("Opening the workspace …"):
            # First: the link may name a judge prompt of the workspace.
            resources = open_resources()
            state.begin()
            known = collections.known(resources)
        return Visit(state.settings(), known, resources)
    except RagfilterError as error:
        problems.show(error)
        st.stop()


def view(
    visit: Visit, more: Mapping[str, str] | None = None
) -> tuple[View | None, RagfilterError | None]:
    """The view of the question in force; where there is none, the error that prevents it, if any.

    The address that is shared leads back to it, with what the page adds, `more`.
    """
    if not visit.ready:
        return None, None
    if not st.session_state.pending and state.asked() is None:
        state.share(more=more)
        return None, None
    # Loaded with the first question.
    from ragfilter.ui.session import questions

    try:
        pool = questions.pool(visit.settings, visit.resources)
        asked = state.asked()
        if pool is None or asked is None:
            state.share(more=more)
            return None, None
        result = state.replays().of(pool, visit.settings, state.user())
    except RagfilterError as error:
        return None, error
    state.share(unscored=any(need.kind == "rerank" for need in result.needs), more=more)
    return View(asked, result, bool(st.session_state.operator), visit.resources), None
