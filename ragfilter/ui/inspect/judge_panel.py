"""The judge on the page: a call's cost, its result, and its verdict on every chunk. Also the button for a model and
the messages of a prompt, which the reranker and the answer share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from ragfilter.engine.pool import without_failures
from ragfilter.engine.replay import replay
from ragfilter.model import Judgement, NeedKind, PoolResult
from ragfilter.protocols import Message, Prices, Usage
from ragfilter.results.verdicts import (
    Forecast,
    JudgeStats,
    VerdictRow,
    forecast,
    judge_prompt,
    judge_stats,
    remarks,
    verdict_rows,
    waits_for_judge,
)
from ragfilter.settings.schema import Judge
from ragfilter.text import numbers
from ragfilter.text.titles import telling_titles
from ragfilter.ui.kit import grid
from ragfilter.ui.look import elements, prose, theme
from ragfilter.ui.resources import Resources
from ragfilter.ui.session import asking, state
from ragfilter.ui.session.page_run import View

TITLE_BESIDE, TITLE_ALONE, VIA_WIDTH = 22, 42, 15
MAX_ROWS = 6
ABOUT = (
    "An LLM reads the chunks that earlier layers let through and decides on each: keep it, discard it, or keep it and "
    "bring in what it refers to, 1, 3 or 5 references deep. It runs after the cutoff because it is the only layer that "
    "costs money and takes seconds: chunks that a rule or a distance settles for free are never sent. Only its button "
    "calls it, never a slider, and its answers are cached."
)
SETUP = (
    "No LLM is configured. Start ragfilter with OPENAI_API_KEY, or with OPENAI_BASE_URL for any "
    "OpenAI-compatible server; `make local-llm` starts a tiny one on this machine."
)


def draw(view: View) -> None:
    """Draw the judge's tab."""
    result, resources = view.as_user, view.resources
    settings, stats = result.settings.judge, judge_stats(result)
    if not settings.enabled:
        how = SETUP if resources.bench.chat is None else "Switch LLM judge on in the sidebar to use it."
        elements.empty("The judge is off.", how)
    elif waits_for_judge(result):
        _waiting(result, resources)
    elif stats is None:
        elements.empty("Nothing reached the judge.", result.message or "The layers before it let no chunk through.")
    else:
        if stats.fallback:
            sign = elements.sign(theme.OUTCOMES["fallback"], "fallback")
            n, why = numbers.chunk_count(result.trace("judge").n_out), stats.error.rstrip(".")
            elements.draw(
                f'<p class="rf-verdict rf-bad" role="alert">{sign}<b>The judge failed:</b> '
                f"{elements.text(why)}. Kept by distance, marked fallback: {n}.</p>"
            )
            if costs := costs_of(result, resources):
                draw_button(result, costs)
        listed = call_facts(stats, resources.bench.prices).items()
        items = (f"<div><dt>{what}</dt><dd>{elements.text(value)}</dd></div>" for what, value in listed)
        elements.draw(f'<dl class="rf-grid rf-short">{"".join(items)}</dl>')
        _verdicts(result)
        elements.aside(attribution(stats, settings))
        if ignored := "; ".join(remarks(result)):
            elements.draw(f'<p class="rf-aside">Ignored in its reply: {elements.text(ignored)}.</p>')
    if settings.enabled:
        _prompt(result)
    elements.aside(ABOUT)


def costs_of(result: PoolResult, resources: Resources) -> Forecast | None:
    """The forecast for a call to the judge; None if there is nothing to judge or no LLM."""
    chat = resources.bench.chat
    if chat is None:
        return None
    if _failed(result):
        result = replay(without_failures(result.pool, "judge"), result.settings, result.user)
    remembered = resources.bench.judgements
    return forecast(result, model=chat.name, judgements=remembered, prices=resources.bench.prices)


def draw_button(result: PoolResult, costs: Forecast) -> None:
    """Draw the button that asks the LLM, with what it costs."""
    again, about = _failed(result), "Sends one prompt to the LLM. The Judge tab shows it."
    draw_request(button_label(costs, again=again), "judge", again=again, about=about)


def draw_request(label: str, kind: NeedKind, *, again: bool, about: str) -> None:
    """Draw the main button that has a model add the missing data of this kind, perhaps `again` after a failure."""
    icon = "refresh" if again else "bolt"
    elements.button(label, f"need-{kind}", asking.request, kind, again, icon=icon, type="primary", about=about)


def draw_messages(messages: Iterable[Message]) -> None:
    """Draw the messages of a prompt exactly as they are sent."""
    for message in messages:
        elements.draw(f'<p class="rf-caption">{elements.text(message.role)}</p>')
        st.code(message.content, language=None, wrap_lines=True)


def button_label(costs: Forecast, *, again: bool) -> str:
    """The label of the button: chunks, tokens, time, and the price if one is set."""
    n = numbers.chunk_count(costs.asked)
    if costs.remembered:
        return f"Use the cached answer for {n} · free"
    tokens, usual = numbers.token_count(costs.prompt_tokens + costs.completion_tokens), costs.usual_ms
    time = f"at most {numbers.limit(costs.at_most_ms)}" if usual is None else f"usually {numbers.ms(usual)}"
    label = f"Ask the LLM {'again ' if again else ''}about {n} · ~{tokens} · {time}"
    return label if costs.cost is None else f"{label} · cost {numbers.money(costs.cost, costs.currency)}"


def in_prompt(costs: Forecast, settings: Judge) -> str:
    """What a call would send: how many chunks, and what happens to chunks that do not fit."""
    if costs.remembered:
        return f"{numbers.chunk_count(costs.asked)}, same prompt as before: the cached answer is used."
    room = numbers.token_count(settings.max_prompt_tokens)
    parts = [
        f"{costs.asked} in the prompt",
        _shortened(costs.shortened, settings),
        f"{costs.left_out} dropped to fit {room} (Prompt budget)" if costs.left_out else "",
    ]
    return f"{'; '.join(filter(None, parts))}."


def call_facts(stats: JudgeStats, prices: Prices | None) -> dict[str, str]:
    """The results and costs of judging, by label."""
    facts = {
        "Candidates": numbers.count(stats.original),
        "Kept": numbers.count(stats.kept),
        "Reduction": f"{stats.reduction:.0%}",
        "Added by references": numbers.count(stats.expanded),
        "Fallback": "used" if stats.fallback else "not used",
        "Time": numbers.ms(stats.ms),
        "Tokens in + out": f"{stats.prompt_tokens:,} + {stats.completion_tokens:,}",
    }
    if prices is not None:
        facts["Cost"] = numbers.money(prices.of(Usage(stats.prompt_tokens, stats.completion_tokens)), prices.currency)
    return facts


def attribution(stats: JudgeStats, settings: Judge) -> str:
    """Which model judged with which prompt, and how many chunks were in no prompt."""
    parts = [
        f"Judged by {prose.model_label(stats.model) or 'nobody'}",
        "cached, so time, tokens and cost describe the original call" if stats.cached else "",
        f"prompt {stats.prompt_version}" if stats.prompt_version else "",
        _shortened(stats.shortened, settings),
        f"{numbers.chunk_count(stats.left_out)} did not fit into the prompt" if stats.left_out else "",
    ]
    return "; ".join(filter(None, parts)) + "."


def verdict(row: VerdictRow, judgement: Judgement | None) -> str:
    """Sign and word for the verdict on a chunk, or for why there is none."""
    mark = theme.LAYERS["judge"] if row.outcome == "dropped" else theme.OUTCOMES[row.outcome]
    word = {"expanded": "added", "fallback": "fallback"}.get(row.outcome, row.said)
    if not word and judgement is not None:
        unnamed = () if judgement.error else judgement.asked
        silent = {"no room": judgement.left_out, "unreadable": judgement.unreadable, "not named": unnamed}
        word = next((why for why, ids in silent.items() if row.id in ids), "")
    return f"{mark.sign} {word or ('not sent' if row.outcome == 'dropped' else 'pending')}"


def _failed(result: PoolResult) -> bool:
    """Whether the judge fell back and asking again may help."""
    stats = judge_stats(result)
    return stats is not None and stats.fallback and bool(stats.error)


def _shortened(n: int, settings: Judge) -> str:
    return f"{n} shortened to fit {numbers.token_count(settings.max_prompt_tokens)}" if n else ""


def _waiting(result: PoolResult, resources: Resources) -> None:
    costs = costs_of(result, resources)
    judged = (need.chunk_ids for need in result.needs if need.kind == "judge")
    n = numbers.chunk_count(sum(map(len, judged)))
    if costs is None:
        elements.empty(f"{n} would be judged.", SETUP)
        return
    stay = numbers.chunk_count(result.trace("judge").n_out)
    sent = in_prompt(costs, result.settings.judge)
    elements.empty("Not asked yet.", f"Waiting for a verdict: {n}. Kept until then, by distance: {stay}. {sent}")
    draw_button(result, costs)


def _verdicts(result: PoolResult) -> None:
    """Draw every judged or brought-in chunk, the latter below their root."""
    rows = _in_order(verdict_rows(result, as_operator=bool(state.session().operator)))
    chips = theme.verdicts(dark=theme.is_dark())
    verdicts = [verdict(row, result.judgement) for row in rows]
    came = any(row.by is not None for row in rows)
    ids, full = [row.id for row in rows], [row.title for row in rows]
    short = telling_titles(full, TITLE_BESIDE if came else TITLE_ALONE)
    via = dict(zip(ids, telling_titles(full, VIA_WIDTH), strict=True))
    table: dict[str, list[Any]] = {
        "verdict": [[word] for word in verdicts],
        "chunk": [title if row.by is None else f"└ {title}" for row, title in zip(rows, short, strict=True)],
    }
    if came:
        table["came from"] = [f"{row.by.step}, {via.get(row.by.via, row.by.via)}" if row.by else "" for row in rows]
    colours, text = {word: chips[word[0]] for word in verdicts}, st.column_config.TextColumn
    config = {
        "verdict": grid.chip_column(94, colours, "What the LLM said about the chunk, or why it said nothing."),
        "chunk": text(width=172 if came else 302, help="Click to open the chunk."),
        "came from": text(
            width=130, help="Number of references from the expanded chunk, and the chunk whose reference led here."
        ),
    }
    height = grid.ROW_PX * min(len(rows), MAX_ROWS) + 38
    with st.container(key="verdicts"):
        grid.draw(pd.DataFrame(table), ids, name="verdicts", height=height, columns=config)


def _in_order(rows: Sequence[VerdictRow]) -> list[VerdictRow]:
    """Kept chunks, each followed by the chunks of its expansion; then dropped ones."""
    by_id = {row.id: row for row in rows}
    ordered: list[VerdictRow] = []
    for row in rows:
        if row.by is None:
            ordered += [row, *(by_id[i] for i in row.brought if i in by_id)]
        elif row.by.root not in by_id:
            ordered.append(row)
    return ordered


def _prompt(result: PoolResult) -> None:
    """Draw the exact messages and the raw answer."""
    ready = judge_prompt(result)
    if ready is None:
        return
    waits = waits_for_judge(result)
    with st.expander("Prompt to be sent" if waits else "Prompt and reply", key="judge-prompt"):
        asked, tokens = numbers.chunk_count(len(ready.asked)), numbers.token_count(ready.tokens)
        shortened = _shortened(len(ready.shortened), result.settings.judge)
        elements.aside("; ".join(filter(None, (f"{asked}, about {tokens}", shortened, ready.version))))
        draw_messages(ready.messages)
        if waits:
            return
        elements.draw('<p class="rf-caption">reply</p>')
        judgement = result.judgement
        # The reply may name chunks that only other users can see.
        if not (state.session().operator or result.user.unrestricted):
            elements.aside(
                "With clearance on, only operators see the reply: it may come from a query by a user who sees more. "
                "Choose the role Operator to read it."
            )
        elif judgement is not None and judgement.reply:
            st.code(judgement.reply, language=None, wrap_lines=True)
        else:
            elements.aside("The reply was empty, or came in an earlier run and was not stored.")
