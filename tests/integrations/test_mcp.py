"""`ragfilter mcp`: the agent's tools as a server, with the real client of the protocol."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from waiting import PROCESS_S

from ragfilter.cli.program import main
from ragfilter.library.tools import ChunkTools, make_server
from ragfilter.model import PUBLIC
from ragfilter.settings.config import of_profile
from ragfilter.workbench import Workbench

ROOT = Path(__file__).resolve().parents[2]


def called(server: Any, name: str, **given: Any) -> tuple[bool, Any]:
    """Whether the tool failed, and its output."""

    async def call() -> tuple[bool, Any]:
        async with Client(server) as client:
            said = await client.call_tool(name, given)
            return bool(said.is_error), said.structured_content or said.content[0].text

    return asyncio.run(call())


def test_an_agent_searches_and_reads(workspace: Workbench) -> None:
    server = make_server(ChunkTools(workspace, "refs", of_profile("full"), PUBLIC))
    failed, said = called(server, "search_chunks", query="what is there?", k=2)
    assert not failed
    assert [chunk["id"] for chunk in said["chunks"]] == ["root", "a"]
    failed, said = called(server, "search_chunks", query="a", profile="mine.toml")
    assert failed
    assert "no profile 'mine.toml'" in said


def command(folder: Path, *options: str) -> list[str]:
    return ["-m", "ragfilter", "mcp", "-c", "refs", "--data-dir", str(folder), *options]


@pytest.mark.slow
def test_who_asks_is_fixed_on_the_command_line(folder: Path, bare_environ: dict[str, str]) -> None:
    args = command(folder, "--level", "2")
    server = StdioServerParameters(command=sys.executable, args=args, cwd=ROOT, env=bare_environ)
    failed, said = called(server, "get_chunks", ids=["b", "secret"])
    assert (failed, said["missing"]) == (False, [])


@pytest.mark.slow
def test_it_asks_as_the_public_and_can_be_stopped_while_it_waits(folder: Path, bare_environ: dict[str, str]) -> None:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    tool = {"name": "get_chunks", "arguments": {"ids": ["b", "secret"]}}
    with subprocess.Popen(
        [sys.executable, *command(folder)],
        cwd=ROOT,
        env=bare_environ,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None

        def ask(method: str, params: dict[str, object]) -> Any:
            asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            server.stdin.write(json.dumps(asked) + "\n")
            server.stdin.flush()
            return json.loads(server.stdout.readline())["result"]

        try:
            assert ask("initialize", client)["serverInfo"]["name"]
            assert ask("tools/call", tool)["structuredContent"]["missing"] == ["secret"]
            server.send_signal(signal.SIGTERM)
            assert server.wait(PROCESS_S) == 130
            assert server.stderr.read() == "Stopped.\n"
        finally:
            server.kill()


def test_a_collection_that_is_not_there_is_told_at_the_start(folder: Path, capsys: Any) -> None:
    assert main(["mcp", "-c", "nope", "--data-dir", str(folder)]) == 2
    assert "no collection 'nope'" in capsys.readouterr().err
