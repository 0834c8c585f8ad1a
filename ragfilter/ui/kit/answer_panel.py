"""The answer from the kept chunks beside the one from a plain search. If an LLM fails, the extractive answer appears
below its error. Text from chunks that the other context lacks is marked. Visitors vote for the better answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from time import monotonic

import streamlit as st

from ragfilter.answer.answer import DOUBT, UNFINISHED, Answer
from ragfilter.answer.extractive import Quote
from ragfilter.protocols import ChatModel
from ragfilter.settings.config import of_profile
from ragfilter.settings.schema import Settings
from ragfilter.stores.preferences import Choice, PairSide, on_pair, on_settings
from ragfilter.text import numbers
from ragfilter.text.titles import telling_titles
from ragfilter.ui.kit import answer_making, problems
from ragfilter.ui.kit.answer_making import LAST_CITATION, AnswerSide, Piece
from ragfilter.ui.look import elements, prose
from ragfilter.ui.resources import Resources, open_resources
from ragfilter.ui.session import state
from ragfilter.ui.session.page_run import View

TITLE_WIDTH = 31
SHOWN_CHARS = 20_000
"""How many characters of an answer are shown: browsers take seconds to draw longer ones, which an LLM can send."""
MAX_PIECES = 40
"""Maximum number of pieces drawn one by one; a longer answer is drawn as a whole."""
MAX_UNKNOWN = 10
QUOTING = "extractive: the sentences closest to the question, no LLM"
INSTEAD = "Instead, without an LLM: the sentences closest to the question."


def draw(view: View) -> None:
    """Draw both answers, with a button for any that the LLM has not given yet, and the preference between them."""
    k = view.result.settings.retrieval.k
    sides = answer_making.answer_sides(view.as_user)

    def draw_answer(side: AnswerSide, other: AnswerSide, answer: Answer) -> None:
        _cites(side, draw_text(view, side, other, answer), answer.unknown_citations)
        if side.context.chunks and answer.text:
            elements.aside(_cost(answer))

    titles = title(sides[0]), title(sides[1], f" (first {k})")
    pair = draw_columns(view, sides, titles, draw_answer)
    if pair is not None:
        plain = of_profile("unfiltered").with_values({"retrieval.k": k})
        pair_sides = (
            side_of_pair(sides[0], pair[0], state.session().profile, view.result.settings),
            side_of_pair(sides[1], pair[1], "unfiltered", plain),
        )
        draw_preference(view, pair_sides, (sides[0].label, sides[1].label), key="inspect")


def draw_brief(view: View) -> None:
    """Draw the text of both answers. The panel has their citations, costs and preferences."""
    word = "Answer" if view.resources.bench.chat else "Quotes"

    def brief_title(side: AnswerSide) -> str:
        n, kept = len(side.context.chunks), side.name == "filtered"
        passing = f"the {numbers.counted(n, 'passage')} that {'passes' if n == 1 else 'pass'}"
        words = f"{word} from {passing if kept else 'plain search'}" if n else "No passage passes"
        return f'<h3 class="rf-side rf-{side.name}">{words}</h3>'

    sides = answer_making.answer_sides(view.as_user)
    draw_columns(view, sides, (brief_title(sides[0]), brief_title(sides[1])), partial(draw_text, view), "")


def draw_columns(
    view: View,
    sides: tuple[AnswerSide, AnswerSide],
    titles: tuple[str, str],
    draw_answer: Callable[[AnswerSide, AnswerSide, Answer], object],
    quoting: str = QUOTING,
) -> tuple[Answer, Answer] | None:
    """Draw the two columns. Returns the answers, or None if one is missing. `titles` are HTML. `draw_answer` is given
    both sides. `quoting` describes the answers if no LLM is configured."""
    query, resources = view.asked.query, view.resources
    chat = resources.bench.chat
    known = [answer_making.known_answer(query, side, resources) for side in sides]
    if chat is None:
        with st.spinner("Reading the chunks …"):
            for side, answer in zip(sides, known, strict=True):
                if answer is None or answer.error:
                    answer_making.make_extractive(query, side, resources)
        known = [answer_making.known_answer(query, side, resources) for side in sides]
    asking, state.session().answering = state.session().answering, ""
    if not any(side.context.chunks for side in sides):
        # The text above already says that there are no chunks.
        return None
    first, second = known
    savings = answer_making.savings_of(first, second) if first and second else ""
    if savings:
        savings = f"; {'with the filter' if sides[0].name == 'filtered' else sides[0].name} {savings}"
    missing = any(answer is None or bool(answer.error) for answer in known)
    _head(chat.name if chat else "", quoting, savings, missing=missing, asking=bool(asking))
    columns = st.columns(2, gap="medium")
    for side, other, heading, answer, column in zip(sides, sides[::-1], titles, known, columns, strict=True):
        with column:
            elements.draw(heading)
            if chat and asking and (asking == "all" or answer is None or answer.error):
                _stream(query, side, chat, resources)
            elif answer is not None:
                draw_answer(side, other, answer)
            else:
                elements.draw('<p class="rf-empty">No answer from these chunks yet.</p>')
    if asking:
        # Draw the same answers from the cache, with their citations and without the Stop button.
        st.rerun()
    return (first, second) if first and second and first.text and second.text else None


def _head(model: str, quoting: str, savings: str, *, missing: bool, asking: bool) -> None:
    """Draw who answers, what the first side saves, and the button."""
    label = elements.text(f"answers by {prose.model_label(model)}{savings}") if model else quoting
    if not label:
        return
    with elements.row("answer-bar"):
        elements.draw(f'<p class="rf-aside">{label}</p>')
        if asking:
            elements.button("Stop", "stop", icon="stop")
        elif missing and model:
            about = "Makes one call for each missing answer."
            words = f"Answer with {prose.literal(model)}"
            elements.button(words, "answer", state.set_field, "missing", "answering", type="primary", about=about)
        elif model:
            about = "These answers are cached. Asking again makes two calls."
            elements.button("Ask again", "answer-again", state.set_field, "all", "answering", about=about)


def title(side: AnswerSide, note: str = "") -> str:
    """The side's name and how much it sends, as HTML."""
    context = side.context
    return (
        f'<p class="rf-side rf-{side.name}"><b>{side.label}</b>{note}'
        f"<span>{numbers.chunk_count(len(context.chunks))}, {numbers.token_count(context.tokens)}</span></p>"
    )


def _stream(query: str, side: AnswerSide, chat: ChatModel, resources: Resources) -> None:
    """Draw the answer as it arrives and, until its first piece, the seconds waited."""
    limit, slot, began = resources.bench.deployment.answer_timeout_s, st.empty(), monotonic()
    # Closed at once if Stop interrupts the drawing, so the next run finds what has arrived.
    with closing(answer_making.stream_answer(query, side, chat, resources)) as texts:
        for text in texts:
            if text:
                slot.markdown(prose.written(side.renumbered(text[:SHOWN_CHARS])))
            else:
                slot.html(
                    f'<p class="rf-aside" role="status">Waiting for {elements.text(chat.name)} … '
                    f"{monotonic() - began:.0f} of at most {limit:g} s</p>"
                )


def draw_text(view: View, side: AnswerSide, other: AnswerSide, answer: Answer) -> tuple[int, ...]:
    """Draw the answer's text or what replaces it. Returns the numbers of the cited chunks."""
    query, resources = view.asked.query, view.resources
    cites = list(answer.citations)
    with st.container(key=f"answer-{side.name}", gap="small"):
        _doubt(answer)
        if answer.text:
            added = [q for q in answer_making.added(query, side, other, resources) if q.text not in answer.text]
            cites += [quote.number for quote in added]
            _pieces(replace(answer, text=answer.text[:SHOWN_CHARS]), side, other, added=added)
            if len(answer.text) > SHOWN_CHARS:
                elements.aside(f"The first {SHOWN_CHARS:,} of {len(answer.text):,} characters.")
        if answer.error == UNFINISHED:
            elements.aside("Stopped before the end.")
        elif answer.error:
            elements.draw_action_result(answer.error, good=False)
        quoted = answer_making.known_replacement(query, side, resources) if answer.failed else None
        if quoted is not None and not quoted.error:
            elements.aside(INSTEAD)
            _doubt(quoted)
            _pieces(quoted, side, other, name="instead")
            cites += quoted.citations
    return tuple(dict.fromkeys(cites))


def _doubt(answer: Answer) -> None:
    if answer.doubt:
        elements.aside(DOUBT.format(why=answer.doubt))


def _cites(side: AnswerSide, cites: Sequence[int], unknown: Sequence[int]) -> None:
    """Draw a button for each cited chunk, and the citations of no chunk."""
    chunks = side.context.chunks
    titles = telling_titles([hit.chunk.name for hit in chunks], TITLE_WIDTH)
    if cites:
        with st.container(key=f"cites-{side.name}", gap=None):
            for n in cites:
                label = f"[{side.numbers[n - 1]}] {prose.literal(titles[n - 1])}"
                elements.button(label, f"cite-{side.name}-{n}", state.open_chunk, chunks[n - 1].id, type="tertiary")
    if unknown:
        listed = numbers.first_of([f"[{n}]" for n in unknown], MAX_UNKNOWN)
        elements.aside(f"Cites {listed}, which {'is' if len(unknown) == 1 else 'are'} not in its prompt.")


def _cost(answer: Answer) -> str:
    parts = [f"{'cached, ' if answer.cached else ''}took {numbers.ms(answer.ms)}"]
    usage = answer.usage
    if not answer.extractive and usage.prompt_tokens:
        parts.append(numbers.exchanged(usage.prompt_tokens, usage.completion_tokens, estimated=usage.estimated))
    if answer.cost is not None:
        parts.append(f"cost {numbers.money(answer.cost, answer.currency)}")
    return " · ".join(parts)


def _pieces(
    answer: Answer, side: AnswerSide, other: AnswerSide, name: str = "text", added: Sequence[Quote] = ()
) -> None:
    """Draw the answer's text, and what its context adds to the other one. Text from chunks that the
    other context lacks is marked. `name` separates its keys from the side's other answers."""
    pieces = answer_making.pieces(answer, side.context, other.context)
    if len(pieces) > MAX_PIECES:
        pieces = (Piece(answer.text, False),)
    if answer.extractive:
        more = [Piece(f"{quote.text} [{quote.number}]", True) for quote in added]
        label = '<p class="rf-aside">Also in this prompt:</p>' if more else ""
        quote = partial(_quote, side)
        quoted = "".join(map(quote, pieces)) + label + "".join(map(quote, more))
        elements.draw(f'<div class="rf-quoted" tabindex="0" data-passage>{quoted}</div>')
        return
    for number, piece in enumerate(pieces):
        with st.container(key=f"{'apart' if piece.apart else 'piece'}-{side.name}-{name}-{number}"):
            st.markdown(prose.written(side.renumbered(piece.text)))


def _quote(side: AnswerSide, piece: Piece) -> str:
    words = elements.text(side.renumbered(piece.text, LAST_CITATION))
    words = LAST_CITATION.sub(r"<b>\g<0></b>", words).replace("\n", "<br>")
    return f"<p>{f'<mark>{words}</mark>' if piece.apart else words}</p>"


def side_of_pair(side: AnswerSide, answer: Answer, profile: str, settings: Settings) -> PairSide:
    """One side as a preference stores it. Clearance is left out: a comparison never varies the user."""
    changes = state.without_clearance(settings.changed_from(of_profile(profile)))
    return PairSide(profile, changes, tuple(hit.id for hit in side.context.chunks), answer.model)


@problems.show_errors()
def draw_preference(view: View, pair: tuple[PairSide, PairSide], names: tuple[str, str], *, key: str) -> None:
    """Draw the four buttons, the current choice and the tally. `names` are the columns'. `key` tells places apart."""
    query, (left, right) = view.asked.query, pair
    if left.text == right.text or left.chunks == right.chunks:
        # Both contexts are the same, so there is nothing to choose between.
        return
    collection = state.session().collection
    every = view.resources.bench.preferences.of(collection)
    of_pair = on_pair((each for each in every if each.query == query.strip()), left, right)
    mine = next((each.seen_from(left) for each in of_pair if each.who == state.author()), None)
    first, second = names
    choices: dict[Choice, tuple[str, str]] = {
        "first": (f"{first.capitalize()} is better", f"for {first}"),
        "second": (f"{second.capitalize()} is better", f"for {second}"),
        "both": ("Both fine", "both fine"),
        "neither": ("Both poor", "both poor"),
    }

    def tally(of: Counter[Choice]) -> str:
        counts = [f"{of[choice]} {words}" for choice, (_, words) in choices.items() if of[choice]]
        return ", ".join([numbers.counted(of.total(), "vote"), *counts])

    on_this, on_these = Counter(each.seen_from(left) for each in of_pair), on_settings(every, left, right)
    words = f"This pair: {tally(on_this)}." if of_pair else "No votes on this pair yet."
    if on_these.total() > len(of_pair):
        words += f" These settings over all questions: {tally(on_these)}."
    with st.container(key=f"preference-{key}", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            for choice, (label, _) in choices.items():
                look = "primary" if choice == mine else "secondary"
                elements.button(label, f"prefer-{key}-{choice}", _prefer, collection, query, *pair, choice, type=look)
        elements.draw(f'<p class="rf-aside" role="status">{elements.text(words)}</p>')


@state.notice_errors()
def _prefer(collection: str, query: str, left: PairSide, right: PairSide, choice: Choice) -> None:
    open_resources().bench.preferences.record(collection, query, left, right, choice, who=state.author())
