"""Clearance on the page: hidden chunks reach neither screen nor export."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from ragfilter.ingest import bundled
from ragfilter.ui.kit.controls import setting_key as key
from ragfilter.ui.session.state import PANELS, SEEN_BY_OPERATOR, SWITCHED_OFF

pytestmark = pytest.mark.model

QUESTION = "Which treasure maps are false?"
SECRETS = {record["id"]: record["title"] for record in bundled.demo_rows() if record.get("clearance")}
AS_USER = {"profile": "adaptive-gap", "q": QUESTION}
NEAREST = "secret-treasure-maps"


def leaked(text: str) -> set[str]:
    """The secrets whose id or distinctive part of the title is in `text`."""
    return {i for i, title in SECRETS.items() if i in text or max(title.split("'"), key=len).strip() in text}


def test_as_a_user_no_secret_reaches_the_page_or_an_export(open_page: Any) -> None:
    page = open_page(AS_USER)
    assert "clearance" in page.funnel
    assert "hidden" not in page.titles
    assert (page.ids[0], page.rows[0]["rank"], page.rows[0]["gap"]) == ("treasure-types", "1", "")
    for panel in PANELS:
        page.session.window = "All"
        page.choose("panel-box", panel)
        assert leaked(page.sent) == set(), panel
    report = "which-treasure-maps-are-false.html"
    assert set(page.downloads) == {"ragfilter.csv", report, "ragfilter.toml"}
    for name, made in page.downloads.items():
        assert leaked(made()) == set(), name
    # A secret that is asked for by id stays hidden.
    page.switch("clearance", False).open_chunk(NEAREST)
    assert page.kept[0] == NEAREST
    assert len(leaked(page.sent)) > 3
    assert "Which Treasure Maps Are False" in page.sent
    page.switch("clearance", True)
    assert any("No chunk is open." in text for text in page.html)
    assert leaked(page.sent) == set()


def test_an_operator_sees_all_with_the_reason_but_exports_as_the_user(
    open_page: Any, snapshot: SnapshotAssertion
) -> None:
    page = open_page(AS_USER).choose("view-as", "Operator")
    assert page.ids[0] == "treasure-types"
    assert page.titles[0].startswith("Which Treasure")
    first = page.at.dataframe[0].value.iloc[0]
    assert (first["outcome"][0], first["layer"]) == ("⊠ dropped", "clearance")
    assert first["reason"] == snapshot
    page.open_chunk(NEAREST)
    assert "Which Treasure Maps Are False" in page.sent
    page.choose("panel-box", "Debug")
    page.choose("panel-box", "Prompt")
    prompts = "\n".join(code.value for code in page.at.code)
    assert leaked(prompts) == set()
    for name, made in page.downloads.items():
        assert leaked(made()) == set(), name
    # A reference to a secret is named to an operator only.
    page.choose("view-as", "User").ask("How strong is a hill giant?")
    page.open_chunk("monster-hill-giant")
    assert any("Hill Giant monster-hill-giant" in text for text in page.html)
    assert leaked(page.sent) == set()
    page.choose("chunk-part", "References")
    assert leaked(page.sent) == set()
    page.choose("view-as", "Operator")
    assert "secret-giant-steading" in leaked(page.sent)


ASKED = "When may the referee override the dice?"


def banners(page: Any) -> set[str]:
    """Which of the two banners the page has."""
    said = {warning.replace("\\", "") for warning in page.warnings}
    return {SWITCHED_OFF, SEEN_BY_OPERATOR} & said


def load_file(page: Any, toml: str) -> None:
    page.at.file_uploader(key="settings-file").set_value(("own.toml", toml.encode(), "application/toml"))
    page.run()


def test_no_profile_file_or_link_shows_a_guest_a_secret(open_page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGFILTER_CLEARANCE__ENABLED", "false")

    def shows_none(page: Any, profile: str) -> None:
        assert page.session.profile == profile
        assert page.at.toggle(key=key("clearance.enabled")).value
        assert page.changes == {}
        assert leaked(page.sent) == set()
        for name, made in page.downloads.items():
            assert leaked(made()) == set(), name
        assert not banners(page)

    page = open_page({"q": ASKED})
    for profile in ("llm-filter", "full"):
        shows_none(open_page({"profile": profile, "clearance.enabled": "false", "q": ASKED}), profile)
        load_file(page, f'profile = "{profile}"\nclearance.enabled = false\n')
        shows_none(page, profile)
        page.at.selectbox(key="profile-box").set_value("unfiltered")
        page.run().at.selectbox(key="profile-box").set_value(profile)
        for panel in ("Answer", "Prompt", "Debug"):
            shows_none(page.choose("panel-box", panel), profile)
    # It can only be set by hand: links do not pass it on, and files do not restore it.
    page.switch("clearance", False)
    assert leaked(page.sent)
    assert banners(page) == {SWITCHED_OFF}
    assert "clearance.enabled" not in page.link
    load_file(page, 'profile = "full"\nclearance.enabled = true\n')
    assert page.changes == {"clearance.enabled": False}
    page.press("reset")
    assert page.at.toggle(key=key("clearance.enabled")).value
    assert leaked(page.sent) == set()


def test_every_page_says_that_it_shows_everything(open_page: Any) -> None:
    page = open_page({"profile": "adaptive-gap"})
    for act, said in (
        (page.run, set()),
        (lambda: page.choose("view-as", "Operator"), {SEEN_BY_OPERATOR}),
        (lambda: page.switch("clearance", False), {SWITCHED_OFF}),
    ):
        page.at.switch_page("pages/inspect.py")
        act()
        assert banners(page) == said
        for name in ("rules", "evaluate"):
            page.at.switch_page(f"pages/{name}.py")
            page.run()
            assert banners(page) == said


def test_present_and_compare_keep_to_the_user(open_page: Any) -> None:
    for question in (ASKED, QUESTION):
        page = open_page({"profile": "adaptive-gap", "q": question, "present": "true"})
        assert leaked(page.sent) == set()
    page.session.operator = True
    assert leaked(page.press("scene-flip").sent) == set()
    page = open_page({"q": ASKED, "a": "adaptive-gap", "b": "unfiltered"}, on="compare")
    assert leaked(page.sent) == set()
    assert "clearance" not in " ".join(page.html).casefold().partition("differ")[2]
