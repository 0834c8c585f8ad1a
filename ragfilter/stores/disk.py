"""Checks whether a disk accepts data. Most errors do not say that it is full or read-only."""

from __future__ import annotations

import tempfile
from pathlib import Path

ROOM = 1 << 20


def refusal(folder: Path) -> str:
    """Why a file of one megabyte cannot be written in `folder`, in the system's words; "" if it
    can.

    No file is left behind.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(ROOM))
            file.flush()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""
