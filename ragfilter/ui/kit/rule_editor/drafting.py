"""An LLM drafts a rule for the open chunk. The draft fills the editor, and nothing is saved.

Source: docs/design.md#drafting. The decisions:

- A button asks the LLM, in the background. The page keeps working, and the draft is there when the
  chunk is opened again. A failure leaves the editor's text as it is.
- The chunk is read again from the store, and sent only if the *user* may see it, even if an
  operator looks: hidden chunks are sent to no LLM.
- Unsaved text is set aside when a draft comes, and can be brought back.

`ragfilter.ui.kit.rule_editor.draft_note` draws it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.model import Chunk
from ragfilter.rules.draft import Draft, suggest
from ragfilter.rules.rule import read_rule
from ragfilter.ui.session import state
from ragfilter.ui.session.jobs import Job, Stoppable
from ragfilter.ui.session.resources import open_resources

HIDDEN = "The user may not see this chunk, so it is not sent to an LLM."
GONE = "This chunk is no longer in the collection. Ask the question again."
STOPPED = "Stopped. Nothing was changed."
REMEDIES = {
    "rule": "Draft again, start from the template, or use a larger model.",
    "chunk": "Write the rule by hand.",
    "model": "Try again.",
}
"""What to do if the failure itself does not say."""


@dataclass(frozen=True, slots=True)
class Drafted:
    """The outcome of the last request: a draft, or the `error` that prevented one.

    `texts` are this chunk's drafts as they were put into the editor, newest last. `same` is set if
    the draft equals the stored rule. `ring` holds the unsaved texts that were set aside; the first
    one is restored next.
    """

    error: str = ""
    draft: Draft | None = None
    texts: tuple[str, ...] = ()
    same: bool = False
    ring: tuple[str, ...] = ()


def of(chunk_id: str) -> Drafted:
    """The outcome of drafting a rule for this chunk in this session."""
    found: Drafted = _all().get(chunk_id, Drafted())
    return found


def forget(chunk_id: str) -> None:
    """Forget the drafts of a chunk, after its text was saved or discarded."""
    _all().pop(chunk_id, None)


def job(chunk_id: str, collection: str) -> Job[Draft] | None:
    """The running request for this chunk, None if there is none."""
    return _jobs().get((collection, chunk_id))


def collect(chunk: Chunk, collection: str) -> bool:
    """Put a finished draft of this chunk into the editor. Returns True while one is still being
    made."""
    found = job(chunk.id, collection)
    if found is None:
        return False
    if not found.done:
        return True
    del _jobs()[collection, chunk.id]
    _all()[chunk.id] = _taken(found.value(), chunk, of(chunk.id))
    return False


def begin(chunk_id: str, collection: str, rule: str | None) -> None:
    """Ask for a draft, in the background. `rule` is the stored rule that the author sees: saving
    the draft must not overwrite one that is stored in the meantime."""
    if chunk_id not in state.drafts():
        state.bases()[chunk_id] = rule
    before = replace(of(chunk_id), error="", draft=None)
    _all()[chunk_id] = before
    try:
        user, resources = state.user(), open_resources()
        # Read again: the chunk's text or clearance may have changed since the pool was gathered.
        chunk = resources.bench.collection(collection).chunks([chunk_id]).get(chunk_id)
        templates = resources.bench.templates()
    except RagfilterError as error:
        _all()[chunk_id] = replace(before, error=str(error))
        return
    chat = resources.bench.chat
    if chat is None:
        return
    if chunk is None or not user.sees(chunk):
        _all()[chunk_id] = replace(before, error=GONE if chunk is None else HIDDEN)
        return
    timeout_s = resources.deployment.answer_timeout_s

    def work(job: Job[Draft]) -> Draft:
        return suggest(chunk, Stoppable(chat, job.stop), timeout_s=timeout_s, templates=templates)

    _jobs()[collection, chunk_id] = resources.jobs.start(user, object(), work)


def stop(chunk_id: str, collection: str) -> None:
    """Abandon the running request."""
    found = _jobs().pop((collection, chunk_id), None)
    if found is not None:
        found.stop.set()
    _all()[chunk_id] = replace(of(chunk_id), error=STOPPED)


def swap(chunk_id: str, shown: str) -> None:
    """Bring the first text that was set aside into the editor, and set the current one aside."""
    found = of(chunk_id)
    first, *others = found.ring
    state.drafts()[chunk_id] = first
    _all()[chunk_id] = replace(found, ring=_without((*others, shown), first))


def _taken(made: Draft, chunk: Chunk, before: Drafted) -> Drafted:
    """Put the draft into the editor, or keep the failure to show next to it."""
    if made.rule is None:
        remedy = REMEDIES.get(made.failed, "")
        sentence = made.error if made.error.endswith(".") else f"{made.error}."
        told = f"{sentence[:1].upper()}{sentence[1:]} {remedy}".strip()
        return replace(before, error=told, draft=made)
    drafts: dict[str, str] = state.drafts()
    text, stood = made.rule.pretty, drafts.get(chunk.id)
    same = made.rule == read_rule(chunk.rule)
    if same:
        drafts.pop(chunk.id, None)
    else:
        drafts[chunk.id] = text
    ring = before.ring if stood is None else (stood, *before.ring)
    return Drafted(draft=made, texts=(*before.texts, text), same=same, ring=_without(ring, text))


def _without(ring: tuple[str, ...], text: str) -> tuple[str, ...]:
    return tuple(aside for aside in ring if aside != text)


def _all() -> dict[str, Drafted]:
    found: dict[str, Drafted] = st.session_state.setdefault("drafted", {})
    return found


def _jobs() -> dict[tuple[str, str], Job[Draft]]:
    """The running requests by collection and chunk."""
    found: dict[tuple[str, str], Job[Draft]] = st.session_state.setdefault("draft-jobs", {})
    return found
