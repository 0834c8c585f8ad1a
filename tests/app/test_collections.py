"""The Collections page: upload files, preview the chunks, index, manage and export them."""

from __future__ import annotations

import io
import json
import resource
import time
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import chromadb
import pytest
import sqlalchemy as sa
from faults import Serve, embeddings, url
from syrupy.assertion import SnapshotAssertion
from waiting import PROCESS_S

from ragfilter.indexing.order import Order, carry_out
from ragfilter.indexing.queue import JobStatus, queue_of
from ragfilter.models.embedders import BUNDLED
from ragfilter.stores import manage
from ragfilter.stores.postgres import tables
from ragfilter.ui import resources
from ragfilter.workbench import Workbench

pytestmark = pytest.mark.model
GUIDE = b"# Trolls\n\nTrolls fear fire.\n\n# Owls\n\nOwls hoot at night.\n"


@pytest.fixture
def page(open_page: Any, tmp_path: Path) -> Any:
    """The page in an empty workspace."""
    return open_page(workspace=tmp_path, on="collections")


def bench() -> Workbench:
    return resources.open_resources().bench


def drop(page: Any, *files: tuple[str, bytes]) -> Any:
    page.at.file_uploader[0].set_value([(name, data, "text/plain") for name, data in files])
    return page.run()


def named(page: Any, name: str) -> Any:
    page.at.text_input(key="upload-name").set_value(name)
    return page.run()


def indexed(page: Any) -> Any:
    """The page once nothing is being indexed."""
    queue = queue_of(bench())
    deadline = time.monotonic() + PROCESS_S
    while any(job.status.open for job in queue.jobs()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return page.run()


def shown(page: Any) -> str:
    return " ".join(page.html)


def table(page: Any) -> dict[str, list[Any]]:
    frames = [frame.value for frame in page.at.dataframe]
    found: dict[str, list[Any]] = next(f for f in frames if "collection" in f).to_dict("list")
    return found


def test_files_are_seen_as_they_would_be_cut_and_indexed(page: Any) -> None:
    assert "No collection yet" in shown(page)
    drop(page, ("guide.md", GUIDE), ("../out.md", b"x"))
    assert "Trolls guide.md · 17 characters" in shown(page)
    assert "leads out of a folder" in page.warnings[0]
    page.at.toggle(key="cut-headings").set_value(False)
    page.run()
    assert page.at.text[0].value.startswith("# Trolls\n\nTrolls fear fire.\n\n# Owls")
    assert page.at.text_input(key="upload-model").value == BUNDLED
    page.at.toggle(key="cut-headings").set_value(True)
    named(page, "no good")
    assert page.at.button(key="index").disabled
    assert "cannot be the name" in page.errors[0]
    indexed(named(page, "handbook").press("index"))
    assert "holds 2 chunks: 2 added" in page.at.success[0].value
    found = table(page)
    assert (found["collection"], found["chunks"], found["state"]) == (["handbook"], [2], ["complete"])
    assert (found["rules"], found["own labels"]) == ([0], [0])
    assert datetime.strptime(found["last change"][0], "%Y-%m-%d %H:%M") <= datetime.now()
    assert bench().collection("handbook").chunks(["guide.md#owls"])["guide.md#owls"].title == "Owls"
    uploads = bench().workspace.path / "uploads"
    assert list(uploads.iterdir()) == []


def test_the_current_question_is_asked_of_a_new_collection(page: Any) -> None:
    drop(page, ("a.json", b"{broken"), ("b.md", b""), ("guide, short - 1.md", GUIDE))
    assert "a.json, line 1, column 2: this is not JSON" in page.warnings[0]
    assert "1 file without content skipped: b.md" in page.warnings[0]
    # Named after the first file that is read.
    assert page.at.text_input(key="upload-name").value == "guide-short-1"
    indexed(page.press("index"))
    page.at.switch_page("pages/inspect.py")
    page.run().ask("Who hoots?")
    page.at.switch_page("pages/collections.py")
    drop(page.run(), ("owls.md", GUIDE))
    indexed(page.press("index"))
    job = next(job for job in queue_of(bench()).jobs() if job.order.collection == "owls")
    page.press(f"ask-{job.id}")
    assert (page.session.collection, page.session.asked.collection) == ("owls", "owls")


def test_uploads_are_limited_and_a_new_collection_has_the_embedding_model_that_is_chosen(
    open_page: Any, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url(serve, embeddings()))
    monkeypatch.setenv("RAGFILTER_MAX_UPLOAD_MB", "1")
    page = open_page(workspace=tmp_path, on="collections")
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", bytes(2_000_000))
    drop(page, ("bomb.zip", bomb.getvalue()))
    assert "bomb.zip: it unpacks to more than" in page.warnings[0].replace("\\", "")
    page.press("discard-uploads")
    assert "Drop files to see how they are split" in shown(page)
    assert list((tmp_path / "uploads").iterdir()) == []
    drop(page, ("guide.md", GUIDE))
    page.at.text_input(key="upload-model").set_value("openai:tiny")
    indexed(named(page, "guide").press("index"))
    assert table(page)["embedding model"] == ["openai:tiny"]
    # Queries and new chunks use the collection's own model.
    assert bench().backends("guide").embedder.name == "openai:tiny"
    drop(page, ("bats.md", b"# Bats\n\nThey hang.\n"))
    page.at.selectbox(key="upload-target").set_value("guide")
    page.run()
    assert "Embedding model: openai:tiny." in shown(page)
    indexed(page.press("index"))
    assert bench().collection("guide").count() == 3


def test_a_table_s_columns_are_chosen_and_bad_records_listed(page: Any, snapshot: SnapshotAssertion) -> None:
    csv = b"Nr,Name,Note,clearance\n1,What trolls are afraid of,Fire.,0\n2,,,0\n3,,Hush.,4\n4,,Lost.,secret\n"
    drop(page, ("a.csv", csv), ("b.jsonl", b"nonsense\n"))
    picked = {f: page.at.selectbox(key=f"column-{f}").value for f in ("text", "id", "title", "clearance")}
    assert picked == {"text": "Note", "id": "Nr", "title": "Name", "clearance": "clearance"}
    indexed(named(page, "mine").press("index"))
    (listed,) = page.at.expander[0].markdown
    *left_out, warning = listed.value.split("\n")
    assert [what[:17] for what in left_out] == ["- a.csv, line 3: ", "- b.jsonl, line 1"]
    # Records that are indexed with warnings are listed too.
    assert "the clearance secret cannot be read, so the chunk is hidden." in warning
    assert page.at.expander[0].label == snapshot
    assert bench().collection("mine").chunks(["3"])["3"].clearance == 4
    # As the public, the default, the export leaves out hidden chunks.
    exported = page.downloads["mine.jsonl"]()
    assert [json.loads(line)["id"] for line in exported.splitlines()] == ["1"]
    told = page.at.text_input(key="delete-mine").help
    assert "`ragfilter labels export`" in told
    assert "Chunks that this user cannot see are left out." in told
    # An operator sees all of them.
    page.session.operator = True
    assert len(page.run().downloads["mine.jsonl"]().splitlines()) == 3
    assert "left out" not in page.at.text_input(key="delete-mine").help


def test_what_others_do_meanwhile_is_told(page: Any, tmp_path: Path) -> None:
    queue = queue_of(bench())
    job = queue.put(Order("mine", "/nothing/there.txt"))
    indexed(page)
    assert "does not exist" in page.errors[0].replace("\\", "")
    queue.tell(job.id, JobStatus("stopped", "texts embedded, chunks written", 3, 9))
    page.run()
    assert {f"go-on-{job.id}", f"dismiss-{job.id}"} <= page.buttons
    indexed(page.press(f"go-on-{job.id}"))
    assert "does not exist" in page.errors[0].replace("\\", "")
    page.press(f"dismiss-{job.id}")
    assert queue.jobs() == ()
    # The command line and another tab change the list, too.
    (tmp_path / "a.txt").write_text("Trolls fear fire.")
    carry_out(Order("ours", str(tmp_path / "a.txt")), bench())
    assert table(page.run())["collection"] == ["ours"]
    assert page.at.selectbox(key="manage-name").value == "ours"
    manage.rename(bench().workspace, "ours", "yours")
    assert table(page.run())["collection"] == ["yours"]
    # A name taken since it was typed is not added to.
    drop(page, ("guide.md", GUIDE))
    named(page, "mine")
    with queue.transaction():
        taken = queue.put(Order("mine", "a file"))
        assert queue.take(queue.enlist())
    page.press("index")
    assert "mine is being indexed" in page.warnings[0]
    assert [job.id for job in queue.jobs()] == [taken.id]
    # The files are still there, for another name.
    assert not named(page, "other").at.button(key="index").disabled
    carry_out(Order("other", str(tmp_path / "a.txt")), bench())
    page.press("index")
    assert "There is a collection other already" in page.warnings[0]


def test_a_full_disk_is_told_and_a_collection_is_deleted_only_by_its_whole_name(page: Any) -> None:
    drop(page, ("guide.md", GUIDE))
    named(page, "mine")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        page.press("index")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "The indexing queue failed (disk I/O error)" in page.warnings[0]
    # The files are still there.
    indexed(page.press("index"))
    assert table(page)["collection"] == ["mine"]
    page.at.text_input(key="rename-mine").set_value("ours")
    page.run().press("rename")
    assert table(page)["collection"] == [page.at.selectbox(key="manage-name").value] == ["ours"]
    for typed in ("our", "ours"):
        assert page.at.button(key="delete").disabled
        page.at.text_input(key="delete-ours").set_value(typed)
        page.run()
    page.press("delete")
    assert "No collection yet" in shown(page)


def test_a_table_of_others_is_opened_with_its_columns(page: Any, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = sa.create_engine(address)
    vector = tables.written(bench().embedder.embed(["Trolls."])[0])
    with engine.begin() as connection:
        for statement in (
            "CREATE EXTENSION vector",
            "CREATE TABLE notes (id int PRIMARY KEY, short text, long text, v vector, own jsonb)",
            f"INSERT INTO notes VALUES (1, 'T', 'Trolls.', '{vector}', '{{\"title\": \"A\"}}')",
        ):
            connection.exec_driver_sql(statement)
    engine.dispose()
    place = sa.make_url(address).set(password=None).render_as_string(hide_password=False)
    page.at.text_input(key="elsewhere-folder").set_value(place)
    page.run()
    chosen = {f: page.at.selectbox(key=f"elsewhere-{f}-notes") for f in ("id", "text", "metadata")}
    assert [box.value for box in chosen.values()] == ["id", "short", None]
    chosen["text"].set_value("long")
    page.at.selectbox(key="elsewhere-metric-notes").set_value("ip")
    page.at.text_input(key="elsewhere-model-notes").set_value(BUNDLED)
    page.run().press("elsewhere-open")
    found = table(page)
    assert (found["collection"], found["chunks"]) == (["notes"], [1])
    (chunk,) = bench().collection("notes").chunks(["1"]).values()
    assert (chunk.text, chunk.title) == ("Trolls.", "A")
    page.press("theirs-close")
    assert "No collection yet" in shown(page)


def test_a_collection_that_others_made_is_opened_as_it_is(
    page: Any, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    drop(page, ("guide.md", GUIDE))
    indexed(named(page, "mine").press("index"))
    theirs = tmp_path / "theirs"
    client: Any = chromadb.PersistentClient(str(theirs))
    made = client.create_collection("notes", embedding_function=None)
    made.add(ids=["a"], embeddings=bench().embedder.embed(["Trolls."]), documents=["Trolls."])
    client.create_collection("flat", embedding_function=None).add(ids=["a"], embeddings=[[1, 0]])
    client.close()
    page.at.text_input(key="elsewhere-folder").set_value(str(tmp_path))
    page.run()
    assert "is not a Chroma folder" in page.errors[0].replace("\\", "")
    page.at.text_input(key="elsewhere-folder").set_value(str(theirs))
    page.run().press("elsewhere-open")
    assert "which embedding model made the vectors" in page.errors[0]
    page.at.selectbox(key="elsewhere-name").set_value("notes")
    page.run()
    page.at.text_input(key="elsewhere-model-notes").set_value(BUNDLED)
    page.run().press("elsewhere-open")
    assert table(page)["collection"] == ["mine", "notes"]
    assert table(page)["state"][1] == snapshot
    assert page.session.collection == "notes"
    # The browser gets the name too, not only the parts below the box.
    looked_after = page.at.selectbox(key="manage-name")
    assert (looked_after.value, looked_after.proto.set_value) == ("notes", True)
    assert sum("1 chunk, 384 dimensions, space l2" in e.value for e in page.at.markdown) == 1
    page.press("theirs-close")
    assert table(page)["collection"] == ["mine"]
    assert (theirs / "chroma.sqlite3").exists()
