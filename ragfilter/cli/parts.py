"""What the commands share: settings, an open bench, an answer, and the two output streams."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ragfilter.errors import CollectionMissing, InputError, SettingsError
from ragfilter.layers.strategies.registry import STRATEGIES, strategy
from ragfilter.model import User
from ragfilter.protocols import Progress
from ragfilter.settings import config as configuration
from ragfilter.text.characters import whole
from ragfilter.text.pace import Pace, in_words

if TYPE_CHECKING:
    from ragfilter.answer.context import Context
    from ragfilter.answer.stream import Answer, Prices
    from ragfilter.cli.options import Chosen
    from ragfilter.engine.backends import Backends
    from ragfilter.evaluate.beir import Labels
    from ragfilter.model import Chunk, Result
    from ragfilter.protocols import Collection
    from ragfilter.settings.config import Config
    from ragfilter.settings.deployment import Deployment
    from ragfilter.settings.schema import Settings
    from ragfilter.stores.chroma.store import CollectionInfo
    from ragfilter.workbench import Workbench

log = logging.getLogger(__name__)

UNUSABLE = 2
BAR = 30
UNSHOWN = "\N{REPLACEMENT CHARACTER}"
# A path or a name that would push the rest of a message out of sight.
_ENDLESS = re.compile(r"(\S{200})\S{200,}(\S{100})")
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def load_config(
    profile: str | None,
    file: Path | None,
    values: Sequence[str] | None,
    flags: Mapping[str, Mapping[str, Any]],
) -> Config:
    """The settings in force: `--set` wins over all but the `flags` with a name of their own.

    `flags`: name → what it sets, by path; a None was not given.
    """
    settings = [text for text in values or () if not _is_identity(text)]
    given = [configuration.Given("--set", dict(parse_set(text) for text in settings))]
    for name, paths in flags.items():
        there = {path: value for path, value in paths.items() if value is not None}
        given.append(configuration.Given(name, there))
    loaded = configuration.load(profile=profile, file=file, flags=given)
    for path, origin in loaded.origins.items():
        if origin.startswith(configuration.FROM_ENVIRONMENT):
            # Ours are meant for us; another program may have set the others for itself.
            ours = f"{configuration.FROM_ENVIRONMENT} {configuration.PREFIX}" in origin
            log.log(
                logging.INFO if ours else logging.WARNING,
                "%s = %s is set by the %s", path, loaded.settings.get(path), origin,
            )  # fmt: skip
    _tell_unread([path for each in given for path in each.values], loaded.settings)
    return loaded


def _tell_unread(paths: Sequence[str], settings: Settings) -> None:
    """Says which of the settings given here another cutoff strategy would read."""
    used = strategy(settings.cutoff.strategy).reads
    for path in paths:
        readers = [s.name for s in STRATEGIES if path in {f"cutoff.{name}" for name in s.reads}]
        if readers and path.removeprefix("cutoff.") not in used:
            log.warning(
                "%s changes nothing: the strategy is %s; it belongs to %s",
                path, settings.cutoff.strategy, ", ".join(readers),
            )  # fmt: skip


def user_of(
    level: int | None, departments: Sequence[str] | None, values: Sequence[str] | None
) -> User:
    """Who asks: ``--level`` and ``--department``, or the same as ``--set clearance.level=N``, as
    earlier versions had it. Raises SettingsError, InputError."""
    own = dict(parse_set(text) for text in values or () if _is_identity(text))
    text = own.get("clearance.level", "0")
    try:
        given = int(text)
    except ValueError:
        raise SettingsError(
            f"clearance.level = {text!r} (from --set) is not a valid level.",
            remedy="Give a whole number of at least 0: --level N.",
        ) from None
    names = departments or [own.get("clearance.department", "")]
    return User(given if level is None else level, tuple(map(whole, names)))


def _is_identity(text: str) -> bool:
    return text.partition("=")[0].strip() in ("clearance.level", "clearance.department")


def parse_set(text: str) -> tuple[str, str]:
    """``cutoff.gap_threshold=0.12`` → path and value. Raises SettingsError."""
    path, sign, value = text.partition("=")
    if not sign:
        raise SettingsError(
            f"--set {text}: the '=' is missing.", remedy="Write --set layer.field=value."
        )
    return path.strip(), value.strip()


def looking_first_at_k(settings: Settings) -> Settings:
    """`settings` whose quality layer looks at the first k, and at no fewer in the end.

    Source: Adaptive Retrieval System, "Core Method" (its top_k overrides MIN_TOP_K).
    """
    k = settings.retrieval.k
    last = max(k, settings.quality.max_top_k)
    return settings.with_values({"quality.min_top_k": k, "quality.max_top_k": last})


def open_for(data_dir: Path | None, kind: str) -> Workbench:
    from ragfilter.workbench import open_workbench, read_deployment

    return open_workbench(read_deployment(data_dir=data_dir), kind=kind)


def backends(bench: Workbench, name: str) -> Backends:
    """The sources of a collection that holds something. Raises CollectionMissing."""
    backends = bench.backends(name)
    if not backends.collection.count():
        raise CollectionMissing(
            f"The collection {name!r} is empty.", remedy="Index chunks into it.", action="index"
        )
    return backends


def ask(text: str, loaded: Config, backends: Backends, user: User) -> Result:
    from ragfilter.engine import retrieve as gather

    tell_learned_elsewhere(loaded.settings, backends)
    # Not pushed into the store, whose own filter is slow in a large collection.
    return gather.run(text, loaded.settings, backends, user, wide=True)


def tell_learned_elsewhere(settings: Settings, backends: Backends) -> None:
    """Says where the cutoff was learned on another collection."""
    from ragfilter.report.fitted import learned_elsewhere

    told = learned_elsewhere(settings, backends.collection.name)
    if told:
        log.warning("%s", told)


def _chunks_of(labels: Labels, collection: Collection) -> Mapping[str, Chunk]:
    """The labelled chunks that are in the collection, by id, and maybe others."""
    from ragfilter.engine.complete import known

    return known(collection, {i for grades in labels.qrels.values() for i in grades})


def unknown_labels(labels: Labels, backends: Backends, user: User, settings: Settings) -> list[str]:
    """The labelled ids that the collection does not hold for `user`, told on standard error: a
    hidden chunk is spoken of like one that does not exist.

    Raises InputError if it holds none of them.
    """
    from ragfilter.evaluate.labels import unknown
    from ragfilter.layers.clearance import viewer

    where = backends.collection
    user = viewer(user, settings)
    there = {i for i, chunk in _chunks_of(labels, where).items() if user.sees(chunk)}
    missing, total = unknown(labels, there, collection=where.name)
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        log.warning(
            "%d of %d labelled ids %s not in the collection %s, such as %r: their labels are left "
            "out. Index those chunks, or label others",
            len(missing), total, verb, where.name, missing[0],
        )  # fmt: skip
    return list(missing)


def visible_labels(
    labels: Labels, backends: Backends, user: User, settings: Settings
) -> tuple[Labels, list[str]]:
    """The labels that `user` may see, and the labelled ids that the collection does not hold for
    them, which are told, as are the queries that have nothing relevant left.

    Raises InputError if there are labels, and no relevant one is left.
    """
    from ragfilter.evaluate.measuring import measurable
    from ragfilter.layers.clearance import viewer

    missing = unknown_labels(labels, backends, user, settings)
    there = _chunks_of(labels, backends.collection)
    seen = measurable(labels, there, viewer(user, settings))
    lost = [i for i in labels.qrels if i not in seen.qrels]
    if lost:
        log.warning(
            "%d of %d labelled queries, such as %r: none of their relevant chunks is in the "
            "collection %s, as this user sees it, so they are left out",
            len(lost), len(labels.qrels), lost[0], backends.collection.name,
        )  # fmt: skip
    return seen, missing


def read_labels(
    chosen: Chosen,
    queries: str,
    qrels: str | None,
    bench: Workbench,
    collection: str,
    user: User,
    settings: Settings,
    *,
    llm: bool = False,
) -> Labels:
    """The labelled queries of two files, of a demo, or of a set that the workspace knows, with the
    labels that `user` may see. What the collection does not hold is told.

    Raises InputError if no label is left.
    """
    from ragfilter.evaluate import labels, stored

    found = stored.find(bench.labels, collection, queries, qrels, llm=llm)
    found = labels.choose(found, only=chosen.only or (), leave_out=chosen.leave_out or ())
    return visible_labels(found, backends(bench, collection), user, settings)[0]


def tell_agreement(bench: Workbench, collection: str, user: User, settings: Settings) -> None:
    """Says how far an LLM's labels agree with people's, over what `user` may see."""
    from ragfilter.evaluate import stored
    from ragfilter.layers.clearance import viewer
    from ragfilter.stores.labels import visible_labels

    catalogue = bench.collection(collection).entries()
    seen = visible_labels(bench.labels.standing(collection), catalogue, viewer(user, settings))
    tell(stored.agreed(seen).told)


def warn_few(labels: Labels) -> None:
    """Say so where there are too few labelled queries for figures to say much."""
    from ragfilter.evaluate import told

    said = told.few(len(labels.labelled))
    if said:
        log.warning("%s", said)


def warn_in_sample(settings: Settings, labels: Labels, collection: str, side: str = "") -> None:
    """Say so where the cutoff (of a `side`) was learned from these very labels of a collection, or
    may have been from some of them."""
    from ragfilter.evaluate import told
    from ragfilter.evaluate.measuring import labels_version

    said = told.in_sample(settings, labels_version(labels))
    said = said or told.near_sample(settings, collection)
    if said:
        log.warning("%s", f"{side}: {said}" if side else said)


def query_name(query_id: str, text: str, width: int) -> str:
    """What a query is called in a table: its id, or its text where the id is only made of that."""
    from ragfilter.report import short_title
    from ragfilter.stores.labels import query_id as made_of

    return short_title(text if query_id == made_of(text) else query_id, width)


def answer_of(result: Result, bench: Workbench) -> tuple[Answer, Context]:
    from ragfilter.answer import context
    from ragfilter.answer import stream as answer

    where = bench.deployment
    packed = context.pack(result.kept, result.settings)
    name = bench.chat.name if bench.chat else ""
    known = bench.answers.get(result.query, packed, name, prices(where))
    if known is not None:
        return known, packed
    made = answer.answer(
        result.query,
        packed,
        bench.chat,
        bench.embedder,
        timeout_s=where.answer_timeout_s,
        prices=prices(where),
    )
    bench.answers.put(made)
    return made, packed


def prices(where: Deployment) -> Prices | None:
    """What tokens cost, None if no price is set."""
    from ragfilter.answer.stream import Prices

    given = Prices(where.price_prompt, where.price_completion, where.currency)
    return given if given.prompt or given.completion else None


def state(info: CollectionInfo) -> str:
    if not info.ours:
        return "not indexed by ragfilter"
    return info.incomplete or "complete"


def progress(what: str) -> Progress:
    """A bar on standard error, one line that is overwritten; without a terminal, nothing."""
    pace, width = Pace(), 0

    def show(done: int, total: int) -> None:
        if not sys.stderr.isatty():
            return
        filled = BAR * done // total if total else BAR
        bar = "#" * filled + "." * (BAR - filled)
        left = "" if done >= total else in_words(pace.left(done, total))
        line = f"[{bar}] {done:,} of {total:,} {what}{left and ', '}{left}"
        nonlocal width
        # Padded where the line before was longer.
        typer.echo(f"\r{line:<{width}}", err=True, nl=done >= total)
        width = len(line)

    return show


@contextlib.contextmanager
def at_the_end(report: Callable[[], None]) -> Iterator[None]:
    """Report what was done, even if it was interrupted or failed."""
    try:
        yield
    finally:
        report()


def dumps(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def emit(text: str) -> None:
    """Write the result. A reader that has gone away (`| head`) is no error.

    What a terminal would obey rather than show (a chunk may hold it) is replaced; a file or a pipe
    gets every character.
    """
    try:
        # A file's name may hold bytes that are no text.
        text = whole(text)
        sys.stdout.write(_OBEYED.sub(UNSHOWN, text) if sys.stdout.isatty() else text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Otherwise the interpreter would fail once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except UnicodeEncodeError as error:
        raise InputError(
            f"Standard output cannot show {error.object[error.start]!r}: it is set to "
            f"{error.encoding}.",
            remedy="Set PYTHONIOENCODING=utf-8.",
        ) from None
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise InputError(
            f"Standard output cannot be written: {error.strerror}.", remedy="Make room there."
        ) from None


def tell(notice: str) -> None:
    """One line on standard error, where there is something to tell."""
    if notice:
        typer.echo(f"ragfilter: {notice}", err=True)


def fail(message: str) -> int:
    """One line on standard error, whatever the message holds; the exit code."""
    line = _ENDLESS.sub(r"\1…\2", " ".join(message.split()))
    tell(line)
    return UNUSABLE


def usage_hint(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    return f"See `{context.command_path if context else 'ragfilter'} --help`."
