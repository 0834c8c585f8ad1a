"""A disk that fills up during an edit: journal and store agree once there is room again.

Chroma's client may wait forever at the write after a failed one; here that would show as a timeout
of the child process.

A file size limit simulates the full disk. With room for some pages of Chroma's database, from none up to the
first edit that fits, by twos, the edit may be in Chroma's log without being applied: it then appears when the store is
opened again. If the disk fills up before a `call` of store or journal, the journal itself cannot be written: the edit
cannot be closed, or cannot be rolled back.
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
JOURNAL = {"write", "finish"}
"""The calls before which the disk fills up."""

# Edits two chunks at once on a full disk, and reports what happened.
CHILD = """
import json, resource, sys
from pathlib import Path
import numpy as np
from ragfilter.stores.chroma import ChromaCollection
from ragfilter.stores.copies import StoredRow
from ragfilter.workbench import Workbench
from ragfilter.settings.deployment import Deployment
from ragfilter.errors import RagfilterError
from ragfilter.stores.indexer import rebuild
from ragfilter.rules import edits
from ragfilter.rules.journal import Journal
from ragfilter.rules.rule import parse
from ragfilter.model import Chunk

folder, page, ids = Path(sys.argv[1]), int(sys.argv[2]), "xy"
vector = np.eye(1, 384, dtype=np.float32)[0]
long = json.dumps({"contain": "y" * 8000}, separators=(",", ":"))

def opened(at):
    return Workbench.open(Deployment(data_dir=at))

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

def save(bench, rule, before, ids=ids):
    store, journal = bench.collection("small"), bench.journal
    try:
        rules, expected = dict.fromkeys(ids, parse(rule)), dict.fromkeys(ids, before)
        edits.save_all(store, journal, rules=rules, expected=expected, who="me")
    except RagfilterError as error:
        return str(error)
    return "saved"

def undo(bench):
    store, journal = bench.collection("small"), bench.journal
    edits.turn("undo", store, journal, edit_id=journal.turnable("undo", "small").id, who="me")

def seen(bench):
    # What the journal says, and what the store and its catalogue hold.
    store = bench.collection("small")
    said = bench.journal.edited_rules("small")
    found = {(said.get(i), store.rule(i), store.catalogue()[i].rule) for i in ids}
    states = {edit.state for i in ids for edit in bench.journal.history("small", i)}
    return {
        # Several are changed together or not at all.
        "agree": all(len(set(each)) == 1 for each in found) and len(found) == 1,
        "has_it": all(each[1] == long for each in found),
        "states": sorted(states),
    }

def full_at(owner, name):
    # The disk is full from the next call on, for whatever file.
    real = getattr(owner, name)

    def full(*args, **named):
        setattr(owner, name, real)
        limit(1)
        return real(*args, **named)

    setattr(owner, name, full)

CALLS = {
    "write": (ChromaCollection, "set_rules"),
    "finish": (Journal, "finish"),
}

def edited(at, way):
    with opened(at) as bench:
        store = bench.workspace.store().create("small", embedder="all-MiniLM-L6-v2")
        store.write([StoredRow(Chunk(i, "a text"), vector) for i in "xyz"])
        store.catalogue()
        copy = [StoredRow(Chunk(i, "a text"), vector, None, i) for i in "xyz"]
        bench.workspace.contents.replace("small", copy, embedder="all-MiniLM-L6-v2")
    bench = opened(at)
    if way in CALLS:
        full_at(*CALLS[way])
    else:
        limit((at / "chroma/chroma.sqlite3").stat().st_size + way * page)
    told = save(bench, long, None)
    return bench, told

made = []
for way in (*CALLS, *range(0, 1000, 2)):
    case = {"way": way}
    bench, case["told"] = edited(folder / f"{way}", way)
    if case["told"] == "saved":
        bench.close()
        break
    case["again"] = save(bench, long, None)
    bench.close()
    limit(resource.RLIM_INFINITY)
    with opened(folder / f"{way}") as bench:
        case["reopened"] = seen(bench)
        rules = bench.journal.edited_rules("small")
        rebuild("small", workspace=bench.workspace, rules=rules)
        case["rebuilt"] = seen(bench)
        if case["reopened"]["has_it"]:
            undo(bench)
            case["undone"] = seen(bench)
    # The same without opening the workspace again: another chunk is edited, then this one.
    bench, _ = edited(folder / f"{way}-open", way)
    limit(resource.RLIM_INFINITY)
    with bench:
        case["other"] = save(bench, long, None, ids="z")
        held = bench.collection("small").rule("x")
        case["next"] = save(bench, '{"contain":"z"}', held)
        case["still_open"] = seen(bench)
    made.append(case)
print(json.dumps(made))
"""


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = str(tmp_path_factory.mktemp("full"))
    command = [sys.executable, "-c", CHILD, folder, str(PAGE)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PROCESS_S)
    assert done.returncode == 0, done.stderr
    made: list[dict[str, Any]] = json.loads(done.stdout)
    return made


def test_the_journal_itself_could_not_be_closed(cases: list[dict[str, Any]]) -> None:
    found = {case["way"]: case["reopened"] for case in cases if case["way"] in JOURNAL}
    assert {way: (made["has_it"], made["states"]) for way, made in found.items()} == {
        "write": (False, ["rolled_back"]),
        "finish": (True, ["done"]),
    }


def test_with_room_again_and_reopened_journal_and_store_agree(cases: list[dict[str, Any]]) -> None:
    assert {case["reopened"]["has_it"] for case in cases} == {True, False}, "both must be seen"
    for case in cases:
        assert case["reopened"]["agree"], case
        assert set(case["reopened"]["states"]) <= {"done", "rolled_back"}, case


def test_the_disk_is_named_and_nobody_is_told_to_move_the_store_away(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        # If only the journal failed, the store has the edit, which a user who tries again has not seen.
        tries = [case["told"]] if case["way"] == "finish" else [case["told"], case["again"]]
        for told in tries:
            assert "Free up space on the disk of" in told or "its disk is not full" in told, case
            assert case["way"] in JOURNAL or "file too large" in told, case
            assert "from its own copy" not in told, case


def test_a_rebuild_keeps_the_edit_and_undo_takes_it_back(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        assert case["rebuilt"] == case["reopened"], case
        if case["reopened"]["has_it"]:
            assert (case["undone"]["agree"], case["undone"]["has_it"]) == (True, False), case


def test_with_room_again_the_open_workspace_takes_edits_at_once(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        assert (case["other"], case["next"]) == ("saved", "saved"), case
        assert case["still_open"]["agree"], case
        assert "pending" not in case["still_open"]["states"], case
