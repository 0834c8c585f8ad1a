"""Measures labelled queries one after the other, so that an early stop keeps what is done.

These are the effects of an evaluation: one search per query, and the rerank scores that its
variants need. Verdicts are asked for only if the current settings need them. `evaluate.records`
decides and counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from json import dumps

from ragfilter.engine.complete import settle
from ragfilter.engine.replay import Replays
from ragfilter.engine.retrieve import gather
from ragfilter.engine.search import Backends
from ragfilter.errors import InputError, SettingsError
from ragfilter.evaluate.beir import Labels
from ragfilter.evaluate.metrics import relevant_of
from ragfilter.evaluate.records import QueryRecord, record
from ragfilter.evaluate.run import PATIENT
from ragfilter.evaluate.sides import NO_LLM
from ragfilter.evaluate.variants import IN_FORCE, Variant
from ragfilter.layers import clearance
from ragfilter.model import Chunk, Pool, User


def measure(
    labels: Labels,
    variants: Sequence[Variant],
    backends: Backends,
    user: User | None = None,
    *,
    done: Collection[str] = (),
) -> Iterator[QueryRecord]:
    """Yield a record of every labelled query except those in `done`, as it is finished.

    Raises InputError if the judge is on and no LLM is configured, and what `gather` raises.
    """
    settings = next(v.settings for v in variants if v.name == IN_FORCE)
    if settings.judge.enabled and backends.chat is None:
        raise InputError("The judge is on and needs an LLM, and none is configured.", remedy=NO_LLM)
    user = clearance.viewer(user, settings)
    for query_id, grades in labels.qrels.items():
        if query_id not in done:
            pool = gather_for(labels.queries[query_id], variants, backends, user)
            yield record(query_id, pool, grades, variants, user)


def gather_for(text: str, variants: Sequence[Variant], backends: Backends, user: User) -> Pool:
    """The pool of a query as `user` sees it, with all that the variants need. Raises SettingsError
    if the settings in force do not apply to it; other variants that do not are left out by
    `record`."""
    settings = next(v.settings for v in variants if v.name == IN_FORCE)
    pool = clearance.visible(gather(text, settings, backends, user), user)
    replay = Replays().of
    for variant in variants:
        if variant.plain:
            continue
        patient = variant.settings.with_values(PATIENT)
        try:
            pool = settle(pool, patient, backends, user, replay=replay).pool
        except SettingsError:
            if variant.settings is settings:
                raise
    return pool


def visible(labels: Labels, catalogue: Mapping[str, Chunk], user: User) -> Labels:
    """The labels without those of chunks that no longer exist, which nothing can find, and of those
    that `user` may not see, since figures must not reveal them. Queries without any labels left are
    removed."""
    if user.unrestricted and not catalogue:
        # The store is too large to list its chunks.
        return labels
    qrels = {}
    for query_id, grades in labels.qrels.items():
        kept = {i: g for i, g in grades.items() if i in catalogue and user.sees(catalogue[i])}
        if kept:
            qrels[query_id] = kept
    return Labels(labels.queries, qrels)


def measurable(labels: Labels, catalogue: Mapping[str, Chunk], user: User) -> Labels:
    """The visible labels, without the queries that had relevant chunks and have none left: keeping
    nothing would look correct for them. Raises InputError if nothing relevant is left at all."""
    seen = visible(labels, catalogue, user)
    kept = {
        i: grades
        for i, grades in seen.qrels.items()
        if relevant_of(grades) or not relevant_of(labels.qrels[i])
    }
    there_was = any(map(relevant_of, labels.qrels.values()))
    if there_was and not any(map(relevant_of, kept.values())):
        raise InputError(
            "None of the chunks labelled as relevant is in the collection, as this user sees it.",
            remedy="Index those chunks, label others, or ask as a user who sees more.",
        )
    return Labels(labels.queries, kept)


def labels_version(labels: Labels) -> str:
    """A hash that changes with every labelled question and its labels."""
    asked = {i: labels.queries[i] for i in labels.qrels}
    text = dumps([asked, labels.qrels], sort_keys=True, ensure_ascii=True)
    return blake2b(text.encode(), digest_size=6).hexdigest()
