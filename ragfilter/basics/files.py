"""Writes text files completely or not at all, and checks what is at a path."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path
from typing import Literal
from uuid import uuid4

from ragfilter.errors import InputError


def kind(path: str | os.PathLike[str]) -> Literal["", "file", "folder", "other"]:
    """What is at a path; empty if nothing is. Nothing is, either, at one that no file can have:
    for a name that is too long, `Path.exists` raises."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return ""
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def write_text(path: Path, text: str, *, remedy: str) -> None:
    """Write a file in UTF-8, in place of any that was there; its folder is made where it is
    missing. Raises InputError with this remedy."""
    # A link stays one: what it leads to is replaced.
    real = Path(os.path.realpath(path))
    part = real.with_name(f".{uuid4().hex}.part")
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            # A device or a pipe, such as /dev/stdout: nothing can take its place.
            path.write_text(text, encoding="utf-8")
            return
        part.write_text(text, encoding="utf-8")
        if real.exists():
            shutil.copymode(real, part)
        part.replace(real)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise InputError(
            f"{path} cannot be written: {error.strerror or error}.", remedy=remedy
        ) from None
