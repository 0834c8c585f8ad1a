"""What the result lacks, as buttons: what each would do, where, and how long it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from ragfilter.engine.complete import forget_failures
from ragfilter.engine.replay import replay
from ragfilter.errors import RagfilterError
from ragfilter.layers.quality import reranker_key
from ragfilter.model import Need, PoolResult
from ragfilter.report import judge_stats
from ragfilter.report.verdicts import Forecast, forecast
from ragfilter.text import numbers
from ragfilter.ui.kit import judge_words, problems
from ragfilter.ui.look.prose import literal
from ragfilter.ui.session import questions, state
from ragfilter.ui.session.resources import Resources, score_key
from ragfilter.ui.session.visit import View

PER_CHUNK_S = {"late_interaction": 0.02, "cross_encoder": 0.08}
NAMES = {
    "late_interaction": "late interaction",
    "cross_encoder": "the cross-encoder",
    "http": "the endpoint",
}


def draw(view: View) -> None:
    """Draw buttons for the needs and, if the settings have outgrown the pool, for asking again.

    While the judge's panel is open, its button is drawn there.
    """
    result, resources = view.result, view.resources
    wider = questions.falls_short(view.asked, result, result.settings)
    rerank, again = reranking(result)
    costs = None if state.session().panel == "Judge" else judging_costs(result, resources)
    if rerank is None and costs is None and not wider:
        return
    with st.container(key="needs", horizontal=True, vertical_alignment="center", gap="small"):
        if rerank is not None:
            st.button(
                _score(rerank, result, resources, again=again),
                key="need-rerank",
                type="primary",
                icon=":material/refresh:" if again else ":material/bolt:",
                on_click=questions.request,
                args=("rerank", again),
                help=f"{literal(rerank.why)}. Until then, the layer uses distances.",
            )
        if costs is not None:
            judge_button(costs, result, resources)
        if wider:
            size = result.settings.retrieval.pool_size
            st.button(
                f"Gather again with these settings · pool {numbers.count(size)}",
                key="gather-again",
                icon=":material/refresh:",
                on_click=state.renew,
                help="The pool was gathered with other settings. This queries the store again.",
            )


def reranking(result: PoolResult) -> tuple[Need | None, bool]:
    """The need for a reranker's scores, and whether reranking has failed before. The need is also
    None if trying again cannot help; `problems.failed` then says what can."""
    if problems.hopeless(result) is not None:
        return None, False
    again = False
    needs = result.needs
    key = reranker_key(result.settings.quality)
    if any(failure.model == key for failure in result.pool.failures):
        again = not any(need.kind == "rerank" for need in needs)
        needs = replay(forget_failures(result.pool, "rerank"), result.settings, result.user).needs
    return next((need for need in needs if need.kind == "rerank"), None), again


def judging_costs(result: PoolResult, resources: Resources) -> Forecast | None:
    """What a call of the judge would use, now or again after a failure; None if there is nothing to
    judge or no LLM."""
    chat = resources.bench.chat
    if chat is None:
        return None
    if failed(result):
        result = replay(forget_failures(result.pool, "judge"), result.settings, result.user)
    remembered = resources.bench.judgements
    return forecast(result, model=chat.name, judgements=remembered, prices=resources.prices)


def failed(result: PoolResult) -> str:
    """The judge's error, if it fell back and asking again may help; empty otherwise."""
    stats = judge_stats(result)
    return stats.error if stats is not None and stats.fallback else ""


def judge_button(
    costs: Forecast, result: PoolResult, resources: Resources, *, short: bool = False
) -> None:
    """Draw the button that asks the LLM, with what it costs."""
    again = bool(failed(result))
    facts = " ".join(f"{what}: {value}." for what, value in
                    judge_words.before(costs, result.settings.judge))  # fmt: skip
    chat = resources.bench.chat
    st.button(
        judge_words.button(costs, again=again, short=short),
        key="need-judge",
        type="primary",
        icon=":material/refresh:" if again else ":material/bolt:",
        on_click=questions.request,
        args=("judge", again),
        help=f"Sends one prompt to {literal(chat.name) if chat else 'the LLM'}. {literal(facts)}",
    )


def _score(need: Need, result: PoolResult, resources: Resources, *, again: bool) -> str:
    quality = result.settings.quality
    n = numbers.chunks(len(need.chunk_ids))
    left = _unscored(need, result, resources)
    seconds = numbers.seconds(left * PER_CHUNK_S.get(quality.reranker, 0.05))
    name = NAMES.get(quality.reranker, quality.reranker)
    where = "local"
    if quality.reranker == "http":
        at, batch = resources.bench.rerank_endpoint, quality.reranker_batch
        cost = numbers.money(at.cost(left, batch), at.currency) if at.price else ""
        where = ", ".join(filter(None, (numbers.counted(at.calls(left, batch), "call"), cost)))
    return f"Score {'again: ' if again else ''}{n} with {name} · {seconds}, {where}"


def _unscored(need: Need, result: PoolResult, resources: Resources) -> int:
    """How many chunks a model would have to read; cached scores or vectors cover the others."""
    quality = result.settings.quality
    by_id = {hit.id: hit.chunk.passage for hit in result.pool.hits}
    name = reranker_key(quality)
    texts = [by_id[i] for i in need.chunk_ids if i in by_id]
    new = [t for t in texts if resources.scores.get(score_key(name, result.query, t)) is None]
    if quality.reranker != "late_interaction":
        return len(new)
    try:
        reranker = resources.bench.reranker(quality)
    except RagfilterError:
        return len(new)
    unknown: Callable[[Sequence[str]], int] = getattr(reranker, "unknown", len)
    return unknown(new)
