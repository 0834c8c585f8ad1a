"""Turns SOURCE into records: a demo collection by name, a file, a folder or a zip; and puts uploads
and zips into a folder of ours.

Source: docs/design.md#formats. A name never leads out of that folder, an archive never exceeds a
limit, and each file that is left out is named with its reason.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import NoReturn

from ragfilter.errors import InputError
from ragfilter.ingest import adsapi, demo
from ragfilter.ingest.csv_file import load_csv
from ragfilter.ingest.markdown import load_markdown
from ragfilter.ingest.openapi.read import SUFFIXES as OPENAPI
from ragfilter.ingest.openapi.read import load_openapi, load_together, not_openapi
from ragfilter.ingest.passages import load_text
from ragfilter.ingest.pdf import load_pdf
from ragfilter.ingest.records import PLAIN, ReadOptions, Record, load_jsonl, nothing_in, to_record

log = logging.getLogger(__name__)

ARCHIVE = ".zip"
LARGEST = 1_000_000_000
"""Bytes that an archive may unpack to, unless a limit is given."""
MAX_FILES = 20_000
SHOWN_NAMES = 5
_PART = 1 << 20
_BAD = re.compile(r"[\x00-\x1f\x7f\\]")
LOADERS: dict[str, Callable[..., Iterator[Record]]] = {
    ".jsonl": load_jsonl,
    ".ndjson": load_jsonl,
    ".csv": load_csv,
    ".md": load_markdown,
    ".markdown": load_markdown,
    ".txt": load_text,
    ".pdf": load_pdf,
    **dict.fromkeys(OPENAPI, load_openapi),
}
DEMOS: dict[str, Callable[[], Iterator[Record]]] = {
    "demo": lambda: (
        to_record(raw, place=f"demo, record {number}")
        for number, raw in enumerate(demo.records(), start=1)
    ),
    "adsapi": adsapi.records,
}
REMEDY = (
    f"Give {', '.join(DEMOS)}, or a file, folder or zip of {' '.join(sorted(LOADERS))}; "
    f"those of {' '.join(OPENAPI)} must be OpenAPI descriptions."
)


def load(source: str | os.PathLike[str], *, reading: ReadOptions = PLAIN) -> Iterator[Record]:
    """The records of `source`, files of a folder or zip in the order of their names.

    The API descriptions of a folder come last, since they may refer to each other. A demo's name
    comes before a file of that name (write ``./demo`` for the file). Raises InputError naming file
    and line, while it is read; with `reading.skip` what cannot be used is left out.
    """
    records = _load(source, reading)
    yield from records if reading.skip is None else _each_id_once(records, reading)


def _each_id_once(records: Iterator[Record], reading: ReadOptions) -> Iterator[Record]:
    places: dict[str, str] = {}
    for record in records:
        first = places.setdefault(record.chunk.id, record.place)
        if first is record.place:
            yield record
        else:
            reading.refuse(
                InputError(
                    f"{record.place}: the id {record.chunk.id!r} was already used in {first}.",
                    remedy="Give every record an id of its own.",
                )
            )


def _load(source: str | os.PathLike[str], reading: ReadOptions) -> Iterator[Record]:
    name = os.fspath(source)
    if name in DEMOS:
        yield from DEMOS[name]()
        return
    path = Path(name).expanduser()
    try:
        is_folder, is_there = path.is_dir(), path.exists()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.", remedy=REMEDY) from None
    if is_folder:
        yield from _folder(path, reading, source=str(path))
    elif is_there and not path.is_file():
        # A named pipe would be waited for without end.
        raise InputError(f"{path} is neither a file nor a folder.", remedy=REMEDY)
    elif is_there and path.suffix.lower() == ARCHIVE:
        with tempfile.TemporaryDirectory() as folder:
            for refused in unpack(path, Path(folder), source=path.name):
                reading.refuse(refused)
            yield from _folder(Path(folder), reading, source=path.name)
    elif is_there:
        loader = LOADERS.get(path.suffix.lower())
        if loader is None:
            raise InputError(f"{path}: this kind of file cannot be indexed.", remedy=REMEDY)
        if loader is load_openapi:
            yield from load_openapi(path, source=path.name, reading=reading)
        else:
            yield from _usable(loader, path, path.name, reading)
    else:
        raise InputError(f"{path} does not exist.", remedy=REMEDY)


def _usable(
    loader: Callable[..., Iterator[Record]], path: Path, source: str, reading: ReadOptions
) -> Iterator[Record]:
    """The records up to the point where their file can no longer be read."""
    silent = reading.skip is not None  # A strict reading passes over an empty file.

    def refuse(error: InputError) -> None:
        nonlocal silent
        silent = False
        reading.refuse(error)

    try:
        for record in loader(path, source=source, reading=replace(reading, skip=refuse)):
            silent = False
            yield record
    except InputError as error:
        refuse(error)
    if silent:
        refuse(nothing_in(source))


def _folder(folder: Path, reading: ReadOptions, *, source: str) -> Iterator[Record]:
    """The records of the files in `folder`, which the reader knows as `source`."""
    files = {file.relative_to(folder).as_posix(): file for file in _files(folder)}
    loaders = {name: LOADERS.get(file.suffix.lower()) for name, file in files.items()}
    if not any(loaders.values()):
        raise InputError(f"{source} contains no file that can be indexed.", remedy=REMEDY)
    if asked := _questions_and_labels(files):
        log.warning(
            "%s: questions and labels are skipped: %s. Import them as a query set: `labels import`",
            source, ", ".join(asked),
        )  # fmt: skip
    loaders = {name: loader for name, loader in loaders.items() if name not in asked}
    descriptions, known = load_together(files, reading)
    left = {name: loader for name, loader in loaders.items() if name not in known}
    others = [name for name, loader in left.items() if loader is None]
    unclear = [name for name, loader in left.items() if loader is load_openapi]
    if reading.skip is None:
        others += unclear
    else:
        for name in unclear:
            reading.skip(not_openapi(name))
    if others:
        log.warning("%s: %s", source, passed_over(others))
    for name, loader in loaders.items():
        if loader is not None and loader is not load_openapi:
            yield from _usable(loader, files[name], name, reading)
    yield from descriptions


def _questions_and_labels(names: Collection[str]) -> list[str]:
    """The files beside a corpus.jsonl that hold the questions and labels of a BEIR data set."""
    ending = "corpus.jsonl"
    beside = [name.removesuffix(ending) for name in names if f"/{name}".endswith(f"/{ending}")]
    begins = tuple(f"{root}{kind}" for root in beside for kind in ("queries.", "qrels"))
    return [name for name in names if name.startswith(begins)]


def _files(folder: Path) -> Iterator[Path]:
    # `os.walk` does not follow links to folders, so a cycle of links ends nowhere.
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(root, name)
            if not name.startswith(".") and file.is_file():
                yield file


SUFFIXES = (*sorted(LOADERS), ARCHIVE)
"""What can be uploaded."""


def stage(
    files: Iterable[tuple[str, bytes]], folder: Path, *, limit: int
) -> tuple[InputError, ...]:
    """Write uploads (name, content) into `folder`, zips unpacked; what was left out, and why.

    All of them together hold at most `limit` bytes, unpacked. Raises InputError if the folder
    cannot be written.
    """
    refused: list[InputError] = []
    left = limit
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for given, content in files:
            try:
                refused += _stage(given, content, folder, left)
            except InputError as error:
                refused.append(error)
            left = limit - sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    except OSError as error:
        raise InputError(
            f"The uploads cannot be kept: {error.strerror}.",
            remedy="Free up space on the disk of the workspace.",
        ) from None
    return tuple(refused)


def _stage(given: str, content: bytes, folder: Path, left: int) -> tuple[InputError, ...]:
    name = safe_name(given)
    if name is None:
        _refuse(given, "its name leads out of a folder", "Rename it.")
    target = folder / name
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        _refuse(name, "this kind of file cannot be indexed", f"Use {' '.join(SUFFIXES)}.")
    if target.exists():
        _refuse(name, "there is another file of that name", "Rename one of them.")
    if len(content) > left:
        _refuse(name, "the uploads are too large together", "Index them in several steps.")
    target.parent.mkdir(parents=True, exist_ok=True)
    if suffix != ARCHIVE:
        target.write_bytes(content)
        return ()
    # A separate folder, so that two zips may have files of the same name.
    inside = target.with_suffix("")
    if inside.exists():
        _refuse(name, "there is a folder of that name", "Rename one of them.")
    packed = target.with_name(f".{target.name}")
    packed.write_bytes(content)
    try:
        refused = unpack(packed, inside, source=name, suffixes=LOADERS, limit=left)
    except InputError:
        shutil.rmtree(inside, ignore_errors=True)
        raise
    finally:
        packed.unlink()
    if not refused and not inside.exists():
        _refuse(name, "it holds no file that can be indexed", f"Use {' '.join(sorted(LOADERS))}.")
    return refused


def _refuse(name: str, why: str, remedy: str) -> NoReturn:
    raise InputError(f"{name!r} is left out: {why}.", remedy=remedy)


def safe_name(name: str) -> str | None:
    """`name` as a relative path within a folder; None if it leads out of one, or is hidden."""
    path = PurePosixPath(name)
    parts = [part for part in path.parts if part != "."]
    unsafe = _BAD.search(name) or path.is_absolute() or ".." in parts or not parts
    long = len(name) > 1000 or any(len(part.encode()) > 200 for part in parts)
    return None if unsafe or long else "/".join(parts)


def unpack(
    archive: Path, folder: Path, *, source: str, suffixes: Iterable[str] = (), limit: int = LARGEST
) -> tuple[InputError, ...]:
    """Unpack a zip into `folder`; what was left out of it, and why.

    Hidden files and folders are passed over, and where `suffixes` are given, files of other kinds.
    Raises InputError: no zip, damaged, or more than `limit` bytes.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            return tuple(_members(opened, folder, source, frozenset(suffixes), limit))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"{source}: this zip cannot be read ({reason}).", remedy="Pack it again."
        ) from None


def _members(
    opened: zipfile.ZipFile, folder: Path, source: str, suffixes: frozenset[str], limit: int
) -> Iterator[InputError]:
    members = [info for info in opened.infolist() if not info.is_dir()]
    if len(members) > MAX_FILES:
        raise InputError(
            f"{source}: {len(members):,} files are too many.",
            remedy=f"Pack at most {MAX_FILES:,} in one zip.",
        )
    left = limit
    others = []
    for info in members:
        name = safe_name(info.filename)
        if name is None:
            yield _refused(source, info.filename, "the name leads out of the zip", "Rename it.")
        elif stat.S_ISLNK(info.external_attr >> 16):
            yield _refused(source, name, "it is a link", "Pack the file itself.")
        elif info.flag_bits & 1:
            yield _refused(source, name, "it is locked with a password", "Pack it without one.")
        elif _hidden(name):
            continue
        elif suffixes and Path(name).suffix.lower() not in suffixes:
            others.append(name)
        else:
            left = _write(opened, info, folder / name, left)
            if left < 0:
                raise InputError(
                    f"{source}: it unpacks to more than {limit // 1_000_000:,} MB.",
                    remedy="Pack less into one zip.",
                )
    if others:
        yield InputError(
            f"{source}: {passed_over(others)}.",
            remedy=f"Supported types: {', '.join(sorted(suffixes))}.",
        )


def passed_over(names: Sequence[str]) -> str:
    """Says that these files are of kinds that cannot be indexed; names the first few."""
    first = ", ".join(names[:SHOWN_NAMES])
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    what = (
        "1 file of another kind is" if len(names) == 1 else f"{len(names)} files of other kinds are"
    )
    return f"{what} skipped: {first}{more}"


def _write(opened: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path, left: int) -> int:
    """Write one member; how many bytes may still come. What the zip says of sizes is not
    believed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with opened.open(info) as packed, target.open("wb") as file:
        while part := packed.read(_PART):
            left -= len(part)
            if left < 0:
                break
            file.write(part)
    return left


def _hidden(name: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))


def _refused(source: str, name: str, why: str, remedy: str) -> InputError:
    return InputError(f"{source}: {name!r} is left out: {why}.", remedy=remedy)
