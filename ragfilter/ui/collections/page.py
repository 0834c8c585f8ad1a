"""The Collections page: add data on the left, indexing jobs and existing collections on the
right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.indexing.order import Refusal
from ragfilter.indexing.queue import IndexJob, Queue, queue_of
from ragfilter.text import numbers
from ragfilter.text.numbers import counted, time_left
from ragfilter.ui.collections import add, existing
from ragfilter.ui.kit import problems
from ragfilter.ui.look import html
from ragfilter.ui.look.prose import literal, message
from ragfilter.ui.session import state
from ragfilter.ui.session.visit import Visit

LOOK_S = 1.0


def draw(visit: Visit) -> None:
    """Draw the upload, the indexing jobs, and the existing collections."""
    left, right = st.container(key="halves").columns((1, 1.1), gap="large")
    with left:
        add.draw(visit)
    with right, problems.shown(retry=True):
        queue = queue_of(visit.resources.bench)
        if jobs := queue.jobs():
            html.heading("Indexing")
            # Refreshed automatically only while a job is active.
            active = _active(jobs)
            st.fragment(_jobs, run_every=LOOK_S if active else None)(queue, active)
        existing.draw(visit, state.onlooker())


def _active(jobs: Sequence[IndexJob]) -> frozenset[int]:
    return frozenset(job.id for job in jobs if job.standing.open)


def _jobs(queue: Queue, active: frozenset[int]) -> None:
    """Draw the jobs. `active` are those that were when the page was drawn: if others are now, a
    collection is new or has changed."""
    jobs = queue.jobs()
    for job in reversed(jobs):
        with st.container(key=f"job-{job.id}", border=True, gap="small"):
            _job(job)
            _left_out(job)
            _buttons(job, queue)
    if _active(jobs) != active:
        st.rerun()


def _job(job: IndexJob) -> None:
    at, name = job.standing, literal(job.order.collection)
    if at.state == "waiting":
        st.progress(0.0, text=f"**{name}** is waiting")
    elif at.state == "running":
        left = time_left(at.seconds_left)
        so_far = f"{at.done:,} {at.phase}" if at.done else "loading the embedding model …"
        progress = f"{at.share:.0%} of {at.phase}" if at.total else so_far
        st.progress(at.share, text=f"**{name}** {progress}{left and ', '}{left}")
    elif at.state == "stopped":
        st.markdown(f"**{name}** is stopped. Chunks embedded so far are kept.")
    elif at.state == "failed":
        st.error(f"**{name}** was not indexed. {message(at.message)}  \n{message(at.remedy)}")
    else:
        report = at.result().report
        counts = {
            "added": report.added, "changed": report.changed, "unchanged": report.unchanged,
        }  # fmt: skip
        listed = ", ".join(f"{number:,} {word}" for word, number in counts.items() if number)
        st.success(
            f"**{name}** holds {numbers.chunks(report.total)}: {listed or 'restored'}, in "
            f"{report.seconds:,.1f} s{at.labels and f'; {at.labels}'}"
        )


def _left_out(job: IndexJob) -> None:
    """Draw what was left out, then the warnings about what was not."""
    at = job.standing
    warnings = at.report.warnings if at.report else ()
    counts = [
        f"{at.left_out:,} left out" if at.left_out else "",
        counted(len(warnings), "warning") if warnings else "",
    ]
    if not any(counts):
        return
    listed = [*at.refused, *map(Refusal, warnings)]
    with st.expander(", ".join(filter(None, counts)), expanded=not at.open):
        # As in the preview; a table would cut both the fault and its remedy.
        lines = "\n".join(f"- {message(f'{each.message} {each.remedy}')}" for each in listed)
        st.container(key=f"left-out-{job.id}").markdown(lines)


def _buttons(job: IndexJob, queue: Queue) -> None:
    at = job.standing
    with st.container(horizontal=True, gap="small"):
        if at.open:
            st.button(
                "Stop", key=f"stop-{job.id}", icon=":material/stop:", on_click=_try,
                args=(queue.stop, job.id), help="Chunks embedded so far are kept.",
            )  # fmt: skip
            return
        if at.state == "done":
            if st.button(
                "Ask a question", key=f"ask-{job.id}", type="primary", icon=":material/search:"
            ):
                state.open_collection(job.order.collection)
                st.switch_page("pages/inspect.py")
        else:
            st.button(
                "Continue", key=f"go-on-{job.id}", icon=":material/play_arrow:", on_click=_try,
                args=(queue.go_on, job.id),
            )  # fmt: skip
        st.button("Dismiss", key=f"dismiss-{job.id}", on_click=_try, args=(queue.remove, job.id))


def _try(act: Callable[[int], None], job_id: int) -> None:
    try:
        act(job_id)
    except RagfilterError as error:
        # Notices are drawn by a whole run of the page only, and this is a fragment.
        st.toast(message(str(error)), icon=":material/warning:")
