"""Present mode: one question for an audience, in plain words, without settings."""

from __future__ import annotations

import re
from functools import partial
from importlib.resources import files

import streamlit as st

from ragfilter.answer.stream import Answer
from ragfilter.report.story import Story, called, cutting, sentences
from ragfilter.report.story import story as story_of
from ragfilter.text import numbers
from ragfilter.text.numbers import counted
from ragfilter.text.titles import short_title
from ragfilter.ui.kit import answer, ask, empty, problems, progress, share, summary, view_as
from ragfilter.ui.look import elements, html, plotting, prose, theme
from ragfilter.ui.present import scene
from ragfilter.ui.session import link, state, visit
from ragfilter.ui.session.answers import AnswerSide
from ragfilter.ui.session.resources import Resources
from ragfilter.ui.session.visit import View, Visit

FOUND = (
    "A passage is one piece of the documents. The search finds the nearest ones by meaning, and "
    "the filter lets some of them into the prompt."
)
FELL = "Every passage is counted once, with the reason that ruled it out."
TOKENS = "Tokens are the word pieces that an LLM reads and bills by; these are estimates."
PROMPT = (
    f"{TOKENS} Without the filter, the first {{n}} passages would be sent, as far as they fit. "
    "Savings use the price set for the prompt's tokens."
)
STEPS = (
    "How many passages are left. Each step drops those that one part of the filter ruled out, into "
    "a lane below the curve with the count and the reason. At the end, the remaining passages are "
    "spread out vertically, with their rank and title."
)
TITLES = {"filtered": "With the filter", "unfiltered": "Without the filter"}
SIDES = {
    "filtered": "The passages that the filter lets into the prompt.",
    "unfiltered": "The first passages of the plain search, which would be sent without the filter.",
}
QUOTING = "The sentences closest to the question, quoted. No LLM was asked."
TITLE_WIDTH = 90
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*%?")


def draw(here: Visit) -> None:
    """Draw the question, its outcome, the picture and the two answers."""
    css = files("ragfilter.ui.look").joinpath("present.css").read_text(encoding="utf-8")
    st.html(f"<style>{css}</style>")
    problems.notices(state.notices())
    view, error = visit.view(here)
    link.show_address()
    if view is None:
        html.heading("Present", level=1)
        ask.draw(here)
        if not here.ready:
            # Nothing can be asked, so the box and its buttons are missing.
            ask.draw_present_button()
        empty.draw(here, error, empty.PRESENT)
        return
    problems.incomplete(view.result.pool.incomplete)
    story = story_of(view.mine)
    missing = summary.unnamed(view)
    word = called(view.mine, doubt=bool(missing))
    _head(view, story, missing, word)
    if story.found:
        progress.unless(answer.is_awaited(), _scenes)(view, story, word)
        answer.with_and_without(view, _title, _answer, QUOTING)


def _head(view: View, story: Story, missing: str, word: str) -> None:
    """Draw the question and its outcome. `missing` is a doubt about the answer; `word` is what the
    passages are that stay."""
    with st.container(key="present-head", horizontal=True, vertical_alignment="top"):
        html.draw(f'<h1 class="rf-question">{html.text(view.asked.query)}</h1>')
        if view.result.settings.clearance.enabled:
            with st.container(key="present-user", width=240):
                view_as.choose_user(
                    "presented-to", view_as.offered_users(view_as.groups(view.resources))
                )
        share.report_button(
            partial(share.report_of_query, view, str(state.session().profile)),
            "ragfilter.html",
            key="present-report",
        )
        ask.draw_present_button()
    prices = view.resources.prices
    price = (prices.prompt, prices.currency) if prices else ()
    lines = sentences(story, *price, word=word)
    k = view.result.settings.retrieval.k
    dropped = f"{FELL} {cutting(view.mine)}".strip()
    about = [FOUND, *([""] if story.unjudged else [])]
    about += [*([dropped] if story.falls else []), *([""] if story.message else [])]
    about.append(PROMPT.format(n=k))
    with st.container(key="present-said", gap=None):
        for words, help in zip(lines, about, strict=False):
            st.markdown(_numbers(words), help=help or None)
        if missing:
            html.draw(f'<p class="rf-aside">{html.text(missing)}</p>')
        if view.result.settings.clearance.enabled:
            lacking = view_as.hidden_note(view_as.groups(view.resources), view.user)
            html.draw(f'<p class="rf-aside">{html.text(lacking)}</p>')


def _numbers(words: str) -> str:
    """The text with its figures in bold."""
    return _FIGURE.sub(lambda found: f"**{found[0]}**", prose.literal(words))


def _scenes(view: View, story: Story, word: str) -> None:
    """Draw the buttons that step through the picture, and the picture."""
    _picture(view, story, _scene(story, word), word)


def _scene(story: Story, word: str) -> int:
    """Draw the scene controls. Returns how many steps have dropped their passages: all, unless the
    user is stepping through them."""
    last = len(story.steps)
    chosen: int | None = state.session().scene
    now = last if chosen is None else min(chosen, last)
    with st.container(key="present-bar", horizontal=True, vertical_alignment="center"):
        st.button(
            "After" if now < last else "Before",
            key="scene-flip",
            shortcut="B",
            type="primary",
            icon=":material/compare:",
            disabled=not last,
            on_click=state.put,
            args=(last if now < last else 0, "scene"),
            help="Show everything the search found, or only what the filter kept.",
        )
        for label, shortcut, to, about in (
            ("Back", "Left", now - 1, "Bring back the passages dropped last."),
            ("Next", "Right", now + 1, "Drop the next passages, one reason at a time."),
        ):
            st.button(
                label,
                key=f"scene-{label.lower()}",
                shortcut=shortcut,
                disabled=not 0 <= to <= last,
                on_click=state.put,
                args=(to, "scene"),
                help=about,
            )
        html.draw(
            f'<p class="rf-scene" role="status">{html.text(_caption(story, now, word))}</p>',
            width="content",
        )
        elements.hint(STEPS)
    return now


def _caption(story: Story, now: int, word: str) -> str:
    last = len(story.steps)
    if now >= last:
        return f"{counted(story.kept, 'passage')} {word}" if story.kept else "Nothing is left"
    fallen = sum(len(step.ids) for step in story.steps[:now])
    left = f"{story.found - fallen} of {story.found} left"
    return f"Step {now} of {last}: {left}" if now else f"Everything found: {story.found}"


def _picture(view: View, story: Story, after: int, word: str) -> None:
    dark = theme.is_dark()
    before = state.session().scene_before
    state.session().scene_before = after
    # Each plot is a new element; its height is reserved while it is drawn.
    st.html(f"<style>.st-key-scene-chart {{ min-height: {scene.height(story)}px; }}</style>")
    with st.container(key="scene-up" if before is not None and before > after else "scene-down"):
        plotting.draw(
            scene.plot(view.mine, story, after=after, before=before, dark=dark, word=word),
            key="scene-chart",
            fixed=True,
            alt=f"Every passage by its distance to the question. {_caption(story, after, word)}.",
        )


def _title(side: AnswerSide) -> None:
    """Draw which side it is, and how much it sends."""
    context = side.context
    n = len(context.chunks)
    # The mark comes after the text and wraps below it if there is no room.
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        html.draw(
            f'<h2 class="rf-side rf-{side.name}"><b>{TITLES[side.name]}</b> '
            f"<span>{counted(n, 'passage')}, {numbers.tokens(context.tokens)}</span></h2>",
            width="content",
        )
        elements.hint(f"{SIDES[side.name]} {TOKENS}")


def _answer(
    query: str, side: AnswerSide, other: AnswerSide, text: Answer, resources: Resources
) -> None:
    """Draw the answer, then the passages it was made from."""
    answer.draw_words(query, side, other, text, resources)
    theirs = {hit.id for hit in other.context.chunks}
    items = "".join(
        f"<li{'' if hit.id in theirs else ' class=rf-only'}>"
        f"{html.text(short_title(hit.chunk.name, TITLE_WIDTH))}</li>"
        for hit in side.context.chunks
    )
    only = sum(hit.id not in theirs for hit in side.context.chunks)
    note = f"<p>Marked: {counted(only, 'passage')} that only this side used.</p>" if only else ""
    html.draw(
        f'<div class="rf-used rf-used-{side.name}"><p>The passages sent</p><ol>{items}</ol>'
        f"{note}</div>"
    )
