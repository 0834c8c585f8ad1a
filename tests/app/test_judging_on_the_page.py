"""The LLM judge on the page, from the price on the button to the verdicts, with a real endpoint."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from faults import Serve, Server, says
from judges import QUERY, SCHEMAS, capable
from syrupy.assertion import SnapshotAssertion
from test_empty_places import vault
from waiting import PATIENT_MS

from ragfilter.model import Chunk
from ragfilter.ui.kit.controls import setting_key as key

pytestmark = pytest.mark.model

LINK = {"collection": "adsapi", "profile": "llm-filter", "q": QUERY, "judge.timeout_ms": str(PATIENT_MS)}


@pytest.fixture(scope="session")
def adsapi_page_workspace(adsapi_workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One workspace with adsapi that the tests of this file share and do not change."""
    return Path(copytree(adsapi_workspace, tmp_path_factory.mktemp("adsapi") / "workspace"))


@pytest.fixture
def judged_by(
    open_page: Any, adsapi_page_workspace: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch, opened: dict[str, Any]
) -> Iterator[Callable[..., tuple[Any, Server]]]:
    """Opens the page on adsapi with a server as its LLM: ``judged_by(behave)``."""
    monkeypatch.setenv("RAGFILTER_PRICE_PROMPT", "0.15")
    monkeypatch.setenv("RAGFILTER_PRICE_COMPLETION", "0.6")
    monkeypatch.setenv("RAGFILTER_CURRENCY", "$")
    monkeypatch.setenv("OPENAI_MODEL", "judge")

    def open_(behave: Any, **more: str) -> tuple[Any, Server]:
        server = serve(behave)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        return open_page(LINK | more, workspace=adsapi_page_workspace), server

    yield open_
    stop_the_app(opened)


def stop_the_app(opened: dict[str, Any]) -> None:
    """One process owns a workspace, and each server is another deployment."""
    from ragfilter.ui import resources

    for text, deployment in list(opened.items()):
        key_hash = hash(deployment.openai_api_key.get_secret_value())
        resources._open(text, key_hash, deployment).bench.close()
        resources._open.clear(text, key_hash, deployment)
        del opened[text]


def facts(page: Any) -> dict[str, str]:
    """The figures of the judge's panel."""

    grids = [e.value for e in page.at.html if 'class="rf-grid' in e.value]
    pairs = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", "".join(grids))
    return dict(pairs)


def test_nothing_is_asked_before_the_button_and_the_button_tells_the_price(
    judged_by: Any, snapshot: SnapshotAssertion
) -> None:
    page, server = judged_by(capable)
    assert "LLM judge not asked yet" in page.strip
    # Meanwhile, as many chunks stay as without a judge, although more are waiting.
    assert len(page.kept) == 25
    label = page.at.button(key="need-judge").label
    assert label.startswith("Ask the LLM about 40 chunks · ~")
    assert "at most 60 s · cost $0.000" in label
    page.choose("panel-box", "Judge")
    said = "Waiting for a verdict: 40 chunks. Kept until then, by distance: 25 chunks."
    assert any(said in text for text in page.html)
    assert any("shortened to fit 2,000 tokens" in text for text in page.html)
    assert any("Prompt to be sent" in e.label for e in page.at.expander)
    assert QUERY in "".join(code.value for code in page.at.code)
    page.slide("judge.max_chunks", 5).slide("judge.min_relevance", 0.5)
    assert next(text for text in page.html if "Not asked yet." in text) == snapshot
    assert server.asked == []
    # An answer without a decision is shown, but only to an operator: it may name chunks that others see.
    server.behave = says("They are all very nice.")
    page.press("need-judge")
    assert any("no decision could be read" in text for text in page.html)
    assert "They are all very nice." not in page.sent
    page.choose("view-as", "Operator")
    assert "They are all very nice." in [code.value for code in page.at.code]


def test_a_link_names_a_prompt_of_the_workspace(
    adsapi_workspace: Path, tmp_path: Path, open_page: Any, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Path(copytree(adsapi_workspace, tmp_path / "workspace"))
    (workspace / "prompts").mkdir()
    (workspace / "prompts" / "mine.toml").write_text(
        "version = '1'\nabout = 'mine.'\ninstructions = 'In my words: KEEP, EXPAND_1, EXPAND_3, EXPAND_5 or DISCARD.'\n"
    )
    server = serve(capable)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    page = open_page(LINK | {"judge.prompt": "mine"}, workspace=workspace)
    assert page.warnings == []
    assert "mine" in page.at.selectbox(key=key("judge.prompt")).options[-1].casefold()
    page.press("need-judge")
    (asked,) = server.asked
    assert asked["body"]["messages"][0]["content"].startswith("In my words: KEEP")


def test_the_question_of_the_source_document(
    judged_by: Any, open_page: Any, adsapi_page_workspace: Path, opened: dict[str, Any]
) -> None:
    page, server = judged_by(capable, **{"judge.enabled": "false", "retrieval.k": "25"})
    assert len(page.kept) == 25
    page.switch("judge", True).press("need-judge")
    assert len(server.asked) == 1
    kept = set(page.kept)
    assert kept >= SCHEMAS

    # The judge's panel is open, with its figures and what it said.
    brought = [row for row in page.rows if row["outcome"] == "expanded"]
    told = facts(page)
    assert told["Candidates"] == "40"
    assert told["Kept"] == str(len(kept) - len(brought))
    assert told["Added by references"] == str(len(brought))
    assert told["Reduction"] == f"{1 - (len(kept) - len(brought)) / 40:.0%}"
    assert told["Fallback"] == "not used"
    assert told["Tokens in + out"].startswith("1,500 + ")
    # (1500 × 0.15 + 400 × 0.6) / 10⁶: 40 decisions of 10 tokens.
    assert told["Cost"] == "$0.0005"
    assert f"kept {told['Kept']} of 40 + {len(brought)} by reference" in page.strip
    table = next(frame.value for frame in page.at.dataframe if "verdict" in frame.value)
    said = {words[0] for words in table["verdict"]}
    assert said >= {"● KEEP", "● EXPAND_3", "✚ added", "◇ DISCARD"}
    # A reply may name chunks that only other users can see.
    assert '"decisions"' not in "".join(code.value for code in page.at.code)
    page.choose("view-as", "Operator")
    assert '"decisions"' in "".join(code.value for code in page.at.code)

    # A slider that asks about fewer chunks makes it a new question; moved back, the answer is cached.
    page.slide("judge.min_relevance", 0.6)
    assert "not asked yet" in page.strip
    page.slide("judge.min_relevance", 0.3)
    # A larger pool is a different one; the LLM's answers to the same prompt come with the question.
    page.slide("retrieval.pool_size", 250).press("gather-again")
    assert len(server.asked) == 1
    assert set(page.kept) == kept
    assert any("Judged by judge; cached" in text for text in page.html)
    # The verdict outlives the app.
    stop_the_app(opened)
    link = LINK | {"retrieval.k": "25", "view": "operator"}
    again = open_page(link, workspace=adsapi_page_workspace).choose("panel-box", "Judge")
    assert set(again.kept) == kept
    assert len(server.asked) == 1
    told = "\n".join(again.html)
    assert "cached, so time, tokens and cost describe the original call" in told
    assert "came in an earlier run and was not stored." in told


def test_the_references_of_a_chunk_are_shown_and_lead_on(
    open_page: Any, adsapi_page_workspace: Path, calls: Any
) -> None:
    page = open_page(LINK, workspace=adsapi_page_workspace)
    # Without an LLM, the panel says how to get one.
    assert "need-judge" not in page.buttons
    page.choose("panel-box", "Judge")
    assert any("make local-llm" in text for text in page.html)
    page.open_chunk("auth-api:ExchangeToken").choose("chunk-part", "References")
    depths = next(e.value for e in page.at.html if 'class="rf-depths"' in e.value)
    assert "EXPAND_1" in depths
    labels = [b.label for b in page.at.button if b.key and b.key.startswith("ref-open-")]
    assert any("TokenRequest schema" in label for label in labels)
    calls.clear()
    page.slide("judge.max_expansion", 2)
    assert not calls
    assert len([b for b in page.at.button if b.key and b.key.startswith("ref-open-")]) <= 2
    page.at.toggle(key="with-refs").set_value(True)
    page.run()
    row = next(row for row in page.rows if row["id"] == "auth-api:ExchangeToken")
    assert "auth-api:TokenRequest" in row["refs"].split()
    page.press("ref-open-0")
    assert page.session.chunk in labels[0].replace("\\", "")
    page.switch("judge", False).choose("panel-box", "Judge")
    assert any("The judge is off." in text for text in page.html)


def test_references_to_secrets_are_counted_and_not_named(open_page: Any, tmp_path: Path) -> None:
    chunks = (
        Chunk("map", "Where the vault lies.", "The Map", refs=("door", "hoard", "astray")),
        Chunk("door", "The door is oak.", "The Door"),
        Chunk("hoard", "Nine rubies.", "The Hoard Itself", clearance=2),
    )
    page = vault(open_page, tmp_path, {"q": "Where is the vault?"}, *chunks)
    page.open_chunk("map").choose("chunk-part", "References")
    told = "\n".join(page.html)
    assert "Not followed: 1 hidden from the user, 1 unknown to this collection." in told
    page.at.toggle(key="with-refs").set_value(True)
    page.run()
    assert [row["refs"] for row in page.rows if row["id"] == "map"] == ["door"]
    for secret in ("hoard", "Hoard", "astray", "rubies"):
        assert secret not in page.sent + page.downloads["ragfilter.csv"]()
    page.choose("view-as", "Operator")
    assert "The Hoard Itself (hidden), astray (unknown)" in "\n".join(page.html)
    page.switch("clearance", False)
    labels = [b.label for b in page.at.button if b.key and b.key.startswith("ref-open-")]
    assert any("The Hoard Itself" in label for label in labels)
