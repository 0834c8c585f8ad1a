"""`ragfilter rules suggest`: rules for families of chunks, or drafts by an LLM for a selection.

Nothing is written to the collection. The output file (JSONL), which `ragfilter rules import` reads, is written after
every draft, so an interruption loses at most the current one. The next run continues after the last draft, and retries
chunks whose draft failed. Source: docs/design.md#drafting and docs/design.md#cli."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from ragfilter.basics.files import kind, read_lines, write_text
from ragfilter.cli import options, output
from ragfilter.cli.label_options import QueryOptions
from ragfilter.cli.options import File, Filtering, Place
from ragfilter.cli.program import command
from ragfilter.cli.rules.select import Selection, Where, effect_text, gather_labelled, rules, select
from ragfilter.errors import InputError, SettingsError
from ragfilter.evaluate import effect
from ragfilter.evaluate.rule_matrix import RuleRow
from ragfilter.model import Chunk
from ragfilter.rules import drafting
from ragfilter.rules.drafting import Draft
from ragfilter.stores.label_book import ASKED
from ragfilter.text.numbers import counted, money, signed
from ragfilter.workbench import Workbench, chat_of

SAMPLE = 40
"""Number of chunks from which the cost is estimated."""


@command(rules, json=True)
def suggest(
    place: Place,
    viewing: Filtering,
    queries: QueryOptions,
    llm: Annotated[bool, "Ask the configured LLM."] = False,
    families: Annotated[bool, "Tell similar chunks apart, without an LLM."] = False,
    where: Where = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only the first N chunks of the selection.")] = None,
    out: Annotated[File, "Output file (JSONL); --llm appends to it."] = None,
) -> None:
    """Draft rules for a selection of chunks. Nothing is saved to the collection.

    The drafts are measured on --queries or, by default, on all labelled queries of the workspace."""
    if families:
        options.refuse("beside --families", llm=llm)
        if out is not None and kind(out):
            raise InputError(f"{out} already exists.", remedy="Name another file with --out.")
    elif not llm:
        raise SettingsError(
            "Drafting needs an LLM.", remedy="Add --llm to use the configured one, or --families to work without one."
        )
    user = viewing.viewer
    lines, done = drafted_before(out, place.collection) if out and llm else ([], set[str]())
    # The workspace is released before the LLM is called, so that the app can be used meanwhile.
    with place.open("rules") as bench:
        if llm and bench.chat is None:
            raise SettingsError(
                "No LLM endpoint is configured.", remedy="Set OPENAI_API_KEY, or OPENAI_BASE_URL and OPENAI_MODEL."
            )
        selected = select(bench, place.collection, where, user=user, limit=limit)
        waiting = [chunk for chunk in selected.chunks if chunk.id not in done]
        known = gather_labelled(queries, bench, place, viewing) if waiting else None
        if families:
            _propose(place, bench, selected, known, out)
    if not families:
        _draft(place, bench, selected, waiting, known, out, lines)


def _draft(
    place: Place,
    bench: Workbench,
    selected: Selection,
    waiting: Sequence[Chunk],
    known: effect.GatheredQuestions | None,
    out: Path | None,
    lines: list[str],
) -> None:
    """Print the LLM's drafts for the `waiting` chunks one by one, or write them to `out` after its existing `lines`."""
    templates, prices = bench.templates(), bench.prices
    if waiting:
        step = -(-len(waiting) // SAMPLE)
        usage = drafting.foresee(waiting[::step], len(waiting), templates)
        paid = f", cost {money(prices.of(usage), prices.currency)}" if prices else ""
        output.tell(
            f"{counted(len(waiting), 'chunk')} to draft: about {usage.prompt_tokens:,} prompt and "
            f"{usage.completion_tokens:,} answer tokens{paid}; up to three times as much if first answers have faults."
        )
    drafts: list[Draft] = []
    records: list[dict[str, Any]] = []
    started, before = perf_counter(), len(selected.chunks) - len(waiting)

    def report() -> None:
        totals = drafting.total(drafts, perf_counter() - started, prices)
        if output.as_json:
            document = place.head(selected.incomplete)
            document |= {"selected": len(selected.chunks), "before": before}
            output.emit(document | {"totals": totals, "drafts": records})
            return
        output.emit(totals_text(totals, before=before))
        if out and (totals.drafted or before):
            words = ("ragfilter", "rules", "import", str(out), "--collection", place.collection)
            doubts = " Those with remarks are held back until the remarks are removed."
            output.emit(
                f"Review the drafts before you save them.{doubts if totals.doubtful else ''}\n{shlex.join(words)}\n"
            )

    show, chat = output.progress("chunks drafted"), chat_of(bench.deployment)
    assert chat is not None
    with contextlib.closing(chat), contextlib.ExitStack() as stack:
        # Even after an interruption or failure.
        stack.callback(report)
        answers = drafting.drafts(waiting, chat, timeout_s=bench.deployment.answer_timeout_s, templates=templates)
        for answer, chunk in zip(answers, waiting, strict=True):
            draft, row = _measured(answer, chunk, known)
            drafts.append(draft)
            records.append(record(draft, chunk, place.collection, row))
            text = _draft_text(draft, chunk, f"{len(drafts)}/{len(waiting)}", row)
            if out:
                lines.append(_line(records[-1]))
                try:
                    _write_lines(out, lines)
                except InputError:
                    # The document of --json contains it; otherwise it would be lost.
                    output.emit("" if output.as_json else text)
                    raise
            if not output.as_json and (not out or draft.rule is None):
                output.emit(text)
            show(len(drafts), len(waiting))


def _measured(draft: Draft, chunk: Chunk, known: effect.GatheredQuestions | None) -> tuple[Draft, RuleRow | None]:
    """The draft, with a doubt if labelled queries would lose its chunk, and its matrix row."""
    if draft.rule is None or known is None:
        return draft, None
    remarks = (*draft.remarks, *_losses(chunk.id, known.effect({chunk.id: draft.rule}).losses))
    rows = effect.matrix_rows([replace(chunk, rule=draft.rule.text)], known)
    return replace(draft, remarks=remarks), rows.get(draft.rule)


def _losses(chunk_id: str, losses: Mapping[str, Sequence[str]]) -> list[str]:
    """Doubts that name the queries that would lose a chunk by its proposed rule."""
    return [f"labelled relevant, but would be dropped: {query}" for query in losses.get(chunk_id, ())]


def _propose(
    place: Place, bench: Workbench, selected: Selection, known: effect.GatheredQuestions | None, out: Path | None
) -> None:
    """Print the proposals for families, or write them to `out`. Raises InputError."""
    questions = bench.labels.queries(place.collection, ASKED).values()
    suggested = effect.suggest(selected.chunks, questions, known)
    rows = effect.matrix_rows((replace(p.chunk, rule=p.rule.text) for p in suggested.proposals), known)
    records = [
        {
            "id": each.chunk.id,
            "title": each.chunk.title,
            "query_must": each.rule.value,
            "family": each.family,
            "names": each.names,
            "value": each.value,
            "matrix": rows.get(each.rule),
            "remarks": [*filter(None, (each.doubt,)), *_losses(each.chunk.id, suggested.losses)],
        }
        for each in suggested.proposals
    ]
    families, lines = [], []
    for family in suggested.families:
        members = [{"id": m.chunk.id, "value": m.named} for m in family.members]
        families.append({"pattern": family.pattern, "members": members})
        lines.append(f"{family.pattern}: {counted(len(family.members), 'chunk')}")
        lines.append(f"  {'; '.join(m.named for m in family.members)}")
        example = next(p for p in suggested.proposals if p.family == family.pattern)
        lines.append(f"  {example.chunk.id}: {example.rule.text}")
        row = rows.get(example.rule)
        lines += [f"  {_row_text(row)}"] if row else []
    doubtful = sum(bool(each["remarks"]) for each in records)
    lines.append(
        f"{place.collection}: {counted(len(records), 'proposal')} for families: {len(families)}, "
        f"with doubts: {doubtful}"
    )
    if out is not None:
        _write_lines(out, map(_line, records))
        lines.append(f"written to {out}; save them with: ragfilter rules import {out}")
    document = place.head(selected.incomplete) | {
        "families": families,
        "proposals": records,
        "effect": suggested.effect,
    }
    output.show(document, *lines, effect_text(suggested.effect))


def _row_text(row: RuleRow) -> str:
    """A row of the matrix in short form."""
    gain = ""
    if row.delta_f1 is not None and row.delta_recall is not None:
        gain = f", without it F1 {signed(row.delta_f1, 4)}, recall {signed(row.delta_recall, 4)}"
    queries, conflicts = counted(row.queries, "query"), counted(len(row.conflicts), "conflict")
    return f"{queries}, blocks {row.blocks}, passes {row.passes}, {conflicts}{gain}"


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, default=output.plain)


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    write_text(path, "".join(f"{line}\n" for line in lines), remedy=output.OTHER_OUT)


def record(draft: Draft, chunk: Chunk, collection: str, row: RuleRow | None) -> dict[str, Any]:
    """One line of the output file; `ragfilter rules import` reads it."""
    return {"collection": collection, "id": chunk.id, "title": chunk.title, **drafting.fields(draft), "matrix": row}


def drafted_before(path: Path, collection: str) -> tuple[list[str], set[str]]:
    """The lines of the output file, if any, and the ids with a rule there. Raises InputError if it is unusable."""
    lines = [*read_lines(path)] if path.exists() else []
    ids = set()
    for number, line in enumerate(lines, start=1):
        try:
            data = json.loads(line)
            chunk_id, of, rule = data["id"], data["collection"], data["query_must"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InputError(f"{path}: line {number} is not a draft.", remedy=output.OTHER_OUT) from None
        if of != collection:
            raise InputError(f"{path}: line {number} is a draft for the collection {of!r}.", remedy=output.OTHER_OUT)
        ids |= set() if rule is None else {str(chunk_id)}
    # Fail before the LLM is called if the file cannot be written.
    _write_lines(path, lines)
    return lines, ids


def _draft_text(draft: Draft, chunk: Chunk, place: str, row: RuleRow | None) -> str:
    """A draft as text; if there is an output file, only if it has no rule."""
    second = ", second answer" if draft.repaired else ""
    title = " ".join(chunk.name.split())
    return output.text_of(
        f"{place}  {chunk.id}  {title}  ({draft.category}{second})",
        f"  {draft.rule.text}" if draft.rule else f"  no draft: {draft.error}",
        "" if row is None else f"  {_row_text(row)}",
        *(f"  doubt: {remark}" for remark in draft.remarks),
    )


def totals_text(totals: drafting.Totals, *, before: int) -> str:
    """The totals in one line; `before` is the number of drafts made by an earlier run."""
    about = "about " if totals.usage.estimated else ""
    earlier = f", {before} drafted before" if before else ""
    cost = "" if totals.cost is None else f", cost {money(totals.cost, totals.currency)}"
    return (
        f"{totals.drafted} drafted ({totals.repaired} by a second answer, {totals.doubtful} with "
        f"doubts), {totals.without} without a draft{earlier}; {about}"
        f"{totals.usage.prompt_tokens:,} prompt and {totals.usage.completion_tokens:,} answer "
        f"tokens{cost}, {totals.seconds:.1f} s. Nothing is saved to the collection.\n"
    )
