"""Which questions the labelling mode shows, and in which order."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ragfilter.evaluate.labelling import FIRST
from ragfilter.model import UNRESTRICTED, Chunk
from ragfilter.stores.label_book import LabelBook
from ragfilter.ui.evaluate import labelling_mode


def test_questions_without_any_label_come_first_and_only_a_stored_set_ends_with_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = SimpleNamespace(typed_questions=["typed"], label_query="")
    monkeypatch.setattr(labelling_mode.state, "session", lambda: session)
    chunks = {f"c{n}": Chunk(f"c{n}") for n in range(FIRST)}
    book = LabelBook(f"sqlite:///{tmp_path / 'labels.db'}")
    book.put_set("own", "own", {"q1": "of the collection"})
    book.put_set("own", "mine", {"q1": "done", "q2": "begun", "q3": "new"})
    book.remember("own", "asked")
    for question, labelled in (("done", FIRST), ("begun", 1)):
        book.label("own", question, [*chunks][:labelled], 1, who="ann")
    for name, questions, window in [
        ("mine", ["typed", "done", "begun", "new"], ["typed", "new", "begun"]),
        ("labelled", ["typed", "done", "begun", "asked"], ["typed", "asked", "begun"]),
        ("own", ["typed", "of the collection", "asked"], ["typed", "of the collection", "asked"]),
        ("", ["typed", "asked"], ["typed", "asked"]),
    ]:
        chosen: Any = SimpleNamespace(name=name, collection="own", book=book, chunks=chunks, user=UNRESTRICTED)
        assert list(dict.fromkeys(labelling_mode._questions(chosen))) == questions, name
        assert labelling_mode._window(chosen, book.standing("own"), {"done", "begun"}) == window, name
    # The open question comes first, and then those after it.
    session.label_query = "begun"
    chosen = SimpleNamespace(name="mine", collection="own", book=book, chunks=chunks, user=UNRESTRICTED)
    assert labelling_mode._window(chosen, book.standing("own"), {"done", "begun"}) == ["begun", "new", "typed"]
    book.close()
