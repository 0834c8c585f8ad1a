"""The Compare page: two sides over one question or a query set. For one question, it shows the chunks that each side
keeps and, a step away, both answers; for a query set, wins, losses and ties, and the questions that changed most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.answer import context_packing
from ragfilter.answer.answer import Answer
from ragfilter.engine.replay import replay, replay_as_user
from ragfilter.evaluate import query_sets, wording
from ragfilter.evaluate.frame import most_changed
from ragfilter.evaluate.measured_runs import ComparedRuns, compare, find
from ragfilter.evaluate.variants import CURRENT
from ragfilter.model import PoolResult
from ragfilter.protocols import Prices
from ragfilter.publish.reports import of_runs, of_two
from ragfilter.results.rows import Pairing, contrast, reason, visible_ids
from ragfilter.results.summary import tokens_of
from ragfilter.stores.run_store import Plan, Run
from ragfilter.text import numbers
from ragfilter.text.numbers import counted
from ragfilter.text.titles import telling_titles
from ragfilter.ui.compare import side_choice
from ragfilter.ui.compare.side_choice import ComparedSide, Sides
from ragfilter.ui.kit import answer_panel, controls, grid, labelled_sets, measuring, problems, question_box
from ragfilter.ui.kit.answer_making import AnswerSide, numbered_sides
from ragfilter.ui.kit.labelled_sets import ChosenSet
from ragfilter.ui.kit.stacks import Stack, StackRow, draw_stacks
from ragfilter.ui.look import elements
from ragfilter.ui.look.elements import Fact
from ragfilter.ui.look.prose import literal
from ragfilter.ui.resources import Resources
from ragfilter.ui.session import asking, link, state, widget
from ragfilter.ui.session.page_run import PageRun, View, current_view

ONE, QUESTION_PX = "One question", 236


@problems.show_errors(retry=True)
def draw(page_run: PageRun) -> None:
    """Draw the two sides and their comparison."""
    name = side_choice.query_set()
    if name or not page_run.ready:
        # Otherwise the question is the heading.
        elements.unseen_heading("Compare", level=1)
    if not page_run.ready:
        controls.draw(page_run, None)
        problems.draw_empty(page_run, None)
        return
    runs = page_run.saved_runs
    problems.draw_incomplete(page_run.incomplete if name else "")
    sides, slot = _bar(page_run, runs, name)
    if name:
        link.update(more=side_choice.parameters())
        link.show_address()
        link.draw_button(slot, ())
        controls.draw(page_run, None)
        _draw_set(page_run, sides, name, runs)
        return
    question_box.draw(page_run)
    view, error = current_view(page_run, side_choice.parameters())
    link.show_address()
    link.draw_button(slot, () if view is None else visible_ids(view.result))
    controls.draw(page_run, None)
    if view is None:
        elements.unseen_heading("Compare", level=1)
        problems.draw_empty(page_run, error)
        return
    problems.draw_incomplete(view.result.pool.incomplete)
    _draw_question(view, sides)


def _bar(page_run: PageRun, runs: Mapping[int, Run], name: str) -> tuple[Sides, DeltaGenerator]:
    """Draw the choice of sides and questions. Returns the sides, and the place of the link."""
    a, b = (side_choice.read(letter, page_run.settings, runs) for letter in link.SIDES)
    # Messages about invalid values in a link.
    problems.draw_notices(state.take_notices())
    with elements.row("sides", "bottom"):
        _choice("a", page_run, runs)
        elements.button("Swap", "sides-swap", side_choice.swap, icon="swap_horiz")
        _choice("b", page_run, runs)
        # Without counts, since questions whose relevant chunks the user cannot see are not measured.
        names = dict.fromkeys(filter(None, (*labelled_sets.sets_of(page_run), name)))
        labels = {"": ONE} | {each: query_sets.title(each, llm=labelled_sets.counts_llm_labels()) for each in names}
        widget.draw_list("Over", labels, name, "compare-over", side_choice.put_query_set, width=210)
        about = "Copies current settings as a snapshot, to compare later changes with."
        elements.button("Copy A to B", "sides-copy", side_choice.copy, a, icon="content_copy", about=about)
        slot = st.container(key="share", width="content")
    return (a, b), slot


def _choice(letter: str, page_run: PageRun, runs: Mapping[int, Run]) -> None:
    labels = side_choice.choices(letter, page_run.settings, runs)
    choose = partial(side_choice.put, letter, changes={})
    widget.draw_list(letter.upper(), labels, side_choice.chosen(letter), f"side-{letter}-box", choose, width=250)


TITLE_WIDTH = 40
STEP = "compare-step"
ANSWERS, SETTINGS = "Answers", "Settings"


@problems.show_errors()
def _draw_question(view: View, sides: Sides) -> None:
    with st.spinner("Searching …"):
        a, b = (replay_as_user(result_of(view, side)) for side in sides)
    contrasted = contrast(a, b)
    elements.unseen_heading("Compare", level=1, name=view.asked.query)
    elements.draw(f'<p class="rf-headline">{elements.text(sentence(contrasted, a, b))}</p>')
    for letter, result in (("A", a), ("B", b)):
        if result.message:
            elements.aside(f"{letter}: {result.message}")
        # Only Inspect asks the judge.
        for need in result.needs:
            elements.aside(f"Side {letter} is incomplete: {need.why}. Open Inspect with these settings to ask for it.")
    if not contrasted:
        remedy = "Choose a side that filters less, such as the profile unfiltered."
        elements.empty("Neither side keeps a chunk.", remedy)
        return
    stacks = stacked(contrasted, (sides[0].name, sides[1].name))
    draw_stacks(stacks, a, key="compare-stacks", on_open=partial(state.set_field, field="compared_chunk"))
    opened = next((e for e in contrasted if e.id == state.session().compared_chunk), None)
    if opened is not None:
        hit = next(hit for result in (a, b) for hit in result.kept if hit.id == opened.id)
        with st.container(key="compare-chunk", border=True):
            elements.chunk_head(opened.title, (opened.id, f"A: {reason(opened.a)}", f"B: {reason(opened.b)}"))
            elements.draw_chunk_text(hit.chunk.text)
    pair = numbered_sides(
        ("A", "B"), (context_packing.pack(a.kept, a.settings), context_packing.pack(b.kept, b.settings))
    )
    with elements.row("compare-steps"):
        step = st.segmented_control("Show", [ANSWERS, SETTINGS], key=STEP, label_visibility="collapsed")
        by_name = {side.name: side for side in pair}
        elements.report(
            "compare-report",
            lambda: of_two((a, b), sides, **question_box.report_contents(view, by_name)),
            question_box.report_name(view.asked.query),
        )
    if step == SETTINGS:
        changes = wording.changed(sides[0].settings, sides[1].settings)
        elements.aside("From A to B:" if changes else "A and B have the same settings.")
        if changes:
            elements.draw_changes(changes)
    elif step == ANSWERS or state.session().answering:
        _answers(view, sides, pair)


def result_of(view: View, side: ComparedSide) -> PoolResult:
    """The result for the question with a side's settings. Raises RagfilterError."""
    if side.settings == view.result.settings:
        return view.result
    user, resources = state.user(), view.resources
    asked = asking.asked_question(view.asked.query, view.asked.collection, side.settings, user, resources)
    pool = asking.pool_of(asked, side.settings, resources)
    if replay(pool, side.settings, user).needs:
        pool = asking.complete_pool(asked, pool, side.settings, user, resources)
    return replay(pool, side.settings, user)


def sentence(contrasted: Sequence[Pairing], a: PoolResult, b: PoolResult) -> str:
    """A sentence on what both sides keep: ``Both keep 2 chunks; only A keeps 13 more. …``."""
    counts = Counter(each.keeper for each in contrasted)
    both, only_a, only_b = (counts[keeper] for keeper in ("both", "a", "b"))
    more = [
        f"only {letter} keeps {numbers.count(n)} {'more' if both else 'of its own'}"
        for letter, n in (("A", only_a), ("B", only_b))
        if n
    ]
    shared = f"both keep {'the same ' if not more else ''}{numbers.chunk_count(both)}"
    *first, last = [*([shared] if both or not more else []), *more]
    clauses = ", and ".join(filter(None, (", ".join(first), last)))
    costs = f"A's prompt has {numbers.token_count(tokens_of(a.kept))}, B's {numbers.count(tokens_of(b.kept))}."
    return f"{clauses[:1].upper()}{clauses[1:]}. {costs}"


def stacked(contrasted: Sequence[Pairing], names: tuple[str, str]) -> tuple[Stack, Stack]:
    """The chunks that A and B keep, row by row. A chunk that only one side keeps stands apart."""

    def row(each: Pairing, side: str) -> StackRow | None:
        if each.keeper == "both":
            return StackRow(each.id, each.title, why="kept by both")
        other, there = each.b if side == "a" else each.a, "on the other side"
        why = f"{other.outcome} by {other.layer} {there}: {other.reason}" if other else f"not found {there}"
        return StackRow(each.id, each.title, why=why, alone=True) if each.keeper == side else None

    a, b = (tuple(row(each, side) for each in contrasted) for side in ("a", "b"))
    return Stack(f"A: {names[0]}", a), Stack(f"B: {names[1]}", b)


def _answers(view: View, sides: Sides, pair: tuple[AnswerSide, AnswerSide]) -> None:
    """Draw both answers with their citations, and the preference between them."""

    def draw_answer(side: AnswerSide, other: AnswerSide, reply: Answer) -> None:
        cited = answer_panel.draw_text(view, side, other, reply)
        titles = telling_titles([hit.chunk.name for hit in side.context.chunks], TITLE_WIDTH)
        elements.aside(" · ".join(f"[{side.numbers[n - 1]}] {titles[n - 1]}" for n in cited))

    with st.container(key="compare-answers", border=True):
        pair_answers = answer_panel.draw_columns(
            view, pair, (answer_panel.title(pair[0]), answer_panel.title(pair[1])), draw_answer
        )
        if pair_answers is not None:
            pair_sides = tuple(
                answer_panel.side_of_pair(each, reply, side.profile, side.settings)
                for each, reply, side in zip(pair, pair_answers, sides, strict=True)
            )
            answer_panel.draw_preference(view, (pair_sides[0], pair_sides[1]), ("A", "B"), key="compare")


def _draw_set(page_run: PageRun, sides: Sides, name: str, runs: Mapping[int, Run]) -> None:
    """Draw the comparison over a query set. Raises StoreError, InputError."""
    chosen, resources = labelled_sets.chosen_set(page_run, name), page_run.resources
    sides_runs = [side.run for side in sides if side.run is not None]

    def row_of(side: ComparedSide) -> tuple[Run, str] | None:
        if side.run is not None:
            return side.run, CURRENT
        if chosen.measurable is not None:
            return _row(side, measuring.plan(chosen, side.profile, side.settings), runs.values(), resources)
        # A run on the other side may have measured this side, even over questions in files.
        return next(filter(None, (_row(side, run.plan, (run,), resources) for run in sides_runs)), None)

    rows = [row_of(side) for side in sides]
    missing = [side for side, where in zip(sides, rows, strict=True) if where is None]
    if missing:
        labelled_sets.explain(chosen)
        if chosen.measurable is not None:
            _measure(missing, chosen, counted(len(chosen.measurable.qrels), "question"))
        return
    (a, row_a), (b, row_b) = (row for row in rows if row is not None)
    titles = dict.fromkeys(run.plan.query_set for run in (a, b))
    if list(titles) != [chosen.title]:
        elements.aside(f"Saved runs are compared over their own questions: {' and '.join(titles)}.")
    compared = compare(
        measuring.load(a.id, resources),
        measuring.load(b.id, resources),
        resources.bench,
        names=(row_a, row_b),
        settings=(sides[0].settings, sides[1].settings),
    )
    if compared.sides.empty:
        elements.empty("The two sides have no questions in common.", "Choose runs over the same query set.")
        return
    elements.draw(f'<p class="rf-lead">{elements.text(lead(compared))}</p>')
    elements.aside(*compared.notes)
    _facts(compared, resources.bench.prices)
    report = partial(of_runs, compared, sides, resources.bench.prices)
    elements.report("compare-set-report", report, "ragfilter-compare.html")
    _changes(compared)


def _row(side: ComparedSide, plan: Plan, runs: Iterable[Run], resources: Resources) -> tuple[Run, str] | None:
    """A complete run with this plan that measured a side, and the name of its row there."""
    for run, name in find(side.settings, plan, runs):
        records = measuring.load(run.id, resources).records
        if sum(record.variant == name for record in records) == run.done:
            return run, name
    return None


def _measure(missing: Sequence[ComparedSide], chosen: ChosenSet, questions: str) -> None:
    """Offer to measure the sides that no run covers yet, one after the other."""
    session, letters = state.session(), " and ".join(dict.fromkeys(side.letter.upper() for side in missing))
    verb = "is" if len(missing) == 1 else "are"
    elements.empty(f"{letters} {verb} not measured yet over these questions.")
    about = (
        "Measures these settings, with every strategy and profile for comparison, and saves the result as a run. "
        "Continues a stopped run."
    )
    label = f"Measure {letters} over {questions}"
    pressed = elements.button(label, "compare-measure", icon="play_arrow", type="primary", about=about)
    if pressed or session.measure_next:
        session.measure_next = False
        run = measuring.begin(chosen, missing[0].profile, missing[0].settings)
        if measuring.watch(run, chosen.resources):
            session.measure_next = len(missing) > 1
            st.rerun()


def lead(compared: ComparedRuns) -> str:
    """Which side is better, and by how much, unless a side was tuned on these labels."""
    gain, unfair = compared.paired.gain, "Not a fair comparison, as a side was tuned on labels of this collection"
    verdict = unfair if any(compared.in_sample) else f"B is {wording.compared(gain)} A"
    return f"{verdict}: F1 {wording.stated(gain)}."


def _facts(compared: ComparedRuns, prices: Prices | None) -> None:
    paired = compared.paired
    chunks, tokens = ((compared.mean(figure, "a"), compared.mean(figure, "b")) for figure in ("kept", "tokens"))
    facts: list[Fact] = [
        ("B better", str(paired.wins), ""),
        ("B worse", str(paired.losses), ""),
        ("the same", str(paired.ties), ""),
        ("paired permutation test", numbers.p_value(paired.p_value), ""),
        ("chunks, A and B", f"{chunks[0]:.1f} → {chunks[1]:.1f}", ""),
        ("tokens, A and B", f"{tokens[0]:,.0f} → {tokens[1]:,.0f}", ""),
    ]
    if prices is not None:
        costs = [numbers.money(prices.of_thousand(each), prices.currency) for each in tokens]
        facts.append(("prompts of 1,000 questions, A and B", " → ".join(costs), ""))
    elements.facts("Comparison", facts)
    worst = compared.worst
    if worst is None:
        elements.aside("No question is worse with B.")
        return
    with elements.row("compare-worst"):
        st.markdown(f"Largest loss: **{numbers.signed(worst['gain'])}** {literal(worst['query'])}", width="content")
        elements.button("Open", "compare-open-worst", _open, worst["query"], icon="arrow_forward")


def _changes(compared: ComparedRuns) -> None:
    """Draw the questions that changed, most changed first."""
    sides = most_changed(compared.sides)
    sides = sides[(sides["gain"] != 0) | (sides["kept_a"] != sides["kept_b"])]
    if sides.empty:
        elements.empty("No question changes.", "Choose another side.")
        return
    number = st.column_config.NumberColumn
    columns = {
        "query": st.column_config.TextColumn("question", width=QUESTION_PX),
        "gain": number("ΔF1", width=62, help="F1 of B minus F1 of A."),
        "f1_a": number("F1 A", width=54, format="%.3f"),
        "f1_b": number("F1 B", width=54, format="%.3f"),
        "kept_a": number("chunks A", width=72),
        "kept_b": number("chunks B", width=72),
        "tokens_a": number("tokens A", width=70),
        "tokens_b": number("tokens B", width=70),
    }
    table = sides.assign(query=grid.fitting_questions(sides["query"], QUESTION_PX))[[*columns]]
    row = grid.draw_clickable(table, sides["id"], name="compare-questions", columns=columns, height=460)
    if row is not None:
        _open(sides["query"].iloc[row])
        st.rerun()


def _open(query: str) -> None:
    """Open the question in the view of one question."""
    side_choice.put_query_set("")
    state.ask(query)
