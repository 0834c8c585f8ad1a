"""Opens the workspace and one of its collections for a command, queries it and answers."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from ragfilter.answer import context
from ragfilter.answer.context import Context
from ragfilter.answer.stream import Answer, AnswerStream
from ragfilter.engine import retrieve
from ragfilter.engine.search import Backends
from ragfilter.judge.call import NO_LLM
from ragfilter.layers.cutoff import unknown_score
from ragfilter.model import PoolResult, User
from ragfilter.protocols import ChatModel
from ragfilter.report.thresholds import learned_elsewhere
from ragfilter.report.verdicts import waits_for_judge
from ragfilter.settings.profiles import Fit
from ragfilter.settings.schema import Settings

if TYPE_CHECKING:
    from ragfilter.workbench import Workbench

log = logging.getLogger(__name__)


def open_for(data_dir: str | None, kind: str) -> Workbench:
    """Open the workspace until it is closed; `kind` names who holds it."""
    from ragfilter.workbench import Workbench, read_deployment

    return Workbench.open(read_deployment(data_dir=data_dir), kind=kind)


def backends(bench: Workbench, name: str) -> Backends:
    """The backends of a collection that has chunks. Raises StoreError."""
    backends = bench.backends(name)
    bench.collection(name).check_not_empty()
    return backends


def ask(text: str, settings: Settings, backends: Backends, user: User) -> PoolResult:
    """Query the collection. Warns if the settings are from elsewhere or the judge has no LLM."""
    tell_learned_elsewhere(settings, backends)
    # Not pushed into the store, whose own filter is slow for large collections.
    result = retrieve.run(text, settings, backends, user, wide=True)
    if warning := unknown_score(result):
        log.warning("%s", warning)
    if backends.chat is None and waits_for_judge(result):
        log.warning("The judge %s.", NO_LLM)
    return result


def tell_learned_elsewhere(settings: Settings, backends: Backends) -> None:
    """Warn if the settings were learned or tuned on another collection, model or space."""
    collection = backends.collection
    here = Fit(collection.name, backends.embedder.name, collection.space)
    if warning := learned_elsewhere(settings, here):
        log.warning("%s", warning)


def answer_of(result: PoolResult, bench: Workbench) -> tuple[Answer, Context]:
    """The answer to the query, with its context. If the LLM fails, the extractive answer with the
    LLM's error, prompt and costs."""
    packed = context.pack(result.kept, result.settings)
    name = bench.chat.name if bench.chat else ""
    cached = bench.answers.get(result.query, packed, name, bench.prices)
    if cached is not None:
        return cached, packed

    def read(chat: ChatModel | None) -> Answer:
        timeout_s = bench.deployment.answer_timeout_s
        return AnswerStream(
            result.query, packed, chat, bench.embedder, timeout_s=timeout_s, prices=bench.prices
        ).read()

    answer = read(bench.chat)
    bench.answers.put(answer)
    if answer.error and not answer.extractive and not (quoted := read(None)).error:
        answer = replace(
            answer, text=quoted.text, citations=quoted.citations, unknown_citations=(),
            model=quoted.model, extractive=True, doubt=quoted.doubt,
        )  # fmt: skip
    return answer, packed
