"""The questions that rules are measured on: labelled ones (the workspace's with a demo's own, or
files dropped on the page) and, separately, those that were asked. They are gathered in the
background, without the judge.
"""

from __future__ import annotations

import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import streamlit as st

from ragfilter.errors import InputError, RagfilterError
from ragfilter.evaluate import run
from ragfilter.evaluate.beir import Labels, read
from ragfilter.evaluate.effect import Labelled, make_labelled
from ragfilter.stores.labels import ASKED
from ragfilter.ui.look import html
from ragfilter.ui.rules.desk import Desk
from ragfilter.ui.session import background
from ragfilter.ui.session.background import Job

DROPPED, TRIES = "rules-labels", "rules-tries"
TICK_S = 0.3
MOST_ASKED, MOST_LABELLED = 200, 500
"""Of the questions asked the last so many are taken, of the labelled ones the first."""
NONE = (
    "Without labelled questions, the effect of a change cannot be measured. Label chunks on "
    "Inspect, or add queries.jsonl and qrels.tsv under Matrix."
)
NONE_ASKED = (
    "No questions have been asked of this collection yet. Ask some under Inspect; they are "
    "counted here, apart from the labelled ones."
)


def labels(work: Desk) -> Labels | None:
    """The labels that rules are measured on: those dropped in this session, else the workspace's
    and a demo's own."""
    dropped: dict[str, Labels] = st.session_state.setdefault(DROPPED, {})
    return dropped.get(work.collection) or work.labels


def history(work: Desk) -> Labels | None:
    """The questions that were asked last, without labels; None if there are none."""
    every = work.resources.bench.labels.queries(work.collection, ASKED)
    return Labels(dict(list(every.items())[-MOST_ASKED:]), {}) if every else None


def mark(work: Desk) -> int:
    """A number that changes with the labels."""
    found = labels(work)
    return 0 if found is None else crc32(repr((found.queries, found.qrels)).encode())


def drop(collection: str, queries: bytes, qrels: bytes) -> None:
    """Use the labels of two files. Raises InputError that names file and line."""
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "queries.jsonl"), Path(folder, "qrels.tsv")
        for path, content in zip(paths, (queries, qrels), strict=True):
            path.write_bytes(content)
        try:
            read_ = read(*paths)
        except InputError as error:
            message = str(error.message).replace(f"{folder}/", "")
            raise InputError(message, remedy=error.remedy) from None
    st.session_state.setdefault(DROPPED, {})[collection] = read_


def gathered(work: Desk, *, asked: bool = False) -> Labelled | None:
    """The labelled questions, or those `asked`, with the rules as they are now; None while they are
    being gathered, and where there are none or they cannot be."""
    job = _job(work, asked=asked)
    if job is None or not job.done or job.future.exception() is not None:
        return None
    made = job.value()
    key = ("renewed", id(job), work.version)
    held: tuple[object, Labelled] | None = work.resources.renewed.get(key)
    if held is None:
        held = work.resources.renewed.put(key, (job, made.renew(work.chunks)))
    found = None if asked else labels(work)
    # A new label of a known question asks for no new search.
    return held[1] if found is None else replace(held[1], qrels=found.qrels)


def pending(work: Desk) -> bool:
    """Whether the labelled questions are being gathered."""
    job = _job(work, asked=False)
    return job is not None and not job.done


def await_labels(work: Desk, patience_s: float) -> None:
    """Let the labelled questions be gathered, for so many seconds at most."""
    job = _job(work, asked=False)
    if job is not None:
        job.wait(patience_s)


def wait(work: Desk, *, asked: bool = False) -> None:
    """Say that the questions are being gathered until they are; then the page is drawn with them.
    Using the page only ends this waiting."""
    job = _job(work, asked=asked)
    if job is None or job.done:
        return
    place = st.empty()
    which = "questions asked" if asked else "labelled questions"
    while not job.done:
        place.html(
            f'<p class="rf-aside" role="status">Gathering the {which}, once … '
            f"{job.seconds:.0f} s</p>"
        )
        job.wait(TICK_S)
    st.rerun()


def told(work: Desk, *, asked: bool = False) -> bool:
    """Whether there are such questions; where not, how to get some is drawn."""
    if (history(work) if asked else labels(work)) is None:
        html.draw(f'<p class="rf-aside">{NONE_ASKED if asked else NONE}</p>')
        return False
    job = _job(work, asked=asked)
    error = job.future.exception() if job is not None and job.done else None
    if error is not None:
        why = str(error) if isinstance(error, RagfilterError) else "An unexpected error."
        html.draw(
            '<p class="rf-verdict rf-bad" role="alert"><b>The questions could not be '
            f"gathered.</b> {html.text(why)}</p>"
        )
        st.button("Gather again", key="rules-gather", on_click=_again, help="Tries again.")
        return False
    found = None if asked else labels(work)
    if found is not None and len(found.qrels) > MOST_LABELLED:
        html.draw(
            f'<p class="rf-aside">Measured on the first {MOST_LABELLED} of '
            f"{len(found.qrels):,} labelled questions.</p>"
        )
    return True


def _again() -> None:
    st.session_state[TRIES] = st.session_state.get(TRIES, 0) + 1


def _job(work: Desk, *, asked: bool) -> Job[Labelled] | None:
    found = history(work) if asked else labels(work)
    if found is None:
        return None
    store = work.resources.bench.collection(work.collection)
    # Hundreds of questions would each ask the LLM.
    settings = work.settings.with_values({"query_must.enabled": True, "judge.enabled": False})
    wanted = {i: text for i, text in found.queries.items() if asked or i in found.qrels}
    if not asked:
        wanted = dict(list(wanted.items())[:MOST_LABELLED])
    tries = st.session_state.get(TRIES, 0)
    mark = crc32(repr(wanted).encode())
    key = (work.collection, store.content, settings, work.user, mark, tries)
    job = work.resources.labelled.get(key)
    if job is None:
        backends = work.resources.backends(work.collection)

        def gather(stop: threading.Event) -> Labelled:
            def going_on(done: int, total: int) -> None:
                if stop.is_set():
                    raise RagfilterError("It was stopped.")

            pools = run.gather_all(wanted, settings, backends, work.user, progress=going_on)
            return make_labelled(pools, found.qrels, settings, work.user)

        job = work.resources.labelled.put(key, background.start(gather))
    return job
