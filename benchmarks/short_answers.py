"""Three labelled sets of questions with one or two relevant chunks each, in BEIR form.

Two are cut from Python's language reference and from the documentation of Node.js in PAGES (the Markdown of Debian's
package nodejs-doc, unpacked). A chunk is relevant if it holds the quote that answers the question (`evidence/`). The
third is a public benchmark of chunking with five corpora, and is fetched unless OUT/raw has its files.

Run: PYTHONPATH=. python benchmarks/short_answers.py OUT PAGES. Then, with SET python, nodejs or corpora:

    ragfilter index OUT/SET/corpus.jsonl --collection SET
    ragfilter labels import -c SET --queries OUT/SET/queries.jsonl --qrels OUT/SET/qrels.tsv --set-name SET
    ragfilter eval -c SET --queries SET --profile full --profile short-answers
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import httpx
import pandas as pd

from benchmarks.corpora import fetch, spans
from benchmarks.prune import cut, plain, rows, sections
from ragfilter.model import Chunk
from ragfilter.stores.label_book import Quotation
from ragfilter.stores.relabel import QuoteFinder


def build(out: Path, pages: Path | None) -> dict[str, Path]:
    """The folder of each set by name; Node.js needs its pages, and the corpora a network."""
    quotes = {name: [(query, Quotation(quote)) for query, quote in rows(name)] for name in ("python", "nodejs")}
    sets = {"python": write(out / "python", cut(topics.items()), quotes["python"])}
    if pages is not None:
        sets["nodejs"] = write(out / "nodejs", cut(sections(pages)), quotes["nodejs"])
    try:
        raw = fetch(out / "raw")
    except httpx.HTTPError as error:
        print(f"corpora is left out: it cannot be fetched ({error}).", file=sys.stderr)
    else:
        sets["corpora"] = write(out / "corpora", *spans(raw))
    return sets


def write(folder: Path, chunks: Sequence[Chunk], quotes: Sequence[tuple[str, Quotation]]) -> Path:
    """Write corpus, queries and qrels into the folder. A chunk is relevant if it holds a quote of the question."""
    folder.mkdir(parents=True, exist_ok=True)
    finder = QuoteFinder(chunks)
    queries = {query: str(number) for number, query in enumerate(dict.fromkeys(query for query, _ in quotes))}
    relevant = [
        {"query-id": queries[query], "corpus-id": chunk_id, "score": 1}
        for query, quote in quotes
        for chunk_id in holders(chunks, quote, finder)
    ]
    lines(folder / "corpus.jsonl", ({"_id": c.id, "title": c.title, "text": c.text} for c in chunks))
    lines(folder / "queries.jsonl", ({"_id": number, "text": query} for query, number in queries.items()))
    pd.DataFrame(relevant).drop_duplicates().to_csv(folder / "qrels.tsv", sep="\t", index=False)
    return folder


def holders(chunks: Sequence[Chunk], quote: Quotation, finder: QuoteFinder) -> Sequence[str]:
    """The chunks at the quote's place or, without a place, all that hold it."""
    if quote.start >= 0:
        return finder.find(quote).chunk_ids
    return [chunk.id for chunk in chunks if plain(quote.quote) in plain(chunk.text)]


def lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    pd.DataFrame(records).to_json(path, orient="records", lines=True)


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]))
