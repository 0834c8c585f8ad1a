"""Markdown: one chunk per section, titled with the headings above it. Source: docs/design.md#formats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from itertools import count, pairwise, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from ragfilter.basics.files import parse_toml, parse_yaml, read_text
from ragfilter.errors import InputError, extra
from ragfilter.ingest.passages import Lines, passages, text_records
from ragfilter.ingest.records import PLAIN, ReadOptions, Record, to_record

with extra("ingest"):
    from markdown_it import MarkdownIt

# As in Pandoc, a line of hyphens before an empty line is a rule, not the start of front matter.
_FRONT = re.compile(
    r"\A(?:---[ \t]*\n(?![ \t]*\n)(?P<yaml>.*?)^(?:---|\.\.\.)|\+\+\+[ \t]*\n(?P<toml>.*?)^\+\+\+)"
    r"[ \t]*(?:\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
# A line of front matter: a key with its value, the rest of a value, or a comment.
_KEY = re.compile(
    r"^([\"']?)(?P<key>[\w$@](?:[\w .$@/-]*[\w$@/-])?)\1[ \t]*[:=](?:[ \t]+(?P<value>.*?))?"
    r"(?:(?<=[ \t])#.*)?$",
    re.MULTILINE,
)
_REST = re.compile(r"\s|#|-(?:\s|$)|[\]}]|$")
# A sentence with a colon is YAML too, but its key has spaces.
_WORD = re.compile(r"[\w.-]+")
ATTRIBUTES = re.compile(r"\s*\{:?\s*[#.][^{}]*\}\s*$")
"""Attributes that site generators put after a heading: ``{ #install }``, ``{: .note }``."""
BETWEEN = " > "
CODE = ("fence", "code_block", "html_block")
# Every list counts twice. If lists are nested more deeply, the parser gives up and takes the rest
# of the file, headings included, as their text. Parsing time grows with this limit.
MAX_NESTING = 100


class MarkdownSection(NamedTuple):
    """The headings from the top, the 1-based line, the text, and which of its lines are code."""

    headings: tuple[str, ...]
    line: int
    text: str
    code: Lines


def load_markdown(path: Path, *, source: str, reading: ReadOptions = PLAIN) -> Iterator[Record]:
    """Yield the sections of a Markdown file, long ones in several passages. Raises InputError. A chunk's id is file and
    heading (``guide.md#install``). If the id is taken, a number makes it unique among all headings. If a heading has
    neither text nor headings below it, the heading is the text."""
    text = read_text(path, source)
    if not reading.headings:
        (whole,) = sections(text, split=False)
        yield from text_records(whole.text, whole.code, path, source, reading)
        return
    skipped, title = front_matter(text)
    parts = list(sections(text[skipped:], after=text[:skipped].count("\n")))
    slugs = {_slug(part.headings[-1] if part.headings else path.stem) for part in parts}
    numbers: dict[str, Iterator[str]] = {}
    for part, following in zip_longest(parts, parts[1:]):
        only_rules = not part.text.strip("-*_ \t\n")
        cut = [] if only_rules else passages(part.text, reading.size, reading.overlap, part.code)
        has_below = following is not None and len(following.headings) > len(part.headings)
        if not cut and not has_below:
            cut = [*filter(None, part.headings[-1:])]
        slug = _slug(part.headings[-1] if part.headings else path.stem)
        for passage in cut:
            raw = {
                "id": f"{source}#{next(numbers.setdefault(slug, _numbered(slug, slugs)))}",
                "title": BETWEEN.join(part.headings) or title or path.stem,
                "text": passage,
                "type": "section",
            }
            yield to_record(raw, place=f"{source}, line {part.line}", source=source)


def front_matter(text: str) -> tuple[int, str]:
    """The length of a file's front matter in characters, and its title (empty if none).

    Front matter is a YAML mapping between lines of three hyphens, or TOML between lines of three plus signs. Anything
    else is text, as is a mapping without keys, or without a title and with spaces in its keys. As in site generators,
    YAML values may lack necessary quotes. A title that is not text (`true`, a list) is taken as it is written."""
    match = _FRONT.match(text)
    if match is None:
        return 0, ""
    is_yaml = match["yaml"] is not None
    block = match["yaml"] if is_yaml else match["toml"]
    written = {key["key"].lower(): (key["value"] or "").strip() for key in _KEY.finditer(block)}
    keys: Any = None
    try:
        keys = parse_yaml(block, place="") if is_yaml else parse_toml(block, "")
    except InputError:
        if is_yaml and all(_KEY.match(line) or _REST.match(line) for line in block.split("\n")):
            keys = {key: value.strip("\"'") for key, value in written.items()}
    if not isinstance(keys, dict) or not ("title" in written or all(map(_WORD.fullmatch, keys))):
        return 0, ""
    title = next((value for key, value in keys.items() if key.lower() == "title"), None)
    if title is not None and not isinstance(title, str):
        title = written.get("title", "")
    return match.end() if keys else 0, " ".join((title or "").split())


def sections(text: str, *, after: int = 0, split: bool = True) -> Iterator[MarkdownSection]:
    """Yield all sections of Markdown, even empty ones, or without `split` the whole text as one.
    `after` is the number of lines before the text."""
    text = text.replace("\r", "\n")
    lines = text.split("\n")
    # A real parser, since a # in a code block is not a heading. Inline markup is not parsed.
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING})
    parser.core.ruler.enableOnly(["normalize", "block"])
    tokens = parser.parse(text)
    code = [token.map for token in tokens if token.type in CODE and token.map is not None]
    path: list[tuple[int, str]] = []
    start, line = 0, 1

    def section(end: int) -> MarkdownSection:
        code_lines = [(a - start, b - start) for a, b in code if start <= a < end]
        headings = tuple(name for _, name in path)
        return MarkdownSection(headings, after + line, "\n".join(lines[start:end]), code_lines)

    for opening, inline in pairwise(tokens):
        # Headings within quotes and lists belong to the text.
        if not split or opening.type != "heading_open" or opening.level > 0 or not opening.map:
            continue
        first, last = opening.map
        yield section(first)
        depth = int(opening.tag[1:])
        path = [(d, name) for d, name in path if d < depth] + [(depth, _heading(inline.content))]
        start, line = last, first + 1
    yield section(len(lines))


def _heading(content: str) -> str:
    content = " ".join(content.split())
    return ATTRIBUTES.sub("", content) or content


def _slug(heading: str) -> str:
    return re.sub(r"[^\w]+", "-", heading.lower()).strip("-")[:80] or "section"


def _numbered(slug: str, others: Set[str]) -> Iterator[str]:
    """Yield the slug, then the slug with numbers, skipping those in `others`."""
    yield slug
    yield from (name for n in count(2) if (name := f"{slug}-{n}") not in others)
