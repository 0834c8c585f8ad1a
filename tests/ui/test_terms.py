"""The page explains its words as the glossary does."""

from __future__ import annotations

from pathlib import Path

from ragfilter.ui.kit.guide import TERMS
from scripts import glossary

ROOT = Path(__file__).resolve().parents[2]


def test_the_glossary_is_made_from_the_words_of_the_page() -> None:
    assert (ROOT / "docs" / "glossary.md").read_text("utf-8") == glossary.page()
    assert list(TERMS) == sorted(TERMS)
