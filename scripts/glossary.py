"""Prints docs/glossary.md, from the words that the page explains: `python -m scripts.glossary`."""

from __future__ import annotations

import sys

from ragfilter.ui.kit.guide import TERMS

HEAD = """# Glossary

Made from `ragfilter/ui/kit/terms.toml` by `python -m scripts.glossary > docs/glossary.md`.

| word | meaning |
| --- | --- |
"""


def page() -> str:
    """The whole document."""
    return HEAD + "".join(f"| {word} | {meaning} |\n" for word, meaning in TERMS.items())


if __name__ == "__main__":
    sys.stdout.write(page())
