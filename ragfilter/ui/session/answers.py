"""Answers for the panel: which are cached, which are made immediately, and which need a button.

An extractive answer is made as soon as a page shows it. An LLM is only asked by a button. If it
fails, the extractive answer is shown next to the error.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Hashable, Sequence
from dataclasses import dataclass, replace

from ragfilter.answer import extractive
from ragfilter.answer.context import Context, pack, sent
from ragfilter.answer.extractive import Quote
from ragfilter.answer.stream import EXTRACTIVE, UNFINISHED, VERSION, Answer, AnswerStream
from ragfilter.engine.replay import unfiltered
from ragfilter.errors import ModelError
from ragfilter.model import PoolResult
from ragfilter.protocols import Embedder, Progress
from ragfilter.ui.session.jobs import Job, Stoppable
from ragfilter.ui.session.resources import Resources, ShelfSpec

TICK_S = 0.1
MAX_ADDED = 2
"""Maximum number of quotes of what only one context has."""
NOT_ASKED = (
    "Not asked: the endpoint did not finish the other answer in time. The button tries both again."
)
EARLIER = "This is the earlier answer."
ADDED: ShelfSpec[tuple[Quote, ...]] = ShelfSpec(128)
"""What one side adds to another, by both."""


@dataclass(frozen=True, slots=True)
class AnswerSide:
    """One column of the comparison: its name and the context of its prompt."""

    name: str
    context: Context

    @property
    def label(self) -> str:
        """What the page calls it."""
        return "plain search" if self.name == "unfiltered" else self.name


def sides(result: PoolResult) -> tuple[AnswerSide, AnswerSide]:
    """The filtered context, and the context of a plain search's first k chunks."""
    plain = unfiltered(result.pool, result.settings, result.user)
    return (
        AnswerSide("filtered", pack(result.kept, result.settings)),
        AnswerSide("unfiltered", pack(plain, result.settings)),
    )


def known(query: str, side: AnswerSide, resources: Resources) -> Answer | None:
    """The answer for this context, if it is cached or can be made without calling a model."""
    key = _key(query, side, resources)
    answer = resources.answers.get(key)
    chat = resources.bench.chat
    if answer is None and (stored := _stored(query, side, resources)) is not None:
        answer = resources.answers.put(key, stored)
    if answer is None and (chat is None or not side.context.chunks):
        extracted = _extract(query, side.context, resources, only_known=True)
        if not extracted.error:
            answer = resources.answers.put(key, extracted)
    return answer


def make(query: str, side: AnswerSide, resources: Resources) -> Generator[str]:
    """Yield the text so far, again and again, even while nothing arrives. It is cached as it
    arrives: when the user stops, the next run may begin before this one has ended."""
    chat, call = resources.bench.chat, object()
    stop = threading.Event()
    stream = AnswerStream(
        query,
        side.context,
        None if chat is None else Stoppable(chat, stop),
        resources.embedder(),
        timeout_s=resources.deployment.answer_timeout_s,
        prices=resources.prices,
    )
    key, earlier = _key(query, side, resources), _stored(query, side, resources)
    job = resources.jobs.start(None, call, lambda _: stream.read())
    try:
        while not job.wait(TICK_S):
            # Read whole, since what came may turn out to be a thought.
            yield resources.answers.put(key, stream.answer).text
    finally:
        answer = resources.answers.put(key, _with_earlier(stream.answer, earlier))
        stop.set()
        resources.jobs.stop(call)
        resources.bench.answers.put(answer)
    if answer.error and EARLIER not in answer.error and not answer.extractive:
        # The extractive answer that replaces a failed one.
        _extracted(query, side, resources, EXTRACTIVE)


def _with_earlier(answer: Answer, earlier: Answer | None) -> Answer:
    """The earlier answer in place of one that failed, with the error; what has arrived until
    somebody stopped it stays."""
    stopped = answer.error == UNFINISHED and answer.text
    if earlier is None or not answer.error or stopped:
        return answer
    return replace(earlier, error=f"{answer.error} {EARLIER}", failed=answer.failed)


def _stored(query: str, side: AnswerSide, resources: Resources) -> Answer | None:
    """The last answer that an LLM completed for this context."""
    chat = resources.bench.chat
    if chat is None:
        return None
    return resources.bench.answers.get(query, side.context, chat.name, resources.prices)


def skip(query: str, side: AnswerSide, before: Answer, resources: Resources) -> None:
    """Record that this answer was not requested, because the endpoint already timed out on the
    other."""
    skipped = Answer("", model=before.model, error=NOT_ASKED, failed=before.failed)
    skipped = _with_earlier(skipped, _stored(query, side, resources))
    if EARLIER not in skipped.error:
        _extracted(query, side, resources, EXTRACTIVE)
    resources.answers.put(_key(query, side, resources), skipped)


def instead(query: str, side: AnswerSide, resources: Resources) -> Answer | None:
    """The extractive answer that replaces one that an LLM failed to give."""
    quoted = resources.answers.get(_key(query, side, resources, EXTRACTIVE))
    return None if quoted is None or quoted.error else quoted


def added(
    query: str, side: AnswerSide, other: AnswerSide, resources: Resources
) -> tuple[Quote, ...]:
    """What the side's context adds to the other's, if that is known without calling a model."""
    if resources.bench.chat is not None:
        return ()
    key = _key(query, side, resources), _key(query, other, resources)
    embedder = resources.embedder(only_known=True)
    try:
        return resources.shelf(ADDED).of(
            key, lambda: quotes_beyond(query, side.context, other.context, embedder)
        )
    except ModelError:
        return ()


def quotes_beyond(
    query: str, context: Context, other: Context, embedder: Embedder
) -> tuple[Quote, ...]:
    """Quotes nearest to the query from the chunks that `other` lacks, numbered as in `context`.

    Raises ModelError.
    """
    theirs = {hit.id for hit in other.chunks}
    own = [(n, hit) for n, hit in enumerate(context.chunks, start=1) if hit.id not in theirs]
    quotes = extractive.extract(query, [hit for _, hit in own], embedder)[:MAX_ADDED]
    return tuple(Quote(own[q.number - 1][0], q.text, q.score, q.is_row) for q in quotes)


def extract(query: str, sides: Sequence[AnswerSide], resources: Resources) -> None:
    """Make the extractive answers that are lacking: once for all runs that wait for the same, and
    only while one does. Never raises: a failure is shown in place of the answer."""
    for side in sides:
        answer = known(query, side, resources)
        if answer is None or answer.error:
            _extracted(query, side, resources)


def _extracted(query: str, side: AnswerSide, resources: Resources, model: str = "") -> None:
    """Make one extractive answer, shared with all runs that wait for the same."""
    key = _key(query, side, resources, model)

    def work(job: Job[None]) -> None:
        answer = _extract(query, side.context, resources, progress=job.step)
        if not job.stop.is_set():
            resources.answers.put(key, answer)

    with resources.jobs.joined(key, work) as job:
        job.attend()


def _extract(
    query: str,
    context: Context,
    resources: Resources,
    *,
    only_known: bool = False,
    progress: Progress | None = None,
) -> Answer:
    embedder = resources.embedder(only_known=only_known, progress=progress)
    timeout = resources.deployment.answer_timeout_s
    return AnswerStream(query, context, None, embedder, timeout_s=timeout).read()


def _key(query: str, side: AnswerSide, resources: Resources, model: str = "") -> Hashable:
    chat, context = resources.bench.chat, side.context
    model = model or (chat.name if chat else EXTRACTIVE)
    contents = tuple((hit.id, hash(sent(hit))) for hit in context.chunks)
    return query, model, VERSION, contents, context.shortened


DEMONSTRATION = "smollm2-135m"
"""The model that `make local-llm` serves."""
TINY = "a tiny demonstration model, often wrong"


def is_demonstration(model: str) -> bool:
    """Whether `model` is the one that `make local-llm` serves."""
    return DEMONSTRATION in model.casefold()


def model_label(model: str) -> str:
    """The model's name and, if it is the demonstration model, a warning."""
    return f"{model}, {TINY}" if is_demonstration(model) else model
