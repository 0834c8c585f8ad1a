"""The questions that rules are measured on: labelled ones (the workspace's and a demo's own, or
files dropped on the page) and, separately, questions asked before. They are gathered in the
background, without the judge."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from zlib import crc32

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from ragfilter.errors import InputError
from ragfilter.evaluate import run
from ragfilter.evaluate.beir import Labels
from ragfilter.evaluate.effect import LabelledQuestions, make_labelled
from ragfilter.evaluate.measuring import measurable
from ragfilter.evaluate.query_files import read
from ragfilter.stores.labels import ASKED
from ragfilter.ui.kit import progress
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import message
from ragfilter.ui.session import uploads
from ragfilter.ui.session.jobs import Job

DROPPED, TRIES = "rules-labels", "rules-tries"
MOST_ASKED, MOST_LABELLED = 200, 500
"""The most recent questions asked, and the first labelled ones, that are used."""
NONE = (
    "Without labelled questions, it is unknown whether a change does harm. Label chunks on "
    "Inspect, or add queries.jsonl and qrels.tsv under Matrix."
)
NONE_ASKED = (
    "No questions have been asked of this collection yet. Ask some under Inspect; they are "
    "counted here, apart from the labelled ones."
)


def labels(work: Desk) -> Labels | None:
    """The labels of visible chunks that rules are measured on: those dropped in this session,
    otherwise those of the workspace and the demo."""
    dropped: dict[str, Labels] = st.session_state.setdefault(DROPPED, {})
    if work.collection in dropped:
        with suppress(InputError):
            return measurable(dropped[work.collection], work.chunks, work.user)
    return work.labels


def history(work: Desk) -> Labels | None:
    """The most recently asked questions, without labels; None if there are none."""
    every = _asked(work)
    return Labels(dict(list(every.items())[-MOST_ASKED:]), {}) if every else None


def _asked(work: Desk) -> dict[str, str]:
    return work.resources.bench.labels.queries(work.collection, ASKED)


def mark(work: Desk) -> int:
    """A number that changes with the labels."""
    found = labels(work)
    return 0 if found is None else crc32(repr((found.queries, found.qrels)).encode())


def drop(work: Desk, queries: UploadedFile, qrels: UploadedFile) -> None:
    """Use the labels in two files, as far as they are of visible chunks. Raises InputError naming
    file and line, or if nothing relevant is left."""
    with uploads.as_files(queries, qrels) as paths:
        found = read(*paths)
        measurable(found, work.chunks, work.user)
    # All of them, since another user may see others.
    st.session_state.setdefault(DROPPED, {})[work.collection] = found


def gathered(work: Desk, *, asked: bool = False) -> LabelledQuestions | None:
    """The labelled questions, or with `asked` those asked before, with the current rules. None if
    there are none, if they are still being gathered, or if gathering failed."""
    job = _job(work, asked=asked)
    if job is None or not job.done or job.failure:
        return None
    made = job.value()
    key = ("renewed", id(job), work.version)
    held: tuple[object, LabelledQuestions] | None = work.resources.renewed.get(key)
    if held is None:
        renewed = made.renew(work.chunks)
        if renewed.short:
            _job(work, asked=asked, known=renewed)
            return None
        held = work.resources.renewed.put(key, (job, renewed))
    found = None if asked else labels(work)
    # A new label for a known question needs no new search.
    return held[1] if found is None else replace(held[1], qrels=found.qrels)


def missing(work: Desk) -> bool:
    """Whether there are labelled questions, but they are still being gathered or could not be."""
    job = _job(work, asked=False)
    return job is not None and not (job.done and not job.failure)


def await_labels(work: Desk, patience_s: float) -> None:
    """Wait for the labelled questions to be gathered, unless that would take longer than
    `patience_s` seconds."""
    if gathered(work) is None and (job := _job(work, asked=False)) is not None:
        done, count, _ = job.at
        # The first ones say nothing yet: a model may have to be loaded for them.
        if done < 5 or job.seconds / done * (count - done) < patience_s:
            job.wait(patience_s)


def is_under_way(work: Desk, *, asked: bool = False) -> bool:
    """Whether the questions are being gathered."""
    job = _job(work, asked=asked)
    return job is not None and not job.done


def wait(work: Desk, *, asked: bool = False) -> None:
    """Show the progress until the questions are gathered, then redraw the page with them. Using the
    page ends only the waiting."""
    job = _job(work, asked=asked)
    if job is None or job.done:
        return
    which = "questions asked" if asked else "labelled questions"
    progress.until_done(job, "rules-gathering", f"Gathering the {which}, once")
    st.rerun()


def told(work: Desk, *, asked: bool = False) -> bool:
    """Whether there are such questions. If not, draw how to get some."""
    if (history(work) if asked else labels(work)) is None:
        elements.aside(NONE_ASKED if asked else NONE)
        return False
    job = _job(work, asked=asked)
    if job is not None and job.failure:
        st.error(message(job.failure), title="The questions could not be gathered")
        key = "rules-gather-asked" if asked else "rules-gather"
        st.button("Gather again", key=key, on_click=_again, help="Tries again.")
        return False
    if asked:
        if (count := len(_asked(work))) > MOST_ASKED:
            elements.aside(f"Measured on the last {MOST_ASKED} of {count:,} questions asked.")
        return True
    found = labels(work)
    if work.settings.judge.enabled:
        elements.aside("Measured without the judge, which would ask the LLM about every question.")
    if found is not None and len(found.qrels) > MOST_LABELLED:
        elements.aside(
            f"Measured on the first {MOST_LABELLED} of {len(found.qrels):,} labelled questions."
        )
    return True


def _again() -> None:
    st.session_state[TRIES] = st.session_state.get(TRIES, 0) + 1


def _job(
    work: Desk, *, asked: bool, known: LabelledQuestions | None = None
) -> Job[LabelledQuestions] | None:
    """The job that gathers the questions. With `known`, a new one, which searches only for those
    that need it."""
    found = history(work) if asked else labels(work)
    if found is None:
        return None
    store = work.resources.bench.collection(work.collection)
    # With the judge on, each of hundreds of questions would call the LLM.
    settings = work.settings.with_values({"query_must.enabled": True, "judge.enabled": False})
    wanted = {i: text for i, text in found.queries.items() if asked or i in found.qrels}
    if not asked:
        wanted = dict(list(wanted.items())[:MOST_LABELLED])
    tries = st.session_state.get(TRIES, 0)
    mark = crc32(repr(wanted).encode())
    key = ("labelled", work.collection, store.content, settings, work.user, mark, tries)
    pools = {i: p for i, p in known.pools.items() if i not in known.short} if known else {}
    backends = work.resources.backends(work.collection)

    def gather(job: Job[LabelledQuestions]) -> LabelledQuestions:
        left = {i: text for i, text in wanted.items() if i not in pools}
        new = run.gather_all(left, settings, backends, work.user, progress=job.step)
        return make_labelled(pools | new, found.qrels, settings, work.user)

    return work.resources.jobs.start(work.user, key, gather, again=known is not None)
