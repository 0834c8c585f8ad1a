"""The labels of a collection: who made them, disagreements, and an LLM's proposals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pandas as pd
import streamlit as st

from ragfilter.evaluate import labelling, query_sets
from ragfilter.evaluate.labelling import Bill, Request
from ragfilter.model import Chunk
from ragfilter.stores.labels import UNCOUNTED, Label, conflicts
from ragfilter.stores.relabel import choices, settle
from ragfilter.text import numbers
from ragfilter.text.numbers import counted
from ragfilter.ui.kit import grid, progress
from ragfilter.ui.kit.runs import measuring
from ragfilter.ui.kit.runs.measuring import ChosenSet
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import message
from ragfilter.ui.session import state
from ragfilter.ui.session.jobs import Job

DEPTH = 10
STOP = "Stops after the current call. Labels so far are kept."
COLUMNS = {"question": st.column_config.TextColumn(width=320)}


def draw(asked: ChosenSet) -> None:
    """Draw the counts, the conflicts, and the LLM's proposals. Raises StoreError."""
    seen = asked.labels
    st.markdown(message(told(seen)))
    _conflicts(seen, asked.chunks)
    _lost(asked)
    elements.heading("Labels by an LLM")
    if any(label.made_by == "llm" for label in seen):
        elements.aside(query_sets.agreed(seen).told)
    _propose(asked)


def told(labels: tuple[Label, ...]) -> str:
    """Who labelled how many chunks."""
    if not labels:
        return "Nobody has labelled a chunk yet. Open one on Inspect and press 2, 1 or 0."
    counts = Counter((label.made_by, label.who) for label in labels)
    by = ", ".join(
        f"{who}{' (LLM)' if made_by == 'llm' else ''} {numbers.count(n)}"
        for (made_by, who), n in counts.most_common()
    )
    questions = len({label.query for label in labels})
    return f"{counted(len(labels), 'label')} on {counted(questions, 'question')}: {by}."


def _conflicts(labels: tuple[Label, ...], catalogue: Mapping[str, Chunk]) -> None:
    parted = conflicts(labels)
    if not parted:
        if labels:
            elements.aside("No two people disagree.")
        return
    elements.heading("Disagreements")
    elements.aside(
        "The latest label counts. Click a row to open the chunk and resolve the conflict."
    )
    table = pd.DataFrame(
        {
            "question": [pair[0].query for pair in parted],
            "chunk": [
                catalogue[pair[0].chunk_id].name
                if pair[0].chunk_id in catalogue
                else f"{pair[0].chunk_id} (no longer there)"
                for pair in parted
            ],
            "said": ["; ".join(label.told for label in pair) for pair in parted],
        }
    )
    ids = [f"{pair[0].query} {pair[0].chunk_id}" for pair in parted]
    row = grid.picked(table, ids, name="conflicts", columns=COLUMNS)
    if row is not None:
        first = parted[row][0]
        state.open_chunk(first.chunk_id)
        measuring.open_inspect(first.query, state.session().profile, state.session().changes)


def _lost(asked: ChosenSet) -> None:
    """Draw the labels whose chunk is not known since the chunks were cut anew. A click says which
    it is."""
    standing, places = asked.book.standing(asked.collection), asked.book.places(asked.collection)
    lost = [label for label in standing if label.chunk_id.startswith(UNCOUNTED)]
    store = asked.resources.bench.collection(asked.collection)
    chunks = store.chunks([*asked.chunks]) if lost else {}
    rows = choices(places, lost, chunks.values(), asked.user)
    if not rows:
        return
    elements.heading("Labels without a chunk")
    elements.aside(
        "These do not count since the chunks were cut anew. Click the chunk that a label judges; "
        "label anew what is in none."
    )
    table = pd.DataFrame(
        {
            "question": [label.query for label, *_ in rows],
            "judged": [place.quote for _, place, _ in rows],
            "chunk": [chunks[i].name if i else None for *_, i in rows],
            "text": [chunks[i].text if i else None for *_, i in rows],
        }
    )
    ids = [f"{label.id} {i}" for label, _, i in rows]
    row = grid.picked(table, ids, name="lost-labels", columns=COLUMNS, box="lost")
    if row is not None and rows[row][2]:
        settle(asked.book, rows[row][0], chunks[rows[row][2]])
        st.rerun()


def _propose(asked: ChosenSet) -> None:
    """Draw the cost estimate first, then the button that asks the LLM."""
    resources = asked.resources
    if resources.bench.chat is None:
        elements.empty(
            "No LLM is configured.",
            "Set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server, to let an LLM propose "
            "labels here.",
        )
        return
    job = state.session().proposing
    if job is not None:
        count = progress.result(job, "proposing", "Asking the LLM", stop=STOP)
        state.session().proposing = None
        if count is not None:
            st.toast(f"The LLM made {counted(count, 'label')}.")
            st.rerun()
    with st.container(key="propose-bar", horizontal=True, vertical_alignment="bottom", gap="small"):
        depth = st.number_input(
            "Chunks of each question", 1, 50, DEPTH, key="propose-depth", persist_state="session",
            width=190, help="The first chunks of the unfiltered ranking. Chunks that people have "
            "labelled are added, so that both can be compared.",
        )  # fmt: skip
        # The estimate is valid until a chunk, its clearance or a label changes.
        versions = (
            resources.bench.version_seen(asked.collection, state.user()),
            asked.book.version(asked.collection),
        )
        settings = asked.visit.settings
        wanted = (asked.collection, versions, asked.name, depth, settings, state.user())
        held = state.session().bill
        if held is None or held[0] != wanted:
            if st.button(
                "What would it cost?",
                key="propose-cost",
                disabled=not asked.sets[asked.name],
            ):
                state.session().bill = wanted, *_prepare(asked, int(depth))
                st.rerun()
            return
        _, requests, bill = held
        st.button(
            "Propose labels",
            key="propose",
            type="primary",
            on_click=_begin,
            args=(asked, requests),
            disabled=not bill.chunks,
            help="Calls the LLM. Its labels are marked as such and count only if enabled "
            "under More.",
        )
    st.markdown(message(bill.told))


def _prepare(asked: ChosenSet, depth: int) -> tuple[tuple[Request, ...], Bill]:
    """The requests that would be sent and their cost. Raises RagfilterError."""
    backends = asked.resources.backends(asked.collection)
    of_set = asked.book, asked.collection, asked.name, asked.chunks, asked.user
    questions = query_sets.questions(*of_set)
    standing = asked.book.standing(asked.collection)
    with st.spinner("Looking up the chunks …"):
        requests = tuple(labelling.requests(
            questions.values(), standing, asked.visit.settings, backends, state.user(), depth=depth
        ))  # fmt: skip
    return requests, labelling.bill(requests, backends, asked.resources.prices)


def _begin(asked: ChosenSet, requests: tuple[Request, ...]) -> None:
    """Ask in the background; every answer is stored as it arrives."""
    resources, collection, settings = asked.resources, asked.collection, asked.visit.settings
    backends, book = resources.backends(collection), asked.book
    timeout_s = resources.deployment.answer_timeout_s

    def work(job: Job[int]) -> int:
        kept, calls = 0, sum(len(each.prompts) for each in requests)
        proposals = labelling.propose(requests, settings, backends, timeout_s=timeout_s)
        for number, each in enumerate(proposals, start=1):
            kept += labelling.keep(each, book, collection, backends)
            if not job.tell(number, calls):
                break
        return kept

    state.session().bill = None
    state.session().proposing = resources.jobs.start(state.user(), object(), work)
