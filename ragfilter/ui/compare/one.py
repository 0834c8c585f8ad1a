"""One question with two settings: the two lists, who keeps what and why, and both answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd
import streamlit as st

from ragfilter.answer import context
from ragfilter.answer.stream import Answer
from ragfilter.engine.replay import replay
from ragfilter.model import PoolResult
from ragfilter.report import seen, tokens
from ragfilter.report.contrast import Contrast, Keeper, Pairing, contrast, reason
from ragfilter.text import numbers
from ragfilter.text.titles import short_title
from ragfilter.ui.compare import plot
from ragfilter.ui.compare.sides import ComparedSide
from ragfilter.ui.kit import answer, grid, problems, progress, share, votes
from ragfilter.ui.look import elements, html, plotting, theme
from ragfilter.ui.look.elements import Fact
from ragfilter.ui.session import answers, questions, state
from ragfilter.ui.session.resources import Resources
from ragfilter.ui.session.visit import View

ALL = "All"
TITLE_WIDTH = 40
KEEPERS: dict[str, Keeper] = {"Only A": "a", "Both": "both", "Only B": "b"}
KEPT_BY = {keeper: label for label, keeper in KEEPERS.items()}


@problems.shown()
def draw(view: View, sides: tuple[ComparedSide, ComparedSide]) -> None:
    """Draw the comparison for one question."""
    with st.spinner("Searching …"):
        results = tuple(seen(result_of(view, side)) for side in sides)
    a, b = results
    made = contrast(a, b)
    html.heading(view.asked.query, level=1)
    _strip(made, results)
    for side, result in zip(sides, results, strict=True):
        _waiting(side, result)
    if not made.pairings:
        elements.empty(
            "Neither side keeps a chunk.",
            "Choose a side that filters less, such as the profile unfiltered.",
        )
        return
    _lists(made)
    progress.unless(answer.is_awaited(), _table)(made, results)
    html.heading("Answers")
    pair = (
        answers.AnswerSide("A", context.pack(a.kept, a.settings)),
        answers.AnswerSide("B", context.pack(b.kept, b.settings)),
    )
    share.report_button(
        partial(share.report_of_two, view, (a, b), (sides[0].called, sides[1].called), pair),
        "ragfilter-compare.html",
        key="compare-report",
    )
    with st.container(key="compare-answers", border=True):
        found = answer.both(view, pair, answer.title, _show)
        if found is not None:
            voted = tuple(
                answer.answered(each, said, side.profile, side.settings)
                for each, said, side in zip(pair, found, sides, strict=True)
            )
            votes.draw(view, (voted[0], voted[1]), ("A", "B"), own="compare")


def result_of(view: View, side: ComparedSide) -> PoolResult:
    """The result for the question with a side's settings. Raises RagfilterError."""
    if side.settings == view.result.settings:
        return view.result
    user, resources = state.user(), view.resources
    asked = questions.ask_now(
        view.asked.query, view.asked.collection, side.settings, user, resources
    )
    pool = questions.pool_of(asked, side.settings, resources)
    result = replay(pool, side.settings, user)
    if result.needs:
        result = replay(
            questions.settle_pool(asked, pool, side.settings, user, resources), side.settings, user
        )
    return result


def _strip(made: Contrast, results: Sequence[PoolResult]) -> None:
    facts: list[Fact] = [
        (
            f"{letter} keeps",
            numbers.chunks(len(result.kept)),
            numbers.tokens(tokens(result.kept)),
        )
        for letter, result in zip("AB", results, strict=True)
    ]
    facts += [(label, str(len(made.only(keeper))), "") for label, keeper in KEEPERS.items()]
    elements.facts("Comparison", facts)


def _waiting(side: ComparedSide, result: PoolResult) -> None:
    """Draw what a side still lacks. Models are only asked on Inspect."""
    letter = side.letter.upper()
    if result.message:
        elements.aside(f"{letter}: {result.message}")
    for need in result.needs:
        elements.aside(
            f"Side {letter} is incomplete: {need.why}. Open Inspect with these settings to ask for "
            "it."
        )


def _lists(made: Contrast) -> None:
    html.heading("Lists")
    with st.container(key="compare-lists"):
        plotting.draw(
            plot.joined(made, dark=theme.is_dark()),
            key="compare-lists-chart",
            alt="The two ranked lists, joined where both keep a chunk",
        )
    _legend(made)
    longest = max((row.place or 0 for e in made.pairings for row in (e.a, e.b) if row), default=0)
    if longest > plot.MOST:
        elements.aside(f"The first {plot.MOST} of each; the table has all.")


def _legend(made: Contrast) -> None:
    """Draw the meaning of the marks in the plot."""
    fell = [row.layer for each in made.pairings for row in (each.a, each.b)
            if row is not None and not row.kept]  # fmt: skip
    items = "".join(
        f"<li>{html.sign(theme.LAYERS[name], f'layer-{name}')}dropped by {html.text(name)}</li>"
        for name in dict.fromkeys(fell)
    )
    if items:
        html.draw(f'<ul class="rf-legend">{items}</ul>')


def _table(made: Contrast, results: Sequence[PoolResult]) -> None:
    html.heading("Chunks")
    counts = {label: len(made.only(keeper)) for label, keeper in KEEPERS.items()}
    wanted = st.segmented_control(
        "Chunks shown",
        [ALL, *KEEPERS],
        key="compare-shown",
        default=ALL,
        required=True,
        format_func=lambda each: f"{each} · {counts.get(each, len(made.pairings))}",
        help="Chunks by the side that keeps them. Click a row to read its chunk.",
    )
    shown = [e for e in made.pairings if wanted in (None, ALL, KEPT_BY[e.keeper])]
    if not shown:
        elements.empty("There are no chunks of this kind.", "Choose All.")
        return
    table = pd.DataFrame(
        {
            "kept by": [KEPT_BY[each.keeper] for each in shown],
            "title": [short_title(each.title, TITLE_WIDTH) for each in shown],
            "in A": [reason(each.a) for each in shown],
            "in B": [reason(each.b) for each in shown],
        }
    )
    text = st.column_config.TextColumn
    row = grid.picked(
        table,
        (each.id for each in shown),
        name="compare-rows",
        columns={
            "kept by": text(width=70),
            "title": text(width=260),
            "in A": text(width=330, help="A's decision and its reason."),
            "in B": text(width=330, help="B's decision and its reason."),
        },
    )
    if row is not None:
        _chunk(shown[row], results)


def _chunk(each: Pairing, results: Sequence[PoolResult]) -> None:
    """Draw the chunk of the row that was clicked."""
    hit = next(hit for result in results for hit in result.kept if hit.id == each.id)
    with st.container(key="compare-chunk", border=True):
        html.draw(
            f'<section class="rf-chunk"><h3>{html.text(each.title)}</h3>'
            f'<p class="rf-facts"><span>{html.text(each.id)}</span></p></section>'
        )
        st.text(hit.chunk.text or "This chunk has no text.")


def _show(
    query: str,
    side: answers.AnswerSide,
    other: answers.AnswerSide,
    said: Answer,
    resources: Resources,
) -> None:
    """Draw the answer and what it cites."""
    cited = answer.draw_words(query, side, other, said, resources)
    titles = [hit.chunk.name for hit in side.context.chunks]
    told = " · ".join(f"[{n}] {short_title(titles[n - 1], TITLE_WIDTH)}" for n in cited)
    elements.aside(told)
