"""Uploaded files for readers that take a path. Errors name a file as it was uploaded."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from streamlit.runtime.uploaded_file_manager import UploadedFile

from ragfilter.errors import InputError

LONGEST_NAME = 200
"""Maximum bytes of a file's name; most systems allow 255."""


@contextmanager
def as_files(*uploads: UploadedFile | None) -> Iterator[list[Path]]:
    """Write the uploads to temporary files while they are read, skipping None."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, upload in enumerate(filter(None, uploads)):
            # In separate folders, since both may have the same name.
            # The ending of a long name, which shows its type.
            name = Path(upload.name).name.encode("utf-8", "replace")[-LONGEST_NAME:]
            paths.append(Path(folder, str(number), name.decode(errors="ignore")))
            paths[-1].parent.mkdir()
            paths[-1].write_bytes(upload.getvalue())
        try:
            yield paths
        except InputError as error:
            raise InputError(by_name(error.message, paths), remedy=error.remedy) from None


def by_name(message: str, paths: Sequence[Path]) -> str:
    """`message` with the names of the uploaded files instead of their paths."""
    for path in paths:
        message = message.replace(str(path), path.name)
    return message
