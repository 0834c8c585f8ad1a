"""Dropped files for readers that take a path, with errors that name the file as it was dropped."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from streamlit.runtime.uploaded_file_manager import UploadedFile

from ragfilter.errors import InputError

LONGEST_NAME = 200
"""Bytes of a file's name. Most systems take 255."""


@contextmanager
def as_files(*uploads: UploadedFile | None) -> Iterator[list[Path]]:
    """The uploads as files, as long as they are read; what was not dropped is left out."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, upload in enumerate(filter(None, uploads)):
            # Apart: both may have the same name.
            paths.append(Path(folder, str(number), _short(upload.name)))
            paths[-1].parent.mkdir()
            paths[-1].write_bytes(upload.getvalue())
        try:
            yield paths
        except InputError as error:
            raise InputError(by_name(error.message, paths), remedy=error.remedy) from None


def by_name(message: str, paths: Sequence[Path]) -> str:
    """`message`, in which the files have the names that they were dropped with."""
    for path in paths:
        message = message.replace(str(path), path.name)
    return message


def _short(name: str) -> str:
    """The end of a file's name, which says what kind it is."""
    return Path(name).name.encode("utf-8", "replace")[-LONGEST_NAME:].decode(errors="ignore")
