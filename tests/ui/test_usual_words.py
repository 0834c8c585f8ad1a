"""The words that nearly every question has, as the pages learn them for the linter."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragfilter.library.workspace import open_workspace
from ragfilter.model import UNRESTRICTED, Chunk
from ragfilter.ui.session.resources import Resources

PLEASE = Chunk("c", rule='{"contain":"please"}')


def test_the_linter_knows_the_questions_as_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_workspace(tmp_path / "ws") as bench:
        here = Resources(bench, bench.deployment)
        assert here.checks_of("mine", "", UNRESTRICTED).state(PLEASE) == "valid"
        questions = {str(number): f"Please, number {number}" for number in range(20)}
        bench.labels.put_set("mine", "asked politely", questions)
        learnt = here.checks_of("mine", "", UNRESTRICTED)
        assert learnt.state(PLEASE) == "warning"
        assert here.checks_of("other", "", UNRESTRICTED).state(PLEASE) == "valid"
        for number in range(2):
            # One rude question does not change the words, so nothing is checked again.
            assert here.checks_of("mine", "", UNRESTRICTED) is learnt
            bench.labels.remember("mine", f"Number {number}!")
        assert here.checks_of("mine", "", UNRESTRICTED).state(PLEASE) == "valid"
        # The questions are read again only when there are others.
        monkeypatch.setattr("ragfilter.evaluate.query_sets.every_question", None)
        assert here.checks_of("mine", "", UNRESTRICTED).state(PLEASE) == "valid"
