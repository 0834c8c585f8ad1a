"""The workbench: what it opens, which edits it settles then, and that it closes cleanly."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from ragfilter.errors import CollectionMissing, ModelError, SettingsError, StoreError
from ragfilter.model import Chunk
from ragfilter.models.rerankers import CrossEncoderReranker, LateInteraction
from ragfilter.protocols import Vectors
from ragfilter.rules.edits import save
from ragfilter.rules.journal import Entry
from ragfilter.settings.deployment import Deployment, read_deployment
from ragfilter.settings.schema import Quality
from ragfilter.stores.copies import StoredRow
from ragfilter.stores.workspace_files import Workspace
from ragfilter.workbench import Workbench

pytestmark = pytest.mark.slow

RULE = '{"contain":"troll"}'


def vector() -> Vectors:
    import numpy as np

    made = np.zeros(384, dtype=np.float32)
    made[0] = 1.0
    return made


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    """A workspace with the collection `small` of one chunk, `x`."""
    with Workspace.open(tmp_path) as workspace:
        collection = workspace.store().create("small", embedder="all-MiniLM-L6-v2")
        collection.write([StoredRow(Chunk("x", "about trolls"), vector())])
        workspace.store().create("foreign", embedder="another-model")
    return Deployment(data_dir=tmp_path)


def crossed(model: Path) -> Quality:
    return Quality(reranker="cross_encoder", reranker_model=str(model))


def test_rerankers_are_made_once(deployment: Deployment, cross_encoders: Path, tmp_path: Path) -> None:
    with Workbench.open(deployment) as bench:
        late = bench.reranker(Quality())
        assert isinstance(late, LateInteraction)
        assert bench.reranker(Quality(reranker_threshold=0.9)) is late
        first = bench.reranker(crossed(cross_encoders / "one"))
        assert isinstance(first, CrossEncoderReranker)
        assert bench.reranker(crossed(cross_encoders / "one")) is first
        shutil.copytree(cross_encoders / "one", tmp_path / "two")
        assert bench.reranker(crossed(tmp_path / "two")) != first


@pytest.mark.parametrize("fetch", [False, True])
def test_a_model_is_fetched_only_where_that_is_asked_for(
    fetch: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sentence_transformers

    asked: list[bool] = []

    def loading(name: str, *, local_files_only: bool, **_: object) -> None:
        asked.append(local_files_only)
        raise OSError("stopped here")

    monkeypatch.setattr(sentence_transformers, "CrossEncoder", loading)
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", loading)
    given = Deployment(data_dir=tmp_path, fetch_models=fetch, embedding_model="some/model")
    with Workbench.open(given) as bench:
        with pytest.raises(ModelError, match="stopped here"):
            bench.embedder.embed(["text"])
        with pytest.raises(ModelError, match="stopped here"):
            bench.reranker(crossed(Path("some/model")))
    assert asked == [not fetch, not fetch]


def test_a_missing_collection_names_those_that_are_there(deployment: Deployment, snapshot: SnapshotAssertion) -> None:
    with Workbench.open(deployment) as bench, pytest.raises(CollectionMissing) as raised:
        bench.collection("smal")
    assert raised.value.message == snapshot
    assert raised.value.remedy.startswith("There are: foreign, small. ")


def test_vectors_of_another_model_are_asked_with_it_or_refused(deployment: Deployment) -> None:
    with Workbench.open(deployment) as bench:
        assert bench.backends("foreign").embedder.name == "another-model"
    named = deployment.model_copy(update={"embedding_model": "all-MiniLM-L6-v2"})
    with Workbench.open(named) as bench, pytest.raises(StoreError, match="another-model"):
        bench.backends("foreign")


def test_an_edit_that_reached_the_store_is_finished(deployment: Deployment) -> None:
    with Workbench.open(deployment) as bench:
        (edit,) = bench.journal.begin([Entry("x", None, RULE)], who="me", collection="small")
        bench.collection("small").set_rules({"x": RULE})
    with Workbench.open(deployment) as bench:
        assert bench.journal.unfinished() == ()
        (entry,) = bench.journal.history("small")
        assert (entry.id, entry.state) == (edit.id, "done")
        assert bench.collection("small").rule("x") == RULE


def test_an_edit_that_did_not_is_rolled_back(deployment: Deployment) -> None:
    with Workbench.open(deployment) as bench:
        bench.journal.begin([Entry("x", None, RULE)], who="me", collection="small")
        bench.journal.begin([Entry("y", None, RULE)], who="me", collection="gone")
    with Workbench.open(deployment) as bench:
        assert [entry.state for entry in bench.journal.history("small")] == ["rolled_back"]
        assert bench.collection("small").rule("x") is None
        # Edits that cannot be settled stay, and do not prevent opening.
        assert [entry.collection for entry in bench.journal.unfinished()] == ["gone"]


def test_a_damaged_journal_keeps_nobody_from_searching(
    deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    with Workbench.open(deployment) as bench:
        save(bench.collection("small"), bench.journal, chunk_id="x", rule=RULE, expected=None, who="")
    (deployment.data_dir / "ragfilter.db").write_bytes(b"no database" * 1000)
    with Workbench.open(deployment) as bench:
        assert "rules cannot be edited or restored: The journal of edits failed" in caplog.text
        backends = bench.backends("small")
        (found,) = backends.collection.nearest(vector(), 3)
        assert found[0] == "x"
        with pytest.raises(StoreError, match="not a database") as raised:
            bench.journal.history("small")
        assert "move it away" in raised.value.remedy
    (deployment.data_dir / "ragfilter.db").unlink()
    with Workbench.open(deployment) as bench:
        assert bench.journal.history("small") == ()
        assert bench.collection("small").rule("x") == RULE


def test_closing_lets_others_in_and_a_failed_opening_leaves_nothing_open(tmp_path: Path) -> None:
    bench = Workbench.open(Deployment(data_dir=tmp_path))
    bench.close()
    bench.close()
    assert not (tmp_path / ".owner.json").exists()
    with pytest.raises(SettingsError):
        Workbench.open(Deployment(data_dir=tmp_path, openai_base_url="no url at all"))
    assert not (tmp_path / ".owner.json").exists()


def test_a_bad_variable_is_named_and_its_value_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGFILTER_PRICE_PROMPT", "-1 secret")
    with pytest.raises(SettingsError) as raised:
        read_deployment()
    assert "RAGFILTER_PRICE_PROMPT" in raised.value.message
    assert "secret" not in raised.value.message
