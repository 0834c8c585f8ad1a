"""An indexing job as a value, also as JSON: what to index, how, and into which collection. A Ray
cluster may embed it, if one machine would take days.

Source: docs/deployment.md#bulk. The cluster's machines need ragfilter and the model; only texts and
vectors travel. What is embedded is saved part by part, so an indexing that is interrupted goes on.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from ragfilter.errors import CollectionMissing, InputError, ModelError, RagfilterError, extra
from ragfilter.ingest.records import ReadOptions, Record
from ragfilter.model import Chunk
from ragfilter.models.embedders import OPENAI
from ragfilter.protocols import Embedder, Vectors
from ragfilter.stores.base import IndexReport
from ragfilter.workbench import Workbench, make_embedder, read_deployment

if TYPE_CHECKING:
    from ragfilter.stores.relabel import Relabelled

LOCAL = "local"
BATCH = 64
"""Texts of one task: what a lost worker costs."""
WAIT_S = 10.0
"""How long a cluster may take to answer."""


class RayEmbedder:
    """Unit vectors from the model `name`, which every worker of the cluster loads. `address` is
    Ray's, or "local" for a cluster of this machine's cores.

    Raises InputError if there is no such cluster, and DependencyError without Ray.
    """

    at_once = 64 * BATCH
    """Texts embedded before they are saved: enough to keep many workers busy."""

    def __init__(self, name: str, address: str) -> None:
        # It would report its use over the network.
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        with extra("ray"):
            import ray
        if name.startswith(OPENAI):
            raise InputError(
                f"{name} is embedded by its endpoint, not by Ray.", remedy="Leave out --ray."
            )
        if not ray.is_initialized():
            try:
                # Ray itself tries for minutes.
                host, colon, port = address.removeprefix("ray://").partition(":")
                if colon:
                    socket.create_connection((host, int(port)), WAIT_S).close()
                ray.init(
                    address if address != LOCAL else None,
                    log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False,
                )  # fmt: skip
            except (OSError, ValueError, RuntimeError) as error:
                raise InputError(
                    f"There is no Ray cluster at {address}: {error}",
                    remedy=f'Start one with `ray start --head`, or give "{LOCAL}".',
                ) from error
        self.name = name
        # Ray repeats a task whose worker ended, up to three times.
        self._embed = ray.remote(_embed)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors (float32), shape (len(texts), dimension). Raises ModelError."""
        import ray

        parts = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        try:
            return np.concatenate(ray.get([self._embed.remote(self.name, part) for part in parts]))
        except ray.exceptions.RayError as error:
            raise ModelError(
                f"Ray did not embed the texts: {error}",
                remedy="Run the same command again to continue from there.",
            ) from error


def _embed(model: str, texts: Sequence[str]) -> Vectors:
    return _loaded(model).embed(texts)


@cache
def _loaded(model: str) -> Embedder:
    return make_embedder(model, read_deployment(), ExitStack())


EVERY = 1000
"""So many records are read between two reports."""
MAX_LISTED = 1000
"""So many records that were left out are listed; the others are counted."""
Report = Callable[[str, int, int], None]
"""Is told what is done, how much of it, and of how much (0 if that is not known)."""


@dataclass(frozen=True, slots=True)
class Order:
    """One indexing. Without `source` the collection is restored from its own copy.

    `lenient`: records that cannot be used are left out and listed. `embedder` is the embedding
    model; empty takes the collection's, or for a new one the workspace's. `temporary`: the
    source is removed with the order.
    """

    collection: str
    source: str = ""
    reset: bool = False
    lenient: bool = False
    embedder: str = ""
    temporary: bool = False
    size: int = ReadOptions().size
    overlap: int = 0
    headings: bool = True
    columns: dict[str, str] = field(default_factory=dict)
    ray: str = ""
    """Address of the Ray cluster that embeds; empty embeds here."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record or file that was left out, and what to do about it."""

    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """What an order came to. `left_out` counts every refusal, also those that are not listed."""

    report: IndexReport
    refused: tuple[Refusal, ...] = ()
    left_out: int = 0
    labels: str = ""
    """How many labels were mapped to other chunks; empty if none had to be."""


def _counted(
    records: Iterable[Record], report: Report, refused: Sequence[Refusal]
) -> Iterator[Record]:
    """The records, counted as they are read: their number is not known in advance. Raises
    InputError if all were `refused`."""
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
    """Index what the order says. Rules that were edited stay as edited, also with `reset`.

    `refuse` is told what is left out. Both may raise to stop the work. Raises InputError,
    StoreError, ModelError.
    """
    name, pinned = order.collection, bench.deployment.embedding_model
    if order.embedder and pinned and order.embedder != pinned:
        raise InputError(
            f"This workspace is open with the embedding model {pinned}, not with {order.embedder}.",
            remedy=f"Index with {pinned}, or close the app that has it open.",
        )
    if bench.stores.opening(name).folder:
        raise InputError(
            f"The collection {name!r} is already open from a store that ragfilter does not own.",
            remedy="Use another name, or close it.",
            action="close",
        )
    # Imported here: the page starts a worker, and most visits index nothing.
    from ragfilter.ingest.load import load
    from ragfilter.stores.index import index, rebuild

    rules = partial(bench.journal.edited_rules, name)
    if not order.source:
        if bench.workspace.address:
            raise InputError(
                "There is no copy to rebuild from: the database itself holds the collection.",
                remedy="Restore the database from its backup, or index the source again.",
            )
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

    embedder: Embedder = (
        bench.load_embedder(order.embedder) if order.embedder else bench.recorded_embedder(name)
    )
    if order.ray:
        embedder = RayEmbedder(embedder.name, order.ray)
    reading = ReadOptions(
        order.size, order.overlap, order.headings, order.columns, skip if order.lenient else None
    )
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
    told = remap_labels(bench, name, before=labelled).words if labelled is not None else ""
    return Done(indexed, tuple(refused), left_out, told)


def keep_quotes(bench: Workbench, name: str) -> Mapping[str, Chunk] | None:
    """Keep what the labels of a collection judge, before its chunks change. Returns the labelled
    chunks; None without labels. Raises StoreError."""
    labelled = {label.chunk_id for label in bench.labels.standing(name)}
    chunks: Mapping[str, Chunk] = {}
    if labelled:
        with suppress(CollectionMissing):
            chunks = bench.stores.of(name).collection(name).chunks([*labelled])
            bench.labels.quote(name, chunks)
    return chunks if labelled else None


def remap_labels(
    bench: Workbench, name: str, *, before: Mapping[str, Chunk] = {}, dry: bool = False
) -> Relabelled:
    """Map the labels of a collection to the chunks that hold what they judge, unless their chunk is
    as it was `before`. Raises StoreError."""
    from ragfilter.stores.relabel import remap

    collection = bench.collection(name)
    chunks = collection.chunks([*collection.entries()])
    same = {i for i, chunk in before.items() if i in chunks and chunks[i].text == chunk.text}
    return remap(bench.labels, name, chunks.values(), same=same, dry=dry)
