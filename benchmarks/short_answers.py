"""Two labelled sets of questions with one or two relevant chunks each, in BEIR form.

They are cut from Python's language reference and from the documentation of Node.js in PAGES (the Markdown of Debian's
package nodejs-doc, unpacked). A chunk is relevant if it holds the quote that answers the question (`evidence/`).

Run: PYTHONPATH=. python benchmarks/short_answers.py OUT PAGES. Then, with SET python or nodejs:

    ragfilter index OUT/SET/corpus.jsonl --collection SET
    ragfilter labels import -c SET --queries OUT/SET/queries.jsonl --qrels OUT/SET/qrels.tsv --set-name SET
    ragfilter eval -c SET --queries SET --profile full --profile short-answers
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pandas as pd

from benchmarks.prune import cut, plain, rows, sections
from ragfilter.model import Chunk


def build(out: Path, pages: Path | None) -> dict[str, Path]:
    """The folder of each set by name; the second only if its pages are given."""
    files = {"python": write(out, "python", cut(topics.items()))}
    if pages is not None:
        files["nodejs"] = write(out, "nodejs", cut(sections(pages)))
    return files


def write(out: Path, name: str, chunks: Sequence[Chunk]) -> Path:
    """Write corpus, queries and qrels into a folder of this name."""
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    questions = list(enumerate(rows(name)))
    relevant = [
        {"query-id": number, "corpus-id": chunk.id, "score": 1}
        for number, (_, quote) in questions
        for chunk in chunks
        if plain(quote) in plain(chunk.text)
    ]
    lines(folder / "corpus.jsonl", ({"_id": c.id, "title": c.title, "text": c.text} for c in chunks))
    lines(folder / "queries.jsonl", ({"_id": str(n), "text": query} for n, (query, _) in questions))
    pd.DataFrame(relevant).to_csv(folder / "qrels.tsv", sep="\t", index=False)
    return folder


def lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    pd.DataFrame(records).to_json(path, orient="records", lines=True)


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]))
