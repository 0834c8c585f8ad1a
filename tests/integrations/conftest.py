"""Fixtures shared by the adapters' tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from referring import CHUNKS
from stores import OneVector

from ragfilter.library.workspace import OpenWorkspace
from ragfilter.models.embedders import BUNDLED
from ragfilter.protocols import Vectors
from ragfilter.settings.deployment import Deployment
from ragfilter.stores.copies import StoredRow
from ragfilter.stores.workspace_files import Workspace

DIMENSION = 384


class Near(OneVector):
    """The bundled embedder's name, and one vector for every query."""

    name = BUNDLED


def along(similarity: float, axis: int) -> Vectors:
    """A unit vector with this cosine similarity to the query."""
    made = np.zeros(DIMENSION, dtype=np.float32)
    made[0], made[axis] = similarity, sqrt(1 - similarity**2)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with the collection ``refs`` of `referring.CHUNKS`, nearest first."""
    with Workspace.open(tmp_path / "workspace") as workspace:
        collection = workspace.store().create("refs", embedder=BUNDLED)
        collection.write([StoredRow(chunk, along(0.99 - 0.01 * i, 1 + i)) for i, chunk in enumerate(CHUNKS)])
    return tmp_path / "workspace"


@pytest.fixture
def workspace(folder: Path) -> Iterator[OpenWorkspace]:
    with OpenWorkspace.open(Deployment(data_dir=folder)) as bench:
        yield replace(bench, embedder=Near({}, along(1.0, 1)))  # type: ignore[arg-type]
