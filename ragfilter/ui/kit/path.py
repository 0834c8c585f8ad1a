"""The line on every page that says how far one is, Ask → Label → Measure → Tune → Guard, and leads
to the next step. Nobody has to follow it.
"""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.errors import RagfilterError
from ragfilter.evaluate.caveats import FEW
from ragfilter.layers.origin import origin
from ragfilter.ui.kit.runs import chosen
from ragfilter.ui.look import html
from ragfilter.ui.session import state
from ragfilter.ui.session.visit import Visit

NEEDS_LABELS = "Locked until a question has labels."
NEEDS_RUN = "Locked until something was measured."
MEASURED, GUARDED = "measured", "guarded"
"""The collections for which a run was found, so that none is looked for again, and the one of which
a baseline was taken last."""


class PathStep(NamedTuple):
    """A step, its page, whether it is done, and what opens it if it is locked."""

    name: str
    page: str
    done: bool = False
    locked: str = ""


def steps(
    *, asked: bool, labelled: int, measured: bool, tuned: bool, guarded: bool
) -> list[PathStep]:
    """The path, with this many `labelled` questions."""
    few = labelled < FEW
    return [
        PathStep("Ask", "inspect", asked),
        PathStep(f"Label: {labelled} of {FEW}" if few else "Label", "evaluate", not few),
        PathStep("Measure", "evaluate", measured, "" if labelled else NEEDS_LABELS),
        PathStep("Tune", "tune", tuned, "" if labelled else NEEDS_LABELS),
        PathStep("Guard", "evaluate", guarded, "" if measured else NEEDS_RUN),
    ]


def reserve() -> DeltaGenerator:
    """The place of the line. It is filled after what the user waits for."""
    return st.container(key="path", horizontal=True, vertical_alignment="center", gap=None)


def draw(visit: Visit, place: DeltaGenerator) -> None:
    """Draw the line in `place`, its next step as a button."""
    if not visit.ready:
        return
    try:
        path = _steps(visit)
    except RagfilterError:
        # The page itself says what is wrong.
        return
    at = next((n for n, step in enumerate(path) if not step.done), len(path))
    with place:
        if at:
            arrow = " →&nbsp;" if path[at:] else ""
            html.draw(f'<p class="rf-way">{_words(path[:at])}{arrow}</p>', width="content")
        pressed = path[at:] and st.button(path[at].name, key="path-next", type="tertiary")
        if path[at + 1 :]:
            html.draw(f'<p class="rf-way">&nbsp;→ {_words(path[at + 1 :])}</p>', width="content")
    if pressed:
        state.session().labelling = path[at].name.startswith("Label")
        st.switch_page(f"pages/{path[at].page}.py")


def _steps(visit: Visit) -> list[PathStep]:
    name = state.session().collection
    known = st.session_state.setdefault(MEASURED, set())
    if name not in known and chosen.saved_runs(visit):
        known.add(name)
    labelled = len(chosen.labelled_questions(visit.resources, name))
    return steps(
        asked=state.session().asked is not None or bool(labelled),
        labelled=labelled,
        measured=name in known,
        tuned=origin(visit.settings) is not None,
        guarded=st.session_state.get(GUARDED) == name,
    )


def _words(path: list[PathStep]) -> str:
    return " → ".join(
        f'<span title="{html.text(step.locked or ("Done." if step.done else ""))}">'
        f"{html.text(step.name)}</span>"
        for step in path
    )
