"""The page explains its words as the glossary does."""

from __future__ import annotations

from pathlib import Path

from ragfilter.ui.kit.help import TERMS

GLOSSARY = Path(__file__).resolve().parents[2] / "docs" / "glossary.md"


def test_the_words_mean_what_the_glossary_says() -> None:
    cells = (line.split(" | ") for line in GLOSSARY.read_text("utf-8").splitlines() if "|" in line)
    meanings = {word.strip("| "): meaning.strip("| ") for word, meaning in cells}
    assert TERMS.items() <= meanings.items()
    assert list(TERMS) == sorted(TERMS)
