"""The tools of an agent as a server of the Model Context Protocol."""

from __future__ import annotations

from inspect import getdoc

from ragfilter import __version__
from ragfilter.basics.extras import extra
from ragfilter.library.tools import ChunkTools, raising

with extra("mcp"):
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import ToolAnnotations


def make_server(tools: ChunkTools) -> MCPServer[None]:
    """A server with `search_chunks` and `get_chunks`; its `run()` serves standard input and
    output."""
    server: MCPServer[None] = MCPServer("ragfilter", version=__version__)
    for function in (tools.search_chunks, tools.get_chunks):
        server.add_tool(
            raising(function, ToolError),
            description=getdoc(function),
            annotations=ToolAnnotations(read_only_hint=True),
        )
    return server
