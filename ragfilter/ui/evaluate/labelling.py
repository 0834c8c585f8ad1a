"""The labels of a collection: who made them, where people disagree, and what an LLM proposes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from threading import Event
from time import monotonic

import pandas as pd
import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.evaluate import llm_labels, stored
from ragfilter.evaluate.llm_labels import Bill, Request
from ragfilter.layers.clearance import viewer
from ragfilter.model import Chunk
from ragfilter.stores.labels import GRADES, Label, conflicts, visible_labels
from ragfilter.text.numbers import counted
from ragfilter.ui.evaluate import opening
from ragfilter.ui.look import html, numbers
from ragfilter.ui.main import grid, problems
from ragfilter.ui.session import background, state
from ragfilter.ui.session.background import Job
from ragfilter.ui.session.visit import Visit

TURN_S = 0.3
DEPTH = 10
JOB, BILL = "proposing", "bill"


def draw(visit: Visit, name: str, sets: Mapping[str, int]) -> None:
    """Counts, conflicts, and the LLM's part. Raises StoreError."""
    book, collection = visit.resources.bench.labels, st.session_state.collection
    catalogue = visit.resources.bench.collection(collection).entries()
    user = viewer(state.user(), visit.settings)
    seen = visible_labels(book.standing(collection), catalogue, user)
    html.draw(f'<p class="rf-say">{html.text(told(seen))}</p>')
    _conflicts(seen, catalogue, visit)
    html.draw('<h2 class="rf-head">Labels by an LLM</h2>')
    if any(label.source == "llm" for label in seen):
        html.draw(f'<p class="rf-aside">{html.text(stored.agreed(seen).told)}</p>')
    _propose(visit, name, sets)


def told(labels: tuple[Label, ...]) -> str:
    """Who labelled how many chunks."""
    if not labels:
        return "No labels yet. Open a chunk on Inspect and press 2, 1 or 0."
    counts = Counter((label.source, label.who) for label in labels)
    by = ", ".join(
        f"{who}{' (LLM)' if source == 'llm' else ''} {numbers.count(n)}"
        for (source, who), n in counts.most_common()
    )
    questions = len({label.query for label in labels})
    return f"{counted(len(labels), 'label')} on {counted(questions, 'question')}: {by}."


def _conflicts(labels: tuple[Label, ...], catalogue: Mapping[str, Chunk], visit: Visit) -> None:
    parted = conflicts(labels)
    if not parted:
        html.draw('<p class="rf-aside">No two people disagree.</p>')
        return
    html.draw('<h2 class="rf-head">Disagreements</h2>')
    html.draw(
        '<p class="rf-aside">The latest label counts. Click a row to open the chunk and settle '
        "the matter.</p>"
    )
    table = pd.DataFrame(
        {
            "question": [pair[0].query for pair in parted],
            "chunk": [_name(pair[0].chunk_id, catalogue) for pair in parted],
            "said": [", ".join(map(_said, pair)) for pair in parted],
        }
    )
    with st.container(key="table"):
        picked = st.dataframe(
            table, key=f"conflicts-{len(labels)}", hide_index=True, row_height=32,
            on_select="rerun", selection_mode=("single-row", "single-cell"),
            column_config={"question": st.column_config.TextColumn("question", width=320)},
        )  # fmt: skip
    row = grid.clicked(picked, len(parted))
    if row is not None:
        state.open_chunk(parted[row][0].chunk_id)
        opening.inspect(parted[row][0].query, st.session_state.profile, st.session_state.changes)


def _name(chunk_id: str, catalogue: Mapping[str, Chunk]) -> str:
    return catalogue[chunk_id].name if chunk_id in catalogue else f"{chunk_id} (no longer there)"


def _said(label: Label) -> str:
    return f"{label.who}: {GRADES.get(label.grade, f'grade {label.grade}')}"


def _propose(visit: Visit, name: str, sets: Mapping[str, int]) -> None:
    """First what it would cost, then the question."""
    resources = visit.resources
    if resources.bench.chat is None:
        html.draw(
            '<p class="rf-empty"><b>No LLM is configured.</b> Set OPENAI_API_KEY, or '
            "OPENAI_BASE_URL for a local server, to let an LLM propose labels here.</p>"
        )
        return
    job: Job[int] | None = st.session_state.get(JOB)
    if job is not None:
        if not job.done:
            _wait(job)
        del st.session_state[JOB]
        try:
            st.toast(f"The LLM made {counted(job.value(), 'label')}.")
        except RagfilterError as error:
            problems.show(error, retry=False)
        else:
            st.rerun()
    with st.container(key="propose-bar", horizontal=True, vertical_alignment="bottom", gap="small"):
        depth = st.number_input(
            "Chunks of each question", 1, 50, DEPTH, key="propose-depth", persist_state="session",
            width=190, help="The first chunks of the unfiltered ranking. Chunks that people have "
            "labelled are added, so that both can be compared.",
        )  # fmt: skip
        # Another bill where a chunk, its clearance or a label is another since.
        chosen = st.session_state.collection
        versions = (
            resources.bench.collection(chosen).version,
            resources.bench.labels.version(chosen),
        )
        wanted = (chosen, versions, name, depth, visit.settings, state.user())
        held = st.session_state.get(BILL)
        ready = held is not None and held[0] == wanted
        if not ready and st.button(
            "What would it cost?",
            key="propose-cost",
            disabled=not sets[name],
            help="Looks up the chunks and counts the tokens that would be sent. The LLM is not "
            "called.",
        ):
            held = wanted, *_prepare(visit, name, int(depth))
            st.session_state[BILL] = held
            st.rerun()
        if ready and held is not None:
            _, asked, bill = held
            st.button(
                "Propose labels",
                key="propose",
                type="primary",
                on_click=_begin,
                args=(visit, asked),
                disabled=not bill.chunks,
                help="Calls the LLM. Its labels are marked as such and count only if enabled "
                "under More.",
            )
    if ready and held is not None:
        html.draw(f'<p class="rf-say">{html.text(held[2].told)}</p>')


def _prepare(visit: Visit, name: str, depth: int) -> tuple[tuple[Request, ...], Bill]:
    """What would be asked, with a bar while it is looked up. Raises RagfilterError."""
    resources, collection = visit.resources, st.session_state.collection
    book, backends = resources.bench.labels, resources.backends(collection)
    questions = stored.questions(book, collection, name)
    bar, asked = st.progress(0.0, text="Looking up the chunks …"), []
    found = llm_labels.requests(
        questions.values(), book.standing(collection), visit.settings, backends, state.user(),
        depth=depth,
    )  # fmt: skip
    for each in found:
        asked.append(each)
        bar.progress(min(len(asked) / len(questions), 1.0), text="Looking up the chunks …")
    return tuple(asked), llm_labels.bill(asked, backends, resources.prices)


def _begin(visit: Visit, asked: tuple[Request, ...]) -> None:
    """Ask in the background; every answer is kept as it comes."""
    resources, collection, settings = visit.resources, st.session_state.collection, visit.settings
    backends, book = resources.backends(collection), resources.bench.labels
    timeout_s = resources.deployment.answer_timeout_s

    def work(stop: Event) -> int:
        made = 0
        for each in llm_labels.propose(asked, settings, backends, timeout_s=timeout_s):
            made += llm_labels.keep(each, book, collection, backends)
            if stop.is_set():
                break
        return made

    st.session_state.pop(BILL, None)
    st.session_state[JOB] = background.start(work)


def _wait(job: Job[int]) -> None:
    place = st.empty()
    with place.container(key="proposing", horizontal=True, vertical_alignment="center"):
        st.button(
            "Stop", key="propose-stop", icon=":material/stop:", on_click=job.stop.set,
            help="Stops after the current call. Labels so far are kept.",
        )  # fmt: skip
        said, began = st.empty(), monotonic()
        while not job.wait(TURN_S):
            said.markdown(f"Asking the LLM … {monotonic() - began:.0f} s")
    place.empty()
