"""What the prune layer saves, and how much of the evidence it keeps.

A set is questions with quotes that answer them, in `evidence/`: demo and adsapi (indexed in the
workspace: query id, chunk id, quote), Python's language reference as `pydoc_data` has it, and the
Markdown documentation of Node.js in FOLDER (Debian's package nodejs-doc), both with the question
and its quote, and the five corpora of `corpora.py` in CORPORA. All but the first two are cut here, and searched with
the bundled model. "k 10" prunes the first ten hits of a plain search, "kept" the chunks that `full` keeps, or the first
four.

Run: PYTHONPATH=. python benchmarks/prune.py [FOLDER [CORPORA]]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

import ragfilter as rf
from benchmarks.corpora import fetch, spans
from ragfilter.answer.context_packing import block_tokens, block_tokens_in_prompt, prompt_text
from ragfilter.engine.pipeline import search_and_filter
from ragfilter.evaluate import query_sets
from ragfilter.model import Chunk, Hit
from ragfilter.models.embedders import BundledEmbedder
from ragfilter.models.pruners import SentencePruner
from ragfilter.protocols import Vectors
from ragfilter.settings.config import load
from ragfilter.settings.deployment import read_deployment
from ragfilter.workbench import Workbench

EVIDENCE = Path(__file__).parent / "evidence"
SHARES = (0.4, 0.45, 0.5, 0.55, 0.6, 0.65)
FIRST, FEW = 10, 4
CHARS = 1100
PAGES = (
    *("buffer", "child_process", "crypto", "debugger", "events", "fs", "http", "os", "path"),
    *("process", "readline", "stream", "timers", "url", "worker_threads"),
)
PRUNED = load(profile="unfiltered", environ={}).settings.with_values(
    {"prune.enabled": True, "context.max_context_tokens": 100_000}
)


class Remembering:
    """The bundled model, which embeds each text once."""

    name = "remembering"

    def __init__(self) -> None:
        self._model = BundledEmbedder()
        self._known: dict[str, Vectors] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known.update(zip(new, self._model.embed(new), strict=True))
        return np.stack([self._known[text] for text in texts])


@dataclass(frozen=True, slots=True)
class Case:
    """A question, its quotes with the chunk that holds each, the first hits and what is kept."""

    query: str
    quotes: tuple[tuple[str, str], ...]
    first: tuple[Chunk, ...]
    kept: tuple[Chunk, ...]


def main(folder: Path | None, corpora: Path | None) -> None:
    model = Remembering()
    report("demo", list(indexed("demo")), model)
    report("adsapi", list(indexed("adsapi")), model)
    report("python", list(searched(rows("python"), cut(topics.items()), model)), model)
    if folder is not None:
        report("nodejs", list(searched(rows("nodejs"), cut(sections(folder)), model)), model)
    if corpora is not None:
        chunks, quotes = spans(fetch(corpora))
        report("corpora", list(searched([(query, each.quote) for query, each in quotes], chunks, model)), model)


def report(name: str, cases: Sequence[Case], model: Remembering) -> None:
    flts = {
        share: rf.Filter(PRUNED.with_values({"prune.share": share}), pruner=SentencePruner(model)) for share in SHARES
    }
    for which in ("first", "kept"):
        for share, flt in flts.items():
            before = after = quotes = there = 0
            for case in cases:
                chunks = getattr(case, which)
                hits: tuple[Hit, ...] = flt(case.query, chunks).kept
                before += sum(block_tokens(hit.chunk) for hit in hits)
                after += sum(map(block_tokens_in_prompt, hits))
                sends = {hit.id: plain(prompt_text(hit)) for hit in hits}
                held = [(i, plain(quote)) for i, quote in case.quotes if i in sends]
                quotes += len(held)
                there += sum(quote in sends[i] for i, quote in held)
            print(
                f"{name:7s} {which:5s} share {share:.2f}: {after / before:6.1%} of {before} tokens,"
                f" {there} of {quotes} quotes ({there / max(1, quotes):.1%})",
                flush=True,
            )


def indexed(name: str) -> Iterator[Case]:
    given = query_sets.load_files(name, None)
    full = load(profile="full", environ={}).settings
    quotes: dict[str, list[tuple[str, str]]] = {}
    for query_id, chunk_id, quote in rows(name):
        quotes.setdefault(query_id, []).append((chunk_id, quote))
    with Workbench.open(read_deployment()) as bench:
        for query_id, held in quotes.items():
            result = search_and_filter(given.queries[query_id], full, bench.backends(name))
            first = tuple(hit.chunk for hit in result.pool.hits[:FIRST])
            yield Case(result.query, tuple(held), first, tuple(h.chunk for h in result.kept))


def searched(quotes: Iterable[Sequence[str]], chunks: Sequence[Chunk], model: Remembering) -> Iterator[Case]:
    vectors = model.embed([chunk.passage for chunk in chunks])
    for query, quote in quotes:
        near = np.argsort(-(vectors @ model.embed([query])[0]))[:FIRST]
        first = tuple(chunks[i] for i in near)
        held = tuple((c.id, quote) for c in first if plain(quote) in plain(c.text))
        yield Case(query, held, first, first[:FEW])


def rows(name: str) -> Iterator[list[str]]:
    for line in (EVIDENCE / f"{name}.tsv").read_text(encoding="utf-8").splitlines():
        yield line.split("\t")


def sections(folder: Path) -> Iterator[tuple[str, str]]:
    """The sections of the pages, each under its own heading."""
    for page in PAGES:
        text = re.sub(r"<!--.*?-->", "", (folder / f"{page}.md").read_text("utf-8"), flags=re.S)
        for part in re.split(r"^(?=#{1,5} )", text, flags=re.M):
            heading, _, _ = part.partition("\n")
            yield f"{page} - {heading.strip('# ')}", part


def cut(texts: object) -> list[Chunk]:
    """Paragraphs, as many together as have at most so many characters."""
    matches: list[tuple[str, str]] = []
    for title, text in texts:  # type: ignore[attr-defined]
        held = ""
        for part in re.split(r"\n\s*\n", re.sub(r"\n {3}(?=\S)", "\n", text)):
            if held and len(held) + len(part) > CHARS:
                matches.append((title, held))
                held = ""
            held = f"{held}\n\n{part}" if held else part
        matches += [(title, held)] if held.strip() else []
    return [Chunk(str(n), text, title) for n, (title, text) in enumerate(matches)]


def plain(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    main(*[*map(Path, sys.argv[1:3]), None, None][:2])
