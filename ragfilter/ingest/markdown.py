"""Markdown: one chunk per section, titled with the headings above it.

Source: docs/design.md#formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from ragfilter.basics.extras import extra
from ragfilter.basics.files import read_text
from ragfilter.ingest.passages import passages
from ragfilter.ingest.plain_text import load_text
from ragfilter.ingest.reading import PLAIN, Reading
from ragfilter.ingest.records import Record, to_record

with extra("ingest"):
    from markdown_it import MarkdownIt

FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n---[ \t]*(?:\n|\Z)", re.DOTALL)
TITLE = re.compile(r"^title:[ \t]*([\"']?)(\w[^\"'#\n]*?)\1[ \t]*$", re.MULTILINE)
"""The title in front matter, if it is plain text on one line."""
ATTRIBUTES = re.compile(r"\s*\{:?\s*[#.][^{}]*\}\s*$")
"""What site generators put behind a heading: ``{ #install }``, ``{: .note }``."""
BETWEEN = " > "
# Every list counts twice. Within deeper ones the parser gives up and takes the rest of the file for
# their text, headings and all; the time it takes grows with this.
MAX_NESTING = 100


def load_markdown(path: Path, *, source: str, reading: Reading = PLAIN) -> Iterator[Record]:
    """The sections of a Markdown file; long ones in several passages. Raises InputError.

    A chunk's id is file and heading (``guide.md#install``), numbered where it is not the first.
    """
    if not reading.headings:
        yield from load_text(path, source=source, reading=reading)
        return
    seen: dict[str, int] = {}
    text = read_text(path, source)
    front = FRONT_MATTER.match(text)
    titled = TITLE.search(front.group()) if front else None
    name = titled.group(2) if titled else path.stem
    for headings, line, body in sections(text):
        title = BETWEEN.join(headings) or name
        for passage in passages(body, reading.size, reading.overlap):
            anchor = f"{source}#{_slug(headings[-1] if headings else path.stem)}"
            seen[anchor] = seen.get(anchor, 0) + 1
            number = f"-{seen[anchor]}" if seen[anchor] > 1 else ""
            raw = {"id": anchor + number, "title": title, "text": passage, "type": "section"}
            yield to_record(raw, place=f"{source}, line {line}", source=source)


def sections(text: str) -> Iterator[tuple[tuple[str, ...], int, str]]:
    """(headings from the top, line from 1, body) of every section, also of empty ones."""
    front = FRONT_MATTER.match(text)
    skipped = text[: front.end()].count("\n") if front else 0
    lines = text.split("\n")
    # A real parser: a # inside a code block is no heading. Markup within a line is not parsed.
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING})
    parser.core.ruler.enableOnly(["normalize", "block"])
    tokens = parser.parse("\n".join(lines[skipped:]))
    path: list[tuple[int, str]] = []
    start, line = skipped, skipped + 1
    for opening, inline in pairwise(tokens):
        # Headings within quotes and lists belong to the text.
        if opening.type != "heading_open" or opening.level > 0 or opening.map is None:
            continue
        first, after = opening.map
        yield tuple(name for _, name in path), line, "\n".join(lines[start : skipped + first])
        depth = int(opening.tag[1:])
        path = [(d, name) for d, name in path if d < depth] + [(depth, _heading(inline.content))]
        start, line = skipped + after, skipped + first + 1
    yield tuple(name for _, name in path), line, "\n".join(lines[start:])


def _heading(content: str) -> str:
    return ATTRIBUTES.sub("", content.strip()) or content.strip()


def _slug(heading: str) -> str:
    return re.sub(r"[^\w]+", "-", heading.lower()).strip("-")[:80] or "section"
