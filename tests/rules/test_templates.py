"""Content categories: which template a chunk gets, and that a new category is a new file."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from ragfilter.errors import InputError
from ragfilter.model import Chunk
from ragfilter.rules.rule import Rule
from ragfilter.rules.templates import packaged, recognise, with_folder


def category(title: str, type: str = "special") -> str:
    return recognise(Chunk("c", title=title, type=type), packaged()).category


def test_a_title_decides_the_category() -> None:
    for title, expected in [
        ("I.A. ATTACK MATRIX FOR CLERICS, DRUIDS AND MONKS - Opponent Armor 6", "attack-matrix"),
        ("Attack Matrices", "attack-matrix"),
        ("IV.C. PSIONIC BLAST ATTACK UPON NON-PSIONIC CREATURE", "psionic"),
        ("Psionic wail, Wisdom 10-13", "psionic"),
        ("Psionic Combat", "general"),
        ("Temperate Conditions - Faerie And Sylvan Settings", "encounter"),
        ("Encounter Distance", "general"),
        ("STRENGTH TABLE II.: ABILITY ADJUSTMENTS", "general"),
        ("", "general"),
    ]:
        assert category(title) == expected


TRAPS = """
version = 3
[recognise]
title = ['\\btraps?\\b']
type = ['^table$']
[prompt]
holds = "The kind of trap."
[example]
title = "Traps of Wire"
rule = '{"contain_one_of": [["wire", "wires"]]}'
"""


def test_a_new_category_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "traps.toml").write_text(TRAPS, encoding="utf-8")
    templates = with_folder(tmp_path)
    assert [t.category for t in templates] == ["traps", "attack-matrix", "encounter", "psionic", "general"]
    made = recognise(Chunk("c", title="TRAP matrix", type="Table"), templates)
    assert (made.category, made.version) == ("traps", "traps-3")
    assert made.example.rule == Rule(contain_one_of=(("wire", "wires"),))
    # Both patterns must fit.
    assert recognise(Chunk("c", title="Trap", type="rule"), templates).category == "general"


def test_a_file_of_the_same_name_replaces_the_packaged_one(tmp_path: Path) -> None:
    own = TRAPS.replace("title = ['\\btraps?\\b']", "").replace("type = ['^table$']", "")
    (tmp_path / "general.toml").write_text(own, encoding="utf-8")
    templates = with_folder(tmp_path)
    assert [t.version for t in templates][-1] == "general-3"
    assert len(templates) == len(packaged())
    # It fits everything, and still comes last.
    assert recognise(Chunk("c", title="Attack matrix"), templates).category == "attack-matrix"


TITLE = "title = ['\\btraps?\\b']"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("version = 3", "version = " + "[" * 10_000 + "]" * 10_000),
        ("version = 3", ""),
        ("version = 3", "version = 3\nname = 'x'"),
        (TITLE, "title = ['(']"),
        (TITLE, "title = 'traps'"),
        ('holds = "The kind of trap."', ""),
        ('"contain_one_of"', '"contains"'),
    ],
    ids=lambda text: text[:30],
)
def test_a_bad_file_is_named_with_its_fault(tmp_path: Path, old: str, new: str, snapshot: SnapshotAssertion) -> None:
    assert old in TRAPS
    (tmp_path / "traps.toml").write_text(TRAPS.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        with_folder(tmp_path)
    assert str(tmp_path / "traps.toml") in caught.value.message
    assert str(caught.value).replace(str(tmp_path), "") == snapshot
