"""Puts files from outside into a folder of ours: uploads, and the contents of zips.

A name never leads out of the folder, an archive never exceeds a limit, and each file that is left
out is named with its reason.
"""

from __future__ import annotations

import re
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from ragfilter.errors import InputError

ARCHIVE = ".zip"
LARGEST = 1_000_000_000
"""Bytes that an archive may unpack to, unless a limit is given."""
MAX_FILES = 20_000
SHOWN_NAMES = 5
_PART = 1 << 20
_BAD = re.compile(r"[\x00-\x1f\x7f\\]")


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
