"""Embeds the sentences of indexed chunks ahead of any question: at the end of `ragfilter index`, or
while nobody waits for the app.

Source: docs/design.md#parts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import monotonic

from ragfilter.answer.extractive import passages
from ragfilter.errors import RagfilterError
from ragfilter.models.embedder import OPENAI
from ragfilter.protocols import Progress
from ragfilter.stores import copies
from ragfilter.stores.sentences import Sentences
from ragfilter.stores.workspace import Workspace
from ragfilter.workbench import Workbench

log = logging.getLogger(__name__)

PART = 16
"""Sentences at once: as long as a question that is asked meanwhile may have to wait."""
LARGE_PART = 256
"""Sentences at once if nobody can ask meanwhile, which takes half the time."""
QUIET_S = 1.0
"""How long nobody must have waited for anything."""
MAX_SENTENCES = 50_000
"""Sentences of one collection; a larger one's are embedded when an answer needs them."""


class Preparation:
    """The sentences of the workspace's own collections that are still to be embedded. `is_busy`
    says whether somebody waits for something. `part` sentences are embedded together."""

    def __init__(
        self, bench: Workbench, sentences: Sentences, is_busy: Callable[[], bool], part: int = PART
    ) -> None:
        self._bench = bench
        self._sentences = sentences
        self._is_busy = is_busy
        self._part = part
        self._busy_until = -QUIET_S
        self._completed: dict[str, str] | None = None
        self._collection = self._mark = ""
        self._all: list[str] = []
        self.total = 0
        self._waiting: list[str] = []

    @property
    def waiting(self) -> int:
        """How many sentences of the present collection are still to be embedded."""
        return len(self._waiting)

    def step(self) -> bool:
        """Embed the next few sentences, unless somebody waits. Returns whether it did."""
        model = self._bench.embedder
        if model.name.startswith(OPENAI) or self._must_wait():
            return False
        try:
            if not self._waiting and not self._begun():
                return False
            part, self._waiting = self._waiting[: self._part], self._waiting[self._part :]
            if part:
                self._sentences.put(self._collection, model.name, part, model.embed(part))
            if not self._waiting:
                self._sentences.mark_complete(self._collection, self._mark, model.name, self._all)
        except RagfilterError as error:
            log.warning("the sentences of %s are not prepared: %s", self._collection, error)
            self._waiting = []
        return True

    def _must_wait(self) -> bool:
        now = monotonic()
        if self._is_busy():
            self._busy_until = now
        return now - self._busy_until < QUIET_S

    def _begun(self) -> bool:
        """Whether there is a collection whose content has changed, which is then the present
        one."""
        if self._completed is None:
            self._completed = self._sentences.completed()
        workspace, model = self._bench.workspace, self._bench.embedder.name
        database = workspace.pg()
        if database is not None:
            marks = {name: f"{model} {mark}" for name, mark in database.contents().items()}
        else:
            marks = dict(_copied(workspace, model))
        for gone in self._completed.keys() - marks.keys():
            self._sentences.forget(gone)
            del self._completed[gone]
        for name, mark in marks.items():
            if self._completed.get(name) == mark:
                continue
            # Also if the copy turns out to be damaged: it is not read again and again.
            self._collection, self._mark, self._completed[name] = name, mark, mark
            chunks = (
                copies.read_texts(workspace.copy_path(name))
                if database is None
                else database.texts(name)
            )
            texts = [text for chunk in chunks for text in passages(chunk)]
            self._all = list(dict.fromkeys(texts)) if len(texts) <= MAX_SENTENCES else []
            known = self._sentences.find(model, self._all)
            # Those of one length are computed together.
            self._waiting = sorted((text for text in self._all if text not in known), key=len)
            self.total = len(self._waiting)
            return True
        return False


def prepare(bench: Workbench, progress: Progress) -> None:
    """Embed all sentences that are still to be embedded, and report how many are done."""
    ahead = Preparation(bench, Sentences(bench.workspace), lambda: False, LARGE_PART)
    while ahead.step():
        progress(ahead.total - ahead.waiting, ahead.total)


def _copied(workspace: Workspace, model: str) -> Iterator[tuple[str, str]]:
    """The collections that have a copy, each with the mark of its content."""
    for name in workspace.copied():
        with suppress(OSError):
            at = workspace.copy_path(name).stat()
            yield name, f"{model} {at.st_mtime_ns} {at.st_size}"
