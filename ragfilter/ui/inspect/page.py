"""The result of one question: one sentence, before and after beside the curve, and both answers. Buttons open the
controls of the cut, and the evidence: the table of chunks, and beside it a panel with the open chunk, the answers, the
exact prompt, the judge, the re-query rounds or the debug trace. Its mode Present shows the question to an audience."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.answer.answer import VERSION, messages
from ragfilter.engine.pool import without_failures
from ragfilter.engine.replay import replay
from ragfilter.layers.quality import reranker_key
from ragfilter.model import Need, PoolResult, Pruning, Rounds
from ragfilter.results.document import trace_text
from ragfilter.results.rows import visible_ids
from ragfilter.results.summary import DropGroup, story
from ragfilter.text import numbers
from ragfilter.ui.inspect import chunk_panel, curve_panel, headline, hit_table, judge_panel
from ragfilter.ui.kit import answer_panel, controls, guide, problems, question_box, stacks
from ragfilter.ui.kit.answer_making import answer_sides
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import literal
from ragfilter.ui.resources import Resources
from ragfilter.ui.session import asking, link, state, widget
from ragfilter.ui.session.page_run import PageRun, View, current_view
from ragfilter.ui.session.state import PANELS


class Slots(NamedTuple):
    """Where `finish` draws: the answers or the table, the panel if it is open, and the buttons."""

    below: DeltaGenerator
    panel: DeltaGenerator | None
    bar: DeltaGenerator


def begin(view: View) -> Slots:
    """Draw what the user waits for: the sentence, the clicked chunk, then the curve."""
    session, current_story = state.session(), story(view.as_user)
    # One container for everything that comes and goes with a setting, which would otherwise move
    # the curve and make the browser redraw it.
    with st.container(key="headline"):
        problems.draw_incomplete(view.result.pool.incomplete)
        elements.unseen_heading("Result", level=1, name=view.asked.query)
        headline.draw(view, current_story)
        problems.draw_failures(view.result)
        _draw_needs(view)
        if session.cut_controls:
            curve_panel.draw_controls(view)
    stage = st.container(key="stage")
    beside = None
    if session.evidence:
        bar, below = elements.row("open-bar"), _draw_below(view)
        with below:
            headline.draw_strip(view)
            below, beside = st.columns((1.15, 1), gap="medium")
        if session.panel == "Chunk":
            with beside:
                beside = _draw_panel(view)
    else:
        below, bar = _draw_below(view), elements.row("open-bar")
    with stage:
        left, right = st.columns((3, 2), gap="medium")
    with left, st.container(key="passages"):
        elements.unseen_heading("Before and after")
        before, after = stacks.before_and_after(view.as_user, current_story.drops_from_unfiltered)
        if changed := len(state.changes_since_reset()):
            after = replace(after, label=f"After: {numbers.counted(changed, 'setting')} changed")
        controls.draw_reset(f"Back to {session.profile}")
        stacks.draw_stacks((before, after), view.as_user, on_open=state.open_chunk)
    with right:
        elements.unseen_heading("Curve")
        curve_panel.draw(view)
    return Slots(below, beside, bar)


def finish(view: View, slots: Slots) -> None:
    """Draw the rest. Answers may take time, so they come last, as do the changes that would reverse a chunk's
    outcome."""
    session = state.session()
    with slots.bar:
        _draw_bar(view)
    with slots.below:
        if slots.panel is None:
            elements.unseen_heading("Answers")
            if not view.result.kept:
                problems.draw_nothing_kept(view.result)
            answer_panel.draw_brief(view)
        else:
            elements.unseen_heading("Chunks")
            hit_table.draw(view)
    if slots.panel is not None:
        with slots.panel:
            if session.panel == "Chunk":
                chunk_panel.finish(view)
            else:
                _draw_panel(view)
    session.answers_shown_for = view.asked
    elements.mount("inspect/into_view.js", key="into-view", data=session.revealed)


def _draw_below(view: View) -> DeltaGenerator:
    # Answers to the previous question must not stand there while this one is answered.
    slot = st if state.session().answers_shown_for == view.asked else st.empty()
    return slot.container(key="below")


def _draw_bar(view: View) -> None:
    """Draw the buttons that open the controls and the evidence, and those that share the result."""
    session = state.session()
    label = "Close controls" if session.cut_controls else "Adjust"
    about = "The strategy and the limits that cut the list. Tune suggests values for them."
    opens = not session.cut_controls
    elements.button(label, "open-cut-controls", _open_cut_controls, opens, type="primary", about=about)
    label = "Close evidence" if session.evidence else f"Evidence: {numbers.chunk_count(view.summary.retrieved)}"
    about = "Every chunk with its reason, the prompt, and the answers with their citations."
    elements.button(label, "open-evidence", state.set_field, not session.evidence, "evidence", about=about)
    if view.asked.trace_ids:
        only = bool(view.asked.reach.only)
        about = "Filters only the hits that a trace recorded for this question."
        ask = partial(state.set_fields, use_trace=not only, pending="current")
        elements.button("Search again" if only else "Recorded hits", "open-recorded", ask, about=about)
    question_box.draw_present_button()
    if link.parts_to_share(ids := visible_ids(view.result)):
        # The address bar has the rest.
        link.draw_button(st.container(key="share", width="content"), ids)
    st.space("stretch")
    guide.draw(view.resources)


def _open_cut_controls(on: bool) -> None:
    state.session().cut_controls = on
    if on:
        state.reveal(".st-key-cut-controls")


def _draw_needs(view: View) -> None:
    """Draw buttons for data that the result lacks and, if the settings have outgrown the pool, for asking again. While
    the judge's tab is open, its button is there."""
    result, resources = view.result, view.resources
    wider = asking.falls_short(view.asked, result, result.settings)
    rerank, again = _reranking(result)
    costs = None if state.session().panel == "Judge" else judge_panel.costs_of(result, resources)
    if rerank is None and costs is None and not wider:
        return
    with elements.row("needs"):
        if rerank is not None:
            label = f"Score {'again: ' if again else ''}{_scoring(rerank, result, resources)}"
            about = f"{literal(rerank.why)}. Until then, the layer uses distances."
            judge_panel.draw_request(label, "rerank", again=again, about=about)
        if costs is not None:
            judge_panel.draw_button(result, costs)
        if wider:
            label = f"Gather again with these settings · pool {numbers.count(result.settings.retrieval.pool_size)}"
            about = "The pool was gathered with other settings. This queries the store again."
            elements.button(label, "gather-again", state.ask_again, icon="refresh", about=about)


def _reranking(result: PoolResult) -> tuple[Need | None, bool]:
    """The need for a reranker's scores, and whether reranking has failed before. The need is also
    None if trying again cannot help; `problems.draw_failures` then gives the remedy."""
    if problems.lasting_failure(result) is not None:
        return None, False
    again, needs = False, result.needs
    key = reranker_key(result.settings.quality)
    if any(failure.model == key for failure in result.pool.failures):
        again = not any(need.kind == "rerank" for need in needs)
        needs = replay(without_failures(result.pool, "rerank"), result.settings, result.user).needs
    return next((need for need in needs if need.kind == "rerank"), None), again


def _scoring(need: Need, result: PoolResult, resources: Resources) -> str:
    """The scored chunks and the reranker, with an endpoint's most calls and price."""
    quality, n = result.settings.quality, len(need.chunk_ids)
    words = f"{numbers.chunk_count(n)} · {controls.choice_label(quality.reranker)}"
    if quality.reranker == "http":
        words += f" · {resources.bench.rerank_endpoint.bill(n, quality.reranker_batch)}"
    return words


def _draw_panel(view: View) -> DeltaGenerator:
    """Draw the tabs and the chosen one's contents. Returns the panel, which `finish` completes."""
    name = state.session().panel
    # At least this high; the style sheet uses the height of the window.
    panel = st.container(key="panel", border=True, height=584, gap="small")
    with panel:
        with elements.row("panel-bar"):
            widget.draw_buttons("Panel", PANELS, name, "panel-box", state.set_field, "panel")
        elements.unseen_heading(name)
        if not view.result.kept:
            problems.draw_nothing_kept(view.result)
        match name:
            case "Chunk":
                chunk_panel.draw(view)
            case "Judge":
                judge_panel.draw(view)
            case "Prompt":
                _prompt(view.as_user)
            case "Rounds":
                _rounds(view.as_user)
            case "Debug":
                # As the user can see it.
                st.code(trace_text(view.as_user), language=None, wrap_lines=False)
            case _:
                answer_panel.draw(view)
    return panel


@st.fragment
def _prompt(result: PoolResult) -> None:
    """Draw the exact messages for either context."""
    both = {side.label: side for side in answer_sides(result)}
    with elements.row("prompt-bar"):
        about = "The prompt with the kept chunks, or with the chunks of a plain search."
        side = both[elements.choice("Context", both, about, key="prompt-side", default="filtered")]
    sent, tokens = numbers.chunk_count(len(side.context.chunks)), numbers.token_count(side.context.tokens)
    elements.aside(f"{sent}, about {tokens} of chunk text; version {VERSION}")
    if side.numbers != (*range(1, len(side.numbers) + 1),):
        elements.aside(f"The page cites these as {', '.join(f'[{n}]' for n in side.numbers)}.")
    judge_panel.draw_messages(messages(result.query, side.context))


def _rounds(result: PoolResult) -> None:
    """Draw what repeated retrieval, each time without the seen chunks, would have found."""
    detail = result.trace("query_must").detail
    if not isinstance(detail, Rounds):
        remedy = "Switch Rules on to see how many times a re-query loop would have asked again."
        elements.empty("No rounds.", remedy)
        return
    loop = f"A re-query loop would take {numbers.counted(len(detail.rounds), 'round')}"
    missed = numbers.chunk_count(detail.short) if detail.short else "none"
    queries = numbers.counted(result.pool.queries, "store query")
    elements.draw(
        f'<p class="rf-say">{loop} to find {len(detail.kept)} of {detail.k} clean chunks, and miss {missed} that the '
        f"wide pool holds. The pool took {queries}.</p>"
    )
    rows = [(r.number, *map(len, (r.retrieved, r.excluded, r.kept))) for r in detail.rounds]
    table = pd.DataFrame(rows, columns=["round", "retrieved", "excluded", "kept"])
    table["kept so far"] = table["kept"].cumsum()
    with st.container(key="rounds"):
        st.dataframe(table, hide_index=True, height="content")


def present(page_run: PageRun) -> None:
    """Draw one question for an audience, in plain words and without settings: the question, then scenes of what plain
    search found, what each reason drops, and the outcome with both answers."""
    st.html(Path(elements.__file__).with_name("present.css"))
    problems.draw_notices(state.take_notices())
    view, error = current_view(page_run)
    link.show_address()
    if view is None:
        elements.unseen_heading("Present", level=1)
        question_box.draw(page_run)
        question_box.draw_present_button()
        problems.draw_empty(page_run, error)
        return
    problems.draw_incomplete(view.result.pool.incomplete)
    current_story = story(view.as_user)
    _question_head(view)
    drops = current_story.drops_from_unfiltered
    # The last scene adds kept chunks from below the first k.
    last = len(drops) + bool(current_story.beyond)
    scene = min(state.session().scene, last)
    if scene < last:
        opening = f"Plain search found {numbers.counted(current_story.unfiltered, 'passage')}."
        headline.draw_headline(f"{drops[scene - 1].line}." if scene else opening, drops)
    else:
        headline.draw(view, current_story)
    if current_story.found:
        _scene(view, drops[:scene], scene, last)
    if current_story.found and scene == last:
        _pruned(view)
        elements.unseen_heading("Answers")
        answer_panel.draw_brief(view)


def _question_head(view: View) -> None:
    """Draw the question, the user it is answered for, and the buttons."""
    with elements.row("present-head", "top"):
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


def _scene(view: View, drops: Sequence[DropGroup], scene: int, last: int) -> None:
    """Draw both stacks, and the buttons that drop the chunks, one reason at a time."""
    before, after = stacks.before_and_after(view.as_user, drops)
    if scene < last:
        left = (each if each and each.outcome != "dropped" else None for each in before.entries)
        after = stacks.Stack("Left so far", tuple(left))
    elements.unseen_heading("Before and after")
    # Before the first reason, both are the same.
    stacks.draw_stacks((before, after) if scene or not last else (before,), view.as_user)
    with elements.row("present-bar"):
        label, to = ("After", last) if scene < last else ("Before", 0)
        look = {"icon": "compare", "type": "primary", "shortcut": "B"}
        elements.button(label, "scene-flip", state.set_field, to, "scene", disabled=not last, **look)
        for label, shortcut, to in (("Back", "Left", scene - 1), ("Next", "Right", scene + 1)):
            key, off = f"scene-{label.lower()}", not 0 <= to <= last
            elements.button(label, key, state.set_field, to, "scene", disabled=off, shortcut=shortcut)
