"""The rule editor in the chunk panel, with the rule's effect on the current question."""

from __future__ import annotations

from functools import partial

from ragfilter.engine.replay import replay, with_rules
from ragfilter.model import Chunk, PoolResult
from ragfilter.rules.match import rule_book
from ragfilter.text.titles import short_title
from ragfilter.ui.kit import problems
from ragfilter.ui.kit.rule_editor import desk, editor, rule_effect
from ragfilter.ui.kit.rule_editor.editor import Editing
from ragfilter.ui.look import html
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import Resources
from ragfilter.ui.session.visit import View

TITLE_WIDTH = 44


@problems.shown()
def draw(view: View, chunk: Chunk) -> None:
    """The editor of one chunk's rule. It reads the journal, which nothing else here needs."""
    asked, resources, result = view.asked, view.resources, view.shown
    preview = partial(_preview, result, chunk)
    guard = partial(_guard, asked.collection, resources)
    editor.draw(
        Editing(chunk, asked.collection, asked.version, result.user, resources, preview, guard)
    )


def _guard(collection: str, resources: Resources, chunk_id: str, text: str) -> str:
    return rule_effect.guard_at_once(
        desk.lay(collection, state.settings(), resources), chunk_id, text
    )


def _preview(result: PoolResult, chunk: Chunk, rule: str | None) -> None:
    """Draw whether the current question would keep the chunk, and how the kept list would
    change."""
    check = rule_book((rule,) if rule else ()).scan(result.query).check(rule)
    sign = html.outcome_sign("kept" if check.passes else "dropped", "query_must")
    verb = "passes" if check.passes else "fails"
    why = check.reason.removeprefix("rule holds: ")
    line = f"{sign}This question <b>{verb}</b> the rule: {html.text(_sentence(why))}"
    if not result.settings.query_must.enabled:
        line += " The query_must layer is off, so nothing changes."
    elif rule_effect.is_changed(chunk, rule):
        line += f" Once saved: {_changes(result, chunk, rule)}"
    html.draw(f'<p class="rf-verdict">{line}</p>')


def _sentence(reason: str) -> str:
    return reason if reason.endswith("…") else f"{reason}."


def _changes(result: PoolResult, chunk: Chunk, rule: str | None) -> str:
    after = replay(with_rules(result.pool, {chunk.id: rule}), result.settings, result.user)
    old = {hit.id: hit.chunk.name for hit in result.kept}
    new = {hit.id: hit.chunk.name for hit in after.kept}
    enters = [i for i in new if i not in old]
    leaves = [i for i in old if i not in new]
    parts = []
    for word, ids in (("Enters", enters), ("Leaves", leaves)):
        if ids:
            names = "; ".join(short_title(new.get(i) or old[i], TITLE_WIDTH) for i in ids)
            parts.append(f"<b>{word}</b> the kept list: {html.text(names)}.")
    kept = f"{len(old)} → {len(new)} kept."
    return " ".join(parts) + f" {kept}" if parts else "The kept list does not change."
