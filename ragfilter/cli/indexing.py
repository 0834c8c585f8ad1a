"""What `ragfilter index` does: records into a collection, or a collection from its own copy."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ragfilter.ingest.load import DEMOS, load
from ragfilter.protocols import Progress
from ragfilter.rules.edits import edited_rules
from ragfilter.stores.index import IndexReport, index, rebuild
from ragfilter.workbench import open_workbench, read_deployment

__all__ = ["DEMOS", "run"]

log = logging.getLogger(__name__)


def run(
    source: str,
    name: str,
    *,
    reset: bool,
    from_copy: bool,
    data_dir: Path | None,
    progress: Callable[[str], Progress],
) -> IndexReport:
    """Index `source` (or, `from_copy`, the collection's own copy) as the collection `name`.

    Rules that were edited stay as edited, also with `reset`. Raises InputError, StoreError,
    ModelError.
    """
    with open_workbench(read_deployment(data_dir=data_dir), kind="index") as bench:
        rules = edited_rules(bench.journal, name)
        if from_copy:
            report = rebuild(
                name, workspace=bench.workspace, rules=rules, progress=progress("chunks restored")
            )
        else:
            report = index(
                load(source, progress=progress("characters read")),
                name=name,
                workspace=bench.workspace,
                embedder=bench.embedder,
                reset=reset,
                rules=rules,
                progress=progress("texts embedded, chunks written"),
            )
    for warning in report.warnings:
        log.warning(warning)
    return report


def document(report: IndexReport) -> dict[str, Any]:
    """What `index --json` prints."""
    return {
        "collection": report.collection,
        "total": report.total,
        "added": report.added,
        "changed": report.changed,
        "unchanged": report.unchanged,
        "embedded": report.embedded,
        "not_in_source": report.not_in_source,
        "written": report.written,
        "warnings": list(report.warnings),
        "seconds": round(report.seconds, 3),
    }


def text(report: IndexReport) -> str:
    """The same in words."""
    parts = [
        f"{number} {word}"
        for number, word in (
            (report.added, "added"),
            (report.changed, "changed"),
            (report.unchanged, "unchanged"),
            (report.not_in_source, "no longer in the source"),
        )
        if number
    ]
    done = f" ({', '.join(parts)})" if parts else ""
    return f"{report.collection}: {report.total} chunks{done}, {report.seconds:.1f} s\n"
