"""What the filter did: the headline, and the strip with the kept chunks, the reason and what each layer let through."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragfilter.answer.extractive import unmentioned
from ragfilter.engine.pool import unfiltered
from ragfilter.evaluate.labelled_queries import relevant_of
from ragfilter.evaluate.recalibrate import RECORDS
from ragfilter.layers import top_k
from ragfilter.layers.cutoff import cutoff_detail
from ragfilter.layers.registry import layer
from ragfilter.model import Hit, PoolResult
from ragfilter.results.summary import DropGroup, Story, Summary, sentences, unfiltered_label
from ragfilter.results.thresholds import applied_settings, cut_name, foreign_thresholds
from ragfilter.results.verdicts import judge_stats, waits_for_judge
from ragfilter.settings.profiles import Fit
from ragfilter.text import numbers
from ragfilter.text.numbers import counted
from ragfilter.text.titles import short_title
from ragfilter.ui.look import elements, theme
from ragfilter.ui.session import state
from ragfilter.ui.session.page_run import View

NAMED, NAMED_WIDTH = 2, 40
"""How many dropped chunks the headline names, and how many characters of each title."""
_FIGURE = re.compile(r"“[^”]*”|\d+(?:[.,]\d+)*%?")
"""A figure, or a quoted title, whose figures are not the sentence's."""


def draw(view: View, story: Story) -> None:
    """Draw what the filter did, first what it lost, and, small below it, any doubts."""
    prices = view.resources.bench.prices
    price = (prices.prompt, prices.currency) if prices else ()
    missing, lost = _missing(view)
    draw_headline(" ".join(sentences(story, *price, loss=missing if lost else "")), story.drops_from_unfiltered)
    hidden = view.result.trace("clearance").count("dropped") if view.operator else 0
    hidden_note = f"{numbers.chunk_count(hidden)} hidden from the user." if hidden else ""
    foreign = _foreign_thresholds(view)
    if notes := " ".join(filter(None, ("" if lost else missing, hidden_note, foreign))):
        with elements.row("doubts"):
            elements.aside(notes, width="content")
            recorded = any(view.result.settings.get(path) for path in RECORDS)
            offered = foreign and recorded and not state.session().present
            if offered and elements.button("Recalibrate", "fit-here", type="tertiary"):
                state.open_recalibration()


def draw_headline(sentence: str, drops: Sequence[DropGroup]) -> None:
    """Draw a sentence with bold figures, and each reason in `drops` with its sign."""
    words = _FIGURE.sub(lambda match: match[0] if match[0][0] == "“" else f"<b>{match[0]}</b>", elements.text(sentence))
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
    unfiltered = unfiltered_label(summary.unfiltered, summary.left_out)
    plain = f"plain search: {numbers.count(summary.tokens_unfiltered)}, {unfiltered}"
    elements.draw(
        f'<section class="rf-strip" aria-label="Result">'
        f'<div class="{kept}"><b>{numbers.count(summary.kept)} kept</b>'
        f"<span>of {numbers.count(summary.retrieved)} retrieved</span></div>"
        f"{decided}"
        f"{elements.fact((f'Context ({plain})', numbers.token_count(summary.tokens), ''))}"
        f'<ol class="rf-funnel">{_funnel(result, summary)}</ol></section>'
    )


def _missing(view: View) -> tuple[str, bool]:
    """A sentence on what the kept passages lack, if anything, and whether plain search has it: passages labelled
    relevant, or an uncommon word of the question."""
    result = view.as_user
    plain, kept = unfiltered(result.pool, result.settings, result.user), {hit.id for hit in result.kept}
    relevant = relevant_of(view.grades_for(view.user))
    retrieved = [hit for hit in result.hits if hit.id in relevant]
    if dropped := [hit for hit in retrieved if hit.id not in kept]:
        of = counted(len(retrieved), "retrieved passage")
        names = numbers.first_of([f"“{short_title(hit.chunk.name, NAMED_WIDTH)}”" for hit in dropped], NAMED)
        lost = not {hit.id for hit in plain}.isdisjoint(hit.id for hit in dropped)
        what = "The filter drops" if lost else "Neither plain search nor the filter keeps"
        return f"{what} {len(dropped)} of {of} labelled relevant: {names}.", lost
    if kept and relevant and kept.isdisjoint(relevant):
        return "No kept passage is labelled relevant.", False
    word = _unmentioned(view, result.kept)
    return (f"No kept passage mentions “{word}”.", word != _unmentioned(view, plain)) if word else ("", False)


def _unmentioned(view: View, hits: Sequence[Hit]) -> str:
    """An uncommon word of the question that none of these hits has, if any."""
    info = view.collection
    embedder = view.resources.bench.load_embedder("" if info is None else info.embedder)
    return unmentioned(view.asked.query, hits, embedder) if hits else ""


def _foreign_thresholds(view: View) -> str:
    """A warning if the current thresholds were fitted to another collection or model."""
    info = view.collection
    if info is None:
        return ""
    fit = Fit(info.name, info.embedder, info.space)
    return foreign_thresholds(applied_settings(view.result), state.session().profile, fit)


def _why(result: PoolResult) -> tuple[str, str]:
    """What decided how many chunks stay, as a label and the compared numbers."""
    if result.settings.judge.enabled:
        return _judged(result)
    detail = cutoff_detail(result)
    if detail is None:
        trace, k = result.trace("top_k"), top_k.limit(result.settings)
        return "No cutoff", "other layers decide" if trace.n_in <= k else f"first {k}"
    cut, name = detail.cut, cut_name(detail.cut, result.settings.cutoff)
    if cut.limit is None or cut.strategy_kept is not None:
        return name, cut.reason.removeprefix(f"{name.lower()}; ")
    return name, f"{detail.value_name} ≤ {numbers.distance(cut.limit)}"


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
