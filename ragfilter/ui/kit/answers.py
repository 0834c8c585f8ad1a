"""The answer from the kept chunks beside the one from a plain search, and the votes on which is
better. Votes are stored with the labels, one per person and pair.

An extractive answer is made as soon as a page shows it. Only a button asks an LLM; if that fails, the extractive answer
appears below the error. Text that rests on chunks missing from the other context is marked.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from time import monotonic

import streamlit as st

from ragfilter.answer import extractive
from ragfilter.answer.context import Context, pack, sent
from ragfilter.answer.extractive import Quote
from ragfilter.answer.stream import DOUBT, EXTRACTIVE, UNFINISHED, VERSION, Answer, AnswerStream, citations
from ragfilter.engine.replay import unfiltered
from ragfilter.errors import ModelError
from ragfilter.model import Hit, PoolResult
from ragfilter.protocols import Embedder, Progress
from ragfilter.settings.config import of_profile
from ragfilter.settings.schema import Settings
from ragfilter.stores.preferences import Answered, Choice, on_pair, on_settings
from ragfilter.text import numbers
from ragfilter.text.titles import telling_titles
from ragfilter.ui.jobs import Job, Stoppable
from ragfilter.ui.kit import problems
from ragfilter.ui.look import html, prose
from ragfilter.ui.resources import Resources, ShelfSpec, open_resources
from ragfilter.ui.session import state
from ragfilter.ui.session.views import View, author

TICK_S = 0.1
MAX_ADDED = 2
"""Maximum number of quotes from chunks that only one context has."""
ADDED: ShelfSpec[tuple[Quote, ...]] = ShelfSpec(128)
"""What one side adds to another, by the keys of both."""
DEMONSTRATION = "smollm2-135m"
"""The model that `make local-llm` serves."""
_CITATION = re.compile(r"\[\d[\d,;\s–-]*\]")
# A quote may itself contain numbers in brackets.
_QUOTED = re.compile(r"\[\d+\]$")


@dataclass(frozen=True, slots=True)
class AnswerSide:
    """One column of the comparison: its name, the context of its prompt, and the numbers by which
    the page cites its chunks."""

    name: str
    context: Context
    numbers: tuple[int, ...]

    @property
    def label(self) -> str:
        """The side's name on the page."""
        return "plain search" if self.name == "unfiltered" else self.name

    def renumbered(self, text: str, citation: re.Pattern[str] = _CITATION) -> str:
        """`text` with the page's numbers in place of the prompt's."""

        def anew(match: re.Match[str]) -> str:
            known, unknown = citations(match[0], len(self.numbers))
            return f"[{', '.join(map(str, (*(self.numbers[n - 1] for n in known), *unknown)))}]"

        return citation.sub(anew, text)


def page_numbers(*prompts: Sequence[Hit]) -> dict[str, int]:
    """One number for each chunk of several prompts, by id. The longest prompt's numbers come first,
    then the chunks that it lacks."""
    longest_first = sorted(prompts, key=len, reverse=True)
    ids = dict.fromkeys(hit.id for hits in longest_first for hit in hits)
    return {chunk_id: n for n, chunk_id in enumerate(ids, start=1)}


def side_by_side(names: tuple[str, str], contexts: tuple[Context, Context]) -> tuple[AnswerSide, AnswerSide]:
    """The two columns of these contexts."""
    number = page_numbers(*(each.chunks for each in contexts))
    first, second = (
        AnswerSide(name, each, tuple(number[hit.id] for hit in each.chunks))
        for name, each in zip(names, contexts, strict=True)
    )
    return first, second


def answer_sides(result: PoolResult) -> tuple[AnswerSide, AnswerSide]:
    """The filtered context, and the context of a plain search's first k chunks."""
    plain = unfiltered(result.pool, result.settings, result.user)
    contexts = pack(result.kept, result.settings), pack(plain, result.settings)
    return side_by_side(("filtered", "unfiltered"), contexts)


def known_answer(query: str, side: AnswerSide, resources: Resources) -> Answer | None:
    """The answer for this context, if it is cached or can be made without calling a model."""
    key, chat = _key(query, side, resources), resources.bench.chat
    answer = resources.answers.get(key)
    if answer is None and chat is not None:
        answer = resources.bench.answers.get(query, side.context, chat.name, resources.bench.prices)
    if answer is None and (chat is None or not side.context.chunks):
        extracted = _extractive_answer(query, side.context, resources, only_known=True)
        answer = None if extracted.error else extracted
    return answer and resources.answers.put(key, answer)


def stream_answer(query: str, side: AnswerSide, resources: Resources) -> Generator[str]:
    """Yield the text so far repeatedly, even while nothing arrives. It is cached as it arrives,
    because after a stop the next run may begin before this one has ended."""
    chat, call, stop = resources.bench.chat, object(), threading.Event()
    stream = AnswerStream(
        query,
        side.context,
        None if chat is None else Stoppable(chat, stop),
        resources.embedder(),
        timeout_s=resources.deployment.answer_timeout_s,
        prices=resources.bench.prices,
    )
    key = _key(query, side, resources)
    job = resources.jobs.start(None, call, lambda _: stream.read())
    try:
        while not job.wait(TICK_S):
            # Take the whole text: its beginning may turn out to be a thought.
            yield resources.answers.put(key, stream.answer).text
    finally:
        answer = resources.answers.put(key, stream.answer)
        stop.set()
        resources.jobs.stop(call)
        resources.bench.answers.put(answer)
    if answer.error and not answer.extractive:
        _cache_extractive(query, side, resources, EXTRACTIVE)


def added(query: str, side: AnswerSide, other: AnswerSide, resources: Resources) -> tuple[Quote, ...]:
    """What the side's context adds to the other's, if that is known without calling a model."""
    if resources.bench.chat is not None:
        return ()
    key = _key(query, side, resources), _key(query, other, resources)
    embedder = resources.embedder(only_known=True)
    try:
        return resources.shelf(ADDED).of(key, lambda: quotes_beyond(query, side.context, other.context, embedder))
    except ModelError:
        return ()


def quotes_beyond(query: str, context: Context, other: Context, embedder: Embedder) -> tuple[Quote, ...]:
    """Quotes nearest to the query from the chunks that `other` lacks, numbered as in `context`.

    Raises ModelError.
    """
    theirs = {hit.id for hit in other.chunks}
    own = [(n, hit) for n, hit in enumerate(context.chunks, start=1) if hit.id not in theirs]
    quotes = extractive.extract(query, [hit for _, hit in own], embedder)[:MAX_ADDED]
    return tuple(Quote(own[q.number - 1][0], q.text, q.score, q.is_row) for q in quotes)


def _cache_extractive(query: str, side: AnswerSide, resources: Resources, model: str = "") -> None:
    """Make one extractive answer, once for all runs that wait for it, and stop when none does.
    Never raises: a failure is shown in place of the answer."""
    key = _key(query, side, resources, model)

    def work(job: Job[None]) -> None:
        answer = _extractive_answer(query, side.context, resources, progress=job.step)
        if not job.stop.is_set():
            resources.answers.put(key, answer)

    with resources.jobs.joined(key, work) as job:
        job.attend()


def _extractive_answer(
    query: str, context: Context, resources: Resources, *, only_known: bool = False, progress: Progress | None = None
) -> Answer:
    embedder = resources.embedder(only_known=only_known, progress=progress)
    timeout = resources.deployment.answer_timeout_s
    return AnswerStream(query, context, None, embedder, timeout_s=timeout).read()


def _key(query: str, side: AnswerSide, resources: Resources, model: str = "") -> Hashable:
    chat, context = resources.bench.chat, side.context
    model = model or (chat.name if chat else EXTRACTIVE)
    contents = tuple((hit.id, hash(sent(hit))) for hit in context.chunks)
    return query, model, VERSION, contents, context.shortened


def model_label(model: str) -> str:
    """The model's name, with a warning if it is the one that `make local-llm` serves."""
    tiny = DEMONSTRATION in model.casefold()
    return f"{model}, a tiny demonstration model, often wrong" if tiny else model


_BLOCKS = re.compile(r"\n\s*\n")
_FORMATTED = re.compile(r"^\s*(?:[-*+#>|]|\d+[.)]\s|`{3}|~{3})", re.MULTILINE)
# The end of a sentence, with the citations after it.
_END = re.compile(r"[.!?][\"”’)]*(?:\s*\[[\d,;\s–-]+\])*(?=\s+[^\s\[a-z])")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer. `apart` says that it rests on a chunk that the other context lacks."""

    text: str
    apart: bool


def pieces(answer: Answer, context: Context, other: Context) -> tuple[Piece, ...]:
    """The answer's paragraphs in order, with plain ones split into runs of sentences."""
    theirs = {hit.id for hit in other.chunks}
    lacking = {n for n, hit in enumerate(context.chunks, start=1) if hit.id not in theirs}

    def apart(text: str) -> bool:
        if answer.extractive:
            quoted = _QUOTED.search(text)
            text = quoted[0] if quoted else ""
        return not lacking.isdisjoint(citations(text, len(context.chunks))[0])

    # Code may contain empty lines, so a text with a code fence stays whole.
    fenced = "```" in answer.text or "~~~" in answer.text
    blocks = [answer.text] if fenced else filter(str.strip, _BLOCKS.split(answer.text))
    return tuple(
        Piece(" ".join(run), is_apart)
        for block in blocks
        for is_apart, run in groupby([block] if answer.extractive else _sentences(block), key=apart)
    )


def savings_of(filtered: Answer, unfiltered: Answer) -> str:
    """What the filter saved for an LLM's answer, if known: ``77% cheaper, 1.2 s faster``."""
    if any(a.extractive or a.error or not a.text for a in (filtered, unfiltered)):
        return ""
    savings = []
    if filtered.cost is not None and unfiltered.cost:
        savings.append(_share(filtered.cost, unfiltered.cost, "cheaper", "dearer"))
    else:
        before, after = (a.usage.prompt_tokens + a.usage.completion_tokens for a in (unfiltered, filtered))
        if before:
            savings.append(_share(after, before, "fewer tokens", "more tokens"))
    seconds = (unfiltered.ms - filtered.ms) / 1000
    if abs(seconds) >= 0.05:
        savings.append(f"{abs(seconds):.1f} s {'faster' if seconds > 0 else 'slower'}")
    return ", ".join(filter(None, savings))


def _share(after: float, before: float, less: str, more: str) -> str:
    percent = round(100 * (before - after) / before)
    return f"{abs(percent)}% {less if percent > 0 else more}" if percent else ""


def _sentences(block: str) -> list[str]:
    """The sentences of a plain paragraph; a list, table or heading stays whole."""
    if _FORMATTED.search(block):
        return [block.strip()]
    return [part.strip() for part in _END.sub("\\g<0>\0", block.strip()).split("\0")]


TITLE_WIDTH = 31
SHOWN_CHARS = 20_000
"""How many characters of an answer are shown. Browsers take seconds to draw longer ones, and an
endpoint can send any length."""
MAX_UNKNOWN = 10
QUOTING = "extractive: the sentences closest to the question, no LLM"
INSTEAD = "Instead, without an LLM: the sentences closest to the question."


def draw(view: View) -> None:
    """Draw both answers, with a button for any that the LLM has not given yet."""
    k = view.result.settings.retrieval.k
    sides = answer_sides(view.mine)
    notes = {sides[0].name: "", sides[1].name: f" (first {k})"}

    def show(side: AnswerSide, other: AnswerSide, answer: Answer) -> None:
        _cites(side, replace(answer, citations=draw_words(view, side, other, answer)))
        if side.context.chunks:
            _cost(answer)

    answers_given = draw_columns(view, sides, lambda side: title(side, notes[side.name]), show)
    if answers_given is None:
        return
    plain = of_profile("unfiltered").with_values({"retrieval.k": k})
    pair = (
        answered(sides[0], answers_given[0], state.session().profile, view.result.settings),
        answered(sides[1], answers_given[1], "unfiltered", plain),
    )
    draw_votes(view, pair, (sides[0].label, sides[1].label), own="inspect")


def draw_brief(view: View) -> None:
    """Draw the text of both answers. The panel has their citations, costs and votes."""
    word = "Answer" if view.resources.bench.chat else "Quotes"

    def brief_title(side: AnswerSide) -> None:
        n, kept = len(side.context.chunks), side.name == "filtered"
        passing = f"the {numbers.counted(n, 'passage')} that {'passes' if n == 1 else 'pass'}"
        words = f"{word} from {passing if kept else 'plain search'}" if n else "No passage passes"
        html.draw(f'<h3 class="rf-side rf-{side.name}">{words}</h3>')

    draw_columns(view, answer_sides(view.mine), brief_title, partial(draw_words, view), "")


def answered(side: AnswerSide, answer: Answer, profile: str, settings: Settings) -> Answered:
    """One side as a vote stores it. Clearance is left out: a comparison never varies the user."""
    changes = settings.changed_from(of_profile(profile))
    changes.pop("clearance.enabled", None)
    chunks = tuple(hit.id for hit in side.context.chunks)
    return Answered(profile, changes, chunks, answer.model)


def draw_columns(
    view: View,
    sides: tuple[AnswerSide, AnswerSide],
    title: Callable[[AnswerSide], object],
    show: Callable[[AnswerSide, AnswerSide, Answer], object],
    quoting: str = QUOTING,
) -> tuple[Answer, Answer] | None:
    """Draw the two columns. Returns the answers, or None if one is missing. `title` draws what stands above a side's
    answer, and `show` draws the answer, given both sides. `quoting` describes the answers if no LLM is configured."""
    query, resources = view.asked.query, view.resources
    chat = resources.bench.chat
    known = [known_answer(query, side, resources) for side in sides]
    if chat is None:
        with st.spinner("Reading the chunks …"):
            for side, answer in zip(sides, known, strict=True):
                if answer is None or answer.error:
                    _cache_extractive(query, side, resources)
        known = [known_answer(query, side, resources) for side in sides]
    asking, state.session().answering = state.session().answering, ""
    if not any(side.context.chunks for side in sides):
        # The text above already says that there are no chunks.
        return None
    savings = ""
    if known[0] is not None and known[1] is not None:
        savings = savings_of(known[0], known[1])
        who = "with the filter" if sides[0].name == "filtered" else sides[0].name
        savings = savings and f"; {who} {savings}"
    missing = any(answer is None or bool(answer.error) for answer in known)
    _head(chat.name if chat else "", quoting, savings, missing=missing, asking=bool(asking))
    columns = st.columns(2, gap="medium")
    for side, other, answer, column in zip(sides, sides[::-1], known, columns, strict=True):
        with column:
            title(side)
            if asking and (asking == "all" or answer is None or answer.error):
                _stream(query, side, resources)
            elif answer is not None:
                show(side, other, answer)
            else:
                html.draw('<p class="rf-empty">No answer from these chunks yet.</p>')
    if asking:
        # Draw the same answers from the cache, with their citations and without the Stop button.
        st.rerun()
    first, second = known
    if first is None or second is None or not (first.text and second.text):
        return None
    return first, second


def _head(model: str, quoting: str, saved: str, *, missing: bool, asking: bool) -> None:
    """Draw who answers, what the first side saves, and the button."""
    label = html.text(f"answers by {model_label(model)}{saved}") if model else quoting
    if not label:
        return
    with html.row("answer-bar"):
        html.draw(f'<p class="rf-aside">{label}</p>')
        if asking:
            html.button("Stop", "stop", icon="stop")
        elif model:
            html.button(
                f"Answer with {prose.literal(model)}" if missing else "Ask again",
                "answer" if missing else "answer-again",
                state.put,
                "missing" if missing else "all",
                "answering",
                type="primary" if missing else "secondary",
                about="Makes one call for each missing answer."
                if missing
                else "These answers are cached. Asking again makes two calls.",
            )


def title(side: AnswerSide, note: str = "") -> None:
    """Draw the side's name, and how much it sends."""
    context = side.context
    html.draw(
        f'<p class="rf-side rf-{side.name}"><b>{side.label}</b>{note}'
        f"<span>{numbers.chunks(len(context.chunks))}, {numbers.tokens(context.tokens)}</span></p>"
    )


def _stream(query: str, side: AnswerSide, resources: Resources) -> None:
    """Draw the answer as it arrives and, until its first piece, the seconds waited."""
    chat, limit = resources.bench.chat, resources.deployment.answer_timeout_s
    place, began = st.empty(), monotonic()
    # Closed at once if Stop interrupts the drawing, so the next run finds what has arrived.
    with closing(stream_answer(query, side, resources)) as texts:
        for text in texts:
            if text:
                place.markdown(prose.written(side.renumbered(text[:SHOWN_CHARS])))
            elif chat is not None:
                place.html(
                    f'<p class="rf-aside" role="status">Waiting for {html.text(chat.name)} … '
                    f"{monotonic() - began:.0f} of at most {limit:g} s</p>"
                )


def draw_words(view: View, side: AnswerSide, other: AnswerSide, answer: Answer) -> tuple[int, ...]:
    """Draw the answer's text or what replaces it. Returns the numbers of the cited chunks."""
    query, resources = view.asked.query, view.resources
    quoted = None
    if answer.failed:
        # What replaces the answer.
        quoted = resources.answers.get(_key(query, side, resources, EXTRACTIVE))
    adds: tuple[int, ...] = ()
    with st.container(key=f"answer-{side.name}", gap="small"):
        _doubt(answer)
        if answer.text:
            shown = replace(answer, text=answer.text[:SHOWN_CHARS])
            quotes = added(query, side, other, resources)
            new = tuple(quote for quote in quotes if quote.text not in answer.text)
            adds = tuple(quote.number for quote in new)
            draw_pieces(shown, side, other, added=new)
            if len(answer.text) > SHOWN_CHARS:
                html.aside(f"The first {SHOWN_CHARS:,} of {len(answer.text):,} characters.")
        if answer.error == UNFINISHED:
            html.aside("Stopped before the end.")
        elif answer.error:
            html.verdict(answer.error, good=False)
        if quoted is not None and not quoted.error:
            html.aside(INSTEAD)
            _doubt(quoted)
            draw_pieces(quoted, side, other, name="instead")
    cites = (*answer.citations, *(quoted.citations if quoted is not None else ()), *adds)
    return tuple(dict.fromkeys(cites))


def _doubt(answer: Answer) -> None:
    if answer.doubt:
        html.aside(DOUBT.format(why=answer.doubt))


def _cites(side: AnswerSide, answer: Answer) -> None:
    chunks = side.context.chunks
    titles = telling_titles([hit.chunk.name for hit in chunks], TITLE_WIDTH)
    if answer.citations:
        with st.container(key=f"cites-{side.name}", gap=None):
            for number in answer.citations:
                hit = chunks[number - 1]
                html.button(
                    f"[{side.numbers[number - 1]}] {prose.literal(titles[number - 1])}",
                    f"cite-{side.name}-{number}",
                    state.open_chunk,
                    hit.id,
                    type="tertiary",
                )
    if answer.unknown_citations:
        numbers = ", ".join(f"[{n}]" for n in answer.unknown_citations[:MAX_UNKNOWN])
        more = len(answer.unknown_citations) - MAX_UNKNOWN
        numbers += f" and {more:,} more" if more > 0 else ""
        html.aside(f"Cites {numbers}, not in its prompt.")


def _cost(answer: Answer) -> None:
    if not answer.text:
        return
    parts = [f"{'cached, ' if answer.cached else ''}took {numbers.ms(answer.ms)}"]
    usage = answer.usage
    if not answer.extractive and usage.prompt_tokens:
        sent, back = usage.prompt_tokens, usage.completion_tokens
        parts.append(numbers.exchanged(sent, back, estimated=usage.estimated))
    if answer.cost is not None:
        parts.append(f"cost {numbers.money(answer.cost, answer.currency)}")
    html.aside(" · ".join(parts))


MAX_PIECES = 40
"""Maximum number of pieces drawn one by one; a longer answer is drawn as a whole."""


def draw_pieces(
    answer: Answer, side: AnswerSide, other: AnswerSide, name: str = "text", added: Sequence[Quote] = ()
) -> None:
    """Draw the answer's text, and what its context adds to the other one. Text from chunks that the
    other context lacks is marked. `name` separates its keys from the side's other answers."""
    cut = pieces(answer, side.context, other.context)
    if len(cut) > MAX_PIECES:
        cut = (Piece(answer.text, False),)
    if answer.extractive:
        more = [Piece(f"{quote.text} [{quote.number}]", True) for quote in added]
        label = '<p class="rf-aside">Also in this prompt:</p>' if more else ""
        quote = partial(_quote, side)
        quoted = "".join(map(quote, cut)) + label + "".join(map(quote, more))
        html.draw(f'<div class="rf-quoted" tabindex="0" data-passage>{quoted}</div>')
        return
    for number, piece in enumerate(cut):
        with st.container(key=f"{'apart' if piece.apart else 'piece'}-{side.name}-{name}-{number}"):
            st.markdown(prose.written(side.renumbered(piece.text)))


def _quote(side: AnswerSide, piece: Piece) -> str:
    words = html.text(side.renumbered(piece.text, _QUOTED))
    words = _QUOTED.sub(r"<b>\g<0></b>", words).replace("\n", "<br>")
    return f"<p>{f'<mark>{words}</mark>' if piece.apart else words}</p>"


@problems.shown()
def draw_votes(view: View, pair: tuple[Answered, Answered], names: tuple[str, str], *, own: str) -> None:
    """Draw the four buttons, the current vote and the tally. `names` are the column names; `own`
    separates the button keys of two places."""
    query, (left, right) = view.asked.query, pair
    if left.text == right.text or left.chunks == right.chunks:
        # Both contexts are the same, so there is nothing to choose between.
        return
    collection = state.session().collection
    every = view.resources.bench.preferences.votes(collection)
    here = on_pair((each for each in every if each.query == query.strip()), left, right)
    me = author()
    mine = next((v.seen_from(left) for v in here if v.who == me), None)
    labels: dict[Choice, str] = {
        "first": f"{names[0].capitalize()} is better",
        "second": f"{names[1].capitalize()} is better",
        "both": "Both fine",
        "neither": "Both poor",
    }
    words = _said(Counter(v.seen_from(left) for v in here), on_settings(every, left, right), names)
    with st.container(key=f"preference-{own}", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            for choice, label in labels.items():
                html.button(
                    label,
                    f"prefer-{own}-{choice}",
                    _vote,
                    collection,
                    query,
                    left,
                    right,
                    choice,
                    type="primary" if choice == mine else "secondary",
                )
        html.draw(f'<p class="rf-aside" role="status">{html.text(words)}</p>')


def _said(here: Counter[Choice], settings: Counter[Choice], names: tuple[str, str]) -> str:
    """The votes on this pair, and on its settings over all questions."""
    verdicts: dict[Choice, str] = {
        "first": f"for {names[0]}",
        "second": f"for {names[1]}",
        "both": "both fine",
        "neither": "both poor",
    }

    def tally(of: Counter[Choice]) -> str:
        each = [f"{of[choice]} {verdict}" for choice, verdict in verdicts.items() if of[choice]]
        return ", ".join([numbers.counted(of.total(), "vote"), *each])

    words = f"This pair: {tally(here)}." if here.total() else "No votes on this pair yet."
    if settings.total() > here.total():
        words += f" These settings over all questions: {tally(settings)}."
    return words


@state.tell_errors()
def _vote(collection: str, query: str, left: Answered, right: Answered, choice: Choice) -> None:
    open_resources().bench.preferences.vote(collection, query, left, right, choice, who=author())
