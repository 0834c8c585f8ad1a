"""One chunk: its text, every layer's decision on it, its labels, its `query_must` rule with the rule's effect, and
small changes that would keep or drop it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from ragfilter.engine.pool import with_rules
from ragfilter.engine.replay import replay
from ragfilter.engine.whatif import find_changes, reword, why_no_change
from ragfilter.layers.registry import layer
from ragfilter.layers.visibility import without_hidden_refs
from ragfilter.model import Chunk, Hit, LayerTrace, PoolResult
from ragfilter.results.rows import rerank_score, visible_ids
from ragfilter.rules.match import compiled_rules
from ragfilter.rules.rule import AnyRule, read_rule, texts_of
from ragfilter.stores.label_book import GRADES, conflicts
from ragfilter.text import numbers
from ragfilter.text.titles import telling_titles
from ragfilter.ui.inspect import hit_table, reference_tree
from ragfilter.ui.kit import grid, problems
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import literal, message
from ragfilter.ui.resources import open_resources
from ragfilter.ui.session import state, widget
from ragfilter.ui.session.page_run import View

GRADE_BUTTONS = {2: "Relevant", 1: "Partly", 0: "Not relevant"}
"""The button for each grade, whose shortcut key is the grade."""
PARTS = TEXT, RULE, REFERENCES = "Text", "Rule", "References"
NAMED, TITLE_WIDTH = 3, 44
"""How many chunks are named at most where others change, and the characters of a title."""


def draw(view: View) -> None:
    """Draw the open chunk, or a hint on how to open one."""
    hit = _opened(view)
    if hit is None:
        # A link can name a hidden chunk. Show the same as for an unknown one.
        elements.empty(
            "No chunk is open.",
            "Click a point on the curve, a table row or a citation to read that chunk, edit its rule and follow its "
            "references.",
        )
        return
    chunk, asked = hit.chunk, view.asked
    if not chunk.loaded:
        chunk = view.resources.whole_chunk(chunk, asked.collection, asked.version)
    # Users see only references to chunks that they can see.
    shown_refs = chunk.refs if view.operator else without_hidden_refs(view.as_user.pool, view.user)(chunk).refs
    _head(view.shown, replace(hit, chunk=replace(chunk, refs=shown_refs)))
    _labels(view, chunk.id)
    match _part(view, chunk.id):
        case "Rule":
            with elements.row("rule-both", "top"):
                _text(view, chunk)
                with st.container(key="rule-side", gap="small"):
                    _rule(view, chunk)
        case "References":
            reference_tree.draw(view, chunk)
        case _:
            _text(view, chunk)


def finish(view: View) -> None:
    """Draw, below the text, the changes that would reverse the outcome, with their side effects. They take
    many replays, so text and curve do not wait for them."""
    hit = _opened(view)
    if hit is None or state.session().part != TEXT:
        return
    if all(each.id != hit.id for each in view.result.kept):
        _draw_changes(view.result, hit, "would bring it back")
        return
    # Folded, so that a second click after bringing it back does not drop it again.
    with st.expander("What would drop it", key="dropping", on_change="rerun") as dropping:
        if dropping.open:
            _draw_changes(view.result, hit, "would drop it")


def _opened(view: View) -> Hit | None:
    """The open chunk, if the user can see it."""

    def find(result: PoolResult) -> Hit | None:
        return next((hit for hit in (*result.hits, *result.pool.hits) if hit.id == state.session().chunk), None)

    hit = find(view.result)
    if hit is None or hit.id not in visible_ids(view.result, as_operator=view.operator):
        return None
    return find(view.shown) or hit


@problems.show_errors()
def _labels(view: View, chunk_id: str) -> None:
    """Draw the buttons that grade the chunk, and its existing labels."""
    asked, grade_now, undoable = view.asked, view.grades.get(chunk_id), state.session().label_history
    with elements.row("marks"):
        for grade, word in GRADE_BUTTONS.items():
            act = partial(_label, asked.collection, asked.query, chunk_id, grade)
            look = "primary" if grade_now == grade else "secondary"
            elements.button(word, f"mark-{grade}", act, type=look, shortcut=str(grade))
        elements.button("Undo label", "mark-undo", _undo, icon="undo", disabled=not undoable, shortcut="U")
    labels = [label for label in view.labels if label.chunk_id == chunk_id]
    words = "; ".join(label.words for label in labels)
    if grade_now is not None and all(label.made_by == "llm" for label in labels):
        words = "; ".join(filter(None, (f"Came with the collection: {GRADES.get(grade_now, grade_now)}", words)))
    if any(pair[0].chunk_id == chunk_id for pair in conflicts(view.labels)):
        words += ". They disagree, and the last one counts"
    if words:
        elements.draw(f'<p class="rf-aside">{elements.text(words)}.</p>')


@state.notice_errors()
def _label(collection: str, query: str, chunk_id: str, grade: int) -> None:
    labels = open_resources().bench.labels.label(collection, query, [chunk_id], grade, who=state.author())
    state.remember_labels(labels, chunk_id, collection, query)
    state.open_chunk(chunk_id)


@state.notice_errors()
def _undo() -> None:
    change = state.undo_labels(open_resources().bench.labels)
    if change is None:
        # The key was pressed again before the page disabled the button.
        return
    asked = state.session().asked
    if asked is None or (asked.collection, asked.query) != (change.collection, change.query):
        st.toast(message(f"Undone: the last label for “{change.query}” in {change.collection}."))
    else:
        state.open_chunk(change.chunk_id)


def _text(view: View, chunk: Chunk) -> None:
    with st.container(key="chunk-text"):
        if struck := elements.struck_text(view.shown, chunk.id, chunk.text):
            elements.draw(struck)
        else:
            elements.draw_chunk_text(chunk.text)


def _part(view: View, chunk_id: str) -> str:
    """Draw the choice of the chunk's part, kept when another chunk opens. Returns the part."""
    shown = state.session().part
    with elements.row("part-bar"):
        widget.draw_buttons("Part", PARTS, shown, "chunk-part", state.set_field, "part")
        elements.hint(
            "Text: what the chunk says, and the smallest changes that would bring it back or drop it. Rule: the "
            "questions it is meant for (query_must), with an editor and a preview. References: chunks that the judge's "
            "EXPAND would bring in."
        )
        ids = [row.id for row in hit_table.listed(view, view.rows)]
        with st.container(key="chunk-steps", horizontal=True, width="content", gap="xxsmall"):
            grid.draw_previous_next(ids, chunk_id, state.open_chunk, "chunk")
    return shown


def _head(result: PoolResult, hit: Hit) -> None:
    chunk = hit.chunk
    place = f"rank {hit.rank}" if hit.rank else "brought in by an expansion"
    scored = rerank_score(result, hit)
    score = "" if scored is None else f" · rerank {numbers.distance(scored)}"
    facts = [
        chunk.id,
        f"{place} · distance {numbers.distance(hit.distance)}{score}",
        f"found by {hit.found_by}" if hit.found_by != "query" else "",
        chunk.type,
        f"{chunk.source}{'' if chunk.page is None else f', page {chunk.page}'}",
        f"clearance {'unreadable' if chunk.clearance is None else chunk.clearance or 'public'}",
        f"department {chunk.department}" if chunk.department else "",
        f"refers to {numbers.chunk_count(len(chunk.refs))}" if chunk.refs else "",
    ]
    steps = "".join(_step(trace, hit.id) for trace in result.traces if trace.enabled)
    elements.chunk_head(chunk.name, facts, f'<ul class="rf-path">{steps}</ul>')


def _step(trace: LayerTrace, chunk_id: str) -> str:
    """One layer's decision on the chunk as HTML; empty if the chunk never reached the layer."""
    decision = next((each for each in trace.decisions if each.chunk_id == chunk_id), None)
    if decision is None:
        return ""
    sign = elements.outcome_sign(decision.outcome, decision.layer, decision.setting)
    name, words = elements.text(layer(trace.layer).title), elements.text(f"{decision.outcome}: {decision.reason}")
    return f"<li>{sign}<b>{name}</b> {words}</li>"


def _draw_changes(result: PoolResult, hit: Hit, words: str) -> None:
    offered, rewording = find_changes(result, hit.id), reword(result, hit.id)
    if not offered and rewording is None:
        elements.empty(f"No change was found that {words}.", why_no_change(result, hit.id))
        return
    elements.draw(f'<p class="rf-say">The smallest changes that {words}:</p>')
    titles = {each.id: each.chunk.name for each in result.hits}
    for n, change in enumerate(offered):
        elements.button(literal(change.words), f"whatif-{n}", state.change_settings, change.values, icon="tune")
        _along(change.came, change.went, titles)
    if rewording is not None:
        words = literal(f"Ask with: {', '.join(rewording.terms)}")
        about = "Adds the words that its rule requires, and asks again."
        elements.button(words, "whatif-ask", state.ask, rewording.question, icon="search", about=about)
        _along(rewording.came, rewording.went, titles)


def _along(came: Sequence[str], went: Sequence[str], titles: dict[str, str]) -> None:
    """Draw the other chunks that the change would add or remove."""
    words = [
        f"{numbers.chunk_count(len(ids))} {verb}: {_named([titles.get(i, i) for i in ids])}."
        for ids, verb in ((came, "would also be kept"), (went, "would be dropped"))
        if ids
    ]
    elements.aside(" ".join(words) or "Nothing else would change.")


def _named(names: Sequence[str]) -> str:
    return numbers.first_of(telling_titles(names, TITLE_WIDTH), NAMED, "; ")


@problems.show_errors()
def _rule(view: View, chunk: Chunk) -> None:
    """Draw the editor of the chunk's rule. Its code, which needs the journal, is imported when it is first drawn."""
    from ragfilter.ui.kit.rule_editor import editor, rule_effect, saving, visible_collection

    collection, resources, result = view.asked.collection, view.resources, view.shown

    def harm_of(chunk_id: str, rule: AnyRule | None) -> str:
        visible = visible_collection.current(collection, state.settings(), resources)
        return rule_effect.harm_of_rule(visible, chunk_id, rule, immediate=True)

    editor.draw(saving.Editing(chunk, collection, result.user, resources, partial(_effect, result, chunk), harm_of))
    saving.keep_in_browser()


def _effect(result: PoolResult, chunk: Chunk, rule: AnyRule | None) -> None:
    """Draw whether the question would keep the chunk, and how the kept list would change."""
    check = compiled_rules(()).scan(result.query).check(rule.text if rule else None)
    sign = elements.outcome_sign("kept" if check.passes else "dropped", "query_must")
    verb = "passes" if check.passes else "fails"
    why = check.reason.removeprefix("rule holds: ").removesuffix(".")
    line = f"{sign}This question <b>{verb}</b> the rule: {elements.text(why)}{'' if why.endswith('…') else '.'}"
    if not result.settings.query_must.enabled:
        line += " The Rules layer is off, so nothing changes."
    elif rule != read_rule(chunk.rule):
        line += f" Once saved: {_rule_changes(result, chunk, rule)}"
    elements.draw(f'<p class="rf-verdict">{line}</p>')


def _rule_changes(result: PoolResult, chunk: Chunk, rule: AnyRule | None) -> str:
    after = replay(with_rules(result.pool, texts_of({chunk.id: rule})), result.settings, result.user)
    old = {hit.id: hit.chunk.name for hit in result.kept}
    new = {hit.id: hit.chunk.name for hit in after.kept}
    entering = {i: new[i] for i in new if i not in old}
    leaving = {i: old[i] for i in old if i not in new}
    moved = (("Enters", [*entering.values()]), ("Leaves", [*leaving.values()]))
    parts = [f"<b>{word}</b> the kept list: {elements.text(_named(names))}." for word, names in moved if names]
    before, now = result.outcomes(), after.outcomes()
    # What the cutoff drops on one side.
    dropped = [*(before[i] for i in entering if i != chunk.id), *(now[i] for i in leaving if i != chunk.id)]
    if any(outcome.layer == "cutoff" for outcome in dropped):
        parts.append("Other chunks move because the cutoff does.")
    kept = f"{len(old)} → {len(new)} kept."
    return " ".join([*parts, kept]) if parts else "The kept list does not change."
