"""The line on every page that says how far one is, Ask → Label → Measure → Tune → Guard, and leads
to the next step. Nobody has to follow it.
"""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.errors import RagfilterError
from ragfilter.evaluate.caveats import FEW_QUERIES
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
    few = labelled < FEW_QUERIES
    return [
        PathStep("Ask", "inspect", asked),
        PathStep(f"Label: {labelled} of {FEW_QUERIES}" if few else "Label", "evaluate", not few),
        PathStep("Measure", "evaluate", measured, "" if labelled else NEEDS_LABELS),
        PathStep("Tune", "tune", tuned, "" if labelled else NEEDS_LABELS),
        PathStep("Guard", "evaluate", guarded, "" if measured else NEEDS_RUN),
    ]


def reserve() -> DeltaGenerator:
    """The place of the line. It is filled after what the user waits for."""
    return st.container(key="path", horizontal=True, vertical_alignment="center", gap=None)


def draw(visit: Visit, place: DeltaGenerator, page: str = "") -> None:
    """Draw the line in `place`, its next step as a button unless it is a step of this `page`."""
    if not visit.ready:
        return
    try:
        path = _steps(visit)
    except RagfilterError:
        # The page itself says what is wrong.
        return
    following = next((n for n, step in enumerate(path) if not step.done), len(path))
    here = at(path, following, page)
    words = [_words(step, n == here, n == following) for n, step in enumerate(path)]
    with place:
        if here == following or not path[following:]:
            _draw(words)
            return
        _draw([*words[:following], ""])
        name = path[following].name
        pressed = st.button(f"Next: {name}", key="path-next", type="tertiary")
        _draw(["", *words[following + 1 :]])
    if pressed:
        state.session().labelling = name.startswith("Label")
        st.switch_page(f"pages/{path[following].page}.py")


def at(path: list[PathStep], following: int, page: str) -> int | None:
    """The step that is done on this page, if there is one: the `following` one, if it is. Labels
    are given in a window of their own."""
    mine = [n for n, step in enumerate(path) if step.page == page and step.name[:5] != "Label"]
    return following if following in mine else next(iter(mine), None)


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


def _draw(words: list[str]) -> None:
    if any(words):
        html.draw(f'<p class="rf-way">{" → ".join(words)}</p>', width="content")


def _words(step: PathStep, here: bool, following: bool) -> str:
    told, sign = step.locked or ("Done." if step.done else ""), "✓ " if step.done else ""
    current = ' aria-current="step"' if here else ""
    return (
        f'<span title="{html.text(told)}"{current}>{"Now: " if here and following else sign}'
        f"{html.text(step.name)}</span>"
    )
