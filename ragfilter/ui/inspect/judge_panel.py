"""The judge on the page: what a call will cost, what it did, and its verdict on every chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from ragfilter.model import PoolResult
from ragfilter.report import (
    VerdictRow,
    judge_stats,
    remarks,
    verdict_rows,
    waits_for_judge,
)
from ragfilter.report.verdicts import Forecast, judge_prompt
from ragfilter.text import numbers
from ragfilter.text.titles import telling_titles
from ragfilter.ui.inspect import needs
from ragfilter.ui.kit import grid, judge_words
from ragfilter.ui.look import elements, html, theme
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import Resources
from ragfilter.ui.session.visit import View

TITLE_BESIDE, TITLE_ALONE, VIA_WIDTH = 22, 42, 15
ROW, MAX_ROWS = 30, 6


def draw(view: View) -> None:
    """The judge's page of the panel."""
    result, resources = view.mine, view.resources
    settings = result.settings.judge
    no_llm = resources.bench.chat is None
    if not settings.enabled:
        state_of = judge_words.SETUP if no_llm else "Switch LLM judge on in the sidebar to use it."
        _say(f"<b>The judge is off.</b> {html.prose(state_of)}")
        elements.aside(judge_words.ABOUT)
        return
    stats = judge_stats(result)
    costs = needs.judging_costs(result, resources)
    if waits_for_judge(result):
        _waiting(costs, result, resources)
    elif stats is None:
        why = result.message or "The layers before it let no chunk through."
        _say(f"<b>Nothing reached the judge.</b> {html.text(why)}")
    else:
        if stats.fallback:
            _failure(stats.error, costs, result, resources)
        html.draw(_facts(judge_words.after(stats, resources.prices), short=True))
        _verdicts(result)
        html.draw(f'<p class="rf-aside">{html.text(judge_words.by_whom(stats, settings))}</p>')
        _remarks(result)
    _prompt(result)
    elements.aside(judge_words.ABOUT)


def _waiting(costs: Forecast | None, result: PoolResult, resources: Resources) -> None:
    n = numbers.chunks(sum(len(need.chunk_ids) for need in result.needs if need.kind == "judge"))
    if costs is None:
        _say(f"<b>{n} would be judged.</b> {html.prose(judge_words.SETUP)}")
        return
    changed = ""
    if result.pool.judgements:
        changed = " Earlier judgements were for other chunks or another prompt."
    stay = numbers.chunks(result.trace("judge").n_out)
    _say(
        f"<b>Not asked yet.</b> {n} wait for a verdict. Until then, the nearest "
        f"{stay} are kept.{changed}"
    )
    html.draw(_facts(judge_words.before(costs, result.settings.judge)))
    needs.judge_button(costs, result, resources, short=True)


def _failure(error: str, costs: Forecast | None, result: PoolResult, resources: Resources) -> None:
    sign = html.sign(theme.OUTCOMES["fallback"], "fallback")
    n = numbers.chunks(result.trace("judge").n_out)
    html.draw(
        f'<p class="rf-verdict rf-bad" role="alert">{sign}<b>The judge failed.</b> '
        f"{html.text(_sentence(error))} The first {n} by distance are kept, marked fallback.</p>"
    )
    if costs is not None:
        needs.judge_button(costs, result, resources, short=True)


def _facts(facts: Sequence[tuple[str, str]], *, short: bool = False) -> str:
    items = "".join(
        f"<div><dt>{html.text(what)}</dt><dd>{html.text(value)}</dd></div>" for what, value in facts
    )
    return f'<dl class="rf-grid{" rf-short" if short else ""}">{items}</dl>'


def _verdicts(result: PoolResult) -> None:
    """Draw every chunk that was judged or brought in. Chunks from an expansion are below their
    root."""
    rows = _in_order(verdict_rows(result, as_operator=bool(state.session().operator)))
    judgement = result.judgement
    chips = theme.verdicts(dark=theme.is_dark())
    verdicts = [judge_words.verdict(row, judgement) for row in rows]
    came = any(row.by is not None for row in rows)
    full = [row.title for row in rows]
    short = telling_titles(full, TITLE_BESIDE if came else TITLE_ALONE)
    via = dict(zip((row.id for row in rows), telling_titles(full, VIA_WIDTH), strict=True))
    table: dict[str, list[Any]] = {
        "verdict": [[word] for word in verdicts],
        "chunk": [
            title if row.by is None else f"└ {title}"
            for row, title in zip(rows, short, strict=True)
        ],
    }
    if came:
        table["came from"] = [_origin(row, via) for row in rows]
    colours = {word: chips[word[0]] for word in verdicts}
    column = st.column_config
    config: dict[str, Any] = {
        "verdict": column.MultiselectColumn(
            width=94, options=list(colours), color=list(colours.values()),
            help="What the LLM said about the chunk, or why it said nothing.",
        ),
        "chunk": column.TextColumn(width=172 if came else 302, help="Click to open the chunk."),
        "came from": column.TextColumn(
            width=130, help="Number of references from the expanded chunk, and the chunk whose "
            "reference led here.",
        ),
    }  # fmt: skip
    with st.container(key="verdicts"):
        grid.draw(
            pd.DataFrame(table),
            [row.id for row in rows],
            name="verdicts",
            height=ROW * min(len(rows), MAX_ROWS) + 38,
            row_height=ROW,
            columns=config,
        )


def _in_order(rows: Sequence[VerdictRow]) -> list[VerdictRow]:
    """Kept chunks in order, each followed by the chunks that its expansion brought in; then the
    dropped ones."""
    by_id = {row.id: row for row in rows}
    ordered: list[VerdictRow] = []
    for row in rows:
        if row.by is None:
            ordered += [row, *(by_id[i] for i in row.brought if i in by_id)]
        elif row.by.root not in by_id:
            ordered.append(row)
    return ordered


def _origin(row: VerdictRow, titles: dict[str, str]) -> str:
    """The chunk whose references led to this one, if an expansion brought it in."""
    if row.by is None:
        return ""
    return f"{row.by.step}, {titles.get(row.by.via, row.by.via)}"


def _remarks(result: PoolResult) -> None:
    if words := "; ".join(remarks(result)):
        html.draw(f'<p class="rf-aside">Ignored in its reply: {html.text(words)}.</p>')


def _prompt(result: PoolResult) -> None:
    """Draw the exact messages and the raw answer."""
    ready = judge_prompt(result)
    if ready is None:
        return
    waits = waits_for_judge(result)
    n = len(ready.shortened)
    short = f"; {judge_words.shortened(n, result.settings.judge)}" if n else ""
    with st.expander("Prompt to be sent" if waits else "Prompt and reply", key="judge-prompt"):
        html.draw(
            f'<p class="rf-aside">{numbers.chunks(len(ready.asked))}, about '
            f"{numbers.tokens(ready.tokens)}{short}; {html.text(ready.version)}</p>"
        )
        for message in ready.messages:
            html.draw(f'<p class="rf-caption">{html.text(message.role)}</p>')
            st.code(message.content, language=None, wrap_lines=True)
        if waits:
            return
        html.draw('<p class="rf-caption">reply</p>')
        judgement = result.judgement
        # It may name chunks that only other users may see.
        if not (state.session().operator or result.user.unrestricted):
            elements.aside(
                "With clearance on, only operators see the reply: it may come from a query by a "
                "user who sees more. View as operator to read it."
            )
        elif judgement is not None and judgement.cached and not judgement.reply:
            elements.aside("Replies from earlier runs are not stored.")
        elif judgement is None or not judgement.reply:
            elements.aside("The reply was empty.")
        else:
            st.code(judgement.reply, language=None, wrap_lines=True)


def _say(body: str) -> None:
    html.draw(f'<p class="rf-say">{body}</p>')


def _sentence(error: str) -> str:
    first = error[:1].upper() + error[1:]
    return first if first.endswith((".", "!", "?")) else f"{first}."
