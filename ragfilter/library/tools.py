"""Tools that let an agent search an open workspace for chunks and read what they refer to.

Source: Intelligent Chunk Filtering, "Agent Tool Usage". No profile that the agent chooses shows more to the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import getdoc
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, Protocol, TypeVar

from pydantic import Field

from ragfilter import __version__, protocols
from ragfilter.engine.replay import replay_as_user
from ragfilter.errors import RagfilterError, extra
from ragfilter.layers.references import DEPTHS, finder, walk
from ragfilter.model import PUBLIC, Chunk, User
from ragfilter.results.rows import references
from ragfilter.settings.config import of_profile
from ragfilter.settings.profiles import PROFILES
from ragfilter.settings.schema import Settings
from ragfilter.text.normalise import mend_characters

if TYPE_CHECKING:
    from mcp.server import MCPServer

P = ParamSpec("P")
R = TypeVar("R")

MAX_K = 50
"""Maximum number of chunks added by the references of one chunk."""

K = Annotated[int | None, Field(ge=1, le=200, description="At most this many chunks.")]
Profile = Annotated[str | None, Field(description=f"How to filter, instead of as usual: {', '.join(PROFILES)}.")]
Collection = Annotated[str | None, Field(description="The collection, if not the usual one.")]
Ids = Annotated[list[str], Field(description="Ids of chunks.")]
Depth = Annotated[
    int, Field(ge=0, le=max(DEPTHS), description="How many steps to follow references; 0 gives only the chunks named.")
]


class Searchable(Protocol):
    """The part of an open workspace (`open_workspace`) that the tools need."""

    def __getitem__(self, name: str, /) -> Any: ...

    def collection(self, name: str) -> protocols.Collection: ...


@dataclass(frozen=True, slots=True)
class ChunkTools:
    """The tools as plain functions, whose docstrings the agent reads, for questions of `user`. `collection` and
    `settings` apply unless the agent names others."""

    workspace: Searchable
    collection: str
    settings: Settings
    user: User = PUBLIC

    def search_chunks(
        self, query: str, k: K = None, profile: Profile = None, collection: Collection = None
    ) -> dict[str, Any]:
        """Search for the chunks that answer a question. Chunks that do not fit it are left out.

        Each chunk has its text, its source, its distance (lower is nearer) and the ids that it refers to in `refs`;
        `get_chunks` reads those. `status` and `message` say if the search found nothing good enough or may have missed
        something."""
        # Only names of profiles, so that no agent can make us read a file.
        settings = of_profile(profile) if profile else self.settings
        if k is not None:
            settings = settings.with_values(_at_most(k, settings))
        searched = self.workspace[collection or self.collection].search(query, settings, user=self.user)
        result = replay_as_user(searched)
        refs = references(result)
        return {
            "status": result.status,
            "message": result.message,
            "chunks": [
                _document(hit.chunk, refs[hit.id]) | {"distance": hit.distance}
                # Layers whose settings `_at_most` does not set may let more through.
                for hit in result.kept[:k]
            ],
        }

    def get_chunks(self, ids: Ids, depth: Depth = 0, collection: Collection = None) -> dict[str, Any]:
        """Read chunks by their ids and, with a depth, the chunks they refer to.

        `chunks` holds the requested chunks, `expanded` those reached by references, nearest first. `missing` lists ids
        that do not exist for you. `status` and `message` say if the collection itself may lack chunks."""
        where = self.workspace.collection(collection or self.collection)
        find_any = finder(where)

        def find(chunk_id: str) -> Chunk | None:
            chunk = find_any(chunk_id)
            return chunk if chunk is not None and self.user.sees(chunk) else None

        wanted_ids = dict.fromkeys(map(mend_characters, ids))
        roots = [chunk for chunk in map(find, wanted_ids) if chunk is not None]
        reached = dict.fromkeys(
            step.chunk.id for root in roots for step in walk(root, depth=depth, most=MAX_K, find=find)
        )
        # Check again on the whole chunks: one indexed in the meantime may be hidden.
        visible = filter(self.user.sees, where.chunks([*wanted_ids, *reached]).values())
        documents = {chunk.id: _document(chunk, tuple(filter(find, chunk.refs))) for chunk in visible}
        return {
            "status": "incomplete_collection" if where.incomplete else "ok",
            "message": where.incomplete,
            "chunks": [documents[i] for i in wanted_ids if i in documents],
            "expanded": [documents[i] for i in reached if i in documents and i not in wanted_ids],
            "missing": [i for i in wanted_ids if i not in documents],
        }


def raising(function: Callable[P, R], kind: type[Exception]) -> Callable[P, R]:
    """Wrap `function` so that its errors are raised as `kind`, as the agent's library expects."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except RagfilterError as error:
            raise kind(str(error)) from error

    return wrapped


def _at_most(k: int, settings: Settings) -> dict[str, Any]:
    """Settings that limit the result to `k`, whichever layer limits it, like `-k` in the CLI."""
    limits = ("retrieval.k", "cutoff.max_results", "judge.max_chunks", "quality.min_top_k")
    return dict.fromkeys(limits, k) | {"quality.max_top_k": max(k, settings.quality.max_top_k)}


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
    """An MCP (Model Context Protocol) server with `search_chunks` and `get_chunks`; its `run()`
    serves standard input and output. `carry` wraps each tool to run its calls elsewhere."""
    with extra("mcp"):
        from mcp.server import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp.types import ToolAnnotations

    server: MCPServer[None] = MCPServer("ragfilter", version=__version__)
    for function in (tools.search_chunks, tools.get_chunks):
        tool, hints = carry(raising(function, ToolError)), ToolAnnotations(read_only_hint=True)
        server.add_tool(tool, description=getdoc(function), annotations=hints)
    return server
