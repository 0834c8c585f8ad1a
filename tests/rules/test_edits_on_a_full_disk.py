"""A disk that fills up during an edit: journal and store agree once there is room again.

Chroma's client may wait for ever at the write that follows a failed one; here that would show as
the child's time running out.

A limit on the size of a file stands in for the full disk, at every page of Chroma's database up to
the first edit that fits. With some room the edit stands in Chroma's log but is not applied: it
then appears when the store is opened again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from waiting import PROCESS_S

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGE = 4096

# Edits one chunk at a limit of argv[2] pages beyond the present size, and tells what became of it.
CHILD = """
import json, resource, sys
from pathlib import Path
import numpy as np
from ragfilter.stores.chroma.store import Row
from ragfilter.stores.copies import CopyRow, write_copy
from ragfilter.workbench import open_workbench
from ragfilter.settings.deployment import Deployment
from ragfilter.errors import RagfilterError
from ragfilter.stores.index import rebuild
from ragfilter.rules import edits
from ragfilter.model import Chunk

folder, page = Path(sys.argv[1]), int(sys.argv[2])
vector = np.eye(1, 384, dtype=np.float32)[0]
long = json.dumps({"contain": "y" * 8000}, separators=(",", ":"))

def opened(at):
    return open_workbench(Deployment(data_dir=at))

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

def save(bench, rule, before, chunk="x"):
    store = bench.collection("small")
    try:
        edits.save(store, bench.journal, chunk_id=chunk, rule=rule, expected=before, who="me")
    except RagfilterError as error:
        return str(error)
    return "saved"

def seen(bench):
    # What the journal says, and what the store and its catalogue hold.
    store = bench.collection("small")
    said = edits.edited_rules(bench.journal, "small").get("x")
    held, listed = store.rule("x"), store.catalogue()["x"].rule
    return {
        "agree": said == held == listed, "has_it": held == long,
        "states": [edit.state for edit in bench.journal.history("small", "x")],
    }

def edited(at, pages):
    with opened(at) as bench:
        store = bench.workspace.store().create("small", embedder="all-MiniLM-L6-v2")
        store.write([Row(Chunk(i, "a text"), vector) for i in "xy"])
        store.catalogue()
        copy = [CopyRow(Chunk(i, "a text"), vector, i) for i in "xy"]
        write_copy(bench.workspace.copy_path("small"), copy, embedder="all-MiniLM-L6-v2")
    bench = opened(at)
    limit((at / "chroma/chroma.sqlite3").stat().st_size + pages * page)
    told = save(bench, long, None)
    return bench, told

made, pages = [], 0
while True:
    case = {"pages": pages}
    bench, case["told"] = edited(folder / f"{pages}", pages)
    if case["told"] == "saved":
        bench.close()
        break
    case["again"] = save(bench, long, None)
    bench.close()
    limit(resource.RLIM_INFINITY)
    with opened(folder / f"{pages}") as bench:
        case["reopened"] = seen(bench)
        rules = edits.edited_rules(bench.journal, "small")
        rebuild("small", workspace=bench.workspace, rules=rules)
        case["rebuilt"] = seen(bench)
        if case["reopened"]["has_it"]:
            edits.undo(bench.collection("small"), bench.journal, who="me")
            case["undone"] = seen(bench)
    # The same without opening the workspace again: another chunk is edited, then this one.
    bench, _ = edited(folder / f"{pages}-open", pages)
    limit(resource.RLIM_INFINITY)
    with bench:
        case["other"] = save(bench, long, None, chunk="y")
        held = bench.collection("small").rule("x")
        case["next"] = save(bench, '{"contain":"z"}', held)
        case["still_open"] = seen(bench)
    made.append(case)
    pages += 1
print(json.dumps(made))
"""


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    command = [sys.executable, "-c", CHILD, str(tmp_path_factory.mktemp("full")), str(PAGE)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PROCESS_S)
    assert done.returncode == 0, done.stderr
    made: list[dict[str, Any]] = json.loads(done.stdout)
    return made


def test_with_room_again_and_reopened_journal_and_store_agree(cases: list[dict[str, Any]]) -> None:
    assert {case["reopened"]["has_it"] for case in cases} == {True, False}, "both must be seen"
    for case in cases:
        assert case["reopened"]["agree"], case
        assert set(case["reopened"]["states"]) <= {"done", "rolled_back"}, case


def test_the_disk_is_named_and_nobody_is_told_to_move_the_store_away(
    cases: list[dict[str, Any]],
) -> None:
    for case in cases:
        for told in (case["told"], case["again"]):
            assert "file too large" in told, case
            assert "Make room on the disk of" in told, case
            assert "from its own copy" not in told, case


def test_a_rebuild_keeps_the_edit_and_undo_takes_it_back(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        assert case["rebuilt"] == case["reopened"], case
        if case["reopened"]["has_it"]:
            assert (case["undone"]["agree"], case["undone"]["has_it"]) == (True, False), case


def test_with_room_again_the_open_workspace_takes_edits_at_once(
    cases: list[dict[str, Any]],
) -> None:
    for case in cases:
        assert (case["other"], case["next"]) == ("saved", "saved"), case
        assert case["still_open"]["agree"], case
        assert "pending" not in case["still_open"]["states"], case
