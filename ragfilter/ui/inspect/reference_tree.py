"""The references of the open chunk as a tree: what EXPAND_1, 3 and 5 would bring in.

The store is asked once, when a chunk's references are first shown. A moved slider then walks only the known chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import streamlit as st

from ragfilter.layers.references import DEPTHS, ReachedChunk, finder, preview_expansion, walk
from ragfilter.model import Chunk, PoolResult
from ragfilter.protocols import Collection
from ragfilter.text import numbers
from ragfilter.text.shared_words import estimate_tokens
from ragfilter.text.titles import telling_titles
from ragfilter.ui.look import elements, theme
from ragfilter.ui.look.prose import literal
from ragfilter.ui.resources import CacheSpec
from ragfilter.ui.session import state
from ragfilter.ui.session.page_run import View

CLOSURE = 1000
"""Maximum number of chunks read around one chunk."""
MAX_SHOWN, TITLE_WIDTH = 40, 44


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """One chunk and the chunks around it, by id. Takes the place of the collection in `preview_expansion`."""

    by_id: Mapping[str, Chunk]

    def catalogue(self) -> Mapping[str, Chunk]:
        return self.by_id

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        return {i: self.by_id[i] for i in ids if i in self.by_id}


@dataclass(frozen=True, slots=True)
class Node:
    """One chunk of the tree. `status` is a key of STATUSES, and `by` the layer that dropped it."""

    id: str
    title: str
    step: int
    tokens: int
    status: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class ReferenceTree:
    """The references of a chunk. `nodes` are in depth-first order, each below the chunk that names it. `sums` says what
    EXPAND_1, 3 and 5 would bring in: how many chunks, how many of them not yet kept, and their tokens.

    `not_followed` counts the other references, by reason: ``hidden`` from the user, ``unknown`` to the collection,
    ``ruled`` out by a rule, or ``beyond`` the limit. `names` lists the ones that the user is allowed to know, with the
    reason."""

    nodes: tuple[Node, ...]
    sums: Mapping[int, tuple[int, int, int]]
    not_followed: Mapping[str, int] = field(default_factory=dict)
    names: tuple[str, ...] = ()


def read_neighbours(chunk_id: str, collection: Collection) -> Neighbourhood:
    """Read the chunks around one chunk. Raises StoreError."""
    find = finder(collection)
    root = find(chunk_id)
    around = walk(root, depth=max(DEPTHS), most=CLOSURE, find=find) if root else ()
    return Neighbourhood(collection.chunks([chunk_id, *(reached.chunk.id for reached in around)]))


def tree_of(
    chunk_id: str, known: Neighbourhood, result: PoolResult, *, as_operator: bool = False
) -> ReferenceTree | None:
    """A chunk's references as an expansion for the result's user would follow them; None if they cannot see the
    chunk."""
    root = known.by_id.get(chunk_id)
    if root is None or not result.user.sees(root):
        return None
    settings = result.settings
    reached = preview_expansion(chunk_id, known, settings, result.user, query=result.query)[max(DEPTHS)]
    statuses = _statuses(result)
    below: dict[str, list[ReachedChunk]] = {}
    for each in reached:
        below.setdefault(each.via, []).append(each)
    nodes: list[Node] = []

    def add_below(parent: str) -> None:
        for each in below.get(parent, ()):
            chunk = each.chunk
            status, by = statuses.get(chunk.id, ("new", ""))
            nodes.append(Node(chunk.id, chunk.name, each.step, estimate_tokens(chunk.passage), status, by))
            add_below(chunk.id)

    add_below(chunk_id)
    sums = {}
    for depth in DEPTHS:
        come = [node for node in nodes if node.step <= depth]
        new = sum(node.status not in ("kept", "brought") for node in come)
        sums[depth] = len(come), new, sum(node.tokens for node in come)
    walked = [root, *(known.by_id[r.chunk.id] for r in reached if r.step < max(DEPTHS))]
    inside = {chunk_id, *(node.id for node in nodes)}
    full = len(nodes) >= settings.judge.max_expansion
    why = {
        ref: _why_not_followed(known.by_id.get(ref), result, full=full)
        for chunk in walked
        for ref in chunk.refs
        if ref not in inside
    }
    shown = {"ruled": True, "hidden": as_operator, "unknown": as_operator or result.user.unrestricted}
    names = [
        f"{known.by_id[ref].name if ref in known.by_id else ref} ({'its rule fails' if word == 'ruled' else word})"
        for ref, word in why.items()
        if shown.get(word)
    ]
    return ReferenceTree(tuple(nodes), sums, Counter(why.values()), tuple(names))


def _why_not_followed(chunk: Chunk | None, result: PoolResult, *, full: bool) -> str:
    """Why an expansion does not follow a reference to this chunk."""
    if chunk is None:
        return "unknown"
    if not result.user.sees(chunk):
        return "hidden"
    return "ruled" if result.settings.query_must.enabled and not full else "beyond"


def _statuses(result: PoolResult) -> dict[str, tuple[str, str]]:
    """What happened to every hit: its status, and the layer that dropped it."""
    hits, outcomes = (*result.pool.hits, *result.hits), result.outcomes()
    statuses = {h.id: ("dropped", outcomes[h.id].layer if h.id in outcomes else "the filter") for h in hits}
    brought = {decision.chunk_id for decision in result.trace("judge").decisions if decision.outcome == "expanded"}
    statuses |= {hit.id: ("brought" if hit.id in brought else "kept", "") for hit in result.kept}
    return statuses | {i: ("waits", "") for need in result.needs if need.kind == "judge" for i in need.chunk_ids}


STATUSES = {
    "kept": (theme.OUTCOMES["kept"].sign, "kept"),
    "brought": (theme.OUTCOMES["expanded"].sign, "brought by the judge"),
    "waits": ("◌", "found, not judged yet"),
    "dropped": ("○", "found, dropped by"),
    "new": ("+", "not found by the search"),
}
"""The sign and words for each status of a chunk in the result."""
NEIGHBOURS: CacheSpec[Neighbourhood] = CacheSpec(64)


def draw(view: View, chunk: Chunk) -> None:
    """Draw the totals per depth, then the tree. A click opens chunks that the search found."""
    asked, result, resources = view.asked, view.shown, view.resources
    key, collection = (asked.collection, asked.version, chunk.id), resources.bench.collection(asked.collection)
    known = resources.cache(NEIGHBOURS).of(key, lambda: read_neighbours(chunk.id, collection))
    tree = tree_of(chunk.id, known, result, as_operator=view.operator)
    if tree is None:
        elements.empty(
            "Not available.", "An expansion for this user neither brings in this chunk nor follows its references."
        )
        return
    if tree.nodes:
        elements.draw(_sums(tree, result))
        _nodes(tree, chunk)
    else:
        why = "An expansion would follow no" if tree.not_followed else "This chunk has no"
        elements.empty("Nothing to bring in.", f"{why} references.")
    words = {
        "hidden": "hidden from the user",
        "unknown": "unknown to this collection",
        "ruled": "excluded by a rule",
        "beyond": f"past the limit of {result.settings.judge.max_expansion} chunks",
    }
    if not_followed := [f"{tree.not_followed[why]} {word}" for why, word in words.items() if why in tree.not_followed]:
        names = f": {', '.join(tree.names)}" if tree.names else ""
        elements.aside(f"Not followed: {', '.join(not_followed)}{names}.")


def _sums(tree: ReferenceTree, result: PoolResult) -> str:
    """One cell per depth as HTML: numbers of chunks, new chunks and tokens."""
    waits = any(node.status == "waits" for node in tree.nodes)
    cells = [
        f"<li><span>EXPAND_{depth}</span><b>{numbers.chunk_count(n)}</b><em>{numbers.token_count(tokens)}"
        f"{'' if waits or new == n else f' · {new} new'}</em></li>"
        for depth, (n, new, tokens) in tree.sums.items()
    ]
    most = result.settings.judge.max_expansion
    title = f"What EXPAND would bring in along this chunk's references, at most {most} chunks. New: not already kept."
    return f'<ul class="rf-depths" title="{title}">{"".join(cells)}</ul>'


def _nodes(tree: ReferenceTree, chunk: Chunk) -> None:
    """Draw the chunks, indented by depth; found ones are buttons."""
    nodes = tree.nodes[:MAX_SHOWN]
    titles = telling_titles([chunk.name, *(node.title for node in nodes)], TITLE_WIDTH)
    with st.container(key="refs", gap=None):
        elements.draw(f'<p class="rf-ref rf-root">{elements.text(titles[0])} <i>this chunk</i></p>')
        for number, (node, title) in enumerate(zip(nodes, titles[1:], strict=True)):
            sign, status = STATUSES[node.status]
            # The smallest depth that reaches it.
            depth = next(depth for depth in DEPTHS if depth >= node.step)
            words = f"{status} {node.by}".rstrip()
            about = " · ".join((numbers.token_count(node.tokens), words, f"EXPAND_{depth}", node.id))
            with st.container(key=f"ref-s{node.step}-{number}", gap=None):
                if node.status == "new":
                    elements.draw(f'<p class="rf-ref">{sign} {elements.text(title)} <i>{elements.text(about)}</i></p>')
                else:
                    label = f"{sign} {literal(title)} :gray[{literal(about)}]"
                    elements.button(label, f"ref-open-{number}", state.open_chunk, node.id, type="tertiary")
    if len(tree.nodes) > MAX_SHOWN:
        elements.aside(f"and {numbers.chunk_count(len(tree.nodes) - MAX_SHOWN)} more")
