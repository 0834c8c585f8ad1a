"""A public benchmark of chunking: five corpora, and 472 questions with the spans that answer them.

`python benchmarks/corpora.py FOLDER` fetches the files, unless FOLDER has them. `benchmark.py`, `short_answers.py` and
`prune.py` measure with them. Labels are mapped to other sizes of chunks with:

    ragfilter index FOLDER/corpora -c corpora --size 800
    ragfilter labels import -c corpora --spans FOLDER/spans.jsonl
    ragfilter index FOLDER/corpora -c corpora --size 400 --reset
"""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pandas as pd

from ragfilter.ingest.passages import passages
from ragfilter.model import Chunk
from ragfilter.stores.label_book import Quotation

CORPORA = (
    "https://raw.githubusercontent.com/brandonstarxel/chunking_evaluation/d451fc4cf56e417b755994b4ca5212fd5057c0d2"
    "/chunking_evaluation/evaluation_framework/general_evaluation_data/"
)
"""472 questions with the spans that answer them (MIT; the texts have licences of their own)."""
CHECKSUMS = {
    "corpora/chatlogs.md": "543a98f82b2a6a492349fd7f8c9d6c3e78d1a4af81d13c79a7fd513c3f65bda6",
    "corpora/finance.md": "1c48d0156820abc88e46e5c992fa0cd2708b07ae59a3771b2b18234b7208561f",
    "corpora/pubmed.md": "0fd9242ffb253695e5d0f0215cb79a66a2a8f1236591e764c60d370747684ced",
    "corpora/state_of_the_union.md": "6fc21d560d31eb2421e337596feea0f83f1fa9ca02c6c4e47bc26959d7531b37",
    "corpora/wikitexts.md": "74cafcdb771185ecb9f22cc41b73e2e44477e0636ecf9cf1f96fd6ee0f4b86c0",
    "questions_df.csv": "3ab3901889b8900f43775537bf12d36bd6614255fc59124faca31bede1dda7a3",
}


def fetch(folder: Path) -> Path:
    """The folder with the five corpora and their questions, fetched if they are not there yet."""
    for name, checksum in CHECKSUMS.items():
        path = folder / name
        if not path.exists():
            answer = httpx.get(f"{CORPORA}{name}", timeout=60).raise_for_status()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(answer.content)
        if sha256(path.read_bytes()).hexdigest() != checksum:
            sys.exit(f"{path} is not the file that was measured.")
    return folder


def rows(folder: Path) -> list[dict[str, Any]]:
    """A row for each span, in the form that `ragfilter labels import --spans` reads."""
    return [
        {
            "question": question,
            "source": f"{corpus}.md",
            "quote": span["content"],
            "start": span["start_index"],
            "end": span["end_index"],
        }
        for question, references, corpus in pd.read_csv(folder / "questions_df.csv").itertuples(index=False)
        for span in json.loads(references)
    ]


def spans(folder: Path) -> tuple[list[Chunk], list[tuple[str, Quotation]]]:
    """The corpora cut as `ragfilter index` cuts text, and each question with its quotes."""
    chunks = [
        Chunk(f"{path.name}#{number}", passage, path.stem, source=path.name)
        for path in sorted((folder / "corpora").glob("*.md"))
        for number, passage in enumerate(passages(path.read_text("utf-8")), start=1)
    ]
    quotes = [
        (row["question"], Quotation(row["quote"], row["source"], -1, row["start"], row["end"])) for row in rows(folder)
    ]
    return chunks, quotes


def main(folder: Path) -> None:
    lines = map(json.dumps, rows(fetch(folder)))
    (folder / "spans.jsonl").write_text("\n".join(lines), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
