"""The query sets of a collection: the choice of one, and the labelled questions that a user can see."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, replace

import streamlit as st

from ragfilter.errors import InputError
from ragfilter.evaluate import query_sets
from ragfilter.evaluate.labelled_queries import Labels, measurable
from ragfilter.evaluate.query_sets import WITH_LLM
from ragfilter.model import Chunk, User
from ragfilter.stores.label_book import LABELLED, Label, LabelBook, visible_labels
from ragfilter.stores.run_store import Run
from ragfilter.text import numbers
from ragfilter.ui.look import elements
from ragfilter.ui.resources import Resources
from ragfilter.ui.session import state, widget
from ragfilter.ui.session.page_run import PageRun

LLM = "with-llm"
OTHERS = ""
"""The entry for runs of sets that are not stored: of files, and of removed sets."""


@dataclass(frozen=True, slots=True)
class ChosenSet:
    """A query set of the chosen collection, or OTHERS. `measurable` has its labelled questions, labelled only
    for chunks that the user can see; None if there are none, and `why` gives the reason."""

    page_run: PageRun
    collection: str
    sets: Mapping[str, int]
    name: str
    measurable: Labels | None
    why: InputError | None
    runs: Mapping[int, Run]

    @property
    def resources(self) -> Resources:
        return self.page_run.resources

    @property
    def book(self) -> LabelBook:
        """The workspace's labels."""
        return self.resources.bench.labels

    @property
    def title(self) -> str:
        """The title of the set in its runs."""
        return query_sets.title(self.name, llm=counts_llm_labels())

    @property
    def user(self) -> User:
        """The user the questions are measured for."""
        return state.user()

    @property
    def chunks(self) -> Mapping[str, Chunk]:
        """All chunks of the collection. Raises StoreError."""
        return self.resources.bench.collection(self.collection).entries()

    @property
    def labels(self) -> tuple[Label, ...]:
        """Everybody's labels of chunks that the user can see. Raises StoreError."""
        return visible_labels(self.book.standing(self.collection), self.chunks, self.user)

    def gone(self) -> tuple[list[str], int]:
        """The set's labelled chunks that no longer exist, and how many labelled questions are
        therefore missing from `measurable`. Empty unless the user can see everything, because others
        must not learn which chunks are hidden. Raises InputError, StoreError."""
        if not self.user.unrestricted or self.measurable is None:
            return [], 0
        stored, known = (query_sets.load(self.book, self.collection, self.name, llm=counts_llm_labels()), self.chunks)
        ids = sorted({i for grades in stored.qrels.values() for i in grades if i not in known})
        return ids, len(stored.qrels) - len(self.measurable.qrels)


def counts_llm_labels() -> bool:
    """Whether an LLM's labels count."""
    return bool(st.session_state.get(LLM))


def chosen_set(page_run: PageRun, name: str = "", runs: Collection[Run] = ()) -> ChosenSet:
    """The query set `name`, or the current one, with its runs among `runs`. Raises StoreError."""
    collection, book = state.session().collection, page_run.resources.bench.labels
    sets = sets_of(page_run)
    if others := [run for run in runs if run.plan.query_set.removesuffix(WITH_LLM) not in sets]:
        sets[OTHERS] = 0
    current = state.session().query_set
    first = next((each for each, count in sets.items() if count), next(iter(sets)))
    name = name or (current if current in sets else first)
    title = query_sets.title(name, llm=counts_llm_labels())
    own = others if name == OTHERS else [run for run in runs if run.plan.query_set == title]
    chosen = ChosenSet(page_run, collection, sets, name, None, None, {run.id: run for run in own})
    try:
        labels = query_sets.load(book, collection, name, llm=counts_llm_labels())
        return replace(chosen, measurable=measurable(labels, chosen.chunks, chosen.user))
    except InputError as error:
        return replace(chosen, why=error)


def sets_of(page_run: PageRun) -> dict[str, int]:
    """How many questions of every set the user can see. Raises StoreError."""
    bench, collection = page_run.resources.bench, state.session().collection
    user = state.user()
    catalogue = {} if user.unrestricted else bench.collection(collection).entries()
    return query_sets.sets(bench.labels, collection, catalogue, user)


def choose(chosen: ChosenSet) -> None:
    """Draw the list of query sets."""
    # Only labelled questions count.
    measured = {} if chosen.measurable is None else {chosen.name: len(chosen.measurable.qrels)}
    sets, llm = {**chosen.sets, **measured}, counts_llm_labels()
    named = {name: f"{query_sets.title(name, llm=llm)} · {numbers.count(n)}" for name, n in sets.items()}
    named |= {OTHERS: "other runs"} if OTHERS in sets else {}
    about = "labelled: every question with labels. asked: questions asked on Inspect. Add other sets under More."
    look = {"width": 200, "help": about}
    widget.draw_list("Questions", named, chosen.name, "query-set-box", state.set_field, "query_set", **look)


def explain(chosen: ChosenSet) -> None:
    """Draw why nothing can be measured, what the set lacks, and how well an LLM's labels match. Raises StoreError."""
    if chosen.measurable is not None and chosen.name == chosen.collection:
        every = labelled_questions(chosen.resources, chosen.collection)
        if own := every - {*map(str.strip, chosen.measurable.queries.values())}:
            elements.aside(f"The set {LABELLED} has {numbers.counted(len(own), 'question')} that this one lacks.")
    if chosen.name == OTHERS:
        elements.aside("These runs measured files, or query sets that are not stored here.")
    elif chosen.why is not None:
        elements.empty(chosen.why.message, chosen.why.remedy)
    elif counts_llm_labels():
        elements.aside(f"LLM labels count here. {query_sets.agreed(chosen.labels).sentence}")


def labelled_questions(resources: Resources, collection: str) -> Set[str]:
    """The labelled questions that the user can see, in order. Cheap. Raises StoreError."""
    labels = resources.labels_for(collection, state.user())
    return dict.fromkeys(map(str.strip, labels.labelled.values() if labels else ())).keys()
