"""A workspace with a few chunks and rules, and `ragfilter rules …` run on it. No embedding model is
loaded: the chunks are stored with made-up vectors."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import KEY, Behave, Serve, Server

from ragfilter.cli.program import main
from ragfilter.model import Chunk
from ragfilter.stores.copies import StoredRow
from ragfilter.stores.workspace_files import Workspace

GOOD = '{"contain_one_of":[["cleric","clerics"]]}'
OTHER = '{"contain_one_of":[["troll","trolls"]]}'
Llm = Callable[[Behave], Server]
ALL = ("--set", "clearance.enabled=false")
SUGGEST = ("suggest", "--llm")
SPREAD = '{"contain_one_of":[["cleric"],["druid"],["monk"]]}'

CHUNKS = (
    Chunk("cleric-6", "A cleric needs 10.", "Attack matrix for clerics, AC 6", "special", rule=GOOD),
    Chunk("cleric-7", "A cleric needs 9.", "Attack matrix for clerics, AC 7", "special"),
    Chunk("cleric-8", "A cleric needs 8.", "Attack matrix for clerics, AC 8", "special"),
    Chunk("troll", "A troll regrows its limbs.", "Troll", "monster", rule=OTHER),
    Chunk("boat", "A rowing boat carries four.", "Boats", "item", source="sea.md"),
    Chunk("secret", "The cleric is a doppelganger.", "The Cleric's Secret", "special", clearance=4),
)


class Run:
    """Runs `ragfilter rules …` on the collection `small`; returns its output and exit code."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys

    def __call__(self, *args: str, code: int = 0, collection: str = "small") -> str:
        self.capsys.readouterr()
        found = main(["rules", *args, "-c", collection, "--data-dir", str(self.folder)])
        out, self.err = self.capsys.readouterr()
        assert found == code, self.err
        return out

    def json(self, *args: str, code: int = 0) -> Any:
        return json.loads(self(*args, "--json", code=code))

    def rule(self, chunk_id: str) -> str | None:
        with Workspace.open(self.folder) as opened:
            return opened.store().collection("small").rule(chunk_id)

    def rules(self, *ids: str) -> list[str | None]:
        return [self.rule(chunk_id) for chunk_id in ids]

    def store(self, rules: dict[str, str | None]) -> None:
        """Store rules past the journal."""
        with Workspace.open(self.folder) as opened:
            opened.store().collection("small").set_rules(rules)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the collections `small` and `empty`, to be copied or read."""
    folder = tmp_path_factory.mktemp("rules") / "ws"
    vectors = np.eye(len(CHUNKS), 384, dtype=np.float32)
    with Workspace.open(folder) as opened:
        store = opened.store()
        store.create("small", embedder="all-MiniLM-L6-v2")
        store.create("empty", embedder="all-MiniLM-L6-v2")
        collection = store.collection("small")
        collection.write([StoredRow(chunk, v) for chunk, v in zip(CHUNKS, vectors, strict=True)])
        collection.set_content("made")
    return folder


@pytest.fixture
def run(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs commands on a copy that may be changed."""
    return Run(shutil.copytree(small, tmp_path / "ws"), capsys)


@pytest.fixture
def llm(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Llm:
    """Starts a server and makes it the configured LLM."""

    def start(behave: Behave) -> Server:
        server = serve(behave)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_MODEL", "tiny")
        return server

    return start


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
