"""Reads records from SOURCE: a demo collection by name, a file, a folder or a zip. Also writes uploads and unpacked
zips to a folder. Source: docs/design.md#formats. No file name leads out of that folder, unpacked archives are limited
in size, and every file that is left out is named with the reason."""

from __future__ import annotations

import io
import logging
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NoReturn

from ragfilter.basics.files import explain_os_error, kind, read_text
from ragfilter.errors import InputError
from ragfilter.ingest import bundled
from ragfilter.ingest.csv_file import load_csv
from ragfilter.ingest.markdown import load_markdown
from ragfilter.ingest.openapi.read import SUFFIXES as OPENAPI
from ragfilter.ingest.openapi.read import load_openapi, parse
from ragfilter.ingest.passages import load_text
from ragfilter.ingest.pdf import load_pdf
from ragfilter.ingest.records import PLAIN, ReadOptions, Record, each_id_once, load_jsonl
from ragfilter.text.numbers import counted, first_of

log = logging.getLogger(__name__)

ARCHIVE = ".zip"
LARGEST = 1_000_000_000
"""Default limit on the unpacked size of an archive, in bytes."""
MAX_FILES = 20_000
SHOWN_NAMES = 5
MAX_BLANK, MAX_CHECKED = 1000, 5_000_000
"""The most bytes of an empty file, and of all JSON and YAML files checked although they describe no API."""
LOADERS: dict[str, Callable[..., Iterator[Record]]] = {
    ".jsonl": load_jsonl,
    ".ndjson": load_jsonl,
    ".csv": load_csv,
    ".md": load_markdown,
    ".markdown": load_markdown,
    ".txt": load_text,
    ".pdf": load_pdf,
}
INDEXED = tuple(sorted((*LOADERS, *OPENAPI)))
SUFFIXES = (*INDEXED, ARCHIVE)
"""Suffixes of files that can be uploaded."""
REMEDY = (
    f"Give {', '.join(bundled.DEMOS)}, or a file, folder or zip of {' '.join(INDEXED)}; "
    f"{' '.join(OPENAPI)} files must be OpenAPI descriptions."
)


def load(source: str | os.PathLike[str], *, reading: ReadOptions = PLAIN) -> Iterator[Record]:
    """Yield the records of `source`; the files of a folder or zip are sorted by name.

    The API descriptions of a folder come last, since they may refer to each other. A demo's name takes precedence over
    a file of that name (write ``./demo`` for the file). Raises InputError with file and line during iteration, unless
    `reading.skip` leaves unusable records out."""
    return each_id_once(_load(source, reading), reading)


def _load(source: str | os.PathLike[str], reading: ReadOptions) -> Iterator[Record]:
    name = os.fspath(source)
    if name in bundled.DEMOS:
        yield from bundled.records(name)
        return
    path = Path(name).expanduser()
    what, suffix = kind(path), path.suffix.lower()
    if what == "folder":
        yield from _folder(path, reading, source=str(path))
    elif what != "file":
        # Reading a named pipe would block forever.
        raise InputError(f"{path} does not exist, or is not a file or folder.", remedy=REMEDY)
    elif suffix == ARCHIVE:
        with tempfile.TemporaryDirectory() as folder:
            unpack(path, Path(folder), source=path.name)
            yield from _folder(Path(folder), reading, source=path.name)
    elif suffix in OPENAPI:
        descriptions, known = load_openapi(path.parent, [path.name], reading)
        if path.name not in known:
            message = f"{path.name}: this is not an OpenAPI description (no openapi version at the top)."
            remedy = "Use an OpenAPI 3 file, or turn the data into JSONL records."
            raise _malformed({path.name: path}).get(path.name) or InputError(message, remedy=remedy)
        yield from descriptions
    elif suffix in LOADERS:
        with reading.refusing():
            yield from LOADERS[suffix](path, source=path.name, reading=reading)
    else:
        raise InputError(f"{path}: this kind of file cannot be indexed.", remedy=REMEDY)


def _folder(folder: Path, reading: ReadOptions, *, source: str) -> Iterator[Record]:
    """Yield the records of the files in `folder`, which messages call `source`."""
    files = {file.relative_to(folder).as_posix(): file for file in _files(folder)}
    if not any(name.lower().endswith(INDEXED) for name in files):
        raise InputError(f"{source} contains no file that can be indexed.", remedy=REMEDY)
    if query_files := _questions_and_labels(files):
        skipped = f"{source}: questions and labels are skipped: {', '.join(query_files)}"
        log.warning("%s. Import them as a query set: `labels import`", skipped)
    empty = [name for name, file in files.items() if _is_empty(file)]
    unread = {*query_files, *empty}
    files = {name: file for name, file in files.items() if name not in unread}
    descriptions, known = load_openapi(folder, files, reading)
    loaders = {name: LOADERS[file.suffix.lower()] for name, file in files.items() if file.suffix.lower() in LOADERS}
    others = {name: file for name, file in files.items() if name not in loaders and name not in known}
    for error in _left_out(empty, others):
        (reading.skip or log.warning)(error)
    for name, loader in loaders.items():
        with reading.refusing():
            yield from loader(files[name], source=name, reading=reading)
    yield from descriptions


def _left_out(empty: Sequence[str], others: Mapping[str, Path]) -> Iterator[InputError]:
    """What is left out of a folder: empty files, and `others` that no loader reads."""
    data = {name: file for name, file in others.items() if name.lower().endswith(OPENAPI)}
    malformed = _malformed(data)
    yield from [*malformed.values()][:1]
    groups = (
        ([*malformed][1:], "with syntax errors"),
        (empty, "without content"),
        ([name for name in data if name not in malformed], "without an OpenAPI description"),
        ([name for name in others if name not in data], "of another kind"),
    )
    yield from (InputError(f"{passed_over(names, what)}.") for names, what in groups if names)


def _malformed(files: Mapping[str, Path]) -> dict[str, InputError]:
    """The errors of files that are neither JSON nor YAML, by name. Files beyond `MAX_CHECKED` bytes are not read."""
    errors: dict[str, InputError] = {}
    left = MAX_CHECKED
    for name, file in files.items():
        if (size := file.stat().st_size) <= left:
            left -= size
            try:
                parse(read_text(file, name), file.suffix, name, only_syntax=True)
            except InputError as error:
                errors[name] = error
    return errors


def _is_empty(file: Path) -> bool:
    # A PDF without content is damaged, which its loader reports.
    with suppress(OSError):
        small = file.suffix.lower() in {*INDEXED} - {".pdf"} and file.stat().st_size <= MAX_BLANK
        return small and not file.read_bytes().strip()
    return False


def _questions_and_labels(names: Collection[str]) -> list[str]:
    """The files next to a corpus.jsonl with the questions and labels of a BEIR data set."""
    ending = "corpus.jsonl"
    beside = [name.removesuffix(ending) for name in names if f"/{name}".endswith(f"/{ending}")]
    begins = tuple(f"{root}{what}" for root in beside for what in ("queries.", "qrels"))
    return [name for name in names if name.startswith(begins)]


def _files(folder: Path) -> Iterator[Path]:
    # `os.walk` does not follow links to folders, so cycles of links do no harm.
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(root, name)
            if not name.startswith(".") and file.is_file():
                yield file


def stage(files: Iterable[tuple[str, bytes]], folder: Path, *, limit: int) -> tuple[InputError, ...]:
    """Write uploads (name, content) to `folder`, and unpack zips. Returns what was left out, and why. All uploads
    together may have at most `limit` bytes, unpacked. Raises InputError if the folder cannot be written."""
    refused: list[InputError] = []
    with explain_os_error("The uploads cannot be kept", "Free up space on the disk of the workspace."):
        for name, content in files:
            left = limit - sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
            try:
                refused += _stage(name, content, folder, left)
            except InputError as error:
                refused.append(error)
    return tuple(refused)


def _stage(upload: str, content: bytes, folder: Path, left: int) -> list[InputError]:
    name = safe_name(upload)
    if name is None:
        _refuse(upload, "its name leads out of a folder", "Rename it.")
    # Each zip has its own folder, so two zips can contain files with the same name.
    zipped = name.lower().endswith(ARCHIVE)
    target = (folder / name).with_suffix("") if zipped else folder / name
    if not name.lower().endswith(SUFFIXES):
        _refuse(name, "this kind of file cannot be indexed", f"Use {' '.join(SUFFIXES)}.")
    if target.exists():
        _refuse(name, "there is another of that name", "Rename one of them.")
    if len(content) > left:
        _refuse(name, "the uploads are too large together", "Index them in several steps.")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not zipped:
        target.write_bytes(content)
        return []
    try:
        refused = unpack(io.BytesIO(content), target, source=name, suffixes=INDEXED, limit=left)
    except InputError:
        shutil.rmtree(target, ignore_errors=True)
        raise
    inner = target / target.name
    if inner.is_dir() and [*target.iterdir()] == [inner]:
        # Otherwise every id would begin with the same name twice.
        shutil.move(inner, outer := target.with_name(f"{target.name}.unpacked"))
        target.rmdir()
        outer.rename(target)
    return refused


def _refuse(name: str, why: str, remedy: str) -> NoReturn:
    raise InputError(f"{name!r} is left out: {why}.", remedy=remedy)


def safe_name(name: str) -> str | None:
    """`name` as a relative path within a folder; None if it leads out of the folder."""
    path = PurePosixPath(name)
    unsafe = not name.isprintable() or "\\" in name or path.is_absolute() or ".." in path.parts
    long = any(len(part.encode()) > 200 for part in path.parts)
    return None if unsafe or long or not path.parts else path.as_posix()


def unpack(
    archive: Path | io.BytesIO, folder: Path, *, source: str, suffixes: tuple[str, ...] = ("",), limit: int = LARGEST
) -> list[InputError]:
    """Unpack a zip's files with these `suffixes` into `folder`. Returns what was left out, except hidden files. No name
    leads out of the folder. Raises InputError if it is no zip, damaged, locked, or above `limit` bytes unpacked."""
    try:
        with zipfile.ZipFile(archive) as opened:
            files = [i for i in opened.infolist() if not i.is_dir() and not _hidden(i.filename)]
            wanted = [file for file in files if file.filename.lower().endswith(suffixes)]
            # No file is read beyond the size that the zip states.
            if len(wanted) > MAX_FILES or sum(file.file_size for file in wanted) > limit:
                message = f"{source}: it unpacks to more than {limit // 1_000_000:,} MB, or {MAX_FILES:,} files."
                raise InputError(message, remedy="Put less into one zip.")
            opened.extractall(folder, wanted)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{source}: this zip cannot be read ({reason}).", remedy="Pack it again.") from None
    others = [file.filename for file in files if file not in wanted]
    remedy = f"Supported types: {', '.join(suffixes)}."
    return [InputError(f"{source}: {passed_over(others)}.", remedy=remedy)] if others else []


def passed_over(names: Sequence[str], what: str = "of another kind") -> str:
    """A note that these files cannot be indexed; names the first few."""
    return f"{counted(len(names), 'file')} {what} skipped: {first_of(names, SHOWN_NAMES)}"


def _hidden(name: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))
