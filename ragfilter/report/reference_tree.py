"""The tree of a chunk's references: what EXPAND_1, 3 and 5 would bring in. Pure, but for
`read_neighbours`, which asks the store once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ragfilter.layers.judge import DEPTHS, ReachedChunk, finder, walk
from ragfilter.model import Chunk, PoolResult, User
from ragfilter.protocols import Collection
from ragfilter.report.verdicts import preview_expansion
from ragfilter.settings import schema
from ragfilter.settings.schema import Settings
from ragfilter.text.tokens import estimate

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
