"""The values behind one run of a page: its settings, the collections, and the view of the current question."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import streamlit as st

from ragfilter.errors import RagfilterError, StoreError
from ragfilter.indexing.queue import queue_of
from ragfilter.model import UNRESTRICTED, PoolResult, User
from ragfilter.results.rows import ChunkRow, rows
from ragfilter.results.summary import Summary, summary
from ragfilter.settings.schema import Settings
from ragfilter.stores.label_book import Label, qrels_of
from ragfilter.ui.resources import Resources, open_resources
from ragfilter.ui.session import link, state
from ragfilter.ui.session.state import AskedQuestion

if TYPE_CHECKING:
    from ragfilter.stores.base import CollectionInfo
    from ragfilter.stores.run_store import Run


def refresh_collections(resources: Resources, *, relist: bool = False) -> dict[str, CollectionInfo]:
    """The collections by name, as of the start of the session or the last change in the queue; with `relist`, as the
    store has them now. While the store is unreachable, they are the last known ones. Also opens an awaited collection,
    or another one if the chosen one is gone."""
    session = state.session()
    held = session.collections
    moved: tuple[tuple[int, str], ...] = ()
    # Code that needs the database reports its failure.
    with suppress(StoreError):
        moved = queue_of(resources.bench).moved()
    try:
        if held is None or relist or held[0] != moved:
            held = moved, {info.name: info for info in resources.bench.collections()}
    except StoreError:
        if held is None:
            raise
    session.collections = held
    infos = held[1]
    if relist and (new := infos.get(session.awaited_collection)) is not None and new.complete:
        state.open_collection(new.name)
        session.awaited_collection = ""
    if session.collection not in infos:
        if session.collection:
            state.notice(f"There is no collection {session.collection!r}.")
        session.collection = "demo" if "demo" in infos else next(iter(infos), "")
    return infos


@dataclass(frozen=True, slots=True)
class PageRun:
    """One run of a page: the current settings, the collections, and the server's resources."""

    settings: Settings
    collections: Mapping[str, CollectionInfo]
    resources: Resources

    @property
    def collection(self) -> CollectionInfo | None:
        """The chosen collection, None if there is none."""
        return self.collections.get(state.session().collection)

    @property
    def incomplete(self) -> str:
        """Why the chosen collection may lack chunks; empty if complete. Raises StoreError."""
        return self.resources.bench.collection(state.session().collection).incomplete

    @property
    def saved_runs(self) -> dict[int, Run]:
        """The saved runs of the chosen collection, newest first. A user from whom chunks may be hidden
        gets only runs made as the same user, because other figures may count hidden chunks. Raises StoreError."""
        user = state.user()
        runs = self.resources.bench.runs.saved(state.session().collection)
        return {run.id: run for run in runs if user.unrestricted or run.plan.viewer == user}

    @property
    def ready(self) -> bool:
        """Whether a question can be asked."""
        return self.collection is not None and self.collection.count > 0


@dataclass(frozen=True)
class View:
    """One question and its result. Every panel takes this one value: `shown` for lists and figures, `as_user` for
    prompts, answers and before and after, `result` for what it needs."""

    asked: AskedQuestion
    result: PoolResult
    """All decisions, including decisions on chunks that its user cannot see."""
    operator: bool
    resources: Resources
    collection: CollectionInfo | None
    """What the store says of the question's collection; None if it is gone."""

    @property
    def user(self) -> User:
        """The user the result was computed for."""
        return self.result.user

    @cached_property
    def as_user(self) -> PoolResult:
        """The result as its user sees it."""
        return state.session().replays.as_user(self.result)

    @property
    def shown(self) -> PoolResult:
        """The result as the page shows it; an operator sees everything."""
        return self.result if self.operator else self.as_user

    def under(self, settings: Settings) -> PoolResult:
        """The shown result under other settings."""
        replays = state.session().replays
        result = replays.of(self.result.pool, settings, self.user)
        return result if self.operator else replays.as_user(result)

    @cached_property
    def summary(self) -> Summary:
        """The figures of the shown result."""
        return summary(self.shown, as_operator=self.operator)

    @cached_property
    def rows(self) -> tuple[ChunkRow, ...]:
        """The hits on the page."""
        return rows(self.shown, as_operator=self.operator)

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """Everybody's labels on the question's chunks. Raises StoreError."""
        return self.resources.bench.labels.standing(self.asked.collection, self.asked.query)

    @cached_property
    def grades(self) -> dict[str, int]:
        """The grades of the question's shown chunks, by id: those that measuring counts, and all by people."""
        counted = self.grades_for(UNRESTRICTED if self.operator else self.user)
        with suppress(RagfilterError):
            return counted | qrels_of(self.labels).get(self.asked.query.strip(), {})
        return counted

    def grades_for(self, user: User) -> dict[str, int]:
        """The grades that measuring counts, on chunks that `user` can see. The chunk panel reports a failure."""
        with suppress(RagfilterError):
            labels = self.resources.labels_for(self.asked.collection, user)
            return labels.grades_of(self.asked.query) if labels else {}
        return {}

    @cached_property
    def exported(self) -> tuple[ChunkRow, ...]:
        """The hits for export: only hits that the user can see."""
        return rows(self.as_user) if self.operator else self.rows


def begin_page(*, relist: bool = False) -> PageRun:
    """Open the workspace, and the session from the link; with `relist`, list collections again. Raises
    RagfilterError."""
    with st.spinner("Opening the workspace …"):
        # Opened first, because the link may name a judge prompt of the workspace.
        resources = open_resources()
        link.open_session()
        return PageRun(state.settings(), refresh_collections(resources, relist=relist), resources)


def current_view(page_run: PageRun, more: Mapping[str, str] | None = None) -> tuple[View | None, RagfilterError | None]:
    """The view of the current question. Without one, returns None and the error that prevents it, if any. Also updates
    the link to this view; `more` has parameters that the page adds."""
    session, view = state.session(), None
    if not page_run.ready:
        return None, None
    if session.pending or session.asked is not None:
        # Imported with the first question.
        from ragfilter.ui.session import asking

        try:
            asking.follow_others(page_run.resources, page_run.collections)
            pool = asking.pool_for_this_run(page_run.settings, page_run.resources)
            if pool is not None and session.asked is not None:
                result = session.replays.of(pool, page_run.settings, state.user())
                info = page_run.collections.get(session.asked.collection)
                view = View(session.asked, result, session.operator, page_run.resources, info)
        except RagfilterError as error:
            return None, error
    unscored = view is not None and any(need.kind == "rerank" for need in view.result.needs)
    link.update(unscored=unscored, more=more)
    return view, None
