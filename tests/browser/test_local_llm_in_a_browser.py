"""The real local LLM behind the page: it answers, judges and drafts, and the page says what it is.

The model is tiny and mostly wrong. These tests check that its words arrive and how they are
presented.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from local_llms import LocalLlm, must_be_installed, served
from playwright.sync_api import expect
from waiting import PROCESS_S

pytestmark = [pytest.mark.browser, pytest.mark.model, pytest.mark.llm]

LONG_MS = int(PROCESS_S * 1000)
QUESTION = {"q": "Tell me about owlbears", "profile": "adaptive-gap"}
ANSWERS = QUESTION | {"cutoff.max_results": "2", "retrieval.k": "2"}
JUDGED = QUESTION | {
    "cutoff.enabled": "false", "judge.enabled": "true", "judge.max_chunks": "2",
    "judge.timeout_ms": str(LONG_MS),
}  # fmt: skip
TINY = "smollm2-135m, a tiny demonstration model, often wrong"
OpenTab = Callable[..., Any]


@pytest.fixture(scope="module")
def local_llm(bare_environ: dict[str, str]) -> Iterator[LocalLlm]:
    must_be_installed()
    with served(bare_environ) as running:
        yield running


@pytest.fixture(scope="module")
def app_with_llm(serve_app: Callable[..., str], local_llm: LocalLlm) -> str:
    return serve_app(
        OPENAI_BASE_URL=local_llm.base_url,
        OPENAI_MODEL=local_llm.model,
        RAGFILTER_ANSWER_TIMEOUT_S=str(PROCESS_S),
        RAGFILTER_PRICE_PROMPT="1",
        RAGFILTER_PRICE_COMPLETION="1",
    )


def test_its_answer_streams_in_and_its_draft_is_a_rule_or_words(
    open_tab: OpenTab, app_with_llm: str
) -> None:
    tab = open_tab(ANSWERS, url=app_with_llm).expect_kept(2).rest()
    panel = tab.keyed("panel")
    expect(panel).to_contain_text(f"answers by {TINY}")
    before = panel.inner_text()
    tab.click("answer")
    # Part of the first answer is visible before the second has arrived.
    stream = panel.locator(".stColumn .stMarkdown p")
    expect(stream.first).to_have_text(re.compile(r"\w{2,}"), timeout=LONG_MS)
    expect(tab.keyed("stop")).to_be_visible()
    expect(tab.keyed("stop")).to_have_count(0, timeout=LONG_MS)
    expect(tab.keyed("answer-unfiltered")).to_be_visible()
    tab.rest()
    assert len(panel.inner_text()) > len(before)
    # Counted by the endpoint, not estimated: two figures below each answer.
    counted = re.findall(r"(?<!about )\b([\d,]+) \+ (\d+) tokens?", panel.inner_text())
    assert len(counted) == 2
    assert all(int(p.replace(",", "")) > 100 and 0 < int(c) <= 60 for p, c in counted)
    assert "about" not in re.findall(r"[^·]*\+ \d+ tokens?", panel.inner_text())[0]

    # Its draft for the rule of a chunk.
    tab.click_row(0)
    expect(tab.chunk).to_be_visible()
    tab.edit_rule().click("rule-draft")
    note = tab.keyed("draft-note")
    expect(note).to_contain_text("Asking smollm2-135m")
    expect(tab.rule).to_be_enabled(timeout=LONG_MS)
    expect(note).to_contain_text(re.compile(r"\d+ \+ \d+ tokens"))
    said = note.inner_text()
    if "No draft." in said:
        assert tab.rule.input_value() == ""
    else:
        assert TINY in said
        assert json.loads(tab.rule.input_value())


def test_its_judgement_is_read_or_falls_back_visibly(open_tab: OpenTab, app_with_llm: str) -> None:
    tab = open_tab(JUDGED, url=app_with_llm)
    expect(tab.kept).to_be_visible()
    tab.rest().keyed("need-judge", "button").first.click()
    panel = tab.keyed("panel")
    expect(panel).to_contain_text(f"Judged by {TINY}", timeout=LONG_MS)
    tab.rest()
    outcomes = {re.sub(r"\W+", "", outcome) for outcome in tab.column("outcome")[:8]}
    assert outcomes <= {"kept", "dropped", "expanded", "fallback"}
    assert ("fallback" in outcomes) is ("The judge failed." in panel.inner_text())
    assert "judge" in tab.strip.inner_text()
