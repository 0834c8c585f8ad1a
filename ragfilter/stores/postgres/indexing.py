"""Index records into a collection in PostgreSQL.

Clearances change first, at once. What is embedded is kept part by part, so that a killed indexing
goes on from there, in whatever process. Everything else is written in one transaction at the end:
until then, questions are answered from the collection as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from time import perf_counter

from ragfilter.ingest.records import Record
from ragfilter.protocols import Embedder, Progress
from ragfilter.stores.chunked import check_embedder
from ragfilter.stores.copies import content_fingerprint, text_key
from ragfilter.stores.index import (
    Rules,
    Steps,
    bars_of,
    embed,
    report_of,
    row_of,
    unembedded,
    unique,
)
from ragfilter.stores.info import check_name
from ragfilter.stores.postgres.store import PgStore
from ragfilter.stores.report import IndexReport


def index(
    records: Iterable[Record],
    *,
    name: str,
    store: PgStore,
    embedder: Embedder,
    reset: bool = False,
    rules: Callable[[], Rules] = dict,
    progress: Progress | None = None,
) -> IndexReport:
    """Index `records` into the collection `name`. Unchanged chunks are not touched; with `reset`,
    those that the source no longer has are removed. `rules` says which rules were edited.

    `progress` counts embedded texts and written chunks together. Raises as `stores.index.index`
    does.
    """
    started = perf_counter()
    check_name(name)
    given = unique(records)
    with store.only_one(name):
        old = store.summary(name)
        if not reset:
            check_embedder(name, old.embedder if old else "", embedder.name)
        before = {} if old is None or reset else old.fingerprints
        fresh = [r for i, r in given.items() if before.get(i) != r.fingerprint]
        report = report_of(name, given, before, fresh, embedder)
        if not fresh:
            return replace(report, seconds=perf_counter() - started)
        vectors = store.parts(name, embedder=embedder.name)
        if old is not None:
            store.change_clearances(name, bars_of(given))
            if old.embedder == embedder.name:
                vectors |= store.vectors_of(name, [text_key(r.chunk.passage) for r in fresh])
        missing = unembedded(fresh, vectors)
        steps = Steps(progress, len(missing) + len(fresh))
        save = partial(store.save_part, name, embedder=embedder.name)
        vectors |= embed(missing, embedder, save, steps)
        prints = {**before, **{i: record.fingerprint for i, record in given.items()}}
        store.put(
            name,
            [row_of(record, vectors) for record in fresh],
            embedder=embedder.name,
            content=content_fingerprint(embedder.name, prints),
            reset=reset,
            rules=rules,
            progress=steps.add,
        )
        store.remove_parts(name)
    seconds = perf_counter() - started
    return replace(report, embedded=len(missing), written=len(fresh), seconds=seconds)
