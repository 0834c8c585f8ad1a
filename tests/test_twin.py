"""Hidden chunks change nothing that is made as their user: each command prints, writes and saves
the same bytes on a collection with hidden chunks and on its twin without them. Hidden chunks are
nearer to the questions than visible ones, and labels, votes, references and files name them.

Only ids that are new in each collection and run are left out, and clocks stand still.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from faults import Handler, Serve
from mcp import Client
from twins import SECRET, USER, make_twins, still_clocks

from ragfilter.cli.program import main
from ragfilter.evaluate import frame
from ragfilter.evaluate.measured_runs import changed_since
from ragfilter.layers import cutoff, layer
from ragfilter.library.tools import ChunkTools, make_server
from ragfilter.library.workspace import OpenWorkspace
from ragfilter.settings.config import of_profile
from ragfilter.settings.deployment import Deployment
from ragfilter.workbench import Workbench

pytestmark = [pytest.mark.slow, pytest.mark.model]

AS_USER = ["--set", "clearance.enabled=true", "--level", str(USER.level), "--department", "sales"]
FILES = "--queries queries.jsonl --qrels qrels.tsv"
QUERIES = ["Why does the cat do that?", "cat vs boat", "bread or moon", "What is in the vault?"]


def _each(text: str) -> list[str]:
    """The commands of a text, one per line; a line with QUERY is repeated for each question, under `full` for all."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return [
        line.replace("FILES", FILES).replace("QUERY", shlex.quote(query))
        for line in lines
        for query in (QUERIES[:1] if "QUERY" not in line else QUERIES if "full" in line else QUERIES[1::2])
    ]


COMMANDS = {
    **{
        f"query {profile}": f"""
            query QUERY -p {profile}
            query QUERY -p {profile} --json --references
            query QUERY -p {profile} --all --debug
            query QUERY -p {profile} --answer
        """
        for profile in ("full", "adaptive-gap", "query-must", "unfiltered")
    },
    "query by words": """
        query QUERY -p full --set retrieval.lexical=true --json
        query QUERY -p full --set retrieval.lexical=true --set cutoff.score=fused --all --debug
    """,
    "query one": """
        query "the cat" --files cat*
        query "the cat" --files vault*
    """,
    "report": """
        report query QUERY -p full --answer --out out.html
        report query QUERY --against unfiltered --answer
    """,
    "eval": """
        eval FILES -p full
        eval FILES -p query-must --json
        eval --queries mine -p full --json
        eval --queries labelled -p full --json
    """,
    "compare": """
        eval FILES -p full -p adaptive-gap
        eval FILES -p full -p adaptive-gap --json
    """,
    "sweep": """
        eval FILES -p adaptive-gap --vary cutoff.gap_threshold=0.05,0.2 --json
        eval FILES -p adaptive-gap --vary cutoff.max_results=1,3 --against full
    """,
    "tune": """
        tune FILES --measure tokens@0.5 --out tuned.toml --json
    """,
    "recalibrate": """
        recalibrate --no-rerank --out again.toml
        recalibrate FILES --no-rerank
    """,
    "fit-reranker": """
        fit-reranker FILES -p adaptive-retrieval --json
        fit-reranker FILES -p adaptive-retrieval --out fitted.toml
    """,
    "gate": """
        gate FILES --baseline base.json --update-baseline --junit junit.xml --json
        gate FILES --baseline base.json --min f1=0.1
    """,
    "runs": """
        eval FILES -p full --save one
        eval --queries mine --save two --json
        - runs show 1 --json
        - runs show 2
        - runs show 2 --against 1
        - runs list
        - report run 1
        - report compare 1 2 --out out.html
    """,
    "labels": """
        labels list
        labels list --json
        labels preferences
        labels preferences --json
        labels export out --set-name mine --with-llm
        labels export trec --trec
        labels export spans --spans --set-name mine
        labels next QUERY
        labels next QUERY --blind --json
    """,
    "rules list": """
        rules list
        rules list --json --where state=warning --where state=valid
    """,
    "rules check": """
        rules check
        rules check --json
        rules check --apply --dry-run FILES
    """,
    "rules export": """
        rules export
        rules export --out rules.csv
        rules list --where state=changed
    """,
    "rules matrix": """
        rules matrix FILES
        rules matrix --queries asked.txt
        rules matrix FILES --json
        rules matrix cat-1 FILES
        rules matrix hidden-cat-0 FILES
    """,
    "rules suggest": """
        rules suggest --families
        rules suggest --families FILES --json
        rules suggest --families --out drafts.jsonl
    """,
    "rules bulk": """
        rules bulk --dry-run --add-group vault
        rules bulk --dry-run --add-group vault --where source=vault.md
        rules bulk --dry-run --add-group vault --where id=hidden-*
        rules bulk --dry-run --add-group vault --where text=cat FILES --json
        rules bulk --add-group river --yes --json
        rules list --json
        rules undo --yes
        rules redo --yes --json
        rules undo --yes
        rules list
    """,
    "rules import": """
        rules import rules.jsonl --dry-run
        rules import rules.jsonl --dry-run --json
    """,
    "collections": """
        collections export small
        collections export small --out out.jsonl
    """,
}
"""Commands to run one after the other. Lines that begin with "-" take no user."""

LLM = {
    "query": """
        query QUERY -p llm-filter --answer
        query QUERY -p llm-filter --json --debug
    """,
    "experiment": "eval FILES --prompts all --json",
    "propose": """
        labels propose --set-name mine
        labels propose --set-name mine --yes --json
        eval --queries mine --with-llm --json
        labels list
    """,
    "suggest": """
        rules suggest --llm --where text=cat
        rules suggest --llm --where id=hidden-*
    """,
}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    with still_clocks(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame, "RESAMPLES", 99)
        # The worlds have fewer hits than a background needs.
        for module in (layer, cutoff):
            patch.setattr(module, "BACKGROUND_FROM", 10)
        yield make_twins(tmp_path_factory.mktemp("twins"))


def told(world: Path, line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Everything that a command prints, its exit code, and the files that it writes."""
    before, args = set(world.rglob("*")), shlex.split(line)
    if args[0] == "-":
        args = args[1:]
    else:
        args += AS_USER if args[0] == "collections" else [*AS_USER, "-c", "small"]
    capsys.readouterr()
    code = main([*args, "--data-dir", "ws"])
    said = capsys.readouterr()
    made = ""
    for path in sorted(set(world.rglob("*")) - before):
        if path.is_file() and world / "ws" not in path.parents:
            made += f"\n{path.name}:\n{path.read_text('utf-8')}"
            if path.name != "base.json":
                path.unlink()
    return f"{code}\n{said.out}\n{said.err}{made}"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_the_same_without_the_hidden_chunks(
    worlds: tuple[Path, Path], name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, made = _each(COMMANDS[name]), []
    for world in worlds:
        monkeypatch.chdir(world)
        made.append([told(world, line, capsys) for line in lines])
    for line, one, other in zip(lines, *made, strict=True):
        assert one == other, line
        assert SECRET not in one, line


def test_a_change_of_a_hidden_chunk_changes_nothing_that_is_said_of_a_run(
    worlds: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = worlds[0]
    monkeypatch.chdir(world)
    told(world, f"eval {FILES} -p full --save early", capsys)
    told(world, f"eval {FILES} -p adaptive-gap --save late", capsys)
    with Workbench.open(Deployment(data_dir=world / "ws")) as bench:
        run = bench.runs.saved("small")[1].id
        assert changed_since(bench.runs.get(run).plan, bench) == []
    lines = _each(f"""
        - runs show {run} --json
        - report run {run}
        report query "the cat" -p full
        - runs show {run + 1} --against {run}
        - report compare {run} {run + 1}
        gate FILES --baseline base.json
    """)
    told(world, f"gate {FILES} --baseline base.json --update-baseline", capsys)
    before = [told(world, line, capsys) for line in lines]
    for chunk_id, changed in (("hidden-cat-0", False), ("cat-1", True)):
        with Workbench.open(Deployment(data_dir=world / "ws")) as bench:
            small = bench.collection("small")
            old = small.rules([chunk_id])
            small.set_rules({chunk_id: '{"contain": "cat"}'})
        now = [told(world, line, capsys) for line in lines]
        assert (now == before) is not changed
        with Workbench.open(Deployment(data_dir=world / "ws")) as bench:
            bench.collection("small").set_rules(old)


TOOLS: list[tuple[str, dict[str, Any]]] = [
    *(
        ("search_chunks", {"query": query, **given})
        for query in QUERIES
        for given in ({}, {"profile": "unfiltered", "k": 3}, {"profile": "query-must"})
    ),
    *(("get_chunks", {"ids": ["cat-0", "hidden-cat-0", "nope"], "depth": n}) for n in (0, 1, 3)),
]


def test_an_agent_is_told_the_same_without_the_hidden_chunks(worlds: tuple[Path, Path]) -> None:
    made = []
    for world in worlds:
        with OpenWorkspace.open(Deployment(data_dir=world / "ws")) as bench:
            tools = ChunkTools(bench, "small", of_profile("full"), USER)
            made.append(asyncio.run(_answers(make_server(tools))))
    assert made[0] == made[1]
    assert SECRET not in json.dumps(made[0])
    assert "purrs" in json.dumps(made[0])


async def _answers(server: Any) -> list[Any]:
    async with Client(server) as client:
        return [(await client.call_tool(name, given)).model_dump() for name, given in TOOLS]


def judge(handler: Handler, body: dict[str, Any]) -> None:
    """Decides about every chunk in a prompt by its id, and answers everything else in one way."""
    asked = re.findall(r"^id: (.*)$", body["messages"][-1]["content"], re.MULTILINE)
    actions = ("KEEP", "EXPAND_3", "DISCARD")
    items = [{"chunk_id": i, "action": actions[crc32(i.encode()) % 3]} for i in asked]
    text = json.dumps({"decisions": items}) if items else 'It purrs [1]. {"contain": "cat"}'
    handler.start()
    handler.piece(text)
    handler.piece(None, "stop")
    handler.event("[DONE]")


@pytest.mark.parametrize("name", LLM)
def test_an_llm_is_asked_the_same_without_the_hidden_chunks(
    worlds: tuple[Path, Path],
    name: str,
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = serve(judge)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_MODEL", "tiny")
    lines, made = _each(LLM[name]), list[tuple[list[str], list[Any]]]()
    for world in worlds:
        monkeypatch.chdir(world)
        server.asked.clear()
        said = [told(world, line, capsys) for line in lines]
        made.append((said, [each["body"] for each in server.asked]))
    for line, one, other in zip(lines, made[0][0], made[1][0], strict=True):
        assert one == other, line
    assert made[0][1] == made[1][1]
    assert SECRET not in json.dumps(made[0])
