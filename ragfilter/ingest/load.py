"""SOURCE into records: a demo collection by name, a file, or a folder.

Source: docs/design.md#formats.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from ragfilter.errors import InputError
from ragfilter.ingest import adsapi, demo
from ragfilter.ingest.csv_file import load_csv
from ragfilter.ingest.jsonl import load_jsonl
from ragfilter.ingest.markdown import load_markdown
from ragfilter.ingest.openapi.read import SUFFIXES, load_openapi, load_together
from ragfilter.ingest.plain_text import load_text
from ragfilter.ingest.records import Record, to_record
from ragfilter.protocols import Progress

log = logging.getLogger(__name__)

LOADERS: dict[str, Callable[..., Iterator[Record]]] = {
    ".jsonl": load_jsonl,
    ".ndjson": load_jsonl,
    ".csv": load_csv,
    ".md": load_markdown,
    ".markdown": load_markdown,
    ".txt": load_text,
    **dict.fromkeys(SUFFIXES, load_openapi),
}
DEMOS: dict[str, Callable[[], Iterator[dict[str, object]]]] = {
    "demo": demo.records,
    "adsapi": adsapi.records,
}
REMEDY = (
    f"Give {', '.join(DEMOS)}, or a file or folder of {' '.join(sorted(LOADERS))}; "
    f"those of {' '.join(SUFFIXES)} must be OpenAPI descriptions."
)


def load(source: str | os.PathLike[str], *, progress: Progress | None = None) -> Iterator[Record]:
    """The records of `source`, files of a folder in the order of their names.

    The API descriptions of a folder come last, since they may refer to each other. A demo's name
    comes before a file of that name (write ``./demo`` for the file). `progress` counts characters
    of API descriptions: JSON, and large YAML. Raises InputError naming file and line, while it is
    read.
    """
    name = os.fspath(source)
    if name in DEMOS:
        for number, raw in enumerate(DEMOS[name](), start=1):
            yield to_record(raw, place=f"{name}, record {number}")
        return
    path = Path(name).expanduser()
    try:
        is_folder, is_there = path.is_dir(), path.exists()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.", remedy=REMEDY) from None
    if is_folder:
        yield from _folder(path, progress)
    elif is_there:
        loader = LOADERS.get(path.suffix.lower())
        if loader is None:
            raise InputError(f"{path}: this kind of file cannot be indexed.", remedy=REMEDY)
        if loader is load_openapi:
            yield from load_openapi(path, source=path.name, progress=progress)
        else:
            yield from loader(path, source=path.name)
    else:
        raise InputError(f"{path} does not exist.", remedy=REMEDY)


def _folder(folder: Path, progress: Progress | None) -> Iterator[Record]:
    files = {file.relative_to(folder).as_posix(): file for file in _files(folder)}
    loaders = {name: LOADERS.get(file.suffix.lower()) for name, file in files.items()}
    maybe = {name: files[name] for name, loader in loaders.items() if loader is load_openapi}
    others = [name for name, loader in loaders.items() if loader is None]
    if len(others) == len(files):
        raise InputError(f"{folder} contains no file that can be indexed.", remedy=REMEDY)
    descriptions, not_openapi = load_together(maybe, progress=progress)
    others += not_openapi
    if others:
        log.warning("%d files of other kinds in %s are skipped", len(others), folder)
    for name, loader in loaders.items():
        if loader is not None and name not in maybe:
            yield from loader(files[name], source=name)
    yield from descriptions


def _files(folder: Path) -> Iterator[Path]:
    # `os.walk` does not follow links to folders, so a cycle of links ends nowhere.
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(root, name)
            if not name.startswith(".") and file.is_file():
                yield file
