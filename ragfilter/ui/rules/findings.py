"""Findings about the filtered chunks in one table: problems in their rules, and rules proposed for
families of chunks or drafted by an LLM. Shows their effect, and applies one or all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

import pandas as pd
import streamlit as st

from ragfilter.evaluate.effect import SuggestedRules, suggest
from ragfilter.rules.lint import Finding, by_severity, fix_rules, rules_of
from ragfilter.rules.rule import ValidChanges, place_name, read_rule
from ragfilter.stores.label_book import ASKED
from ragfilter.ui import jobs
from ragfilter.ui.jobs import Job
from ragfilter.ui.kit import grid
from ragfilter.ui.kit.rule_editor import llm_drafts, rule_effect, saving, visible_collection
from ragfilter.ui.kit.rule_editor.visible_collection import VisibleCollection
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import message
from ragfilter.ui.resources import CacheSpec
from ragfilter.ui.rules import listed_rows, many_drafts, many_rules
from ragfilter.ui.session import state

KINDS, DOUBTFUL = "findings-kinds", "findings-doubtful"
PROPOSED = ("family", "draft")
"""The kinds that propose a rule."""
MAX_LISTED, TITLE_WIDTH = 1_000, 24
WIDTHS = {"chunk": 176, "finding": 336, "fix": 88}
"""In pixels, chosen so that a window 900 wide shows the finding."""
FIXES: CacheSpec[ValidChanges] = CacheSpec(4)
Listed = tuple[str, Finding]
"""A finding with its kind, or the family for which it proposes a rule."""


def draw(visible: VisibleCollection) -> None:
    """Draw the findings, and the effect of applying them."""
    listed_rows.draw_filter(visible)
    running = llm_drafts.is_running(visible.collection, visible.resources)
    with st.expander("Draft rules with an LLM", expanded=running):
        many_drafts.draw(visible)
    findings = _findings(visible, _families(visible))
    if not findings:
        elements.empty("No findings.", "The rules of these chunks have no known problem.")
        return
    counts = Counter(kind for kind, _ in findings)
    kinds = st.multiselect(
        "Kinds",
        list(counts),
        key=KINDS,
        persist_state="session",
        format_func=lambda kind: f"{kind} · {counts[kind]}",
        placeholder="all",
        help="Problems in rules, drafts, and families: chunks whose titles or texts are identical except for the part "
        "shown as #.",
    )
    listed = [each for each in findings if not kinds or each[0] in kinds]
    left, right = st.columns((1.5, 1), gap="medium")
    with left:
        picked = _table(visible, listed[:MAX_LISTED])
        if len(listed) > MAX_LISTED:
            elements.aside(f"and {len(listed) - MAX_LISTED:,} more")
        _all(visible, [finding for _, finding in listed])
    with right, st.container(key="findings-panel", border=True, gap="small"):
        _one(visible, None if picked is None else listed[picked][1])


def _families(visible: VisibleCollection) -> SuggestedRules | None:
    """The families of chunks, found in the background once requested."""
    rules = state.session().rules
    if rules.families != visible.collection:
        find = partial(setattr, rules, "families", visible.collection)
        about = "Proposes rules that tell similar chunks apart. Asks no LLM and saves nothing."
        elements.button("Find families", "findings-families", find, about=about)
        return None
    rule_effect.wait(visible)
    known, resources = rule_effect.gathered(visible), visible.resources
    store = resources.bench.collection(visible.collection)
    ids, user = list(visible.chunks), visible.user
    # Leave out the version, so that accepting one family does not search for the others again.
    content = store.content or visible.version
    key = ("families", visible.collection, content, user, visible.settings, visible.questions_key, known is None)

    def find_families(_: Job[SuggestedRules]) -> SuggestedRules:
        asked = resources.bench.labels.queries(visible.collection, ASKED).values()
        return suggest(filter(user.sees, store.chunks(ids).values()), asked, known)

    job = resources.jobs.start(user, key, find_families)
    return jobs.wait_for_result(job, "findings-looking", "Looking for families")


def _findings(visible: VisibleCollection, families: SuggestedRules | None) -> list[Listed]:
    """The findings about filtered chunks: problems, proposals, then families with rules."""
    ids = [row.id for row in listed_rows.selected(visible)]
    ruled, shared = visible.read(i for i in ids if visible.chunks[i].rule), listed_rows.listing(visible).shared
    if len(ruled) > (most := visible_collection.MAX_READ):
        elements.aside(f"Texts are read for up to {most:,} rules. A narrower filter may find more.")
    findings = [finding for chunk in ruled.values() for finding in visible.resources.checks.findings(chunk)]
    findings += [shared[i] for i in ids if i in shared]
    proposed = [(draft.kind, draft) for draft in many_drafts.findings(visible)]
    if families is not None:
        pairs = [(each, visible.chunks.get(each.chunk.id)) for each in families.proposals]
        known = [(each, chunk) for each, chunk in pairs if chunk is not None and read_rule(chunk.rule) != each.rule]
        proposed = [*((each.family, families.finding(each, chunk)) for each, chunk in known), *proposed]
    without = {kind for kind, finding in proposed if not visible.chunks[finding.chunk_ids[0]].rule}
    id_set = {*ids}
    proposed = [each for each in proposed if each[1].chunk_ids[0] in id_set]
    proposed.sort(key=lambda each: each[0] not in without)
    return [*((each.kind, each) for each in by_severity(findings)), *proposed]


def _table(visible: VisibleCollection, listed: Sequence[Listed]) -> int | None:
    findings = [finding for _, finding in listed]
    ids = [each.chunk_ids[0] for each in findings]
    columns = {
        "kind": [kind for kind, _ in listed],
        "chunk": visible.titles(ids, TITLE_WIDTH),
        "finding": [_said(each) for each in findings],
        "fix": ["by hand" if each.fix is None else "certain" if each.sure else "check first" for each in findings],
        "severity": [each.severity for each in findings],
        "id": ids,
    }
    keys = [f"{finding.chunk_ids[0]} {kind} {finding.place}" for kind, finding in listed]
    config = {name: st.column_config.TextColumn(width=px) for name, px in WIDTHS.items()}
    return grid.draw_clickable(pd.DataFrame(columns), keys, name="findings", height=320, columns=config)


def _said(finding: Finding) -> str:
    return f"{place_name(finding.place)}: {finding.message}" if finding.place else finding.message


def _all(visible: VisibleCollection, findings: Sequence[Finding]) -> None:
    doubtful = sum(finding.fix is not None and not finding.sure for finding in findings)
    about = "Check these first. They may replace rules that are intended as they are."
    include = doubtful > 0 and st.checkbox(f"Include the doubtful ones ({doubtful:,})", key=DOUBTFUL, help=about)
    rules = _fixes(visible, findings, include)
    if rules or include or not doubtful:
        many_rules.offer(visible, rules, "Apply", key="findings")
    else:
        elements.empty("Nothing is certain here.", "Include the doubtful ones to apply them.")


def _fixes(visible: VisibleCollection, findings: Sequence[Finding], doubtful: bool) -> ValidChanges:
    """The changes from applying the findings, cached because each rule is checked again."""
    wanted = [each for each in findings if each.fix is not None and (each.sure or doubtful)]
    proposed = {each.chunk_ids[0]: each.fixed for each in wanted if each.kind in PROPOSED}
    problems = [each for each in wanted if each.kind not in PROPOSED]
    ids = tuple(dict.fromkeys(i for each in problems for i in each.chunk_ids))
    kinds = tuple(dict.fromkeys(each.kind for each in problems)) if doubtful else ()

    def fix() -> ValidChanges:
        with st.spinner("Fixing the rules …"):
            chunks = visible.read(ids)
            # A rule may be shared with a chunk that is not fixed.
            return fix_rules({**visible.chunks, **chunks}, rules_of(chunks.values()), kinds)

    return {**visible.resources.cache(FIXES).of((*visible.key, ids, kinds), fix), **proposed}


def _one(visible: VisibleCollection, finding: Finding | None) -> None:
    if finding is None:
        elements.empty("No finding is open.", "Click a row to see its fix, or apply it alone.")
        return
    chunk = visible.chunks[finding.chunk_ids[0]]
    st.markdown(f"**{message(chunk.name)}**  \n{message(_said(finding))}")
    rules = {chunk.id: finding.fixed}
    sure = finding.fix is not None and rule_effect.confirm(visible, rules, "finding-sure")
    with elements.row("finding-actions", "top"):
        elements.button("Apply this one", "finding-apply", many_rules.save, visible, rules, disabled=not sure)
        about = "Opens the editor with the fix, if there is one. Nothing is saved."
        elements.button("Edit first", "finding-edit", _edit, visible, finding, about=about)
    if finding.fix is not None:
        many_rules.draw_diffs([(chunk.name, read_rule(chunk.rule), finding.fixed)], "finding-diff")


def _edit(visible: VisibleCollection, finding: Finding) -> None:
    chunk = visible.chunks[finding.chunk_ids[0]]
    if finding.fix is not None:
        saving.set_fixed(finding, chunk)
    listed_rows.edit(chunk.id)
