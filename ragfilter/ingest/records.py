"""Records, the common form of all input formats: a plain mapping is checked and becomes a chunk.
Also reads files with one mapping per line, as JSON.

Source: docs/design.md#formats (the fields; also BEIR's `_id`) and docs/design.md#clearance (an
unreadable clearance hides its chunk).

    id (or _id)               required
    text (or content)         required; if a record has only a title, this is its text
    title, type, source       text
    page                      a whole number from 0, also written 3.0
    refs                      chunk ids: a list, a list as JSON text, or ids separated by ; or ,
    clearance                 a whole number from 0; missing means 0, public
    department                text; missing means none
    query_must                a rule, as an object or as JSON text
    metadata, and any other   the source's own fields, kept as they are, except vectors
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ragfilter.basics.files import json_object, read_lines
from ragfilter.errors import InputError, RuleError
from ragfilter.model import Chunk, readable_level
from ragfilter.rules.rule import parse, read_rule
from ragfilter.text.normalise import loads, mend_characters

LONGEST = 1000
"""Default maximum of characters in a passage: the bundled model reads 256 tokens of a little over four characters."""
SHORTEST, MOST = 100, 8000
"""The range of `size`, in characters."""
COLUMNS = ("text", "id", "title", "type", "source", "page", "clearance", "department", "refs")
"""Fields for which a column of a table can be chosen."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read files.

    `size` and `overlap` of passages are in characters. Without `headings`, Markdown is split like plain text. `columns`
    maps a field to the CSV column that contains it; empty means none, even if a column has the field's name. Rows
    without an id are numbered. Unusable records are passed to `skip` and left out; without `skip`, the first one
    raises. Raises InputError for invalid options."""

    size: int = LONGEST
    overlap: int = 0
    headings: bool = True
    columns: Mapping[str, str] = field(default_factory=dict)
    skip: Callable[[InputError], None] | None = None

    def __post_init__(self) -> None:
        columns = [column for column in self.columns.values() if column]
        unknown = sorted(self.columns.keys() - set(COLUMNS))
        if not SHORTEST <= self.size <= MOST:
            remedy = f"Choose a size from {SHORTEST} to {MOST:,}."
            raise InputError(f"Passages cannot have {self.size} characters.", remedy=remedy)
        if not 0 <= self.overlap <= self.size // 2:
            message = f"Passages of {self.size} characters cannot overlap by {self.overlap}."
            raise InputError(message, remedy=f"Choose an overlap from 0 to {self.size // 2}, half the size.")
        if unknown:
            remedy = f"Name one of {', '.join(COLUMNS)}; other columns are kept as metadata."
            raise InputError(f"There is no field {unknown[:1]} that a column could hold.", remedy=remedy)
        if len({*columns}) < len(columns):
            raise InputError("One column is named for two fields.", remedy="Name another column for one of them.")
        if self.columns and not self.columns.get("text"):
            raise InputError("No column is named for the text.", remedy="Name the column that holds it.")

    def refuse(self, error: InputError) -> None:
        """Pass `error` to `skip`, or raise it if there is none."""
        if self.skip is None:
            raise error
        self.skip(error)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Refuse an InputError in the block."""
        try:
            yield
        except InputError as error:
            self.refuse(error)


PLAIN = ReadOptions()

FIELDS = frozenset((*COLUMNS, "_id", "content", "query_must", "metadata"))

ONE_OBJECT = 'Write one JSON object per line, such as {"id": "a", "text": "..."}.'
MANY = 32
"""A list of at least this many numbers is a vector, whatever its name."""
_VECTOR = re.compile(r"vec(tor)?s?(_|$)|embeddings?(_|$)|(^|_)embs?(_|$)|^(dense|sparse)(_|$)", re.IGNORECASE)
"""Names of vectors."""
_NUMBERS = re.compile(r"[\[{(\s]*[-+.]?\d[-+\s\d.,:eE]*([\]})][\]})\s,\[/\d]*)?")
"""A vector as text, or its beginning, as written by databases and NumPy."""
_PACKED = re.compile(r"[01]{8,}|\\x[\da-f]+|[A-Za-z\d+/=]{64}", re.IGNORECASE)
"""The beginning of bits, hexadecimal bytes, or Base64."""


class Record(NamedTuple):
    """A chunk with its place in the source ("rules.jsonl, line 3"). `clearance_as_given` is the text of an unreadable
    clearance or department, which hides the chunk. `warnings` are about accepted values that may be unintended."""

    chunk: Chunk
    place: str
    clearance_as_given: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that is stored; if it is unchanged, nothing has to be done."""
        c = self.chunk
        stored: list[Any] = [c.id, c.text, c.title, c.type, c.source, c.page, c.refs, c.clearance]
        stored += [self.clearance_as_given, c.department, c.rule, c.metadata]
        return hashlib.sha256(json.dumps(stored).encode()).hexdigest()


def to_record(raw: Mapping[str, Any], *, place: str, source: str = "") -> Record:
    """Check a plain mapping and return its record. `source` is the default source. Raises InputError naming `place`. An
    invalid rule or an unreadable clearance (which hides the chunk) is kept as given, with a warning."""
    warnings: list[str] = []
    raw = {key: value for key, value in raw.items() if key not in FIELDS or not is_missing(value)}
    clearance, as_given = _clearance(raw.get("clearance"))
    department, name = raw.get("department"), "clearance"
    if not _is_plain(department):
        clearance, as_given, department, name = None, _words(department), None, "department"
    if clearance is None:
        warnings.append(f"{place}: the {name} {as_given} cannot be read, so the chunk is hidden.")
    rule, complaint = _rule(raw.get("query_must"))
    if complaint:
        warnings.append(f"{place}: query_must is kept but not used: {complaint}")
    chunk = Chunk(
        id=_id(raw, place),
        text=_text(raw, place),
        title=_plain(raw, "title", place),
        type=_plain(raw, "type", place),
        source=mend_characters(source) if raw.get("source") is None else _plain(raw, "source", place),
        page=_page(raw.get("page"), place),
        refs=_refs(raw.get("refs"), place),
        clearance=clearance,
        department=_words(department) or None,
        rule=rule,
        metadata=_own_fields(raw, place),
    )
    return Record(chunk, place, as_given, tuple(warnings))


def each_id_once(records: Iterable[Record], reading: ReadOptions = PLAIN) -> Iterator[Record]:
    """Yield the records, and refuse those with the id of an earlier one. Raises InputError."""
    by_id: dict[str, Record] = {}
    for record in records:
        first = by_id.setdefault(record.chunk.id, record)
        if first is record:
            yield record
        else:
            message = f"{record.place}: the id {record.chunk.id!r} was already used in {first.place}."
            reading.refuse(InputError(message, remedy="Give every record an id of its own."))


def load_jsonl(path: Path, *, source: str, reading: ReadOptions = PLAIN) -> Iterator[Record]:
    """Yield the records of a JSONL file, skipping empty lines. Raises InputError."""
    for number, line in enumerate(read_lines(path, source), start=1):
        if not line.strip():
            continue
        place = f"{source}, line {number}"
        with reading.refusing():
            yield to_record(json_object(line, place, ONE_OBJECT), place=place, source=source)


def to_line(chunk: Chunk, clearance_as_given: str | None = None) -> str:
    """A chunk as a line of JSON, from which `to_record` makes the same chunk."""
    record: dict[str, Any] = {"id": chunk.id, "text": chunk.text, "source": chunk.source}
    rule = read_rule(chunk.rule)
    record |= {
        name: value
        for name, value in (
            ("title", chunk.title),
            ("type", chunk.type),
            ("page", chunk.page),
            ("refs", list(chunk.refs)),
            ("department", chunk.department),
            ("query_must", rule and rule.value),
            ("metadata", dict(chunk.metadata)),
        )
        if value not in (None, "", [], {})
    }
    if chunk.clearance is None:
        # Text that is not a number hides the chunk again; empty text would make it public.
        record["clearance"] = clearance_as_given or " "
    elif chunk.clearance:
        record["clearance"] = chunk.clearance
    return json.dumps(record, ensure_ascii=False) + "\n"


def given_id(raw: Mapping[str, Any]) -> Any:
    """The mapping's `id` or, if that is missing or empty, its `_id`; None if both are missing."""
    values = (raw.get("id"), raw.get("_id"))
    return next((v for v in values if not (is_missing(v) or (isinstance(v, str) and not v))), None)


def _id(raw: Mapping[str, Any], place: str) -> str:
    own_id = given_id(raw)
    value = _as_id(own_id)
    if own_id is not None and value is None:
        refuse(place, f"the id must be a string, not {_kind(own_id)}", "Write it in quotes.")
    if not value or not value.strip():
        refuse(place, "the id is missing or empty", 'Give every record its own "id".')
    return mend_characters(value)


def _as_id(value: object) -> str | None:
    """An id as text. It can be a text, a whole number, or a database's id type, such as a UUID."""
    if isinstance(value, str):
        return value
    number = whole_number(value)
    if number is not None:
        return str(number)
    plain = isinstance(value, bool | float | bytes | Collection) or hasattr(value, "dtype")
    return None if plain or type(value).__str__ is object.__str__ else str(value)


def _text(raw: Mapping[str, Any], place: str) -> str:
    name = "text" if "text" in raw else "content"
    value, title = raw.get(name), raw.get("title")
    if (value is None or value == "") and isinstance(title, str) and title.strip():
        # Public test collections contain documents that have only a title.
        return mend_characters(title)
    if name in raw and not isinstance(value, str):
        refuse(place, f"the text must be a string, not {_kind(value)}", "Write it in quotes.")
    if not value or not value.strip():
        refuse(place, "the text is missing or empty", 'Give every record a "text".')
    return mend_characters(value)


def _own_fields(raw: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The mapping's other fields, as plain JSON values."""
    inside = raw.get("metadata")
    fields = dict(inside) if isinstance(inside, Mapping) else {}
    if inside is not None and not isinstance(inside, Mapping):
        fields["metadata"] = inside
    fields |= {key: value for key, value in raw.items() if key not in FIELDS}
    return plain_values(fields, place)


def plain_values(fields: Mapping[Any, Any], place: str) -> dict[str, Any]:
    """A source's own fields as plain JSON values, or else text, without vectors. Raises InputError naming `place`."""
    if not fields:
        return {}
    try:
        fields = _without_vectors(fields)
        kept: dict[str, Any] = loads(json.dumps(fields, default=str, skipkeys=True, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        refuse(place, "its own fields cannot be written as JSON", "Leave out what is nested.")
    return kept


def _without_vectors(fields: Mapping[Any, Any]) -> dict[Any, Any]:
    """Remove vectors, which a chunk does not need. Missing values become None, since JSON has no NaN."""
    return {
        key: _without_vectors(value) if isinstance(value, Mapping) else None if is_missing(value) else value
        for key, value in fields.items()
        if not _is_vector(key, value)
    }


def _is_vector(key: object, value: Any) -> bool:
    """Whether a field has one or more vectors: an array, bytes, many numbers, or numbers under the name of a vector.
    Only the beginning is read, since copying vectors takes longer than all the rest."""
    array_like = getattr(value, "ndim", 0) or hasattr(value, "to_list")
    if array_like or isinstance(value, bytes | bytearray | array):
        return True
    has_vector_name = _VECTOR.search(str(key)) is not None
    if isinstance(value, str):
        head = value[:64].strip()
        many = len(value[: 64 * MANY].replace(",", " ").split()) >= MANY
        # NumPy leaves out the middle of long arrays.
        listed = many or " ... " in head or (has_vector_name and head[:1] in ("[", "{", "("))
        packed = has_vector_name and _PACKED.fullmatch(head)
        return bool(packed or (_NUMBERS.fullmatch(head) and listed))
    if isinstance(value, Mapping):
        return has_vector_name and all(_is_number(v) or _is_vector(key, v) for v in value.values())
    if not isinstance(value, Sequence) or not value:
        return False
    if isinstance(value[0], list | tuple):
        return _is_vector(key, value[0])
    return (has_vector_name or len(value) >= MANY) and all(map(_is_number, value[:8]))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number | Decimal) and not isinstance(value, bool)


def is_missing(value: object) -> bool:
    """Whether a table's value is missing: None, NaN, NaT, or pandas' NA, for which comparison with itself gives NA."""
    if value is None:
        return True
    differs = value != value
    return differs is value or (isinstance(differs, bool | np.bool_) and bool(differs))


def _kind(value: object) -> str:
    """The name in JSON of a value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    kinds = {int: "a number", float: "a number", list: "a list", dict: "an object"}
    return kinds.get(type(value), type(value).__name__)


def _plain(raw: Mapping[str, Any], key: str, place: str) -> str:
    value = raw.get(key)
    if value is None:
        return ""
    if not _is_plain(value):
        refuse(place, f"{key} is not text", f"Write {key} as text, or leave it out.")
    return _words(value)


def _page(value: object, place: str) -> int | None:
    if value is None or value == "":
        return None
    number = _whole(value)
    if number is None:
        refuse(place, f"page {value!r} is not a whole number", "Use a number from 0 to 2^63 - 1.")
    return number


def _refs(value: object, place: str) -> tuple[str, ...]:
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(ValueError):
            value = json.loads(value)
    elif isinstance(value, str):
        value = value.split(";" if ";" in value else ",")
    items = [] if value is None else value if isinstance(value, list | tuple) else [None]
    refs = [_as_id(item) for item in items]
    if None in refs:
        refuse(place, "refs is not a list of chunk ids", 'Write it like ["id-1", "id-2"].')
    return tuple(dict.fromkeys(filter(None, (mend_characters(ref or "").strip() for ref in refs))))


def _clearance(value: object) -> tuple[int | None, str | None]:
    if value is None or value == "":
        return 0, None
    number = _whole(value)
    return (number, None) if number is not None else (None, _words(value))


def _rule(value: object) -> tuple[str | None, str]:
    """The rule in its stored form, and what is wrong with it."""
    if value is None or value == "":
        return None, ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_list)
    return _rule_of(mend_characters(text))


def _list(value: object) -> object:
    """An array as a list; other types that JSON lacks as text, which is never a valid rule."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


# A filter reads the same few rules for every query.
@lru_cache(maxsize=4096)
def _rule_of(text: str) -> tuple[str | None, str]:
    try:
        stored = parse(text).text
    except RuleError as error:
        return text, str(error)
    return (None if stored == "{}" else stored), ""


def _whole(value: object) -> int | None:
    """A whole number from 0, also as digits (CSV cells are text); None for anything else."""
    if isinstance(value, str):
        digits = value.strip().removesuffix(".0")
        value = int(digits[:20]) if digits.isascii() and digits.isdigit() else None
    return readable_level(whole_number(value))


def whole_number(value: object) -> int | None:
    """A whole number of any type, including NumPy's and 2.0, since tables turn 2 into 2.0 if the
    column has missing values; None for anything else, including True and False."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float | np.floating | Decimal):
        return int(value) if math.isfinite(value) and value == int(value) else None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def _is_plain(value: object) -> bool:
    if value is None or isinstance(value, str):
        return True
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        return False
    return isinstance(value, int | float)


def _words(value: object) -> str:
    if value is None:
        return ""
    return mend_characters(value).strip() if isinstance(value, str) else json.dumps(value, default=str)


def refuse(place: str, what: str, remedy: str) -> NoReturn:
    """Raise InputError about what is at `place`."""
    raise InputError(f"{place}: {what}.", remedy=remedy)
