"""A foreign collection is opened as it is: any space, without our metadata."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings
from chromadb.utils.embedding_functions import DefaultEmbeddingFunction, OpenAIEmbeddingFunction
from faults import KEY, Serve, embeddings
from syrupy.assertion import SnapshotAssertion
from test_chroma_server import chroma_run

from ragfilter.cli.program import main
from ragfilter.errors import InputError, StoreError
from ragfilter.indexing.order import Order, carry_out
from ragfilter.library.workspace import open_workspace
from ragfilter.models.embedders import BUNDLED, BundledEmbedder
from ragfilter.rules import edits
from ragfilter.stores import manage
from ragfilter.stores.base import Opening
from ragfilter.stores.opening import embedder_hint
from ragfilter.workbench import Workbench, overview

pytestmark = pytest.mark.model
TEXTS = {
    "a": "A troll that is burned stays dead.",
    "b": "Owls hoot at night.",
    "c": "A rowing boat carries four people.",
}


@pytest.fixture(scope="module")
def vectors() -> Any:
    return BundledEmbedder().embed(list(TEXTS.values()))


@pytest.fixture
def theirs(tmp_path: Path, vectors: Any) -> Path:
    """A Chroma folder as another program leaves it."""
    folder = tmp_path / "theirs"
    client: Any = chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))
    made = client.create_collection("notes", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None)
    made.add(
        ids=list(TEXTS),
        embeddings=vectors,
        documents=list(TEXTS.values()),
        metadatas=[{"title": "Trolls", "author": "x"}, {"title": "Owls"}, {"clearance": 4}],
    )
    long = client.create_collection("long", embedding_function=None)
    long.add(ids=list(TEXTS), embeddings=np.asarray(vectors) * 3)
    client.create_collection("flat", embedding_function=None).add(ids=["a"], embeddings=[[1, 0]])
    client.create_collection("empty", embedding_function=None)
    client.close()
    return folder


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    with open_workspace(tmp_path / "ws") as opened:
        yield opened


def test_it_is_asked_as_it_is(bench: Workbench, theirs: Path, snapshot: SnapshotAssertion) -> None:
    found = bench.stores.open("notes", Opening(str(theirs), BUNDLED), bench.load_embedder)
    assert [each.good for each in found] == [True, True, True, True, True]
    assert found[0].words == snapshot
    result = bench["notes"].search("How do I kill a troll?", "adaptive-gap")
    assert result.kept[0].id == "a"
    assert result.kept[0].chunk.title == "Trolls"
    assert result.kept[0].chunk.metadata == {"author": "x"}
    # Clearance fails closed here too.
    full = bench["notes"].search("How many people fit into a boat?", "full")
    assert "c" not in [hit.id for hit in full]
    (facts,) = overview(bench)
    assert (facts.info.name, facts.info.ours, facts.info.count) == ("notes", False, 3)


def test_one_on_a_server_is_asked_and_a_password_is_not_kept(bench: Workbench, vectors: Any, tmp_path: Path) -> None:
    with chroma_run(tmp_path / "server") as (url, _):
        client = chromadb.HttpClient(url, settings=Settings(anonymized_telemetry=False))
        client.create_collection("notes", embedding_function=None).add(
            ids=list(TEXTS), embeddings=vectors, documents=list(TEXTS.values())
        )
        bench.stores.open("notes", Opening(f"{url}/", BUNDLED), bench.load_embedder)
        result = bench["notes"].search("How do I kill a troll?", "adaptive-gap")
        assert result.kept[0].id == "a"
        with pytest.raises(InputError, match="user or password") as error:
            bench.stores.open("notes", Opening(url.replace("//", "//me:hush@"), BUNDLED), bench.load_embedder)
    assert "hush" not in str(error.value)
    # It is left out while it cannot be reached.
    assert list(bench) == []


def test_one_in_the_own_store_is_asked_only_with_a_model_that_is_known(bench: Workbench, vectors: Any) -> None:
    client: Any = bench.workspace.store().client
    for name, function in (("told", DefaultEmbeddingFunction()), ("untold", None)):
        made = client.create_collection(name, embedding_function=function)
        made.add(ids=list(TEXTS), embeddings=vectors, documents=list(TEXTS.values()))
    question = "How do I kill a troll?"
    assert bench["told"].search(question, "adaptive-gap").kept[0].id == "a"
    for ask in (lambda: bench["untold"].search(question), lambda: bench.backends("untold")):
        with pytest.raises(StoreError, match="Nothing says that all-MiniLM-L6-v2 made") as error:
            ask()
        assert error.value.action == "open"
    bench.stores.open("untold", Opening("", BUNDLED), bench.load_embedder)
    assert bench["untold"].search(question, "adaptive-gap").kept[0].id == "a"


@pytest.mark.parametrize(
    ("function", "config", "model"),
    [
        ("openai", {"model_name": "text-embedding-3-small", "api_base": None}, "openai:text-embedding-3-small"),
        ("ollama", {"url": "http://localhost:11434", "model_name": "nomic-embed-text"}, "openai:nomic-embed-text"),
        ("sentence_transformer", {"model_name": "all-mpnet-base-v2"}, "all-mpnet-base-v2"),
        ("onnx_mini_lm_l6_v2", {"preferred_providers": None}, "all-MiniLM-L6-v2"),
        ("voyageai", {"model_name": "voyage-3"}, ""),
    ],
)
def test_each_function_of_chroma_gives_the_name_by_which_its_model_can_be_asked(
    bench: Workbench, function: str, config: Any, model: str
) -> None:
    class Theirs(DefaultEmbeddingFunction):
        name = staticmethod(lambda: function)

        def get_config(self) -> Any:
            return config

    store = bench.workspace.store()
    store.client.create_collection("theirs", embedding_function=Theirs())
    assert embedder_hint(store.collection("theirs")) == model


def test_one_made_with_openai_is_asked_over_the_openai_protocol(
    bench: Workbench, theirs: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    function = OpenAIEmbeddingFunction(api_key_env_var="OPENAI_API_KEY", model_name="text-embedding-3-small")
    client: Any = chromadb.PersistentClient(str(theirs), settings=Settings(anonymized_telemetry=False))
    made = client.create_collection("bought", embedding_function=function)
    made.add(ids=["a"], embeddings=[[1.0, 0.0, 0.0]], documents=["Fire."])
    client.close()
    server = serve(embeddings())
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    with open_workspace(bench.workspace.path.with_name("other")) as opened:
        opened.stores.open("bought", Opening(str(theirs)), opened.load_embedder)
        assert opened.stores.embedder("bought") == "openai:text-embedding-3-small"
    assert server.asked[0]["body"]["model"] == "text-embedding-3-small"


def test_it_is_read_only_unless_changes_are_allowed(bench: Workbench, theirs: Path) -> None:
    bench.stores.open("notes", Opening(str(theirs), BUNDLED), bench.load_embedder)
    notes = bench.collection("notes")
    before = notes.version
    save = {"chunk_id": "a", "rule": '{"contain":"fire"}', "expected": None, "who": "me"}
    with pytest.raises(StoreError, match="open read-only") as error:
        edits.save(notes, bench.journal, **save)  # type: ignore[arg-type]
    assert "Allow changes" in error.value.remedy
    assert (notes.rule("a"), notes.version) == (None, before)
    bench.stores.open("notes", Opening(str(theirs), BUNDLED, writable=True), bench.load_embedder)
    edits.save(notes, bench.journal, **save)  # type: ignore[arg-type]
    assert notes.rule("a") == '{"contain":"fire"}'


def test_what_does_not_fit_is_refused_with_the_remedy(bench: Workbench, theirs: Path) -> None:
    for name, folder, said in (
        ("flat", str(theirs), "2 dimensions, but all-MiniLM-L6-v2 makes 384"),
        ("empty", str(theirs), "empty"),
        ("nothing", str(theirs), "nothing"),
        ("notes", str(theirs.parent), "is not a Chroma folder"),
        ("notes", "a" * 5000, "is not a Chroma folder"),
        ("notes", "user:word@127.0.0.1:1", r"^\(an address that is not shown\) is not a Chroma folder"),
    ):
        with pytest.raises((StoreError, InputError), match=said) as error:
            bench.stores.open(name, Opening(folder, BUNDLED), bench.load_embedder)
        assert error.value.remedy
    assert list(bench) == []
    assert not (theirs.parent / "chroma.sqlite3").exists()


def test_vectors_that_are_not_of_unit_length_are_told(bench: Workbench, theirs: Path) -> None:
    found = bench.stores.open("long", Opening(str(theirs), BUNDLED), bench.load_embedder)
    needs = [each.words for each in found if not each.good]
    assert needs[0].startswith("the vectors are not of unit length")
    assert needs[1].startswith("some chunks have no document")


def test_two_of_one_name_are_refused(bench: Workbench, theirs: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Trolls fear fire.")
    bench.stores.open("notes", Opening(str(theirs), BUNDLED), bench.load_embedder)
    with pytest.raises(InputError, match="that ragfilter does not own"):
        carry_out(Order("notes", str(tmp_path / "a.txt")), bench)
    carry_out(Order("long", str(tmp_path / "a.txt")), bench)
    with pytest.raises(InputError, match="another collection"):
        bench.stores.open("long", Opening(str(theirs), BUNDLED), bench.load_embedder)
    # Nor does another folder's collection, or a renamed one, take the place of one that is open.
    shutil.copytree(theirs, tmp_path / "others")
    with pytest.raises(InputError, match="another collection"):
        bench.stores.open("notes", Opening(str(tmp_path / "others"), BUNDLED), bench.load_embedder)
    with pytest.raises(InputError, match="'notes' already"):
        manage.rename(bench.workspace, "long", "notes")
    assert bench.stores.opening("notes").folder == str(theirs)


def test_a_folder_that_is_gone_leaves_the_others(bench: Workbench, theirs: Path) -> None:
    bench.stores.open("notes", Opening(str(theirs), BUNDLED), bench.load_embedder)
    bench.close()
    theirs.rename(theirs.with_name("moved"))
    with open_workspace(bench.workspace.path) as again:
        assert list(again) == []


def test_the_command_line_opens_and_closes_it(theirs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--data-dir", str(tmp_path / "ws")]
    named = ["collections", "open", "notes", "--folder", str(theirs), *where]
    assert main(named) == 2
    assert "which embedding model made the vectors" in capsys.readouterr().err
    assert main([*named, "--model", BUNDLED]) == 0
    out = capsys.readouterr().out
    assert "notes is open" in out
    assert "works: 3 chunks" in out
    assert "works: texts are stored with the vectors" in out
    assert main(["query", "trolls", "-c", "notes", "-p", "adaptive-gap", *where]) == 0
    assert "Trolls" in capsys.readouterr().out
    assert main(["collections", "close", "note", *where]) == 2
    assert "Opened from elsewhere: notes." in capsys.readouterr().err
    assert main(["collections", "close", "notes", *where]) == 0
    assert main(["collections", *where]) == 0
    assert "No collection yet" in capsys.readouterr().err
