"""The one call to the judge, and the cache of its answers.

Source: Intelligent Chunk Filtering; docs/design.md#judge. The verdict on one chunk depends on the others, so the whole
answer is cached, by the model and the prompt (docs/decisions/0011-a-judgement-belongs-to-its-prompt.md). Failures are
not, because asking again may help. Cache files hold no raw answers, which only operators can read."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import replace
from statistics import median
from time import perf_counter

from ragfilter.basics.threads import SharedCache
from ragfilter.judge.parse import SCHEMA, parse
from ragfilter.judge.prompt import JudgePrompt, no_room
from ragfilter.model import Judgement
from ragfilter.models.chat import StoredReplies, ask_model
from ragfilter.protocols import ChatModel, ReplyStore
from ragfilter.settings.schema import Judge

log = logging.getLogger(__name__)

REPLY_CHARS = 20_000
NO_LLM = "needs an LLM: set OPENAI_API_KEY or OPENAI_BASE_URL"
NO_DECISION = "no decision could be read in the judge's answer"


def ask(prompt: JudgePrompt, chat: ChatModel, settings: Judge, *, cache: JudgementCache | None = None) -> Judgement:
    """Make one call, or none if the `cache` has the answer. Never raises: a failure is in `Judgement.error`."""
    if not prompt.asked:
        return Judgement((), left_out=prompt.left_out, error=no_room(settings), prompt_version=prompt.version)
    known = None if cache is None else look_up(prompt, chat, cache)
    judgement = known or _call(prompt, chat, settings)
    if cache is not None and known is None:
        cache.put(judgement)
    return judgement


def look_up(prompt: JudgePrompt, chat: ChatModel, cache: JudgementCache) -> Judgement | None:
    """The cached answer of `chat` to this prompt; None if there is none. Makes no call."""
    known = cache.get(chat.name, prompt.key)
    return None if known is None else prompt.adopt(known)


def _call(prompt: JudgePrompt, chat: ChatModel, settings: Judge) -> Judgement:
    started = perf_counter()
    reply = ask_model(chat, prompt.messages, timeout_s=settings.timeout_ms / 1000, schema=SCHEMA)
    if reply.error:
        log.warning("judging failed: %s", reply.error)
    verdicts, remarks, unreadable = parse("" if reply.error else reply.text, prompt.asked)
    error = reply.error or ("" if verdicts else NO_DECISION)
    return Judgement(
        prompt.asked,
        verdicts,
        prompt.left_out,
        remarks,
        unreadable,
        error,
        chat.name,
        prompt.version,
        prompt.key,
        reply.usage.prompt_tokens,
        reply.usage.completion_tokens,
        ms=(perf_counter() - started) * 1000,
        reply=reply.text[:REPLY_CHARS],
        shortened=prompt.shortened,
    )


SIZE = 256
REMEMBERED_CALLS = 20


class JudgementCache:
    """An LRU cache of answers by (model, `Judgement.prompt_key`). `replies` keeps the endpoint's answers longer."""

    def __init__(self, size: int = SIZE, *, replies: ReplyStore | None = None, endpoint: str = "") -> None:
        self._stored = StoredReplies[Judgement]("judgement-1", Judgement, replies, endpoint)
        self._judgements: SharedCache[Judgement] = SharedCache(size)
        self._ms: dict[str, deque[float]] = {}

    def __contains__(self, key: tuple[str, str]) -> bool:
        return self.get(*key) is not None

    def get(self, model: str, prompt_key: str) -> Judgement | None:
        """The model's cached answer, marked as cached; None if there is none."""
        key = (model, prompt_key)
        judgement = self._judgements.get(key) or self._read(key)
        return judgement and replace(self._judgements.put(key, judgement), cached=True)

    def put(self, judgement: Judgement) -> None:
        """Cache an answer, unless it has an error."""
        if judgement.error:
            return
        self._judgements.put((judgement.model, judgement.prompt_key), judgement)
        with self._judgements.lock:
            self._ms.setdefault(judgement.model, deque(maxlen=REMEMBERED_CALLS)).append(judgement.ms)
        if judgement.verdicts:
            self._stored.put(replace(judgement, reply="", cached=False), judgement.model, judgement.prompt_key)

    def usual_ms(self, model: str) -> float | None:
        """The median duration of the model's recent calls, in milliseconds; None without calls."""
        with self._judgements.lock:
            times = self._ms.get(model)
            return median(times) if times else None

    def _read(self, key: tuple[str, str]) -> Judgement | None:
        judgement = self._stored.get(*key)
        # Anyone may have written the file, so its content counts for this prompt only.
        if judgement is None or (judgement.model, judgement.prompt_key) != key:
            return None
        judged_ids = {verdict.chunk_id for verdict in judgement.verdicts}
        return judgement if judged_ids and judged_ids <= set(judgement.asked) else None
