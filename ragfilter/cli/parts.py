"""What the commands share: settings, an open workbench, an answer, and the two output streams."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ragfilter.answer import context
from ragfilter.answer.context import Context
from ragfilter.answer.stream import Answer, AnswerStream
from ragfilter.engine import retrieve as gather
from ragfilter.engine.backends import Backends
from ragfilter.errors import InputError, SettingsError
from ragfilter.judge.call import NO_LLM
from ragfilter.layers.strategies.registry import STRATEGIES, strategy
from ragfilter.model import PoolResult, User
from ragfilter.protocols import ChatModel, Progress
from ragfilter.report import waits_for_judge
from ragfilter.report.fitted import learned_elsewhere
from ragfilter.settings import config as configuration
from ragfilter.settings.config import Config
from ragfilter.settings.profiles import Fit
from ragfilter.settings.schema import Settings
from ragfilter.text.characters import whole
from ragfilter.text.pace import Pace, in_words

if TYPE_CHECKING:
    from ragfilter.workbench import Workbench

log = logging.getLogger(__name__)

UNUSABLE = 2
BAR = 30
UNSHOWN = "\N{REPLACEMENT CHARACTER}"
# For a path or name so long that it would push the rest of a message out of sight.
_ENDLESS = re.compile(r"(\S{200})\S{200,}(\S{100})")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def load_config(
    profile: str | None,
    file: Path | None,
    values: Sequence[str] | None,
    flags: Mapping[str, Mapping[str, Any]],
) -> Config:
    """The settings for a command. `--set` overrides everything except the dedicated `flags`.

    `flags`: name → the values it sets, by path. None means the flag was not given.
    """
    given = [configuration.Given("--set", dict(map(parse_set, values or ())))]
    for name, paths in flags.items():
        there = {path: value for path, value in paths.items() if value is not None}
        given.append(configuration.Given(name, there))
    loaded = configuration.load(profile=profile, file=file, flags=given)
    for path, origin in loaded.origins.items():
        if origin.startswith(configuration.FROM_ENVIRONMENT):
            # Our own variables are meant for us; the others may have been set for other programs.
            ours = f"{configuration.FROM_ENVIRONMENT} {configuration.PREFIX}" in origin
            log.log(
                logging.INFO if ours else logging.WARNING,
                "%s = %s is set by the %s", path, loaded.settings.get(path), origin,
            )  # fmt: skip
    _tell_unread([path for each in given for path in each.values], loaded.settings)
    return loaded


def _tell_unread(paths: Sequence[str], settings: Settings) -> None:
    """Warn about settings given here that only another cutoff strategy reads."""
    used = strategy(settings.cutoff.strategy).reads
    for path in paths:
        readers = [s.name for s in STRATEGIES if path in {f"cutoff.{name}" for name in s.reads}]
        if readers and path.removeprefix("cutoff.") not in used:
            log.warning(
                "%s changes nothing: the strategy is %s; it belongs to %s",
                path, settings.cutoff.strategy, ", ".join(readers),
            )  # fmt: skip


def parse_set(text: str) -> tuple[str, str]:
    """Parse ``cutoff.gap_threshold=0.12`` into path and value. Raises SettingsError."""
    path, sign, value = text.partition("=")
    if not sign:
        raise SettingsError(
            f"--set {text}: the '=' is missing.", remedy="Write --set layer.field=value."
        )
    return path.strip(), value.strip()


def refuse_beside(option: str, **others: object) -> None:
    """Refuse the options that have no effect because `option` was given: their names, with their
    values. Raises InputError for the first one that was given too."""
    for name in _given(others):
        raise InputError(
            f"{name} has no effect beside {option}.", remedy="Leave out one of the two."
        )


def refuse_without(option: str, **others: object) -> None:
    """Refuse the options that have no effect because `option` was not given; as above."""
    for name in _given(others):
        raise InputError(
            f"{name} belongs to {option}.", remedy=f"Add {option}, or leave out {name}."
        )


def _given(options: Mapping[str, object]) -> Iterator[str]:
    for name, value in options.items():
        if value:
            yield name if name.isupper() else f"--{name.replace('_', '-')}"


def looking_first_at_k(settings: Settings) -> Settings:
    """`settings` whose quality layer looks at the first k hits to begin with, and at no fewer
    overall.

    Source: Adaptive Retrieval System, "Core Method" (its top_k overrides MIN_TOP_K).
    """
    k = settings.retrieval.k
    last = max(k, settings.quality.max_top_k)
    return settings.with_values({"quality.min_top_k": k, "quality.max_top_k": last})


def open_for(data_dir: Path | None, kind: str) -> Workbench:
    from ragfilter.workbench import open_workbench, read_deployment

    return open_workbench(read_deployment(data_dir=data_dir), kind=kind)


def backends(bench: Workbench, name: str) -> Backends:
    """The backends of a collection that has chunks. Raises StoreError."""
    backends = bench.backends(name)
    bench.collection(name).check_not_empty()
    return backends


def ask(text: str, settings: Settings, backends: Backends, user: User) -> PoolResult:
    tell_learned_elsewhere(settings, backends)
    # Not pushed into the store, whose own filter is slow for large collections.
    result = gather.run(text, settings, backends, user, wide=True)
    if backends.chat is None and waits_for_judge(result):
        log.warning("The judge %s.", NO_LLM)
    return result


def tell_learned_elsewhere(settings: Settings, backends: Backends) -> None:
    """Warn if the settings were learned or tuned on another collection, model or space."""
    collection = backends.collection
    here = Fit(collection.name, backends.embedder.name, collection.space)
    if told := learned_elsewhere(settings, here):
        log.warning("%s", told)


def answer_of(result: PoolResult, bench: Workbench) -> tuple[Answer, Context]:
    """The answer to the query, with its context. If the LLM fails, the extractive answer with the
    LLM's error, prompt and costs."""
    packed = context.pack(result.kept, result.settings)
    name = bench.chat.name if bench.chat else ""
    known = bench.answers.get(result.query, packed, name, bench.prices)
    if known is not None:
        return known, packed

    def read(chat: ChatModel | None) -> Answer:
        timeout_s = bench.deployment.answer_timeout_s
        return AnswerStream(
            result.query, packed, chat, bench.embedder, timeout_s=timeout_s, prices=bench.prices
        ).read()

    made = read(bench.chat)
    bench.answers.put(made)
    if made.error and not made.extractive and not (quoted := read(None)).error:
        made = replace(
            made, text=quoted.text, citations=quoted.citations, unknown_citations=(),
            model=quoted.model, extractive=True, doubt=quoted.doubt,
        )  # fmt: skip
    return made, packed


def progress(what: str) -> Progress:
    """A progress bar on standard error, on one line that is overwritten; nothing without a
    terminal. Without a total it is a count."""
    pace, width = Pace(), 0

    def show(done: int, total: int) -> None:
        if not sys.stderr.isatty():
            return
        nonlocal width
        if total == 0 < done:
            line, is_done = f"{done:,} {what}", False
        else:
            filled = BAR * done // total if total else BAR
            bar = "#" * filled + "." * (BAR - filled)
            is_done = done >= total
            left = "" if is_done else in_words(pace.left(done, total))
            line = f"[{bar}] {done:,} of {total:,} {what}{left and ', '}{left}"
        # Padded to cover a longer previous line.
        typer.echo(f"\r{line:<{width}}", err=True, nl=is_done)
        width = len(line)

    return show


@contextlib.contextmanager
def at_the_end(report: Callable[[], None]) -> Iterator[None]:
    """Report what was done, even after an interruption or failure."""
    try:
        yield
    finally:
        report()


def emit(result: object, *, as_file: bool = False) -> bool:
    """Write the result: a text, or a document as JSON. Returns whether a file or pipe took all of
    it. It is not an error if the reader has gone away (`| head`).

    Control characters that a terminal would execute (a chunk may contain some) are replaced; a file
    or pipe gets every character. Characters that the encoding of standard output lacks are escaped
    in JSON and replaced in a text, but a text that is written `as_file` is UTF-8 like any file.
    """
    shown = sys.stdout.isatty()
    if isinstance(result, str):
        # A file's name may contain bytes that are not valid text.
        text = whole(result)
        if as_file and not shown and isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
    else:
        text = whole(json.dumps(result, ensure_ascii=False, allow_nan=False, indent=2) + "\n")
        text = _escaped(text, sys.stdout.encoding)
    try:
        sys.stdout.write(_OBEYED.sub(UNSHOWN, text) if shown else text)
        sys.stdout.flush()
    except OSError as error:
        # Otherwise the interpreter would fail again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise InputError(
                f"Standard output cannot be written: {error.strerror}.",
                remedy="Free up space there.",
            ) from None
        return False
    return not shown


def _escaped(document: str, encoding: str | None) -> str:
    """JSON that `encoding` can represent."""
    try:
        document.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], document)
    return document


def tell(notice: str) -> None:
    """Write one line to standard error, unless it is empty."""
    if notice:
        typer.echo(f"ragfilter: {notice}", err=True)


def fail(message: str) -> int:
    """Write one line to standard error, whatever the message contains. Returns the exit code."""
    line = _ENDLESS.sub(r"\1…\2", " ".join(message.split()))
    tell(line)
    return UNUSABLE
