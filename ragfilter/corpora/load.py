"""SOURCE into records: a demo collection by name, a file, or a folder.

Source: design, section 7.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from ragfilter.corpora import demo
from ragfilter.corpora.csv_file import load_csv
from ragfilter.corpora.jsonl import load_jsonl
from ragfilter.corpora.markdown import load_markdown
from ragfilter.corpora.plain_text import load_text
from ragfilter.corpora.records import Record, to_record
from ragfilter.errors import InputError

log = logging.getLogger(__name__)

LOADERS: dict[str, Callable[..., Iterator[Record]]] = {
    ".jsonl": load_jsonl,
    ".ndjson": load_jsonl,
    ".csv": load_csv,
    ".md": load_markdown,
    ".markdown": load_markdown,
    ".txt": load_text,
}
DEMOS: dict[str, Callable[[], Iterator[dict[str, object]]]] = {"demo": demo.records}
REMEDY = f"Give {', '.join(DEMOS)}, or a file or folder of {' '.join(sorted(LOADERS))}."


def load(source: str | os.PathLike[str]) -> Iterator[Record]:
    """The records of `source`, files of a folder in the order of their names.

    A demo's name comes before a file of that name (write ``./demo`` for the file). Raises
    InputError naming file and line, while it is read.
    """
    name = os.fspath(source)
    if name in DEMOS:
        for number, raw in enumerate(DEMOS[name](), start=1):
            yield to_record(raw, place=f"{name}, record {number}")
        return
    path = Path(name).expanduser()
    if path.is_dir():
        yield from _folder(path)
    elif path.exists():
        loader = LOADERS.get(path.suffix.lower())
        if loader is None:
            raise InputError(f"{path}: this kind of file cannot be indexed.", remedy=REMEDY)
        yield from loader(path, source=path.name)
    else:
        raise InputError(f"{path} does not exist.", remedy=REMEDY)


def _folder(folder: Path) -> Iterator[Record]:
    files = list(_files(folder))
    known = [file for file in files if file.suffix.lower() in LOADERS]
    if not known:
        raise InputError(f"{folder} holds no file that can be indexed.", remedy=REMEDY)
    if len(known) < len(files):
        log.warning("%d files of another kind in %s are left out", len(files) - len(known), folder)
    for file in known:
        loader = LOADERS[file.suffix.lower()]
        yield from loader(file, source=file.relative_to(folder).as_posix())


def _files(folder: Path) -> Iterator[Path]:
    # `os.walk` does not follow links to folders, so a cycle of links ends nowhere.
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(root, name)
            if not name.startswith(".") and file.is_file():
                yield file
