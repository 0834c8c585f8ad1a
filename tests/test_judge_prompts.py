"""The judge's prompt variants: files in a folder, each with a version, chosen by a setting."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pydantic import ValidationError
from syrupy.assertion import SnapshotAssertion

from ragfilter import Filter, open_workspace
from ragfilter.errors import InputError, SettingsError
from ragfilter.judge import prompts as judge_prompts
from ragfilter.judge.parse import ACTIONS
from ragfilter.judge.prompt import build_prompt
from ragfilter.model import Chunk, Hit
from ragfilter.settings.config import Given, load, to_toml
from ragfilter.settings.schema import Judge, field_info

GOOD = """
version = "7"
about = "mine."
instructions = "KEEP, EXPAND_1, EXPAND_3, EXPAND_5 or DISCARD: as I say."
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of variants that is read instead of the packaged one."""
    monkeypatch.setattr(judge_prompts, "FOLDER", tmp_path)
    return tmp_path


def test_three_variants_are_shipped_and_the_default_is_first() -> None:
    assert next(iter(judge_prompts.variants())) == "default"
    assert {"default", "strict", "terse"} <= set(judge_prompts.variants())
    for name in judge_prompts.variants():
        one = judge_prompts.variant(name)
        assert all(action in one.instructions for action in ACTIONS)
        assert one.about
    texts = {judge_prompts.variant(name).instructions for name in judge_prompts.variants()}
    assert len(texts) == len(judge_prompts.variants())


def test_an_unknown_prompt_is_refused_and_the_known_are_named(snapshot: SnapshotAssertion) -> None:
    with pytest.raises(SettingsError) as refused:
        load(environ={"RAGFILTER_JUDGE__PROMPT": "srtict"})
    assert str(refused.value) == snapshot
    chosen = load(profile="llm-filter", environ={}, flags=[Given("--set", {"judge.prompt": "strict"})]).settings
    assert chosen.judge.prompt == "strict"
    assert 'prompt = "strict"' in to_toml(chosen, "llm-filter")


@pytest.mark.parametrize(
    "content",
    [
        GOOD.replace("version", "versoin").encode(),
        GOOD.replace("EXPAND_5", "EXPAND_7").encode(),
        GOOD.encode() + b"most_tokens = 5",
    ],
    ids=["a strange key", "an action that is missing", "too few"],
)
def test_a_bad_file_is_told_and_left_out(
    folder: Path, caplog: pytest.LogCaptureFixture, content: bytes, snapshot: SnapshotAssertion
) -> None:
    (folder / "bad.toml").write_bytes(content)
    (folder / "good.toml").write_text(GOOD, encoding="utf-8")
    with pytest.raises(InputError, match=r"bad\.toml") as refused:
        judge_prompts.read(folder / "bad.toml")
    said = refused.value.message
    assert said.replace(str(folder), "") == snapshot
    with caplog.at_level(logging.WARNING):
        assert tuple(judge_prompts.variants()) == ("good",)
    assert said in caplog.text
    with pytest.raises(InputError, match="Use one of good"):
        judge_prompts.variant("bad")


def own(folder: Path, name: str = "mine", says: str = "as I say") -> Path:
    """A custom folder with one prompt."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.toml").write_text(GOOD.replace("as I say", says), encoding="utf-8")
    return folder


def key(name: str) -> str:
    hits = [Hit(Chunk("a", "text"), 0.4, 1)]
    return build_prompt("why?", hits, Judge(prompt=name), "l2").key


def test_own_prompts_come_beside_the_packaged_ones(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="must be one of default, strict, terse"):
        Judge(prompt="mine")
    judge_prompts.use_folder(own(own(tmp_path), "strict", "strictly"))
    assert tuple(judge_prompts.variants()) == ("default", "strict", "terse", "mine")
    assert field_info("judge.prompt").choices == tuple(judge_prompts.variants())
    assert Judge(prompt="mine").prompt == "mine"
    assert "strictly" in judge_prompts.variant("strict").instructions
    assert judge_prompts.variant("default").version == "1"


def test_the_library_knows_them_by_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGFILTER_JUDGE_PROMPTS", str(own(tmp_path / "prompts")))
    (tmp_path / "settings.toml").write_text('[judge]\nprompt = "mine"', encoding="utf-8")
    assert Filter(tmp_path / "settings.toml").settings.judge.prompt == "mine"


def test_the_workspace_opened_last_brings_its_prompts(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    own(tmp_path / "a" / "prompts", says="as a")
    with open_workspace(tmp_path / "a"):
        assert "as a" in judge_prompts.variant("mine").instructions
    # A result may outlive its workspace.
    assert "as a" in judge_prompts.variant("mine").instructions
    with open_workspace(tmp_path / "b"):
        assert "mine" not in judge_prompts.variants()


def test_an_edited_prompt_is_another_prompt(tmp_path: Path) -> None:
    """Verdicts are stored under the prompt's key."""
    own(tmp_path / "prompts")
    with open_workspace(tmp_path):
        before = key("mine")
        own(tmp_path / "prompts", says="otherwise")
        assert key("mine") == before
    with open_workspace(tmp_path):
        assert key("mine") != before
