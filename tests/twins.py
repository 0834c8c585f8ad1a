"""Twin worlds: a collection with chunks that a user cannot see, and the same without them."""

from __future__ import annotations

import importlib.util
import json
import pkgutil
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

import ragfilter
from ragfilter.cli.program import main
from ragfilter.model import User
from ragfilter.settings.deployment import Deployment
from ragfilter.stores.preferences import PairSide
from ragfilter.workbench import Workbench

USER = User(1, ("sales",))
SECRET = "Secretly"
"""A word that only hidden chunks have."""
SHARED = "Manual"
"""The title of so many visible chunks that they count as passages, though with the hidden ones they would not."""
AT = datetime(2026, 1, 2, tzinfo=UTC)
TOPICS = {
    "cat": "purrs in the warm sun",
    "boat": "crosses the wide river",
    "bread": "is baked from rye flour",
    "moon": "rises over the dark hills",
    "clock": "strikes twelve at noon",
}
FORMS = (
    "The {0} {1}.",
    "Nobody knows why the {0} {1}.",
    "Every evening the {0} {1}, says the keeper.",
    "A report on the {0}: it {1}.",
)
ASKED = ("Why does the {0} do that?", "What is known of the {0}?", "{0} or not?", "the {0} {1}")
QUESTIONS = {
    f"{topic}-q{n}": form.format(topic, does) for topic, does in TOPICS.items() for n, form in enumerate(ASKED)
}


def visible_records() -> list[dict[str, Any]]:
    """Visible chunks with rules, references (also to hidden chunks), and similar texts."""
    made: list[dict[str, Any]] = []
    for topic, does in TOPICS.items():
        for n, form in enumerate(FORMS):
            record: dict[str, Any] = {
                "id": f"{topic}-{n}",
                "title": f"{topic.title()} Manual, part {n}" if n < 3 else SHARED,
                "text": form.format(topic, does),
                "type": "page",
                "source": f"{topic}.md",
                "refs": [f"{topic}-{(n + 1) % len(FORMS)}", f"hidden-{topic}-{n}"],
                "clearance": n % 2,
            }
            if n == 3:
                record["department"] = "sales"
            if n % 2:
                record["query_must"] = {"contain": topic}
            made.append(record)
    return made


def hidden_records(seed: int) -> list[dict[str, Any]]:
    """Chunks nearer to the questions than any visible one, but too secret, of another department,
    or with an unreadable clearance."""
    rng = random.Random(seed)
    made: list[dict[str, Any]] = []
    for query_id, question in QUESTIONS.items():
        topic, number = query_id.split("-q")
        for copy in range(rng.randint(1, 4)):
            who: dict[str, Any] = rng.choice(
                [{"clearance": 4}, {"clearance": 1, "department": "hr"}, {"clearance": "secret"}]
            )
            record = {
                "id": f"hidden-{topic}-{number}" + f"-{copy}" * bool(copy),
                "title": f"{topic.title()} Manual, part {len(made) + 4}" if rng.random() < 0.9 else SHARED,
                "text": f"{question} {SECRET} {copy}.",
                "source": rng.choice([f"{topic}.md", "vault.md"]),
                "refs": [f"{topic}-0"],
            }
            if rng.random() < 0.5:
                record["query_must"] = {"contain": rng.choice([*TOPICS, "vault"])}
            made.append(record | who)
    return made


def make_world(folder: Path, records: list[dict[str, Any]]) -> Path:
    """A folder with the workspace `ws`, and the questions, labels, votes and files that commands
    read. These are the same in every world."""
    folder.mkdir()
    _lines(folder / "chunks.jsonl", records)
    _lines(folder / "queries.jsonl", [{"_id": i, "text": q} for i, q in QUESTIONS.items()])
    labels = []
    for query_id in QUESTIONS:
        topic, number = query_id.split("-q")
        labels += [(query_id, f"{topic}-{n}", int(n != 3)) for n in range(4)]
        labels += [(query_id, f"hidden-{topic}-{number}", 2)]
    qrels = "".join(f"{q}\t{chunk}\t{grade}\n" for q, chunk, grade in labels)
    (folder / "qrels.tsv").write_text(qrels, "utf-8")
    (folder / "asked.txt").write_text("\n".join(QUESTIONS.values()) + "\n", "utf-8")
    _lines(folder / "expected.jsonl", [{"question": "the cat", "stay": ["cat-1", "hidden-cat-0"], "go": ["boat-1"]}])
    _lines(folder / "rules.jsonl", [{"id": i, "query_must": {"contain": "moon"}} for i in ("moon-0", "hidden-moon-0")])
    place = ["-c", "small", "--data-dir", str(folder / "ws")]
    assert main(["index", str(folder / "chunks.jsonl"), *place]) == 0
    files = ["--queries", str(folder / "queries.jsonl"), "--qrels", str(folder / "qrels.tsv")]
    assert main(["labels", "import", *files, "--set-name", "mine", *place]) == 0
    with Workbench.open(Deployment(data_dir=folder / "ws")) as bench:
        for chunks in (("cat-0", "cat-1"), ("cat-0", "hidden-cat-0")):
            sides = (PairSide("full", {}, chunks, "a"), PairSide("full", {}, ("cat-0",), "b"))
            bench.preferences.record("small", "the cat", *sides, "left", who="ann")
    return folder


def _lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


def make_twins(base: Path) -> tuple[Path, Path]:
    """A world with hidden chunks, which come first, in between and last, and its twin without them."""
    seen, hidden = visible_records(), hidden_records(1)
    mixed = [*hidden[::3], *seen[:7], *hidden[1::3], *seen[7:], *hidden[2::3]]
    return make_world(base / "with", mixed), make_world(base / "without", seen)


class Still(datetime):
    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return AT if tz else AT.replace(tzinfo=None)


class StillDay(date):
    @classmethod
    def today(cls) -> date:
        return AT.date()


CLOCK = re.compile(r"\b(perf_counter|datetime|date)\b")


@contextmanager
def still_clocks() -> Iterator[None]:
    """Stop the clocks that the output shows."""
    still = {"perf_counter": lambda: 0.0, "datetime": Still, "date": StillDay}
    with pytest.MonkeyPatch.context() as patch:
        for found in pkgutil.walk_packages(ragfilter.__path__, "ragfilter."):
            spec = importlib.util.find_spec(found.name)
            # Importing the adapters takes seconds.
            if spec and spec.origin and CLOCK.search(Path(spec.origin).read_text("utf-8")):
                module = importlib.import_module(found.name)
                for clock in still.keys() & vars(module).keys():
                    patch.setattr(module, clock, still[clock])
        yield
