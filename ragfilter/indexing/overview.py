"""Lists a workspace: every collection with its rules, labels and last change."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ragfilter.errors import StoreError
from ragfilter.model import UNRESTRICTED, User
from ragfilter.stores.labels import visible_labels
from ragfilter.workbench import Workbench

if TYPE_CHECKING:
    from ragfilter.stores.base import CollectionInfo


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a collection. If unknown, `model` is empty and a figure is None."""

    info: CollectionInfo
    model: str
    chunks: int | None
    rules: int | None
    labels: int | None
    changed: datetime | None


def overview(bench: Workbench, user: User = UNRESTRICTED) -> tuple[Facts, ...]:
    """The facts of every collection, sorted by name, counting only chunks that `user` can see. Raises StoreError."""
    return tuple(_facts(bench, info, user) for info in bench.collections())


def _facts(bench: Workbench, info: CollectionInfo, user: User) -> Facts:
    chunks = info.count if user.unrestricted else None
    rules = labels = None
    with suppress(StoreError):
        known = bench.stores.of(info.name).collection(info.name).catalogue()
        if known is not None:
            chunks = known.visible(user)
            rules = sum(1 for chunk in known.values() if chunk.rule and user.sees(chunk))
            labels = len(visible_labels(bench.labels.standing(info.name), known, user))
    model = info.embedder or bench.stores.opening(info.name).embedder
    return Facts(info, model, chunks, rules, labels, _changed(bench, info))


def _changed(bench: Workbench, info: CollectionInfo) -> datetime | None:
    """When the collection was last indexed or one of its rules edited."""
    times = []
    with suppress(StoreError):
        edits = bench.journal.history(info.name)
        times += [edit.at for edit in edits if edit.state in ("done", "undone")][:1]
    with suppress(OSError, StoreError):
        times += filter(None, [bench.workspace.contents.changed(info.name)])
    return max(times).astimezone() if times else None
