"""Reads files written by people, with errors that name file and place. Writes files completely or not at all."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import os
import re
import shutil
import stat
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from json import JSONDecodeError
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeVar
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, ValidationError

from ragfilter.errors import InputError, RagfilterError, complaint, extra
from ragfilter.text.normalise import loads

UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
LONGEST_NAME = 200
"""Maximum length of a file's name in bytes; most systems allow 255."""


def kind(path: str | os.PathLike[str]) -> Literal["", "file", "folder", "other"]:
    """What is at a path; empty for nothing, and for a name that is too long, for which `Path.exists` raises."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return ""
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def read_text(path: Path, name: str = "") -> str:
    """Read a text file in UTF-8, or in UTF-16 with a byte order mark; line ends become ``\\n``. Raises InputError if it
    is unreadable or not UTF-8; the message has `name`, or else the path."""
    name = name or str(path)
    with _opened(path, name) as file:
        return decode(file.read(), name)


def read_lines(path: Path, name: str = "") -> Iterator[str]:
    """Yield the lines of a file without their ends, one by one, since the file may be larger than
    memory. Raises InputError like `read_text`, after the lines before the bad one."""
    name = name or str(path)
    with _opened(path, name) as file:
        if file.peek(2).startswith(UTF16):
            text = io.StringIO(decode(file.read(), name), newline="\n")
            yield from (line.removesuffix("\n") for line in text)
        for number, line in enumerate(file, start=1):
            yield decode(line, name, line=number).removesuffix("\n")


@contextlib.contextmanager
def explain_os_error(failure: str, remedy: str, raised: type[RagfilterError] = InputError) -> Iterator[None]:
    """Raise an error of the type `raised` for an OSError in the block: ``<failure>: <the system's words>.``"""
    try:
        yield
    except OSError as error:
        raise raised(f"{failure}: {error.strerror or error}.", remedy=remedy) from None


@contextlib.contextmanager
def _opened(path: Path, name: str) -> Iterator[io.BufferedReader]:
    with explain_os_error(f"{name} cannot be read", "Check its name and permissions."), path.open("rb") as file:
        yield file


def decode(content: bytes, name: str, *, line: int = 1) -> str:
    """Decode a file's content that begins at `line`; `name` is the file's name in messages. Raises InputError."""
    try:
        text = content.decode("utf-16" if content.startswith(UTF16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, byte = line + before.count(b"\n"), len(before) - before.rfind(b"\n")
        message = f"{name}, line {line}: not UTF-8 at byte {byte}."
        raise InputError(message, remedy="Unpack it if it is compressed, or save it as UTF-8.") from None
    return text.replace("\r\n", "\n")


def write_text(path: Path, text: str, *, remedy: str) -> None:
    """Write or replace a file in UTF-8, and make its folder if it is missing. Raises InputError with this remedy."""
    # A link stays a link: its target is replaced.
    real = Path(os.path.realpath(path))
    part = real.with_name(f".{uuid4().hex}.part")
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            # A device or a pipe, such as /dev/stdout, cannot be replaced.
            path.write_text(text, encoding="utf-8")
            return
        part.write_text(text, encoding="utf-8")
        if real.exists():
            shutil.copymode(real, part)
        part.replace(real)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written: {error.strerror or error}.", remedy=remedy) from None


def json_objects(path: Path, remedy: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the JSON object of each non-empty line of a file. Raises InputError with this remedy."""
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            yield where, json_object(line, where, remedy)


def json_object(line: str, where: str, remedy: str) -> dict[str, Any]:
    """Parse the JSON object in a line, with strings in whole characters. Raises InputError with this remedy."""
    try:
        record = loads(line)
    except (ValueError, RecursionError) as error:
        why = f"{error.msg} at column {error.colno}" if isinstance(error, JSONDecodeError) else error
        raise InputError(f"{where}: this is not valid JSON ({why}).", remedy=remedy) from None
    if not isinstance(record, dict):
        raise InputError(f"{where}: this is not a JSON object.", remedy=remedy)
    return record


CSV_REMEDY = "Begin the file with a header that names the columns."
CELL_REMEDY = "Quote cells that hold the separator."
QUOTE_REMEDY = "Close every quote, and write one within a cell twice."
LARGEST_CELL, LONGEST_HEADER = 64 * 1024 * 1024, 64 * 1024


def rows(text: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the non-empty rows of a CSV file's text, each with the line on which it begins. Raises InputError."""
    # The limit of 128 KiB per cell applies to the whole process; only this code raises it.
    csv.field_size_limit(max(csv.field_size_limit(), LARGEST_CELL))
    separator, text = _separated(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        message = f"{source}, line {line}: a quote is not closed or not doubled ({error})."
        raise InputError(message, remedy=QUOTE_REMEDY) from None


def by_column(cells: list[str], names: list[str], place: str) -> dict[str, str]:
    """The cells of a row by the header's names, without empty ones. Raises InputError for more cells than names."""
    if len(cells) > len(names):
        raise InputError(f"{place}: {len(cells)} cells, but the header names {len(names)}.", remedy=CELL_REMEDY)
    return {name: cell for name, cell in zip(names, cells, strict=False) if name and cell.strip()}


NONE = "\x1f"
"""A separator that occurs in no text."""
_TOLD = re.compile(r"sep=(.)(?:\r?\n|\r)", re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"?')


def _separated(text: str) -> tuple[str, str]:
    """The separator of a CSV text, and the text. Excel's first line (``sep=;``) becomes empty. The separator is the
    most frequent of comma, semicolon, tab and bar in the header outside quotes; without any, each row is a cell."""
    if match := _TOLD.match(text):
        return match[1], "\n" + text[match.end() :]
    header = _QUOTED.sub("", text[:LONGEST_HEADER]).lstrip().splitlines()[:1]
    separator = max(",;\t|", key="".join(header).count)
    return (separator if separator in "".join(header) else NONE), text


SUFFIX = ".toml"


class TomlTable(BaseModel):
    """Base of the schemas for TOML files and their sections. Texts must not be empty."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, str_min_length=1, str_strip_whitespace=True)


T = TypeVar("T", bound=TomlTable)


def toml_paths(folder: Path) -> tuple[Path, ...]:
    """The TOML files of a folder, sorted by name. Raises InputError."""
    with explain_os_error(f"{folder} cannot be read", f"Name a folder of {SUFFIX} files."):
        files = [path for path in folder.iterdir() if path.suffix == SUFFIX]
    return tuple(sorted(files, key=lambda path: path.stem))


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file. Raises InputError if it cannot be read or is not UTF-8 or TOML."""
    return parse_toml(read_text(path), str(path))


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Parse TOML text; `name` is the file's name in messages. Raises InputError."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        message = f"{name} is not valid TOML: {why}."
        raise InputError(message, remedy="Check its quotes, brackets and numbers.") from None


def check_table(tree: Mapping[str, Any], kind: type[T], name: str, *, remedy: str) -> T:
    """Validate `tree` as a table of this kind; `name` is the file's name in messages. Raises
    InputError that names the key and says what is wrong with it."""
    try:
        return kind.model_validate(tree)
    except ValidationError as error:
        # Report a misspelt key first, since it explains why another one is missing.
        first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        place = ".".join(map(str, first["loc"]))
        unknown = first["type"] == "extra_forbidden"
        why = "there is no such key" if unknown else complaint(first["msg"])
        where = ": ".join(filter(None, (name, place)))
        raise InputError(f"{where}: {why}.", remedy=remedy) from None


DEEPEST, MAX_MERGED = 300, 1_000_000
YAML_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


@cache
def _yaml_and_loader() -> tuple[Any, Any]:
    with extra("ingest"):
        import yaml
    words, merge = re.compile("(|~|null|Null|NULL|true|True|TRUE|false|False|FALSE)$"), "tag:yaml.org,2002:merge"

    def value(loader: Any, node: yaml.Node) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return YAML_WORDS.get(node.value.lower(), node.value) if node.tag == "word" else node.value
        sequence = isinstance(node, yaml.SequenceNode)
        return loader.construct_yaml_seq(node) if sequence else loader.construct_yaml_map(node)

    class Loader(yaml.CSafeLoader):
        yaml_implicit_resolvers: ClassVar[Any] = {None: [("word", words), (merge, re.compile("<<$"))]}  # type: ignore[misc]
        yaml_constructors: ClassVar[Any] = {None: value}
        merged = 0

        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            super().flatten_mapping(node)
            self.merged += len(node.value)
            if self.merged > MAX_MERGED:
                raise yaml.YAMLError(f"<< merges more than {MAX_MERGED:,} entries")
            for key, _ in node.value:
                key.tag = "text"

    return yaml, Loader


def parse_yaml(text: str, *, place: str, only_syntax: bool = False) -> object:
    """Parse the single YAML document in `text` into dicts, lists, text, booleans and None. Only null, true and false
    are parsed: version 1.10 does not become 1.1, and dates stay text. Keys are text, and tags are ignored. An alias is
    the same object again, so the result may contain cycles. With `only_syntax`, any YAML documents are None, in a
    tenth of the time. Raises InputError naming `place`, line and column."""
    (yaml, loader), depth = _yaml_and_loader(), 0
    try:
        # Deep nesting would crash the process when nodes are composed.
        for event in yaml.parse(text, loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise yaml.YAMLError(f"it is nested deeper than {DEEPEST} levels")
        return None if only_syntax else yaml.load(text, loader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        message = f"{place}{line}: this is neither JSON nor YAML ({problem})."
        remedy = "Correct it there. A text that begins with & * @ % or ` needs quotes."
        raise InputError(message, remedy=remedy) from None


RISKY = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Beginnings of a cell that spreadsheets take for a formula (OWASP, "CSV Injection")."""


def harmless(cell: str) -> str:
    """Put an apostrophe before `cell` if a spreadsheet could take it for a formula."""
    return f"'{cell}" if cell.startswith(RISKY) else cell


class TextFiles:
    """Text files in `folder`. Raises InputError."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self, under: str) -> list[str]:
        """The names of the files in a folder."""
        return [path.name for path in (self.folder / under).glob("*")]

    def path(self, name: str) -> Path:
        """The local path for reading a file; nothing is there if the file does not exist."""
        return self.folder / name

    def read(self, name: str) -> str | None:
        """The text of a file; None if there is no such file."""
        path = self.path(name)
        return read_text(path) if kind(path) else None

    def write(self, name: str, text: str) -> None:
        """Write or replace a file."""
        remedy = "Free up disk space, or make the workspace folder writable."
        write_text(self.folder / name, text, remedy=remedy)

    def delete(self, name: str) -> None:
        """Delete a file if it exists."""
        path = self.folder / name
        with explain_os_error(f"{path} cannot be deleted", "Make the workspace folder writable."):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the storage behind them."""


class Upload(Protocol):
    """A file that a visitor uploaded."""

    name: str

    def getvalue(self) -> bytes:
        """Its content."""


@contextlib.contextmanager
def as_files(*uploads: Upload | None) -> Iterator[list[Path]]:
    """Provide uploads as temporary files inside the `with` block, skipping None."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, upload in enumerate(filter(None, uploads)):
            # In separate folders, since two uploads may have the same name.
            # A long name is cut at the front, since its ending shows the type.
            name = Path(upload.name).name.encode("utf-8", "replace")[-LONGEST_NAME:]
            paths.append(Path(folder, str(number), name.decode(errors="ignore")))
            paths[-1].parent.mkdir()
            paths[-1].write_bytes(upload.getvalue())
        try:
            yield paths
        except InputError as error:
            raise InputError(by_name(error.message, paths), remedy=error.remedy) from None


def by_name(message: str, paths: Sequence[Path]) -> str:
    """Replace the paths of uploaded files in `message` with their names."""
    for path in paths:
        message = message.replace(str(path), path.name)
    return message
