"""Asks a disk whether it takes data. Most errors do not say that it is full or read-only."""

from __future__ import annotations

import tempfile
from pathlib import Path

ROOM = 1 << 20


def refusal(folder: Path) -> str:
    """Why a file of a megabyte cannot be written in `folder`, as the system says it; "" if it can.

    Nothing is left behind.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(ROOM))
            file.flush()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""
