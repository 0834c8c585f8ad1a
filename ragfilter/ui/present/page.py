"""Present mode: one question for an audience, in plain words, without settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from ragfilter.model import Pruning
from ragfilter.results.summary import DropGroup
from ragfilter.results.summary import story as story_of
from ragfilter.text import numbers
from ragfilter.text.numbers import counted
from ragfilter.ui.kit import answers, controls, problems, question_box, stacks, summary
from ragfilter.ui.look import elements
from ragfilter.ui.session import link, state
from ragfilter.ui.session.page_run import PageRun, View, gather_view


def draw(page_run: PageRun) -> None:
    """Draw the question, then scenes: what plain search found, what each reason drops, and the
    outcome with both answers."""
    st.html(Path(elements.__file__).with_name("present.css"))
    problems.notices(state.notices())
    view, error = gather_view(page_run)
    link.show_address()
    if view is None:
        elements.unseen_heading("Present", level=1)
        question_box.draw(page_run)
        question_box.draw_present_button()
        problems.draw_empty(page_run, error)
        return
    problems.incomplete(view.result.pool.incomplete)
    current_story = story_of(view.as_user)
    _head(view)
    drops = current_story.drops_from_unfiltered
    # The last scene adds kept chunks from below the first k.
    last = len(drops) + bool(current_story.beyond)
    now = min(state.session().scene, last)
    if now < last:
        found = f"Plain search found {counted(current_story.unfiltered, 'passage')}."
        summary.draw_headline(f"{drops[now - 1].line}." if now else found, drops)
    else:
        summary.draw(view, current_story)
    if current_story.found:
        _picture(view, drops[:now], now, last)
    if current_story.found and now == last:
        _pruned(view)
        elements.unseen_heading("Answers")
        answers.draw_brief(view)


def _head(view: View) -> None:
    """Draw the question, the user it is answered for, and the buttons."""
    with st.container(key="present-head", horizontal=True, vertical_alignment="top"):
        elements.draw(f'<h1 class="rf-question">{elements.text(view.asked.query)}</h1>')
        if view.result.settings.clearance.enabled:
            with st.container(key="present-user", width=240):
                controls.choose_user("presented-to")
        question_box.draw_report(view, "present-report")
        question_box.draw_present_button()


def _pruned(view: View) -> None:
    """Offer to show which parts of the chunks are not in the prompt."""
    detail = view.as_user.trace("prune").detail
    if not isinstance(detail, Pruning) or detail.before == detail.after:
        return
    if not st.toggle("Show what was pruned", key="show-pruned"):
        return
    saved = numbers.token_count(detail.before - detail.after)
    elements.aside(f"Struck text does not help to answer. Dropping it saves {saved}.")
    for hit in view.as_user.kept:
        if struck := elements.struck_text(view.as_user, hit.id, hit.chunk.text):
            elements.draw(f"<b data-passage>{elements.text(hit.chunk.name)}</b>{struck}")


def _picture(view: View, drops: Sequence[DropGroup], now: int, last: int) -> None:
    """Draw both stacks, and the buttons that drop the chunks, one reason at a time."""
    before, after = stacks.before_and_after(view.as_user, drops)
    if now < last:
        left = (each if each and each.outcome != "dropped" else None for each in before.entries)
        after = stacks.Stack("Left so far" if now else "Everything found", tuple(left))
    elements.unseen_heading("Before and after")
    stacks.draw_stacks((before, after), view.as_user)
    with st.container(key="present-bar", horizontal=True, vertical_alignment="center"):
        label, to = ("After", last) if now < last else ("Before", 0)
        look = {"icon": "compare", "type": "primary", "shortcut": "B"}
        elements.button(label, "scene-flip", state.put, to, "scene", disabled=not last, **look)
        for label, shortcut, to in (("Back", "Left", now - 1), ("Next", "Right", now + 1)):
            off = not 0 <= to <= last
            elements.button(label, f"scene-{label.lower()}", state.put, to, "scene", disabled=off, shortcut=shortcut)
