"""What every rule does to many questions."""

from __future__ import annotations

from typing import Any

import pytest
from rules_page import MATRIX, choose_part, rules_frame, select, settled, told

pytestmark = pytest.mark.model


def test_the_matrix_is_shown_and_a_rule_looked_at_by_group_and_term(page: Any) -> None:
    settled(choose_part(page, "Matrix"))
    (frame,) = [f.value for f in page.at.dataframe if "ΔF1 without" in f.value]
    assert "123 rules over" in told(page)
    assert len(frame) == 123
    select(page, "matrix", MATRIX)
    frames = [f.value for f in page.at.dataframe if "ΔF1 without" in f.value]
    words = dict(zip(frames[1]["part"], frames[1]["rule"], strict=True))
    assert words["Group 2, term 1"] == '"armor class 6"'
    assert not [f for f in page.at.dataframe if "question" in f.value]
    select(page, "matrix", "attack-matrix-clerics-ac-2")
    (conflicts,) = [f.value for f in page.at.dataframe if "question" in f.value]
    assert [question.endswith("plate mail and shield?") for question in conflicts["question"]] == [
        True
    ]


def test_the_table_shows_what_rules_do_and_what_harms_first(page: Any) -> None:
    settled(page.press("rules-measure"))
    frame = rules_frame(page)
    ruled = frame[frame["blocks"].notna()]
    # Less distinctive columns come after what identifies a chunk.
    assert list(frame)[-6:] == [
        "queries", "passes", "overlap", "precision", "Δrecall without", "fires",
    ]  # fmt: skip
    assert (ruled["overlap"] <= ruled["blocks"]).all()
    assert (ruled["queries"] <= ruled["blocks"] + ruled["passes"]).all()
    assert set(ruled["fires"]) <= {"never", "sometimes", "always"}
    # Without figures, the first page has only chunks without a rule.
    assert len(ruled)
    assert ((ruled["ΔF1 without"] > 0) | (ruled["conflicts"] > 0)).all()
