"""The tools of an agent over an open workspace: search for chunks, and read what they refer to.

Source: Intelligent Chunk Filtering, "Agent Tool Usage". The user is fixed when the tools are made,
and sees no more whatever profile the agent chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import getdoc
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, Protocol, TypeVar

from pydantic import Field

from ragfilter import __version__, protocols, report
from ragfilter.engine.replay import replay_as_user
from ragfilter.errors import RagfilterError, extra
from ragfilter.layers.judge import DEPTHS, finder, walk
from ragfilter.model import PUBLIC, Chunk, User
from ragfilter.settings.config import load
from ragfilter.settings.profiles import PROFILES
from ragfilter.settings.schema import Settings
from ragfilter.text.normalise import whole

if TYPE_CHECKING:
    from mcp.server import MCPServer

P = ParamSpec("P")
R = TypeVar("R")

MAX_K = 50
"""How many chunks the references of one chunk bring at most."""

K = Annotated[int | None, Field(ge=1, le=200, description="At most this many chunks.")]
Profile = Annotated[
    str | None, Field(description=f"How to filter, instead of as usual: {', '.join(PROFILES)}.")
]
Collection = Annotated[str | None, Field(description="The collection, if not the usual one.")]
Ids = Annotated[list[str], Field(description="Ids of chunks.")]
Depth = Annotated[
    int,
    Field(
        ge=0,
        le=max(DEPTHS),
        description="How many steps to follow references; 0 gives only the chunks named.",
    ),
]


class Searchable(Protocol):
    """What tools need of an open workspace, which `open_workspace` gives."""

    def __getitem__(self, name: str, /) -> Any: ...

    def collection(self, name: str) -> protocols.Collection: ...


@dataclass(frozen=True, slots=True)
class ChunkTools:
    """The tools as plain functions. The agent reads their docstrings.

    `collection` and `settings` hold where the agent names no other. `user` is who asks.
    """

    workspace: Searchable
    collection: str
    settings: Settings
    user: User = PUBLIC

    def search_chunks(
        self, query: str, k: K = None, profile: Profile = None, collection: Collection = None
    ) -> dict[str, Any]:
        """Search for the chunks that answer a question. What does not fit it is filtered out.

        Each chunk has its text, its source, its distance (lower is nearer) and the ids that it
        refers to in `refs`; `get_chunks` reads those. `status` and `message` say where the search
        found nothing good enough, or may have missed something.
        """
        settings = profile_settings(profile) if profile else self.settings
        if k is not None:
            settings = settings.with_values(_at_most(k, settings))
        searched = self.workspace[collection or self.collection]
        pool_result = searched.search(query, settings, user=self.user)
        result = replay_as_user(pool_result)
        refs = report.references(result)
        return {
            "status": result.status,
            "message": result.message,
            "chunks": [
                _document(hit.chunk, refs[hit.id]) | {"distance": hit.distance}
                # A layer that the settings of `_at_most` do not name may let more through.
                for hit in result.kept[:k]
            ],
        }

    def get_chunks(
        self, ids: Ids, depth: Depth = 0, collection: Collection = None
    ) -> dict[str, Any]:
        """Read chunks by their ids, and with a depth what they refer to.

        `chunks` holds those asked for, `expanded` those that references lead to, nearest first.
        `missing` are ids that are not there for you. `status` and `message` say where the
        collection itself may lack chunks.
        """
        where = self.workspace.collection(collection or self.collection)
        find_any = finder(where)

        def find(chunk_id: str) -> Chunk | None:
            chunk = find_any(chunk_id)
            return chunk if chunk is not None and self.user.sees(chunk) else None

        asked = dict.fromkeys(map(whole, ids))
        roots = [chunk for chunk in map(find, asked) if chunk is not None]
        reached = dict.fromkeys(
            step.chunk.id
            for root in roots
            for step in walk(root, depth=depth, most=MAX_K, find=find)
        )
        # Read again as whole chunks: what was indexed meanwhile may be hidden.
        there = {
            chunk.id: _document(chunk, tuple(filter(find, chunk.refs)))
            for chunk in where.chunks([*asked, *reached]).values()
            if self.user.sees(chunk)
        }
        return {
            "status": "incomplete_collection" if where.incomplete else "ok",
            "message": where.incomplete,
            "chunks": [there[i] for i in asked if i in there],
            "expanded": [there[i] for i in reached if i in there and i not in asked],
            "missing": [i for i in asked if i not in there],
        }


def raising(function: Callable[P, R], kind: type[Exception]) -> Callable[P, R]:
    """`function`, whose errors the agent is told in the way of its library: raised as `kind`."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except RagfilterError as error:
            raise kind(str(error)) from error

    return wrapped


def profile_settings(name: str) -> Settings:
    """The settings of a profile; a file's name is none, so no agent makes us read one."""
    return load(profile=name, environ={}).settings


def _at_most(k: int, settings: Settings) -> dict[str, Any]:
    """As `-k` on the command line: whichever layer limits the result, it does so at `k`."""
    limits = ("retrieval.k", "cutoff.max_results", "judge.max_chunks", "quality.min_top_k")
    last = max(k, settings.quality.max_top_k)
    return dict.fromkeys(limits, k) | {"quality.max_top_k": last}


def _document(chunk: Chunk, refs: tuple[str, ...]) -> dict[str, Any]:
    return {
        "id": chunk.id,
        "title": chunk.name,
        "text": chunk.text,
        "type": chunk.type,
        "source": chunk.source,
        "page": chunk.page,
        "refs": list(refs),
    }


def make_server(
    tools: ChunkTools, *, carry: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda f: f
) -> MCPServer[None]:
    """A server of the Model Context Protocol with `search_chunks` and `get_chunks`; its `run()`
    serves standard input and output. `carry` wraps each tool where its calls are carried out
    elsewhere."""
    with extra("mcp"):
        from mcp.server import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp.types import ToolAnnotations

    server: MCPServer[None] = MCPServer("ragfilter", version=__version__)
    for function in (tools.search_chunks, tools.get_chunks):
        server.add_tool(
            carry(raising(function, ToolError)),
            description=getdoc(function),
            annotations=ToolAnnotations(read_only_hint=True),
        )
    return server
