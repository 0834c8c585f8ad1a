"""Writes files for the loaders, and reads them."""

from __future__ import annotations

from pathlib import Path

from ragfilter.ingest.load import load
from ragfilter.model import Chunk


def read(path: Path) -> list[Chunk]:
    return [record.chunk for record in load(path)]


def written(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(data)
    return path
