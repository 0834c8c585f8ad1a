"""What there is in a workspace: every collection with its rules, labels and last change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ragfilter.errors import StoreError
from ragfilter.model import UNRESTRICTED, User
from ragfilter.workbench import Workbench

if TYPE_CHECKING:
    from ragfilter.stores.chroma.store import CollectionInfo


@dataclass(frozen=True, slots=True)
class Facts:
    """A collection. `model` is empty, `rules` and `changed` are None where they cannot be told."""

    info: CollectionInfo
    model: str
    rules: int | None
    labels: int
    changed: datetime | None


def overview(bench: Workbench, user: User = UNRESTRICTED) -> tuple[Facts, ...]:
    """The facts of every collection, by name; rules of chunks that `user` may see. Raises
    StoreError."""
    return tuple(
        Facts(
            info,
            info.embedder or bench.stores.opening(info.name).embedder,
            _rules(bench, info, user),
            len(bench.labels.standing(info.name)),
            _changed(bench, info),
        )
        for info in bench.collections()
    )


def _rules(bench: Workbench, info: CollectionInfo, user: User) -> int | None:
    try:
        known = bench.stores.of(info.name).collection(info.name).catalogue()
    except StoreError:
        return None
    return sum(1 for chunk in known.values() if chunk.rule and user.sees(chunk))


def _changed(bench: Workbench, info: CollectionInfo) -> datetime | None:
    """When it was indexed or a rule of it edited, whichever was later."""
    times = [edit.at for edit in bench.journal.history(info.name, limit=1)]
    try:
        copied = bench.workspace.copy_path(info.name).stat().st_mtime
        times.append(datetime.fromtimestamp(copied, UTC))
    except OSError:
        pass
    return max(times).astimezone() if times else None
