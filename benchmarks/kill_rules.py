"""kill -9 at random moments during single and bulk saves of rules, many times.

After every kill the workspace is opened again, and then: no acknowledged edit is lost, no bulk change is half applied,
and the store holds what the journal says. The killed process writes bulk changes in small pages, so that kills also hit
between two pages. No model is loaded. Run: PYTHONPATH=. python benchmarks/kill_rules.py [TIMES [ADDRESS]], 50 by
default, in a new folder or in an empty database at an address (``postgresql://…``).
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time

import numpy as np

from ragfilter.library.workspace import open_workspace
from ragfilter.model import Chunk
from ragfilter.rules import edits
from ragfilter.rules.rule import parse
from ragfilter.settings.deployment import read_deployment
from ragfilter.stores import chroma
from ragfilter.stores.copies import StoredRow
from ragfilter.stores.postgres.store import PgStore
from ragfilter.workbench import open_files_and_store

N = 400
BULK = 200
PAGE = 20
NAME = "kill"


def rule(number: int) -> str:
    return json.dumps({"contain": f"term {number}"}, separators=(",", ":"))


def make(place: str) -> None:
    with open_workspace(place) as bench:
        vectors = np.random.default_rng(0).normal(size=(N, 384)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        rows = [StoredRow(Chunk(f"c{i}", f"text {i}"), vectors[i]) for i in range(N)]
        store = bench.workspace.store()
        if isinstance(store, PgStore):
            store.put(NAME, rows, embedder=bench.embedder.name, content="made")
            return
        collection = store.create(NAME, embedder=bench.embedder.name)
        collection.write(rows)
        collection.set_content("made")


def work(place: str, first: int) -> None:
    """Save singly and in bulk by turns, for ever. Prints what it begins and what is done."""
    chroma.WRITE_BATCH = PAGE
    with open_workspace(place) as bench:
        store, journal = bench.collection(NAME), bench.journal
        number = first
        while True:
            number += 1
            if number % 2:
                ids = [f"c{number % N}"]
            else:
                ids = [f"c{i}" for i in range(number % 2, N, N // BULK)]
            print(json.dumps({"begin": number, "ids": ids}), flush=True)
            expected = store.rules(ids)
            if number % 2:
                edits.save(store, journal, chunk_id=ids[0], rule=rule(number), expected=expected[ids[0]], who="bench")
            else:
                rules = dict.fromkeys(ids, parse(rule(number)))
                edits.save_all(store, journal, rules=rules, expected=expected, who="bench")
            print(json.dumps({"done": number}), flush=True)


def killed(place: str, first: int, chance: random.Random) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    """Let a process work, and kill it: what was acknowledged and what was begun, by number."""
    child = subprocess.Popen([sys.executable, __file__, "--work", place, str(first)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    begun: dict[int, list[str]] = {}
    acknowledged: dict[int, list[str]] = {}
    line = child.stdout.readline()
    time.sleep(chance.uniform(0.0, 0.8))
    child.kill()
    for each in [line, *child.stdout.read().splitlines()]:
        try:
            message = json.loads(each)
        except ValueError:
            continue
        if "begin" in message:
            begun[message["begin"]] = message["ids"]
        else:
            acknowledged[message["done"]] = begun[message["done"]]
    child.wait()
    return acknowledged, begun


def is_half_written(place: str, ids: list[str], wanted: str) -> bool:
    """Whether some of the rules had reached the store, and others not, when the process stopped."""
    with open_files_and_store(read_deployment(data_dir=place), "kill") as workspace:
        present = workspace.store().collection(NAME).rules(ids)
    return 0 < sum(1 for rule in present.values() if rule == wanted) < len(ids)


def main(times: int, address: str = "") -> None:
    chance = random.Random(0)
    wanted: dict[str, str | None] = dict.fromkeys(f"c{i}" for i in range(N))
    number, saved, finished, between = 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as name:
        place = address or name
        make(place)
        for turn in range(times):
            acknowledged, begun = killed(place, number, chance)
            last = max(begun, default=number)
            if begun:
                between += is_half_written(place, begun[last], rule(last))
            for done, ids in acknowledged.items():
                wanted |= dict.fromkeys(ids, rule(done))
            saved += len(acknowledged)
            with open_workspace(place) as bench:
                store = bench.collection(NAME)
                present = store.rules(list(wanted))
                under_way = {i for i in wanted if present[i] == rule(last) != wanted[i]}
                if under_way:
                    whole = next(
                        {e.chunk_id for e in bench.journal.step(step.edit.id)}
                        for step in bench.journal.steps(NAME, limit=5)
                        if step.edit.after == rule(last) and step.edit.state == "done"
                    )
                    assert under_way <= whole, "a rule arrived that the journal does not know"
                    assert all(present[i] == rule(last) for i in whole), f"turn {turn}: half a step"
                    wanted |= dict.fromkeys(whole, rule(last))
                    finished += 1
                lost = [i for i in wanted if present[i] != wanted[i]]
                assert not lost, f"turn {turn}: lost {lost[:5]}"
                edited = bench.journal.edited_rules(NAME)
                assert all(present[i] == edited.get(i) for i in wanted), f"turn {turn}: they disagree"
                assert not bench.journal.unfinished()
            number = last
    print(
        f"{times} kills: {saved} acknowledged edits, none lost; no step half applied ({finished} "
        f"under way were finished, {between} half written); journal and store agree"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], int(sys.argv[3]))
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 50, *sys.argv[2:])
