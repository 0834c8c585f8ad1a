"""The Compare page: choose two sides, and one question or a query set. Of one question, it shows
what each side keeps and, a step away, why and both answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.answer import context
from ragfilter.answer.stream import Answer
from ragfilter.engine.replay import replay
from ragfilter.model import PoolResult
from ragfilter.report import seen, tokens
from ragfilter.report.rows import Pairing, contrast, reason
from ragfilter.stores.runs import Run
from ragfilter.text import numbers
from ragfilter.text.titles import telling_titles
from ragfilter.ui.compare import queries
from ragfilter.ui.compare import sides as choosing
from ragfilter.ui.compare.sides import ComparedSide, differences
from ragfilter.ui.kit import answers, empty, problems, question_box, share, sidebar, stacks
from ragfilter.ui.kit.runs import measuring
from ragfilter.ui.kit.stacks import Stack, StackRow
from ragfilter.ui.look import html
from ragfilter.ui.session import link, questions, state, visit, widget
from ragfilter.ui.session.visit import View, Visit

ONE = "One question"


@problems.shown(retry=True)
def draw(here: Visit) -> None:
    """Draw the two sides and their comparison."""
    name = choosing.query_set()
    if name or not here.ready:
        # Otherwise the question is the heading.
        html.unseen_heading("Compare", level=1)
    if not here.ready:
        sidebar.draw(here, None)
        empty.draw(here, None)
        return
    runs = measuring.saved_runs(here)
    problems.incomplete(here.incomplete if name else "")
    sides, place = _bar(here, runs, name)
    if name:
        link.share(more=choosing.parameters())
        link.show_address()
        share.draw_link(place, None)
        sidebar.draw(here, None)
        queries.draw(here, sides, name, runs)
        return
    question_box.draw(here)
    view, error = visit.view(here, choosing.parameters())
    link.show_address()
    share.draw_link(place, view)
    sidebar.draw(here, None)
    if view is None:
        html.unseen_heading("Compare", level=1)
        empty.draw(here, error)
        return
    problems.incomplete(view.result.pool.incomplete)
    _draw_question(view, sides)


def _bar(
    here: Visit, runs: Mapping[int, Run], name: str
) -> tuple[tuple[ComparedSide, ComparedSide], DeltaGenerator]:
    """Draw the choice of the two sides, and over what. Returns the sides, and the place for the
    link."""
    a, b = (choosing.read(letter, here.settings, runs) for letter in link.SIDES)
    # Messages about values of a link that could not be used.
    problems.notices(state.notices())
    with st.container(key="sides", horizontal=True, vertical_alignment="bottom", gap="small"):
        _choice("a", here, runs)
        st.button("Swap", key="sides-swap", icon=":material/swap_horiz:", on_click=choosing.swap)
        _choice("b", here, runs)
        _over(measuring.sets_of(here), name)
        st.button(
            "Copy A to B",
            key="sides-copy",
            icon=":material/content_copy:",
            on_click=choosing.copy,
            args=(a,),
            help="Copies current settings as a snapshot, so later changes are compared with it.",
        )
        place = st.container(key="share", width="content")
    return (a, b), place


def _choice(letter: str, here: Visit, runs: Mapping[int, Run]) -> None:
    word = choosing.chosen(letter)
    words = choosing.words(letter, here.settings, runs)
    labels = {each: choosing.named(each, letter, runs) for each in words}
    choose = partial(choosing.put, letter, changes={})
    widget.select(letter.upper(), labels, word, f"side-{letter}-box", choose, width=250)


def _over(sets: Mapping[str, int], name: str) -> None:
    """Draw the choice between one question and a query set."""
    names = sets if name in sets or not name else [name, *sets]
    labels = {"": ONE} | {each: measuring.called(sets, each) for each in names}
    widget.select("Over", labels, name, "compare-over", choosing.put_query_set, width=210)


TITLE_WIDTH = 40
STEP, OPENED = "compare-step", "compare-opened"
ANSWERS, SETTINGS = "Answers", "Settings"


@problems.shown()
def _draw_question(view: View, sides: tuple[ComparedSide, ComparedSide]) -> None:
    """Draw the comparison for one question."""
    with st.spinner("Searching …"):
        a, b = (seen(result_of(view, side)) for side in sides)
    contrasted = contrast(a, b)
    html.unseen_heading("Compare", level=1, name=view.asked.query)
    html.draw(f'<p class="rf-headline">{html.text(sentence(contrasted, a, b))}</p>')
    for letter, result in (("A", a), ("B", b)):
        if result.message:
            html.aside(f"{letter}: {result.message}")
        # Models are only asked on Inspect.
        for need in result.needs:
            html.aside(
                f"Side {letter} is incomplete: {need.why}. Open Inspect with these settings to ask "
                "for it."
            )
    if not contrasted:
        html.empty(
            "Neither side keeps a chunk.",
            "Choose a side that filters less, such as the profile unfiltered.",
        )
        return
    stacks.draw(
        stacked(contrasted, (sides[0].name, sides[1].name)),
        a,
        key="compare-stacks",
        on_open=partial(state.keep, name=OPENED),
    )
    opened = next((e for e in contrasted if e.id == st.session_state.get(OPENED)), None)
    if opened is not None:
        _chunk(opened, (a, b))
    pair = (
        answers.AnswerSide("A", context.pack(a.kept, a.settings)),
        answers.AnswerSide("B", context.pack(b.kept, b.settings)),
    )
    with st.container(
        key="compare-steps", horizontal=True, vertical_alignment="center", gap="small"
    ):
        step = st.segmented_control(
            "Show", [ANSWERS, SETTINGS], key=STEP, label_visibility="collapsed"
        )
        names = sides[0].called, sides[1].called
        make = partial(share.report_of_two, view, (a, b), names, pair)
        share.report_button(make, share.report_name(view.asked.query), key="compare-report")
    if step == SETTINGS:
        told = differences(sides[0].settings, sides[1].settings)
        html.aside("From A to B:" if told else "A and B have the same settings.")
        for layer, changes in told.items():
            html.aside(f"{layer}: {', '.join(changes)}")
    elif step == ANSWERS or answers.is_awaited():
        _answers(view, sides, pair)


def result_of(view: View, side: ComparedSide) -> PoolResult:
    """The result for the question with a side's settings. Raises RagfilterError."""
    if side.settings == view.result.settings:
        return view.result
    user, resources = state.user(), view.resources
    asked = questions.ask_now(
        view.asked.query, view.asked.collection, side.settings, user, resources
    )
    pool = questions.pool_of(asked, side.settings, resources)
    if replay(pool, side.settings, user).needs:
        pool = questions.complete_pool(asked, pool, side.settings, user, resources)
    return replay(pool, side.settings, user)


def sentence(contrasted: Sequence[Pairing], a: PoolResult, b: PoolResult) -> str:
    """What the two sides keep: ``Both keep 2 chunks; only A keeps 13 more. …``."""
    counts = Counter(each.keeper for each in contrasted)
    both, only_a, only_b = (counts[keeper] for keeper in ("both", "a", "b"))
    more = [
        f"only {letter} keeps {numbers.count(n)} {'more' if both else 'of its own'}"
        for letter, n in (("A", only_a), ("B", only_b))
        if n
    ]
    shared = f"both keep {'the same ' if not more else ''}{numbers.chunks(both)}"
    clauses = ", and ".join([*([shared] if both or not more else []), *more])
    costs = f"A's prompt has {numbers.tokens(tokens(a.kept))}, B's {numbers.count(tokens(b.kept))}."
    return f"{clauses[:1].upper()}{clauses[1:]}. {costs}"


def stacked(contrasted: Sequence[Pairing], names: tuple[str, str]) -> tuple[Stack, Stack]:
    """What A and B keep, row by row. A chunk that only one side keeps stands apart."""
    a: list[StackRow | None] = []
    b: list[StackRow | None] = []
    for each in contrasted:
        other = {"a": each.b, "b": each.a, "both": None}[each.keeper]
        why = "kept by both" if each.keeper == "both" else f"on the other side {reason(other)}"
        entry = StackRow(each.id, each.title, why=why, alone=each.keeper != "both")
        a.append(entry if each.keeper != "b" else None)
        b.append(entry if each.keeper != "a" else None)
    return Stack(f"A: {names[0]}", tuple(a)), Stack(f"B: {names[1]}", tuple(b))


def _chunk(each: Pairing, results: Sequence[PoolResult]) -> None:
    """Draw the chunk that was chosen, and what both sides decide about it."""
    hit = next(hit for result in results for hit in result.kept if hit.id == each.id)
    facts = "".join(
        f"<span>{html.text(fact)}</span>"
        for fact in (each.id, f"A: {reason(each.a)}", f"B: {reason(each.b)}")
    )
    with st.container(key="compare-chunk", border=True):
        html.draw(
            f'<section class="rf-chunk"><h3>{html.text(each.title)}</h3>'
            f'<p class="rf-facts">{facts}</p></section>'
        )
        st.text(hit.chunk.text or "This chunk has no text.")


def _answers(
    view: View,
    sides: tuple[ComparedSide, ComparedSide],
    pair: tuple[answers.AnswerSide, answers.AnswerSide],
) -> None:
    """Draw both answers with what they cite, and the votes on them."""

    def show(side: answers.AnswerSide, other: answers.AnswerSide, reply: Answer) -> None:
        cited = answers.draw_words(view, side, other, reply)
        titles = telling_titles([hit.chunk.name for hit in side.context.chunks], TITLE_WIDTH)
        html.aside(" · ".join(f"[{n}] {titles[n - 1]}" for n in cited))

    with st.container(key="compare-answers", border=True):
        found = answers.both(view, pair, answers.title, show)
        if found is not None:
            voted = tuple(
                answers.answered(each, reply, side.profile, side.settings)
                for each, reply, side in zip(pair, found, sides, strict=True)
            )
            answers.draw_votes(view, (voted[0], voted[1]), ("A", "B"), own="compare")
