"""The command group `ragfilter rules`: how its commands select chunks (`--where field=value`, among those that the
user can see) and save rules through the journal, which only the workspace's owner uses. They first show the effect on
labelled queries, and ask for confirmation if these would lose relevant chunks."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from ragfilter.cli.label_options import QueryOptions
from ragfilter.cli.options import DryRun, Filtering, Place, Texts, text_argument
from ragfilter.cli.output import progress, tell, text_of, warn
from ragfilter.cli.program import make_group
from ragfilter.errors import InputError
from ragfilter.evaluate import query_sets
from ragfilter.evaluate.effect import Effect, GatheredQuestions, make_labelled
from ragfilter.evaluate.query_records import completed_pools
from ragfilter.model import Chunk, User
from ragfilter.rules import edits
from ragfilter.rules.overview import STORED, Checks, Listing, RuleFilter, make_listing
from ragfilter.rules.rule import Changes, RuleTexts, ValidChanges
from ragfilter.text.numbers import counted
from ragfilter.workbench import Workbench

FOUND = 1
"""The exit code if something needs attention."""
PLAIN = ("type", "source", "id", "title", "rule")
"""Fields whose condition depends only on the chunk."""
VALUES = {"rule": ("any", "none"), "state": STORED}

rules = make_group("rules")
OneChunk = Annotated[str | None, text_argument(metavar="CHUNK", help="List only this chunk's edits.")]
Where = Annotated[
    Texts,
    "Select chunks by field=value. Fields: type, source, id, title (* matches anything), "
    f"rule (any, none), state ({', '.join(STORED)}) and text (words). Repeatable: values of "
    "one field are alternatives, and every field must match.",
]


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected chunks, whole. `incomplete` says why the collection may be missing some."""

    chunks: tuple[Chunk, ...]
    incomplete: str = ""


def condition(text: str) -> tuple[str, str]:
    """Parse ``field=value``. Raises InputError."""
    name, equals, value = (part.strip() for part in text.partition("="))
    fields = (*PLAIN, "state", "text")
    if not equals or name not in fields:
        raise InputError(
            f"--where {text!r} is not a condition.", remedy=f"Write field=value; fields are {', '.join(fields)}."
        )
    if name == "text" and not value:
        # Every chunk has no words, so a script's empty variable would select all chunks.
        raise InputError("--where text= names no words.", remedy="Write text=WORDS.")
    if value not in VALUES.get(name, (value,)):
        raise InputError(
            f"--where {name}={value} is not valid.", remedy=f"Write {name}= one of {', '.join(VALUES[name])}."
        )
    return name, value


def _holds(chunk: Chunk, name: str, value: str) -> bool:
    """Whether a field of `PLAIN` has the value."""
    if name == "rule":
        return bool(chunk.rule) == (value == "any")
    pattern = ".*".join(map(re.escape, value.split("*")))
    return re.fullmatch(pattern, str(getattr(chunk, name)), re.IGNORECASE | re.DOTALL) is not None


def list_chunks(user: User, bench: Workbench, collection: str) -> Listing:
    """The listing of the chunks that `user` can see, with their states. Raises StoreError."""
    chunks = bench.collection(collection).entries()
    exported = bench.journal.edited_since_export(collection)
    visible = filter(user.sees, chunks.values())
    return make_listing(visible, Checks(), exported=exported)


def select_ids(bench: Workbench, collection: str, where: Sequence[str] | None, user: User) -> list[str]:
    """The ids of the chunks that match, in stored order. For each field named in `where`, one of
    its conditions must hold. Only chunks that `user` can see. Raises InputError, StoreError."""
    by_field: dict[str, list[str]] = {}
    for name, value in map(condition, where or ()):
        by_field.setdefault(name, []).append(value)
    states, texts = (by_field.pop(name, []) for name in ("state", "text"))
    ids = [
        chunk.id
        for chunk in bench.collection(collection).entries().values()
        if user.sees(chunk) and all(any(_holds(chunk, name, v) for v in values) for name, values in by_field.items())
    ]
    if states or texts:
        # Listed among all visible chunks, since some findings depend on the other rules.
        listing = list_chunks(user, bench, collection)
        filters = [RuleFilter(text, states=tuple(states)) for text in texts or [""]]
        listed = {row.id for each in filters for row in listing.find(each)}
        ids = [chunk_id for chunk_id in ids if chunk_id in listed]
    return ids


def select(
    bench: Workbench, collection: str, where: Sequence[str] | None = (), *, user: User, limit: int | None = None
) -> Selection:
    """The chunks that `select_ids` selects, at most `limit`. Warns if chunks may be missing. Raises
    InputError, and StoreError if the collection is empty."""
    store = bench.collection(collection)
    store.check_not_empty()
    chunks = store.chunks(select_ids(bench, collection, where, user)[:limit])
    warn(store.incomplete)
    return Selection(tuple(chunks.values()), store.incomplete)


@dataclass(frozen=True, slots=True)
class SaveOutcome:
    """The outcome of a change: its effect, if measured, and whether it was saved (`done`). `wanted`
    is False if labelled queries would lose relevant chunks and the user did not agree."""

    effect: Effect | None = None
    wanted: bool = True
    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving(QueryOptions):
    """Options that say whether to save a change of rules, what to measure first, and whether to
    ask. By default, all labelled queries of the workspace are measured, or none with `yes`."""

    yes: Annotated[bool, "--yes", "-y", "Save even if labelled queries lose recall."] = False
    dry_run: DryRun = False

    def weigh(self, rules: Changes, bench: Workbench, place: Place, filtering: Filtering) -> SaveOutcome:
        """Measure the change. Asks whether to save it if labelled queries would lose relevant chunks."""
        effect = None
        if rules and not (self.queries is None and self.yes):
            known = gather_labelled(self, bench, place, filtering, bare=True)
            effect = None if known is None else known.effect(rules)
        wanted = self.dry_run or self._agrees(effect)
        return SaveOutcome(effect, wanted, done=wanted and not self.dry_run)

    def save(
        self, rules: ValidChanges, expected: RuleTexts, bench: Workbench, place: Place, filtering: Filtering
    ) -> SaveOutcome:
        """Save `rules` as one change, unless it is not wanted. Raises what `edits.save_all` raises."""
        saved = self.weigh(rules, bench, place, filtering)
        if saved.done:
            store, who = bench.collection(place.collection), bench.deployment.user
            edits.save_all(store, bench.journal, rules=rules, expected=expected, who=who)
        return saved

    def _agrees(self, effect: Effect | None) -> bool:
        if effect is None or not effect.loses_relevant or self.yes:
            return True
        if sys.stdin.isatty():
            typer.echo(effect_text(effect), err=True, nl=False)
            return typer.confirm("Labelled queries would lose relevant chunks. Save?", err=True)
        tell("Nothing was saved: labelled queries would lose relevant chunks. Add --yes to save.")
        return False


def gather_labelled(
    options: QueryOptions, bench: Workbench, place: Place, filtering: Filtering, *, bare: bool = False
) -> GatheredQuestions | None:
    """The named queries, or else all labelled ones, with their pools; None without any. `bare`: they need no labels."""
    loaded, user = filtering.load()
    # Rules count even if the settings switch them off.
    settings = loaded.settings.with_values({"query_must.enabled": True})
    labels = options.read(bench, place, user, bare=bare)
    if labels is None:
        # The user did not ask for these queries, so do not pay an LLM for them.
        settings = settings.with_values({"judge.enabled": False})
        catalogue = bench.collection(place.collection).entries()
        labels = query_sets.everything(bench.labels, place.collection, catalogue, user)
        if labels is None:
            return None
    queries = labels.queries if bare and options.queries else labels.labelled
    store = place.backends(bench)
    pools = completed_pools(queries, settings, store, user, progress=progress("queries"))
    return make_labelled(pools, labels.qrels, settings, user)


def change_text(before: RuleTexts, after: RuleTexts) -> str:
    """The texts of rules before and after a change, as a diff."""
    return "".join(f"{i}\n- {before[i] or 'no rule'}\n+ {rule or 'no rule'}\n" for i, rule in after.items())


def effect_text(effect: Effect | None) -> str:
    """The effect of a change on queries as text, those that lose relevant chunks first."""
    if effect is None:
        return ""
    lines = []
    for row in effect.rows:
        others = [i for i in row.lost if i not in row.lost_relevant]
        changes = {"loses relevant": row.lost_relevant, "loses": others, "gains": row.gained}
        listed = "; ".join(f"{what} {', '.join(ids)}" for what, ids in changes.items() if ids)
        lines.append(f"{row.id}: {listed} ({row.query})")
    changed = f"{len(effect.rows)} of {counted(effect.queries, 'query')} change"
    if effect.before and effect.after:
        figures = {"precision": "precision", "recall": "recall", "F1": "f1"}
        pairs = {name: [getattr(side, of) for side in (effect.before, effect.after)] for name, of in figures.items()}
        changed += f": {', '.join(f'{name} {was:.3f} → {now:.3f}' for name, (was, now) in pairs.items())}"
    more = f"new search needed, which may find more chunks that pass: {counted(effect.short, 'query')}"
    return text_of(*lines, changed, more if effect.short else "")
