"""The headline; and the strip: what is kept and why, and what every layer let through."""

from __future__ import annotations

import re

from ragfilter.answer.extractive import unmentioned
from ragfilter.layers import top_k
from ragfilter.layers.cutoff import cut_of
from ragfilter.layers.registry import layer
from ragfilter.layers.strategies import registry as strategies
from ragfilter.model import PoolResult
from ragfilter.report import Summary, first, judge_stats, waits_for_judge
from ragfilter.report.summary import Story, sentences
from ragfilter.report.thresholds import as_applied, foreign_thresholds
from ragfilter.settings.profiles import Fit
from ragfilter.text import numbers
from ragfilter.text.numbers import counted
from ragfilter.ui.look import html, theme
from ragfilter.ui.session import state
from ragfilter.ui.session.visit import View, known_collections

_FIGURE = re.compile(r"\d+(?:[.,]\d+)*%?")


def draw(view: View, story: Story) -> None:
    """Draw what the filter did in one sentence, and below it, small, what is in doubt."""
    prices = view.resources.prices
    sentence = headline(story, (prices.prompt, prices.currency) if prices else ())
    hidden = view.result.trace("clearance").count("dropped") if view.operator else 0
    doubts = [
        f"{numbers.chunks(hidden)} hidden from the user." if hidden else "",
        unnamed(view),
        _fitted(view),
    ]
    html.draw(f'<p class="rf-headline">{sentence}</p>')
    if notes := " ".join(filter(None, doubts)):
        html.draw(f'<p class="rf-aside">{html.text(notes)}</p>')


def headline(story: Story, price: tuple[float, str] | tuple[()] = ()) -> str:
    """The sentences as HTML: figures in bold, and each reason with its sign."""
    words = html.text(" ".join(sentences(story, *price)))
    words = _FIGURE.sub(lambda match: f"<b>{match[0]}</b>", words)
    for fall in story.drops_from_unfiltered:
        count, _, reason = html.text(fall.line).partition(" ")
        sign = html.outcome_sign("dropped", fall.layer, fall.setting)
        words = words.replace(f"<b>{count}</b> {reason}", f"{sign}<b>{count}</b> {reason}", 1)
    return words


def draw_strip(view: View) -> None:
    """Draw how many chunks are kept and why, and what every layer let through."""
    result, summary = view.shown, view.summary
    kept = "rf-kept" if summary.kept else "rf-kept rf-none"
    label, value = why(result)
    decided = f'<div class="rf-fact"><span>{html.text(label)}</span><b>{html.text(value)}</b></div>'
    if result.message:
        word = "nothing is left" if result.status == "ok" else result.status.replace("_", " ")
        decided = (
            f'<div class="rf-fact rf-status"><span>{word}</span>'
            f"<p>{html.text(result.message)}</p></div>"
        )
    unfiltered = first(summary.unfiltered, summary.left_out)
    plain = f"{numbers.count(summary.tokens_unfiltered)} ({unfiltered})"
    html.draw(
        f'<section class="rf-strip" aria-label="Result">'
        f'<div class="{kept}"><b>{numbers.count(summary.kept)} kept</b>'
        f"<span>of {numbers.count(summary.retrieved)} retrieved</span></div>"
        f"{decided}"
        f'<div class="rf-fact"><span>Context; plain search {plain}</span>'
        f"<b>{numbers.tokens(summary.tokens)}</b></div>"
        f'<ol class="rf-funnel">{_funnel(result, summary)}</ol></section>'
    )


def unnamed(view: View) -> str:
    """A sentence naming an uncommon word of the question that no chunk kept for the user contains;
    empty if there is none."""
    kept, info = view.mine.kept, known_collections(view.resources).get(view.asked.collection)
    embedder = view.resources.bench.load_embedder("" if info is None else info.embedder)
    word = unmentioned(view.asked.query, kept, embedder) if kept else ""
    return f"Nothing kept mentions “{word}”." if word else ""


def _fitted(view: View) -> str:
    """That the current thresholds were fitted to another collection or model, and what works."""
    info = known_collections(view.resources).get(view.result.pool.collection)
    if info is None:
        return ""
    here = Fit(info.name, info.embedder, info.space)
    return foreign_thresholds(as_applied(view.result), state.session().profile, here)


def why(result: PoolResult) -> tuple[str, str]:
    """What decided how many chunks stay: a label and the numbers that were compared."""
    if result.settings.judge.enabled:
        return _judged(result)
    detail = cut_of(result)
    if detail is None:
        trace, k = result.trace("top_k"), top_k.limit(result.settings)
        return "No cutoff", "all that came in" if trace.n_in <= k else f"first {k}"
    cut, strategy = detail.cut, strategies.strategy(detail.cut.strategy)
    cliff = strategy.cliff(result.settings.cutoff)
    if cut.limit is not None and "distance_offset" in strategy.reads:
        cliff = "No cliff"
    if cut.raise_reason:
        return cliff, f"raised to {cut.kept}: {cut.raise_reason}"
    if cut.limit is not None:
        return cliff, f"{detail.value_name} ≤ {numbers.distance(cut.limit)}"
    if cut.cliff_after_rank is None or cut.gap is None:
        return strategy.name, cut.reason.partition(";")[0]
    at_least = ""
    if "gap_threshold" in strategy.reads:
        at_least = f" ≥ {numbers.distance(result.settings.cutoff.gap_threshold)}"
    after = counted(cut.cliff_after_rank, "hit")
    return f"{cliff} after {after}", f"gap {numbers.distance(cut.gap)}{at_least}"


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
    """What was retrieved, and what every layer that is on let through."""
    ms, asked = result.pool.gather_ms, counted(result.pool.queries, "store query")
    steps = [_step(summary, "retrieved", "", "muted", summary.retrieved, ms, asked)]
    for each in summary.layers:
        # Nobody can switch top_k, so it is named only where it drops hits.
        if each.enabled and (each.name != "top_k" or each.n_out < each.n_in):
            name, sign = each.name, theme.LAYERS[each.name].sign
            colour = f"layer-{name}"
            steps.append(_step(summary, name, sign, colour, each.n_out, each.ms, each.line))
    return "".join(steps)


def _step(summary: Summary, name: str, sign: str, colour: str, n: int, ms: float, help: str) -> str:
    share = max(100 * n / summary.retrieved, 1.5) if n else 0
    colour = f"var(--rf-{colour})"
    title = layer(name).title if name in theme.LAYERS else name
    return (
        f'<li title="{html.text(f"{name}: {help}")}">'
        f'<span class="rf-name"><i style="color:{colour}">{sign}</i> {html.text(title)}</span>'
        f'<span class="rf-count"><b>{numbers.count(n)}</b> <em>{numbers.ms(ms)}</em></span>'
        f'<span class="rf-bar"><i style="width:{share:.1f}%;background:{colour}"></i></span></li>'
    )
