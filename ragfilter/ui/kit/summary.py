"""What the filter did: the headline; the strip, with the kept chunks, the reason, and what every layer let through; and
before and after as two stacks of titled chunks, row by row."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress

import streamlit as st

from ragfilter.answer.context import fits
from ragfilter.answer.extractive import unmentioned
from ragfilter.engine.replay import unfiltered
from ragfilter.errors import RagfilterError
from ragfilter.evaluate.metrics import relevant_of
from ragfilter.layers import top_k
from ragfilter.layers.cutoff import cutoff_detail
from ragfilter.layers.registry import layer
from ragfilter.layers.strategies.base import strategy
from ragfilter.model import Hit, Outcome, PoolResult
from ragfilter.results.summary import DropGroup, Story, Summary, first_words, sentences
from ragfilter.results.thresholds import as_applied, foreign_thresholds
from ragfilter.results.verdicts import judge_stats, waits_for_judge
from ragfilter.settings.profiles import Fit
from ragfilter.text import numbers
from ragfilter.text.numbers import counted
from ragfilter.text.titles import telling_titles
from ragfilter.ui.kit import problems, query_set_choice
from ragfilter.ui.kit.answer_sides import page_numbers
from ragfilter.ui.look import elements, theme
from ragfilter.ui.session import state
from ragfilter.ui.session.page_run import View, current_collections

_FIGURE = re.compile(r"\d+(?:[.,]\d+)*%?")


def draw(view: View, story: Story) -> None:
    """Draw one sentence on what the filter did and, small below it, any doubts."""
    prices = view.resources.bench.prices
    price = (prices.prompt, prices.currency) if prices else ()
    headline = (*sentences(story, *price), _relevant_drops(view))
    draw_headline(" ".join(filter(None, headline)), story.drops_from_unfiltered)
    hidden = view.result.trace("clearance").count("dropped") if view.operator else 0
    hidden_note = f"{numbers.chunks(hidden)} hidden from the user." if hidden else ""
    foreign = _foreign_thresholds(view)
    if notes := " ".join(filter(None, (hidden_note, _unmentioned(view), foreign))):
        with elements.row("doubts"):
            elements.aside(notes, width="content")
            offered = foreign and not state.session().present
            if offered and elements.button("Recalibrate", "fit-here", type="tertiary"):
                problems.open_recalibration()


def draw_headline(sentence: str, drops: Sequence[DropGroup]) -> None:
    """Draw a sentence with bold figures, and each reason in `drops` with its sign."""
    words = _FIGURE.sub(lambda match: f"<b>{match[0]}</b>", elements.text(sentence))
    for drop in drops:
        count, _, reason = elements.text(drop.line).partition(" ")
        sign = elements.outcome_sign("dropped", drop.layer, drop.setting)
        words = words.replace(f"<b>{count}</b> {reason}", f"{sign}<b>{count}</b> {reason}", 1)
    elements.draw(f'<p class="rf-headline">{words}</p>')


def draw_strip(view: View) -> None:
    """Draw how many chunks are kept, why, and how many each layer let through."""
    result, summary = view.shown, view.summary
    kept = "rf-kept" if summary.kept else "rf-kept rf-none"
    decided = elements.fact((*_why(result), ""))
    if result.message:
        word = "nothing is left" if result.status == "ok" else result.status.replace("_", " ")
        decided = f'<div class="rf-fact rf-status"><span>{word}</span><p>{elements.text(result.message)}</p></div>'
    unfiltered = first_words(summary.unfiltered, summary.left_out)
    plain = f"plain search: {numbers.count(summary.tokens_unfiltered)}, {unfiltered}"
    elements.draw(
        f'<section class="rf-strip" aria-label="Result">'
        f'<div class="{kept}"><b>{numbers.count(summary.kept)} kept</b>'
        f"<span>of {numbers.count(summary.retrieved)} retrieved</span></div>"
        f"{decided}"
        f"{elements.fact((f'Context ({plain})', numbers.tokens(summary.tokens), ''))}"
        f'<ol class="rf-funnel">{_funnel(result, summary)}</ol></section>'
    )


def _unmentioned(view: View) -> str:
    """A sentence naming an uncommon word of the question that no kept chunk has, if any."""
    kept, info = view.as_user.kept, current_collections(view.resources).get(view.asked.collection)
    embedder = view.resources.bench.load_embedder("" if info is None else info.embedder)
    word = unmentioned(view.asked.query, kept, embedder) if kept else ""
    return f"No kept chunk mentions “{word}”." if word else ""


def _relevant_drops(view: View) -> str:
    """A sentence on dropped chunks that are labelled relevant to the question, if any."""
    labels = None
    with suppress(RagfilterError):
        labels = query_set_choice.every_label(view.resources, view.asked.collection, view.user)
    if labels is None:
        return ""
    same = [i for i, query in labels.queries.items() if query.strip() == view.asked.query.strip()]
    relevant = {chunk_id for i in same for chunk_id in relevant_of(labels.qrels.get(i, {}))}
    dropped = relevant & {hit.id for hit in view.as_user.pool.hits} - {hit.id for hit in view.as_user.kept}
    return f"But it drops {len(dropped)} of {counted(len(relevant), 'passage')} labelled relevant." if dropped else ""


def _foreign_thresholds(view: View) -> str:
    """A warning if the current thresholds were fitted to another collection or model."""
    info = current_collections(view.resources).get(view.result.pool.collection)
    if info is None:
        return ""
    fit = Fit(info.name, info.embedder, info.space)
    return foreign_thresholds(as_applied(view.result), state.session().profile, fit)


def _why(result: PoolResult) -> tuple[str, str]:
    """What decided how many chunks stay, as a label and the compared numbers."""
    if result.settings.judge.enabled:
        return _judged(result)
    detail = cutoff_detail(result)
    if detail is None:
        trace, k = result.trace("top_k"), top_k.limit(result.settings)
        return "No cutoff", "everything" if trace.n_in <= k else f"first {k}"
    cut, spec = detail.cut, strategy(detail.cut.strategy)
    cliff = spec.cliff(result.settings.cutoff)
    if cut.limit is None or cut.strategy_kept is not None:
        return cliff, cut.reason
    fell_back = "distance_offset" in spec.reads
    return "No cliff" if fell_back else cliff, f"{detail.value_name} ≤ {numbers.distance(cut.limit)}"


def _judged(result: PoolResult) -> tuple[str, str]:
    if waits_for_judge(result):
        return "LLM judge", "not asked yet"
    stats = judge_stats(result)
    if stats is None:
        return "LLM judge", "nothing to judge"
    if stats.fallback:
        return f"{theme.OUTCOMES['fallback'].sign} LLM judge failed", f"first {stats.kept} stay"
    more = f" + {stats.expanded} by reference" if stats.expanded else ""
    return "LLM judge", f"kept {stats.kept} of {stats.original}{more}"


def _funnel(result: PoolResult, summary: Summary) -> str:
    """How many chunks were retrieved, and how many each enabled layer let through."""
    queries = counted(result.pool.queries, "store query")
    bars = [_bar(summary, "retrieved", "", "muted", summary.retrieved, result.pool.gather_ms, queries)]
    for trace, line in summary.layers:
        # Nobody can switch top_k off, so it is named only where it drops hits.
        if trace.enabled and (trace.layer != "top_k" or trace.n_out < trace.n_in):
            name, sign = trace.layer, theme.LAYERS[trace.layer].sign
            bars.append(_bar(summary, name, sign, f"layer-{name}", trace.n_out, trace.ms, line))
    return "".join(bars)


def _bar(summary: Summary, name: str, sign: str, colour: str, n: int, ms: float, help: str) -> str:
    share = max(100 * n / summary.retrieved, 1.5) if n else 0
    colour = f"var(--rf-{colour})"
    title = layer(name).title if name in theme.LAYERS else name
    return (
        f'<li title="{elements.text(f"{name}: {help}")}">'
        f'<span class="rf-name"><i style="color:{colour}">{sign}</i> {elements.text(title)}</span>'
        f'<span class="rf-count"><b>{numbers.count(n)}</b> <em>{numbers.ms(ms)}</em></span>'
        f'<span class="rf-bar"><i style="width:{share:.1f}%;background:{colour}"></i></span></li>'
    )


MAX_ROWS = 15
"""How many rows are drawn. If there are more, kept chunks take precedence."""
TITLE_WIDTH = 42


@dataclass(frozen=True, slots=True)
class StackRow:
    """A chunk of a stack: its outcome, the layer and setting that decided, and why in words. It is
    `alone` if the other stack lacks it. Both answers cite it by its `number`, 0 for none."""

    chunk_id: str
    title: str
    outcome: Outcome = "kept"
    layer: str = "top_k"
    why: str = ""
    setting: str = ""
    alone: bool = False
    number: int = 0


@dataclass(frozen=True, slots=True)
class Stack:
    """One side. An entry is None if only the other stack has a chunk there."""

    label: str
    entries: tuple[StackRow | None, ...]

    @property
    def count(self) -> int:
        """How many chunks it has."""
        return sum(entry is not None for entry in self.entries)


def before_and_after(result: PoolResult, drops: Sequence[DropGroup]) -> tuple[Stack, Stack]:
    """The chunks that a plain search would send, with `drops` marked, and the kept ones."""
    kept = {hit.id for hit in result.kept}
    plain = unfiltered(result.pool, result.settings, result.user)
    drop_by_id = {chunk_id: drop for drop in drops for chunk_id in drop.ids}
    decisions = result.outcomes()

    def row(hit: Hit) -> StackRow:
        entry = StackRow(hit.id, hit.chunk.name, why="found by plain search", number=cited.get(hit.id, 0))
        if drop := drop_by_id.get(hit.id):
            return replace(entry, outcome="dropped", layer=drop.layer, why=drop.words, setting=drop.setting)
        if hit.id in kept:
            outcome = decisions[hit.id].outcome if hit.id in decisions else "kept"
            return replace(entry, outcome=outcome, why="passes the filter")
        return entry

    plain_ids = {hit.id for hit in plain}
    beyond = [hit for hit in result.kept if hit.id not in plain_ids]
    fitting = fits(plain, result.settings.context.max_context_tokens)[0]
    cited = page_numbers(result.kept, [*compress(plain, fitting)])
    before = (*map(row, plain), *(None for _ in beyond))
    after = (*(row(hit) if hit.id in kept else None for hit in plain), *map(row, beyond))
    return Stack("Before: plain search", before), Stack("After: filtered", after)


def draw_stacks(
    stacks: Sequence[Stack], among: PoolResult, *, key: str = "stacks", on_open: Callable[[str], None] | None = None
) -> None:
    """Draw the stacks side by side. Shortened titles stay distinct from all hits in `among`.
    `on_open` gets the id of the chosen chunk."""
    # The last stack has the kept chunks.
    ranked = sorted(range(len(stacks[0].entries)), key=lambda n: stacks[-1].entries[n] is None)
    visible = sorted(ranked if len(ranked) <= MAX_ROWS + 1 else ranked[:MAX_ROWS])
    rows = [[stack.entries[n] for n in visible] for stack in stacks]
    stacked = (row.title for entries in rows for row in entries if row)
    titles = list(dict.fromkeys([*stacked, *(hit.chunk.name for hit in among.hits)]))
    short = dict(zip(titles, telling_titles(titles, TITLE_WIDTH), strict=True))
    opens = on_open is not None
    drawn = (_stack(stack, entries, short, opens=opens) for stack, entries in zip(stacks, rows, strict=True))
    elements.draw(f'<div class="rf-stacks">{"".join(drawn)}</div>')
    if on_open is not None:
        elements.mount("kit/stacks.js", key=key, on_opened_change=partial(_open, key, on_open), height=0)


def _open(key: str, on_open: Callable[[str], None]) -> None:
    if chunk_id := st.session_state[key].opened:
        on_open(chunk_id)


def _stack(stack: Stack, entries: Sequence[StackRow | None], short: Mapping[str, str], *, opens: bool) -> str:
    more = stack.count - sum(entry is not None for entry in entries)
    label = elements.text(stack.label)
    role = f'aria-label="{label}: {numbers.chunks(stack.count)}"'
    if opens:
        role = f'role="listbox" tabindex="0" {role}'
    rest = f'<p class="rf-rest">{numbers.count(more)} more</p>' if more else ""
    return (
        f'<section class="rf-stack"><p class="rf-stack-head">{label}<b>{numbers.count(stack.count)}</b></p>'
        f"<ul {role}>{''.join(_row(entry, short, opens=opens) for entry in entries)}</ul>{rest}</section>"
    )


def _row(entry: StackRow | None, short: Mapping[str, str], *, opens: bool) -> str:
    if entry is None:
        return '<li class="rf-slot" aria-hidden="true"></li>'
    role = f'role="option" aria-selected="false" data-id="{elements.text(entry.chunk_id)}"' if opens else ""
    style = "rf-fallen" if entry.outcome == "dropped" else "rf-alone" if entry.alone else ""
    number = f"<i>[{entry.number}]</i>" if entry.number else ""
    sign = elements.outcome_sign(entry.outcome, entry.layer, entry.setting)
    return (
        f'<li data-passage class="{style}" title="{elements.text(f"{entry.title}: {entry.why}")}" {role}>'
        f"{number}{sign}{elements.text(short[entry.title])}</li>"
    )
