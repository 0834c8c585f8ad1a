"""The reference graph around the open chunk: what EXPAND_1, 3 and 5 would bring in.

The store is asked once, when a chunk's references are first shown. Moving a slider then only walks
what is already known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import streamlit as st

from ragfilter.answer.context import estimate
from ragfilter.layers.judge import DEPTHS, ReachedChunk, finder, walk
from ragfilter.model import Chunk, PoolResult, User
from ragfilter.protocols import Collection
from ragfilter.report.verdicts import preview_expansion
from ragfilter.settings import schema
from ragfilter.settings.schema import Settings
from ragfilter.text import numbers
from ragfilter.text.titles import telling_titles
from ragfilter.ui.look import html, theme
from ragfilter.ui.look.prose import literal
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import ShelfSpec
from ragfilter.ui.session.visit import View

CLOSURE = 5000
"""Maximum number of chunks read around one chunk."""


@dataclass(frozen=True, slots=True)
class Known:
    """The chunks around one chunk: `bare` are all that references lead to, `whole` those that can
    be shown.

    Takes the place of the collection in `preview_expansion`.
    """

    bare: Mapping[str, Chunk]
    whole: Mapping[str, Chunk]

    def catalogue(self) -> Mapping[str, Chunk]:
        return self.bare

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        return {i: self.whole.get(i, self.bare[i]) for i in ids if i in self.bare}


@dataclass(frozen=True, slots=True)
class Node:
    """One chunk of the tree. `tokens` is None if its text has not been read. `fate` is what
    happened to it in the result: ``kept``, ``brought``, ``waits`` (for the judge), ``dropped`` (by
    the layer `by`), or ``new`` (not among the hits)."""

    id: str
    title: str
    step: int
    tokens: int | None
    fate: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Sum:
    """What EXPAND_`depth` would bring in: chunks, how many of them are not kept already, and
    tokens."""

    depth: int
    chunks: int
    new: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ReferenceTree:
    """The references of a chunk. `nodes` are in depth-first order, each below the chunk that names
    it.

    `again` counts references to chunks already in the tree. `shut` counts those that an expansion
    does not follow, by why: ``hidden`` from the user, ``unknown`` to the collection, ``ruled`` out
    by a rule, or ``beyond`` the limit. `names` lists those that may be named, with the reason.
    """

    nodes: tuple[Node, ...]
    sums: tuple[Sum, ...]
    open_root: bool = True
    again: int = 0
    shut: Mapping[str, int] = field(default_factory=dict)
    names: tuple[str, ...] = ()


def read_neighbours(
    chunk_id: str, collection: Collection, settings: Settings, user: User, query: str
) -> Known:
    """Read the chunks around one chunk: all of them bare, and the texts of those that an expansion
    could show with the current or other settings. Raises StoreError."""
    find = finder(collection)
    root = find(chunk_id)
    if root is None:
        return Known({}, {})
    around = list(walk(root, depth=max(DEPTHS), most=CLOSURE, find=find))
    bare = {chunk_id: root, **{reached.chunk.id: reached.chunk for reached in around}}
    most = max(settings.judge.max_expansion, int(schema.field("judge.max_expansion").ceiling or 0))
    shown = dict.fromkeys(reached.chunk.id for reached in around[:most])
    now = preview_expansion(chunk_id, Known(bare, {}), settings, user, query=query)
    shown |= dict.fromkeys(reached.chunk.id for reached in now[max(DEPTHS)])
    return Known(bare, collection.chunks([chunk_id, *shown]))


def tree(
    chunk_id: str, known: Known, result: PoolResult, *, as_operator: bool = False
) -> ReferenceTree:
    """The references of a chunk as an expansion for the user of `result` would follow them."""
    settings = result.settings
    by_depth = preview_expansion(chunk_id, known, settings, result.user, query=result.query)
    reached = by_depth[max(DEPTHS)]
    fates = _fates(result)
    below: dict[str, list[ReachedChunk]] = {}
    for each in reached:
        below.setdefault(each.via, []).append(each)
    nodes: list[Node] = []

    def put(parent: str) -> None:
        for each in below.get(parent, ()):
            chunk = each.chunk
            fate, by = fates.get(chunk.id, ("new", ""))
            nodes.append(Node(chunk.id, chunk.name, each.step, _tokens(chunk), fate, by))
            put(chunk.id)

    put(chunk_id)
    kept = {node.id for node in nodes if node.fate in ("kept", "brought")}
    sums = tuple(
        Sum(
            depth,
            len(by_depth[depth]),
            sum(r.chunk.id not in kept for r in by_depth[depth]),
            sum(_tokens(r.chunk) or 0 for r in by_depth[depth]),
        )
        for depth in DEPTHS
    )
    root = known.bare.get(chunk_id)
    if root is None or not result.user.sees(root):
        return ReferenceTree((), sums, open_root=False)
    walked = [root, *(known.bare[r.chunk.id] for r in reached if r.step < max(DEPTHS))]
    refs = [ref for chunk in walked for ref in chunk.refs]
    inside = {chunk_id, *(node.id for node in nodes)}
    again = sum(ref in inside for ref in refs) - len(nodes)
    full = len(nodes) >= settings.judge.max_expansion
    # Each is listed once.
    why = {
        ref: _why_shut(known.bare.get(ref), result, full=full) for ref in refs if ref not in inside
    }
    named = {"hidden": as_operator, "unknown": as_operator or result.user.unrestricted,
             "ruled": True, "beyond": False}  # fmt: skip
    titles = {ref: known.whole[ref].name if ref in known.whole else ref for ref in why}
    names = [
        f"{titles[ref]} ({'its rule fails' if word == 'ruled' else word})"
        for ref, word in why.items()
        if named[word]
    ]
    return ReferenceTree(
        tuple(nodes), sums, again=again, shut=Counter(why.values()), names=tuple(names)
    )


def _why_shut(chunk: Chunk | None, result: PoolResult, *, full: bool) -> str:
    """Why an expansion does not follow a reference to this chunk."""
    if chunk is None:
        return "unknown"
    if not result.user.sees(chunk):
        return "hidden"
    return "ruled" if result.settings.query_must.enabled and not full else "beyond"


def _tokens(chunk: Chunk) -> int | None:
    return estimate(chunk.passage) if chunk.loaded else None


def _fates(result: PoolResult) -> dict[str, tuple[str, str]]:
    """What happened to every hit: its fate, and the layer that dropped it."""
    kept = {hit.id for hit in result.kept}
    waits = {i for need in result.needs if need.kind == "judge" for i in need.chunk_ids}
    outcomes = result.outcomes()
    judged = result.trace("judge").decisions
    brought = {decision.chunk_id for decision in judged if decision.outcome == "expanded"}
    fates: dict[str, tuple[str, str]] = {}
    for hit in (*result.pool.hits, *result.hits):
        if hit.id in waits:
            fates[hit.id] = ("waits", "")
        elif hit.id in kept:
            fates[hit.id] = ("brought" if hit.id in brought else "kept", "")
        else:
            decision = outcomes.get(hit.id)
            fates[hit.id] = ("dropped", decision.layer if decision else "")
    return fates


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
        html.aside(f"and {numbers.chunks(len(graph.nodes) - MAX_SHOWN)} more")
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
        html.aside(f"Not followed: {', '.join(shut)}{names}.")
    if graph.again:
        html.aside(f"{numbers.counted(graph.again, 'reference')} to chunks above.")
