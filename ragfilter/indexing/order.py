"""An indexing job as a value that JSON can hold: what to index, how, and into which collection. A Ray cluster can embed
it if one machine would take days. Source: docs/deployment.md#bulk. The cluster's machines need ragfilter and the model;
only texts and vectors are sent. Embeddings are saved part by part, so an interrupted job can be resumed."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from ragfilter.errors import CollectionMissing, InputError, ModelError, RagfilterError, extra
from ragfilter.ingest.records import PLAIN, ReadOptions, Record
from ragfilter.model import Chunk
from ragfilter.models.embedders import OPENAI
from ragfilter.protocols import Embedder, Vectors
from ragfilter.settings.deployment import read_deployment
from ragfilter.stores.base import IndexReport
from ragfilter.workbench import Workbench, make_embedder

if TYPE_CHECKING:
    from ragfilter.stores.relabel import Relabelled

LOCAL = "local"
BATCH = 64
"""Texts per task, which are embedded again if its worker dies."""
WAIT_S = 10.0
"""Timeout for connecting to a cluster."""


class RayEmbedder:
    """Embeds with the model `name`, which every worker of the cluster loads. `address` is Ray's, or "local" for a
    cluster of this machine's cores. Raises InputError if there is no such cluster, and DependencyError without Ray."""

    at_once = 64 * BATCH
    """Texts to embed between two saves: enough to keep many workers busy."""

    def __init__(self, name: str, address: str) -> None:
        # Otherwise, Ray reports usage over the network.
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        with extra("ray"):
            import ray
        if name.startswith(OPENAI):
            raise InputError(f"{name} is embedded by its endpoint, not by Ray.", remedy="Leave out --ray.")
        if not ray.is_initialized():
            try:
                # Connect first, because Ray itself retries for minutes.
                host, colon, port = address.removeprefix("ray://").partition(":")
                if colon:
                    socket.create_connection((host, int(port)), WAIT_S).close()
                ray.init(
                    address if address != LOCAL else None,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    include_dashboard=False,
                )
            except (OSError, ValueError, RuntimeError) as error:
                message = f"There is no Ray cluster at {address}: {error}"
                raise InputError(message, remedy=f'Start one with `ray start --head`, or give "{LOCAL}".') from error
        self.name = name
        # Ray retries a task whose worker died up to three times.
        self._embed = ray.remote(_embed)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors (float32), shape (len(texts), dimension). Raises ModelError."""
        import ray

        parts = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        try:
            return np.concatenate(ray.get([self._embed.remote(self.name, part) for part in parts]))
        except ray.exceptions.RayError as error:
            message = f"Ray did not embed the texts: {error}"
            raise ModelError(message, remedy="Run the same command again to continue from there.") from error


def _embed(model: str, texts: Sequence[str]) -> Vectors:
    return _loaded(model).embed(texts)


@cache
def _loaded(model: str) -> Embedder:
    return make_embedder(model, read_deployment(), ExitStack())


EVERY = 1000
"""Number of records read between two reports."""
MAX_LISTED = 1000
"""Maximum number of listed refusals; further ones are only counted."""
Report = Callable[[str, int, int], None]
"""Called with the phase, the number done, and the total (0 if unknown)."""


@dataclass(frozen=True, slots=True)
class Order:
    """One indexing job. Without `source`, the collection is restored from its copy. `lenient`: unusable records are
    left out and listed. `embedder` is the embedding model; if empty, the collection's or, for a new collection, the
    workspace's. `temporary`: the source is removed with the job."""

    collection: str
    source: str = ""
    reset: bool = False
    lenient: bool = False
    embedder: str = ""
    temporary: bool = False
    reading: ReadOptions = PLAIN
    ray: str = ""
    """Address of the Ray cluster that embeds; if empty, this process embeds."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record or file that was left out, and what to do about it."""

    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a job. `left_out` counts all refusals, even those that are not listed."""

    report: IndexReport
    refused: tuple[Refusal, ...] = ()
    left_out: int = 0
    labels: str = ""
    """How many labels were mapped to other chunks, in words; empty if none."""


def _counted(records: Iterable[Record], report: Report, refused: Sequence[Refusal]) -> Iterator[Record]:
    """Yield the records, reporting their count, as their total is unknown. Raises InputError if all were `refused`."""
    number = 0
    for number, record in enumerate(records, start=1):
        if number % EVERY == 0:
            report("records read", number, 0)
        yield record
    if not number and refused:
        raise InputError(f"No record can be used. {refused[0].message}", remedy=refused[0].remedy)


def carry_out(
    order: Order,
    bench: Workbench,
    report: Report = lambda *_: None,
    refuse: Callable[[Refusal], None] = lambda refusal: None,
) -> Done:
    """Run the job. Edited rules are kept, even with `reset`. `refuse` is called with what is left out. It and `report`
    may raise to stop the job. Raises InputError, StoreError, ModelError."""
    name, pinned = order.collection, bench.deployment.embedding_model
    if order.embedder and pinned and order.embedder != pinned:
        message = f"This workspace is open with the embedding model {pinned}, not with {order.embedder}."
        raise InputError(message, remedy=f"Index with {pinned}, or close the app that has it open.")
    if bench.stores.opening(name).folder:
        message = f"The collection {name!r} is already open from a store that ragfilter does not own."
        raise InputError(message, remedy="Use another name, or close it.", action="close")
    # Imported here: the page starts a worker, and most visits index nothing.
    from ragfilter.ingest.load import load
    from ragfilter.stores.indexer import index, rebuild

    rules = partial(bench.journal.edited_rules, name)
    if not order.source:
        if bench.workspace.address:
            message = "There is no copy to rebuild from: the database itself holds the collection."
            raise InputError(message, remedy="Restore the database from its backup, or index the source again.")
        restored = partial(report, "chunks restored")
        return Done(rebuild(name, workspace=bench.workspace, rules=rules(), progress=restored))
    refused: list[Refusal] = []
    left_out = 0

    def skip(error: RagfilterError) -> None:
        nonlocal left_out
        left_out += 1
        if left_out <= MAX_LISTED:
            refused.append(Refusal(error.message, error.remedy))
            refuse(refused[-1])

    embedder: Embedder = bench.load_embedder(order.embedder) if order.embedder else bench.recorded_embedder(name)
    if order.ray:
        embedder = RayEmbedder(embedder.name, order.ray)
    reading = replace(order.reading, skip=skip) if order.lenient else order.reading
    labelled = keep_quotes(bench, name)
    indexed = index(
        _counted(load(order.source, reading=reading), report, refused),
        name=name,
        workspace=bench.workspace,
        embedder=embedder,
        reset=order.reset,
        rules=rules,
        progress=partial(report, "texts embedded, chunks written"),
    )
    notice = remap_labels(bench, name, before=labelled).words if labelled is not None else ""
    return Done(indexed, tuple(refused), left_out, notice)


def keep_quotes(bench: Workbench, name: str) -> Mapping[str, Chunk] | None:
    """Save the quotes that labels judge before chunks change. Returns labelled chunks or None. Raises StoreError."""
    labelled = {label.chunk_id for label in bench.labels.standing(name)}
    chunks: Mapping[str, Chunk] = {}
    if labelled:
        with suppress(CollectionMissing):
            collection = bench.stores.of(name).collection(name)
            chunks = collection.chunks([*labelled])
            if chunks.keys() & {*bench.labels.unquoted(name).values()}:
                bench.labels.quote(name, collection.chunks([*collection.entries()]))
    return chunks if labelled else None


def remap_labels(bench: Workbench, name: str, *, before: Mapping[str, Chunk] = {}, dry: bool = False) -> Relabelled:
    """Map a collection's labels to the chunks that now contain the judged quotes, unless their
    chunk has the same text as `before`. Raises StoreError."""
    from ragfilter.stores.relabel import remap

    collection = bench.collection(name)
    chunks = collection.chunks([*collection.entries()])
    same = {i for i, chunk in before.items() if i in chunks and chunks[i].text == chunk.text}
    return remap(bench.labels, name, chunks.values(), same=same, dry=dry)
