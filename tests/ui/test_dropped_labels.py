"""Labels dropped on the Rules page count as far as they are of chunks that the user may see."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import streamlit as st

from ragfilter.errors import InputError
from ragfilter.model import UNRESTRICTED, Chunk, User
from ragfilter.protocols import Catalogue
from ragfilter.settings.schema import Settings
from ragfilter.ui.kit.rule_editor import rule_effect
from ragfilter.ui.kit.rule_editor.desk import Desk

QUERIES = '{"_id": "1", "text": "Where is the boat?"}\n{"_id": "2", "text": "Who lies?"}\n'


@dataclass(frozen=True)
class File:
    name: str
    text: str

    def getvalue(self) -> bytes:
        return self.text.encode()


def test_labels_of_other_chunks_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "session_state", {})
    resources: Any = None
    chunks = Catalogue({"boat": Chunk("boat"), "secret": Chunk("secret", clearance=4)})
    more = Desk("mine", "1", Settings(), UNRESTRICTED, resources, chunks)
    less = replace(more, user=User(1), chunks=Catalogue({"boat": chunks["boat"]}))

    def drop(*rows: str) -> None:
        queries: Any = File("queries.jsonl", QUERIES)
        qrels: Any = File("qrels.tsv", "\n".join(("query-id\tcorpus-id\tscore", *rows)))
        rule_effect.drop(less, queries, qrels)

    drop("1\tboat\t1", "1\tgone\t1", "2\tsecret\t1")
    boat, secret = {"1": {"boat": 1}}, {"2": {"secret": 1}}
    for desk, seen in ((more, boat | secret), (less, boat)):
        found = rule_effect.labels(desk)
        assert found is not None
        assert found.qrels == seen
    with pytest.raises(InputError, match="None of the chunks labelled as relevant is in"):
        drop("1\tgone\t1", "2\tsecret\t1")
