"""What guides a visitor. The path on every page, Ask → Label → Measure → Tune → Guard, shows the progress and leads to
the next step. Help, in a drawer on the right that never opens by itself, has a tour of three tasks and the glossary.
Both are optional. The demos are collections to begin with."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.basics.files import read_toml
from ragfilter.errors import RagfilterError
from ragfilter.evaluate.crossval import FEW_QUERIES
from ragfilter.evaluate.measured_runs import BASELINE
from ragfilter.indexing.order import Order
from ragfilter.indexing.queue import Queue
from ragfilter.layers.tuned_on import origin
from ragfilter.ui.kit import labelled_sets
from ragfilter.ui.kit.question_box import examples
from ragfilter.ui.look import elements
from ragfilter.ui.resources import Resources
from ragfilter.ui.session import state
from ragfilter.ui.session.page_run import PageRun, View

NEEDS_LABELS = "Locked until a question has labels."
INCLUDED = "These came with the collection. Label more on Evaluate."
NEEDS_RUN = "Locked until you have measured your settings."
GUARD = "guard"
"""The box on Evaluate where a baseline is made."""


class PathStep(NamedTuple):
    """A step, its page, whether it is done and, if it is locked, what unlocks it."""

    name: str
    page: str
    done: bool = False
    locked: str = ""

    @property
    def signed(self) -> str:
        """The name, with a sign if the step is done."""
        return f"✓ {self.name}" if self.done else self.name


def steps(*, asked: bool, labelled: int, included: bool, measured: bool, tuned: bool, guarded: bool) -> list[PathStep]:
    """The path for this many `labelled` questions. `included`: all came with the collection."""
    few = labelled < FEW_QUERIES
    words, locked = (f"Label: {labelled} of {FEW_QUERIES}", "") if few else ("Label", INCLUDED if included else "")
    return [
        PathStep("Ask", "inspect", asked),
        PathStep(words, "evaluate", not few, locked),
        PathStep("Measure", "evaluate", measured, "" if labelled else NEEDS_LABELS),
        PathStep("Tune", "tune", tuned, "" if labelled else NEEDS_LABELS),
        PathStep("Guard", "evaluate", guarded, "" if measured else NEEDS_RUN),
    ]


def reserve() -> DeltaGenerator:
    """Reserve the slot of the path, which is filled after the content that the user waits for."""
    return st.container(key="path", horizontal=True, vertical_alignment="center", gap=None)


def draw_path(page_run: PageRun, slot: DeltaGenerator, page: str = "") -> None:
    """Draw the path in `slot`. Every open step links to its page, unless that is `page`."""
    if not page_run.ready:
        return
    try:
        path = _steps(page_run)
    except RagfilterError:
        # The page itself shows the error.
        return
    following = next((n for n, step in enumerate(path) if not step.done), len(path))
    # Labelling has its own window.
    mine = [n for n, s in enumerate(path) if s.page == page and not s.name.startswith("Label")]
    current_step = following if following in mine else next(iter(mine), None)
    pressed = None
    with slot:
        for n, step in enumerate(path):
            is_current, is_next = n == current_step, n == following
            if step.locked or is_current:
                current = ' aria-current="step"' if is_current else ""
                words = f"Now: {step.name}" if is_current and is_next else step.signed
                elements.draw(
                    f'<p class="rf-way" title="{step.locked}"{current}>{elements.text(words)}</p>', width="content"
                )
                continue
            label, key = (f"Next: {step.name}", "next") if is_next else (step.signed, step.name.split(":")[0])
            if elements.button(label, f"path-{key}", type="tertiary"):
                pressed = step
    if pressed is not None:
        state.session().labelling = pressed.name.startswith("Label")
        st.session_state[GUARD] = pressed.name == "Guard"
        st.switch_page(f"pages/{pressed.page}.py")


def _steps(page_run: PageRun) -> list[PathStep]:
    session = state.session()
    name, known = session.collection, session.measured
    saved_runs = page_run.saved_runs.values()
    if name not in known and any(run.complete and run.who for run in saved_runs):
        known.add(name)
    labelled = len(labelled_sets.labelled_questions(page_run.resources, name))
    included, measured = not page_run.resources.bench.labels.holds(name), name in known
    asked = (session.asked is not None and not session.example) or measured or bool(labelled and not included)
    tuned, guarded = origin(page_run.settings) is not None, any(run.name == BASELINE for run in saved_runs)
    return steps(asked=asked, labelled=labelled, included=included, measured=measured, tuned=tuned, guarded=guarded)


TERMS: dict[str, str] = read_toml(Path(__file__).with_name("terms.toml"))
"""The words that help explains."""


TASKS = (
    "Drag the line in the curve until 4 chunks remain.",
    "Switch a layer off, and see what comes back.",
    "Open a dropped chunk, and bring it back.",
)
REMAIN = 4


def begin_tour(resources: Resources) -> None:
    """Start the tour. It needs a result, so it asks the first example if nothing was asked."""
    state.session().tour = [False] * len(TASKS)
    offered = examples(state.session().collection, resources)
    if state.session().asked is None and offered:
        state.ask(next(iter(offered.values())))


def draw_tour(view: View) -> None:
    """Draw the tasks of the tour with done ones ticked off; nothing if no tour is running."""
    session = state.session()
    if session.tour is None:
        return
    kept = {hit.id for hit in view.shown.kept}
    if session.chunk and session.chunk not in kept:
        session.tour_chunk = session.chunk
    switched = any(path.endswith(".enabled") and not on for path, on in session.changes.items())
    done_now = (len(kept) == REMAIN, switched, session.tour_chunk in kept)
    session.tour = [was or done for was, done in zip(session.tour, done_now, strict=True)]
    items = "".join(
        f"<li>{'✓' if done else '○'} {elements.text(task)}</li>" for task, done in zip(TASKS, session.tour, strict=True)
    )
    with st.container(key="tour", gap="small"):
        elements.draw(f'<ul aria-live="polite" aria-label="Tour">{items}</ul>')
        end = partial(state.set_fields, tour=None, tour_chunk="")
        elements.button("Done" if all(session.tour) else "End the tour", "tour-end", end)


def draw(resources: Resources) -> None:
    """Draw the button that opens the tour and the glossary."""
    with st.container(key="guide", width="content"):
        if elements.button("Help", "help-button", icon="help", type="tertiary", shortcut="H"):
            _drawer(resources)


@st.dialog("Help", position="right")
def _drawer(resources: Resources) -> None:
    st.markdown("**Three things to try**")
    st.markdown("\n".join(f"{n}. {task}" for n, task in enumerate(TASKS, 1)))
    if elements.button("Take the tour", "tour-begin", begin_tour, resources, type="primary"):
        st.switch_page("pages/inspect.py")
    st.markdown("**Words**")
    st.markdown("\n".join(f"- **{word}**: {meaning}" for word, meaning in TERMS.items()))


DEMOS = {
    "demo": (
        "Build the demo collection",
        "The rules of an invented fantasy game, to try the layers with: look-alike tables, comparisons, secrets.",
    ),
    "adsapi": (
        "Build the API collection",
        "The description of an invented advertising API, to try the LLM judge with: operations "
        "and schemas that refer to each other.",
    ),
}
"""The demo collections: the button's label, and what each demo is for."""


def draw_build_button(name: str, queue: Queue, about: str) -> None:
    """Draw the button that queues a demo for indexing and opens Collections."""
    look = "primary" if name == "demo" else "secondary"
    if elements.button(DEMOS[name][0], f"build-{name}", icon="play_arrow", type=look, about=about):
        with state.notice_errors():
            state.queue_indexing(Order(name, name), queue)
        st.switch_page("pages/collections.py")
