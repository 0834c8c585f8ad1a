"""Families of chunks and the rules proposed for them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from rules_page import MATRIX, choose_part, settled, stored, told, turn_latest

from ragfilter.model import Chunk
from ragfilter.rules import edits
from ragfilter.ui.rules import family_proposals
from ragfilter.ui.rules.offers import Offer
from ragfilter.ui.session import resources

pytestmark = pytest.mark.model


def test_a_family_is_proposed_accepted_and_edited_first(page: Any) -> None:
    settled(choose_part(page, "Suggest"))
    settled(settled(page.press("suggest-find")))
    (frame,) = [f.value for f in page.at.dataframe if "would drop" in f.value]
    assert len(frame) == 84
    assert set(frame["now"]) == {"another rule"}
    assert "armor class " in frame["value"][0]
    # The row of the matrix for every proposal; empty for proposals whose chunk no question
    # retrieves.
    figures = frame[[
        "queries", "blocks", "passes", "overlap", "conflicts", "ΔF1 without", "Δrecall without",
        "fires",
    ]]  # fmt: skip
    assert (figures.notna().all(axis=1) | figures.isna().all(axis=1)).all()
    assert (frame["precision"].notna() == (frame["blocks"] > 0)).all()
    assert (frame["queries"].dropna() > 0).any()
    assert set(frame["fires"].dropna()) <= {"never", "sometimes", "always"}
    assert figures["overlap"].notna().any()
    assert (figures["overlap"].dropna() <= figures["blocks"].dropna()).all()
    assert figures["ΔF1 without"].abs().max() > 0
    before = {c.id: c.rule for c in resources.open_resources().bench.collection("demo")
              .catalogue().values()}  # fmt: skip
    # Rules that somebody wrote are replaced only if asked for.
    assert page.at.button(key="suggest-accept").disabled
    assert "Tick the box above to replace those that differ." in told(page)
    (replace,) = [box for box in page.at.checkbox if box.label == "Replace 84 other rules"]
    replace.check()
    page.run().press("suggest-accept")
    assert "Saved: " in told(page)
    after = {i: stored(i) for i in before if before[i] and "attack-matrix" in i}
    changed = [i for i in after if after[i] != before[i]]
    assert 60 <= len(changed) <= 84
    families = page.at.selectbox(key="suggest-family")
    assert re.search(
        rf"Families with a rule on every chunk: \d+ of {len(families.options)}\.", told(page)
    )
    assert families.index == 0
    page.press("suggest-next")
    assert page.at.selectbox(key="suggest-family").index > 0
    # Each family is asked for.
    assert not any(box.value for box in page.at.checkbox if box.label.startswith("Replace"))
    page.press("suggest-edit")
    assert page.at.session_state["rules-part"] == "Chunks"
    turn_latest(page, "undo")
    assert {i: stored(i) for i in after} == {i: before[i] for i in after}


def test_one_proposal_shows_what_it_does_and_is_accepted_alone(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offer(chunk: Chunk, rule: str, *others: Any) -> Offer:
        return Offer(chunk, '{"contain":"wizard"}' if chunk.id == MATRIX else rule, *others)

    monkeypatch.setattr(family_proposals, "Offer", offer)
    settled(choose_part(page, "Suggest"))
    settled(settled(page.press("suggest-find")))
    bench = resources.open_resources().bench
    for chunk_id, loses in ((MATRIX, True), ("attack-matrix-clerics-ac-7", False)):
        before = stored(chunk_id)
        page.at.selectbox(key="suggest-one").set_value(chunk_id)
        page.run()
        (shown,) = [text for text in page.html if "labelled question" in text and "would" in text]
        assert ("loses relevant" in shown and "recall" in shown) is loses
        assert page.at.button(key="suggest-one-accept").disabled is loses
        if loses:
            page.at.checkbox(key="suggest-one-sure").check()
            page.run()
        page.press("suggest-one-accept")
        assert "Saved: 1 rule, accept proposals." in told(page)
        assert stored(chunk_id) not in (None, before)
        edits.turn("undo", bench.collection("demo"), bench.journal, who="test", chunk_id=chunk_id)
        assert stored(chunk_id) == before
