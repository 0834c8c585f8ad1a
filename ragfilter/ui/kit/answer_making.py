"""The answers of two sides: the contexts that they rest on, how each answer is made, and what one has that the other
lacks. An extractive answer is made as soon as a page shows it. Only a button asks an LLM."""

from __future__ import annotations

import re
import threading
from collections.abc import Generator, Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from ragfilter.answer import extractive
from ragfilter.answer.answer import EXTRACTIVE, VERSION, Answer, AnswerStream, citations
from ragfilter.answer.context_packing import Context, pack, prompt_text
from ragfilter.answer.extractive import Quote
from ragfilter.engine.pool import unfiltered
from ragfilter.errors import ModelError
from ragfilter.model import Hit, PoolResult
from ragfilter.protocols import ChatModel, Embedder, Progress
from ragfilter.ui.jobs import Job, Stoppable
from ragfilter.ui.resources import CacheSpec, Resources

TICK_S = 0.1
MAX_ADDED = 2
"""Maximum number of quotes from chunks that only one context has."""
ADDED: CacheSpec[tuple[Quote, ...]] = CacheSpec(128)
"""What one side adds to another, by the keys of both."""
_CITATION = re.compile(r"\[\d[\d,;\s–-]*\]")
_BLOCKS = re.compile(r"\n\s*\n")
LAST_CITATION = re.compile(r"\[\d+\]$")
"""The citation of a quote, which may itself contain numbers in brackets."""


@dataclass(frozen=True, slots=True)
class AnswerSide:
    """One column of the comparison: its name, its prompt's context, and the numbers that the page gives its chunks."""

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

    def whole(self, answer: Answer) -> str:
        """The text of an answer with the page's numbers."""
        if not answer.extractive:
            return self.renumbered(answer.text)
        return "\n\n".join(self.renumbered(quote, LAST_CITATION) for quote in _BLOCKS.split(answer.text))


def citation_numbers(*prompts: Sequence[Hit]) -> dict[str, int]:
    """One number per chunk of several prompts, by id: the longest prompt's first, then the chunks that it lacks."""
    ids = dict.fromkeys(hit.id for hits in sorted(prompts, key=len, reverse=True) for hit in hits)
    return {chunk_id: n for n, chunk_id in enumerate(ids, start=1)}


def numbered_sides(names: tuple[str, str], contexts: tuple[Context, Context]) -> tuple[AnswerSide, AnswerSide]:
    """The two columns of these contexts."""
    number = citation_numbers(*(each.chunks for each in contexts))
    first, second = (
        AnswerSide(name, each, tuple(number[hit.id] for hit in each.chunks))
        for name, each in zip(names, contexts, strict=True)
    )
    return first, second


def answer_sides(result: PoolResult) -> tuple[AnswerSide, AnswerSide]:
    """The filtered context, and the context of a plain search's first k chunks."""
    plain = unfiltered(result.pool, result.settings, result.user)
    contexts = pack(result.kept, result.settings), pack(plain, result.settings)
    return numbered_sides(("filtered", "unfiltered"), contexts)


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


def known_replacement(query: str, side: AnswerSide, resources: Resources) -> Answer | None:
    """The extractive answer that was made because the LLM failed."""
    return resources.answers.get(_key(query, side, resources, EXTRACTIVE))


def stream_answer(query: str, side: AnswerSide, chat: ChatModel, resources: Resources) -> Generator[str]:
    """Ask `chat`. Yields the text so far repeatedly, even while nothing arrives. It is cached as it arrives,
    because after a stop the next run may begin before this one has ended."""
    call, stop, prices = object(), threading.Event(), resources.bench.prices
    model, limit = Stoppable(chat, stop), resources.bench.deployment.answer_timeout_s
    stream = AnswerStream(query, side.context, model, resources.embedder(), timeout_s=limit, prices=prices)
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
        make_extractive(query, side, resources)


def make_extractive(query: str, side: AnswerSide, resources: Resources) -> None:
    """Make one extractive answer, once for all runs that wait for it, and stop when none does.
    Never raises: a failure is shown in place of the answer."""
    key = _key(query, side, resources, EXTRACTIVE)

    def work(job: Job[None]) -> None:
        answer = _extractive_answer(query, side.context, resources, progress=job.step)
        if not job.stop.is_set():
            resources.answers.put(key, answer)

    with resources.jobs.joined(key, work) as job:
        job.wait_interruptibly()


def _extractive_answer(
    query: str, context: Context, resources: Resources, *, only_known: bool = False, progress: Progress | None = None
) -> Answer:
    embedder = resources.embedder(only_known=only_known, progress=progress)
    return AnswerStream(query, context, None, embedder, timeout_s=resources.bench.deployment.answer_timeout_s).read()


def _key(query: str, side: AnswerSide, resources: Resources, model: str = "") -> Hashable:
    chat, context = resources.bench.chat, side.context
    model = model or (chat.name if chat else EXTRACTIVE)
    texts = tuple((hit.id, hash(prompt_text(hit))) for hit in context.chunks)
    return query, model, VERSION, texts, context.shortened


def added(query: str, side: AnswerSide, other: AnswerSide, resources: Resources) -> tuple[Quote, ...]:
    """What the side's context adds to the other's, if that is known without calling a model."""
    if resources.bench.chat is not None:
        return ()
    key = _key(query, side, resources), _key(query, other, resources)
    embedder = resources.embedder(only_known=True)
    try:
        return resources.cache(ADDED).of(key, lambda: quotes_beyond(query, side.context, other.context, embedder))
    except ModelError:
        return ()


def quotes_beyond(query: str, context: Context, other: Context, embedder: Embedder) -> tuple[Quote, ...]:
    """Quotes nearest to the query from the chunks that `other` lacks, numbered as in `context`. Raises ModelError."""
    chunks = _only_in(context, other)
    quotes = extractive.extract(query, list(chunks.values()), embedder)[:MAX_ADDED]
    numbers = list(chunks)
    return tuple(Quote(numbers[q.number - 1], q.text, q.score, q.is_row) for q in quotes)


def _only_in(context: Context, other: Context) -> dict[int, Hit]:
    """The chunks that `other` lacks, by their numbers in `context`."""
    theirs = {hit.id for hit in other.chunks}
    return {n: hit for n, hit in enumerate(context.chunks, start=1) if hit.id not in theirs}


_FORMATTED = re.compile(r"^\s*(?:[-*+#>|]|\d+[.)]\s|`{3}|~{3})", re.MULTILINE)
# The end of a sentence, with the citations after it.
_END = re.compile(r"[.!?][\"”’)]*(?:\s*\[[\d,;\s–-]+\])*(?=\s+[^\s\[a-z])")


class Piece(NamedTuple):
    """A part of an answer. `apart` says that it rests on a chunk that the other context lacks."""

    text: str
    apart: bool


def pieces(answer: Answer, context: Context, other: Context) -> tuple[Piece, ...]:
    """The answer's paragraphs in order, with plain ones split into runs of sentences."""
    lacking = _only_in(context, other).keys()

    def apart(text: str) -> bool:
        if answer.extractive:
            citation = LAST_CITATION.search(text)
            text = citation[0] if citation else ""
        return not lacking.isdisjoint(citations(text, len(context.chunks))[0])

    # Code may contain empty lines, so a text with a code fence stays whole.
    fenced = "```" in answer.text or "~~~" in answer.text
    blocks = [answer.text] if fenced else filter(str.strip, _BLOCKS.split(answer.text))
    return tuple(
        Piece(" ".join(run), is_apart)
        for block in blocks
        for is_apart, run in groupby([block] if answer.extractive else _sentences(block), key=apart)
    )


def _sentences(block: str) -> list[str]:
    """The sentences of a plain paragraph; a list, table or heading stays whole."""
    if _FORMATTED.search(block):
        return [block.strip()]
    return [part.strip() for part in _END.sub("\\g<0>\0", block.strip()).split("\0")]


def savings_of(filtered: Answer, unfiltered: Answer) -> str:
    """What the filter saved for an LLM's answer, if known: ``77% cheaper, 1.2 s faster``."""
    if any(a.extractive or a.error or not a.text for a in (filtered, unfiltered)):
        return ""
    if filtered.cost is not None and unfiltered.cost:
        after, before, less, more = filtered.cost, unfiltered.cost, "cheaper", "dearer"
    else:
        after, before = (a.usage.prompt_tokens + a.usage.completion_tokens for a in (filtered, unfiltered))
        less, more = "fewer tokens", "more tokens"
    savings = []
    if before and (percent := round(100 * (before - after) / before)):
        savings.append(f"{abs(percent)}% {less if percent > 0 else more}")
    seconds = (unfiltered.ms - filtered.ms) / 1000
    if abs(seconds) >= 0.05:
        savings.append(f"{abs(seconds):.1f} s {'faster' if seconds > 0 else 'slower'}")
    return ", ".join(savings)
