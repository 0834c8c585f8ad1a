"""Uploaded files into a folder of the workspace, each checked before it is written."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from ragfilter.errors import InputError
from ragfilter.ingest.load import LOADERS
from ragfilter.ingest.unpack import ARCHIVE, safe_name, unpack

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
