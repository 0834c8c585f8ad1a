"""One chunk: its text, what every layer decided about it, and its `query_must` rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from ragfilter.layers.clearance import visible_refs
from ragfilter.layers.registry import layer
from ragfilter.model import Chunk, Hit, LayerTrace, PoolResult
from ragfilter.report import visible
from ragfilter.report.rows import rerank_score
from ragfilter.text import numbers
from ragfilter.ui.inspect import table
from ragfilter.ui.inspect.panels import labels, reference_graph, rule_editor, whatif
from ragfilter.ui.look import elements, html
from ragfilter.ui.session import state, widget
from ragfilter.ui.session.visit import View

PARTS = TEXT, RULE, REFERENCES = "Text", "Rule", "References"


def draw(view: View) -> None:
    """Draw the open chunk, or a hint on how to open one."""
    hit = _opened(view)
    if hit is None:
        # Of a hidden chunk, which the address can name, the same is said as of an unknown one.
        html.draw(
            '<p class="rf-empty"><b>No chunk is open.</b> Click a point on the curve, a row of '
            "the table or a citation to read its text, edit its rule and follow its references."
            "</p>"
            if state.session().chunk is None
            else '<p class="rf-empty"><b>This chunk is not shown.</b> The question did not find '
            "it, or the user may not see it.</p>"
        )
        labels.begin(view)
        return
    chunk = _whole(hit.chunk, view)
    named = _named_refs(view, chunk)
    if labels.blind():
        html.draw(f'<div class="rf-chunk"><h3>{html.text(chunk.name)}</h3></div>')
    else:
        _head(view.shown, replace(hit, chunk=replace(chunk, refs=named)))
    labels.draw(view, chunk.id)
    match TEXT if labels.blind() else _part(view, chunk.id):
        case "Rule":
            with st.container(key="rule-both", horizontal=True, gap="small"):
                _text(chunk)
                with st.container(key="rule-side", gap="small"):
                    rule_editor.draw(view, chunk)
        case "References":
            reference_graph.draw(view, chunk)
        case _:
            _text(chunk)


def finish(view: View) -> None:
    """Draw below the text what would change the outcome: many replays, for which neither the text
    nor the curve waits."""
    hit = _opened(view)
    if hit is not None and not labels.blind() and state.session().part == TEXT:
        whatif.draw(view, hit)


def _opened(view: View) -> Hit | None:
    """The open chunk as the user may see it, if the user may."""
    wanted = state.session().chunk
    hit = find(view.result, wanted)
    if hit is None or hit.id not in visible(view.result, as_operator=view.operator):
        return None
    return find(view.shown, wanted) or hit


def _text(chunk: Chunk) -> None:
    with st.container(key="chunk-text"):
        st.text(chunk.text or "This chunk has no text.")


def _part(view: View, chunk_id: str) -> str:
    """Which part of the chunk is shown; the choice stays when another chunk is opened."""
    shown = state.session().part
    with st.container(key="part-bar", horizontal=True, vertical_alignment="center", gap="small"):
        st.segmented_control(
            "Part",
            PARTS,
            default=shown,
            required=True,
            label_visibility="collapsed",
            **widget.of("chunk-part", shown, state.put, "part"),
        )
        elements.hint(
            "Text: what the chunk says, and the smallest changes that would bring it back or drop "
            "it. Rule: the questions it is meant for (query_must), with an editor and a preview. "
            "References: chunks that the judge's EXPAND would bring in."
        )
        _steps([row.id for row in table.in_order(view)], chunk_id)
    return shown


def _steps(ids: Sequence[str], chunk_id: str) -> None:
    """Draw the buttons, with shortcut keys, for the previous and next chunk in the table."""
    here = ids.index(chunk_id) if chunk_id in ids else -1
    with st.container(key="chunk-steps", horizontal=True, width="content", gap="xxsmall"):
        for label, to, arrow in (("Previous", here - 1, "Up"), ("Next", here + 1, "Down")):
            there = 0 <= to < len(ids)
            st.button(
                label,
                key=f"chunk-{label.lower()}",
                icon=f":material/keyboard_arrow_{arrow.lower()}:",
                on_click=state.open_chunk,
                args=(ids[to] if there else None,),
                disabled=not there,
                shortcut=f"Alt+{arrow}",
                help=f"Opens the {'next row' if to > here else 'previous row'} of the table "
                f"(Alt+{arrow}).",
            )


def find(result: PoolResult, chunk_id: str | None) -> Hit | None:
    """The hit with this id among all hits of the pool."""
    if not chunk_id:
        return None
    return next((hit for hit in (*result.hits, *result.pool.hits) if hit.id == chunk_id), None)


def _named_refs(view: View, chunk: Chunk) -> tuple[str, ...]:
    """The references that may be named: for a user, only those to chunks that the user may see."""
    if view.operator:
        return chunk.refs
    return visible_refs(view.mine.pool, view.user)(chunk)


def _whole(chunk: Chunk, view: View) -> Chunk:
    """The whole chunk, read once when one is opened that is known only by its id."""
    if chunk.loaded:
        return chunk
    asked, resources = view.asked, view.resources
    key = (asked.collection, asked.version, chunk.id)

    def read() -> Chunk:
        return resources.bench.collection(asked.collection).chunks([chunk.id]).get(chunk.id, chunk)

    return resources.chunks.of(key, read)


def _head(result: PoolResult, hit: Hit) -> None:
    chunk = hit.chunk
    place = f"rank {hit.rank}" if hit.rank else "brought in by an expansion"
    scored = rerank_score(result, hit)
    score = "" if scored is None else f" · rerank {numbers.distance(scored)}"
    facts = [
        chunk.id,
        f"{place} · distance {numbers.distance(hit.distance)}{score}",
        f"found by {hit.found_by}" if hit.found_by != "query" else "",
        chunk.type,
        f"{chunk.source}{'' if chunk.page is None else f', page {chunk.page}'}",
        "clearance unreadable"
        if chunk.clearance is None
        else f"clearance {chunk.clearance}"
        if chunk.clearance
        else "public",
        f"department {chunk.department}" if chunk.department else "",
        f"refers to {numbers.chunks(len(chunk.refs))}" if chunk.refs else "",
    ]
    steps = "".join(_step(trace, hit.id) for trace in result.traces if trace.enabled)
    listed = "".join(f"<span>{html.text(fact)}</span>" for fact in facts if fact)
    html.draw(
        f'<div class="rf-chunk"><h3>{html.text(chunk.name)}</h3>'
        f'<p class="rf-facts">{listed}</p>'
        f'<ul class="rf-path">{steps}</ul></div>'
    )


def _step(trace: LayerTrace, chunk_id: str) -> str:
    """Draw one layer's decision on the chunk; nothing if the chunk never reached the layer."""
    for decision in trace.decisions:
        if decision.chunk_id == chunk_id:
            sign = html.outcome_sign(decision.outcome, decision.layer)
            name = layer(trace.layer).title
            return (
                f"<li>{sign}<b>{html.text(name)}</b> {html.text(decision.outcome)}: "
                f"{html.text(decision.reason)}</li>"
            )
    return ""
