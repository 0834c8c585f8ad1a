"""The reference graph around the open chunk: what EXPAND_1, 3 and 5 would bring in.

The store is asked once, when a chunk's references are first shown. Moving a slider then only walks
what is already known.
"""

from __future__ import annotations

import streamlit as st

from ragfilter.layers.judge import DEPTHS
from ragfilter.model import Chunk, PoolResult
from ragfilter.report.reference_tree import Known, Node, ReferenceTree, read_neighbours, tree
from ragfilter.text import numbers
from ragfilter.text.titles import telling_titles
from ragfilter.ui.look import elements, html, theme
from ragfilter.ui.look.prose import literal
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import ShelfSpec
from ragfilter.ui.session.visit import View

NEIGHBOURS: ShelfSpec[Known] = ShelfSpec(64)


MAX_SHOWN = 40
TITLE_WIDTH = 44
SIGNS = {
    "kept": theme.OUTCOMES["kept"].sign,
    "brought": theme.OUTCOMES["expanded"].sign,
    "waits": "◌",
    "dropped": "○",
    "new": "+",
}


def draw(view: View, chunk: Chunk) -> None:
    """Draw the totals per depth, then the tree. Chunks that were found can be opened from it."""
    asked, result, resources = view.asked, view.shown, view.resources

    def read() -> Known:
        collection = resources.bench.collection(asked.collection)
        return read_neighbours(chunk.id, collection, result.settings, result.user, result.query)

    key = (asked.collection, asked.version, chunk.id)
    known = resources.shelf(NEIGHBOURS).of(key, read)
    graph = tree(chunk.id, known, result, as_operator=view.operator)
    if not graph.open_root:
        html.draw(
            '<p class="rf-empty"><b>Not available.</b> An expansion for this user neither brings '
            "in this chunk nor follows its references.</p>"
        )
        return
    if not graph.nodes:
        why = "An expansion would follow no" if graph.shut else "This chunk has no"
        html.draw(f'<p class="rf-empty"><b>Nothing to bring in.</b> {why} references.</p>')
        _aside(graph, result)
        return
    html.draw(_sums(graph, result))
    there = {hit.id for hit in (*result.hits, *result.pool.hits)}
    nodes = graph.nodes[:MAX_SHOWN]
    titles = telling_titles([chunk.name, *(node.title for node in nodes)], TITLE_WIDTH)
    with st.container(key="refs", gap=None):
        html.draw(f'<p class="rf-ref rf-root">{html.text(titles[0])} <i>this chunk</i></p>')
        for number, (node, title) in enumerate(zip(nodes, titles[1:], strict=True)):
            _row(number, node, title, opens=node.id in there)
    if len(graph.nodes) > MAX_SHOWN:
        elements.aside(f"and {numbers.chunks(len(graph.nodes) - MAX_SHOWN)} more")
    _aside(graph, result)


def _sums(graph: ReferenceTree, result: PoolResult) -> str:
    """Draw one cell per depth: how many chunks, how many of them are new, how many tokens."""
    cells = []
    waits = any(node.fate == "waits" for node in graph.nodes)
    for each in graph.sums:
        new = "" if waits or each.new == each.chunks else f" · {each.new} new"
        cells.append(
            f"<li><span>EXPAND_{each.depth}</span><b>{numbers.chunks(each.chunks)}</b>"
            f"<em>{numbers.tokens(each.tokens)}{new}</em></li>"
        )
    limit = result.settings.judge.max_expansion
    title = (
        f"What EXPAND would bring in along this chunk's references, at most {limit} chunks. "
        "New: not already kept."
    )
    return f'<ul class="rf-depths" title="{title}">{"".join(cells)}</ul>'


def _row(number: int, node: Node, title: str, *, opens: bool) -> None:
    """Draw one chunk, indented by its depth; a button if it can be opened."""
    # The smallest that reaches it.
    depth = next(depth for depth in DEPTHS if depth >= node.step)
    fate = {
        "kept": "kept",
        "brought": "brought by the judge",
        "waits": "found, not judged yet",
        "dropped": f"found, dropped by {node.by}" if node.by else "found, not kept",
        "new": "not found by the search",
    }[node.fate]
    tokens = "" if node.tokens is None else numbers.tokens(node.tokens)
    about = " · ".join(filter(None, (tokens, fate, f"EXPAND_{depth}", node.id)))
    with st.container(key=f"ref-s{node.step}-{number}", gap=None):
        if opens:
            st.button(
                f"{SIGNS[node.fate]} {literal(title)} :gray[{literal(about)}]",
                key=f"ref-open-{number}",
                type="tertiary",
                on_click=state.open_chunk,
                args=(node.id,),
            )
        else:
            html.draw(
                f'<p class="rf-ref">{SIGNS[node.fate]} {html.text(title)} '
                f"<i>{html.text(about)}</i></p>"
            )


def _aside(graph: ReferenceTree, result: PoolResult) -> None:
    """Draw which references an expansion does not follow, and how many lead back."""
    words = {"hidden": "hidden from the user", "unknown": "unknown to this collection",
             "ruled": "excluded by a rule",
             "beyond": f"beyond {result.settings.judge.max_expansion} chunks"}  # fmt: skip
    if shut := [f"{graph.shut[why]} {word}" for why, word in words.items() if why in graph.shut]:
        names = f": {', '.join(graph.names)}" if graph.names else ""
        elements.aside(f"Not followed: {', '.join(shut)}{names}.")
    if graph.again:
        elements.aside(f"{numbers.counted(graph.again, 'reference')} to chunks above.")
