"""`ragfilter rules suggest`: rules for families of chunks, or drafts by an LLM for a selection.

Source: docs/design.md#drafting and docs/design.md#cli. Nothing is written to the collection.
`ragfilter rules import` reads the file, and holds back what has remarks.

Every draft is in the output file (JSONL) before the LLM gets the next chunk. So an interruption
loses at most the current draft, and the next run continues after the last one. It tries chunks
whose draft failed again.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.answer.stream import Prices
from ragfilter.basics.files import kind, write_text
from ragfilter.cli import options, output
from ragfilter.cli.app import command
from ragfilter.cli.options import OTHER_OUT, SET_HELP, Filtering, Json, Place, QrelsFile, Where
from ragfilter.cli.rules.saving import (
    effect_document,
    effect_text,
    gather_labelled,
    loss_remarks,
    row_text,
)
from ragfilter.cli.rules.select import rules, select
from ragfilter.errors import InputError, SettingsError
from ragfilter.evaluate import proposed
from ragfilter.evaluate.rule_matrix import RuleRow, row_document
from ragfilter.model import Chunk
from ragfilter.protocols import Progress, Usage
from ragfilter.rules import drafting as runs
from ragfilter.rules.drafting import Draft
from ragfilter.rules.proposals import Proposal
from ragfilter.text.numbers import counted, money

if TYPE_CHECKING:
    from ragfilter.evaluate.effect import LabelledQuestions

SAMPLE = 40
"""Number of chunks from which the cost is estimated."""
MANY = 20
MOST_NAMED = 5


@command(rules)
def suggest(
    place: Place,
    viewing: Filtering,
    llm: Annotated[bool, typer.Option("--llm", help="Ask the configured LLM.")] = False,
    families: Annotated[
        bool,
        typer.Option(
            "--families",
            help="Draft rules for families of chunks that their titles tell apart. Needs no LLM.",
        ),
    ] = False,
    queries: Annotated[
        str | None,
        typer.Option(
            help="Labelled queries to measure the rules on, from which --families also learns "
            f"words. Default: all labelled queries of the workspace. {SET_HELP}"
        ),
    ] = None,
    qrels: QrelsFile = None,
    where: Where = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Use only the first N chunks of the selection.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the drafts to this file (JSONL). With --llm, they are appended, and chunks "
            "already in it are skipped. With --families, the file must not exist yet."
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(min=0.1, help="Timeout per chunk, in seconds. Default: the answer timeout."),
    ] = None,
    templates: Annotated[
        Path | None,
        typer.Option(
            help="Folder with your own prompt templates (.toml). Default: "
            "RAGFILTER_RULE_TEMPLATES, else templates/ in the workspace."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Draft rules for a selection of chunks. Nothing is saved to the collection."""
    if families:
        options.refuse_beside("--families", llm=llm, timeout=timeout, templates=templates)
        labelled = queries, qrels
        _suggest_families(place, viewing, where, out, labelled, limit=limit, as_json=as_json)
        return
    if not llm:
        raise SettingsError(
            "Drafting needs an LLM.",
            remedy="Add --llm to use the configured one, or --families to work without one.",
        )
    user = viewing.viewer
    from ragfilter.rules.templates import with_folder
    from ragfilter.workbench import chat_of

    done = drafted_before(out, place.collection) if out else set()
    # The workspace is released before the LLM is called, so that the app can be used meanwhile.
    with place.open("rules") as bench:
        deployment = bench.deployment
        prompts = with_folder(templates) if templates else bench.templates()
        chat = chat_of(deployment)
        if chat is None:
            raise SettingsError(
                "No LLM endpoint is configured.",
                remedy="Set OPENAI_API_KEY, or OPENAI_BASE_URL and OPENAI_MODEL; `make local-llm` "
                "starts a tiny one.",
            )
        selected = select(bench, place.collection, where or (), user=user, limit=limit)
        output.tell(selected.incomplete)
        chosen = selected.chunks
        waiting = [chunk for chunk in chosen if chunk.id not in done]
        known = gather_labelled((queries, qrels), bench, place, viewing) if waiting else None
    if waiting:
        step = -(-len(waiting) // SAMPLE)
        expected = runs.foresee(waiting[::step], len(waiting), prompts)
        output.tell(expected_text(len(waiting), expected, bench.prices))
    made: list[Draft] = []
    rows: list[RuleRow | None] = []
    started = perf_counter()

    def report() -> None:
        totals = runs.total(made, perf_counter() - started, bench.prices)
        before = len(chosen) - len(waiting)
        if as_json:
            document = place.head(selected.incomplete)
            document |= {"selected": len(chosen), "before": before}
            document |= totals_document(totals)
            drafted = zip(made, waiting, rows, strict=False)
            document["drafts"] = [record(d, c, place.collection, r) for d, c, r in drafted]
            output.emit(document)
        else:
            output.emit(totals_text(totals, before=before))
            if out:
                output.emit(without_text(made))
                if totals.drafted or before:
                    output.emit(next_text(out, place.collection, doubtful=totals.doubtful))

    show = output.progress("chunks drafted")
    if not out and not as_json and sys.stdout.isatty():
        show = _no_progress
    elif not sys.stderr.isatty():
        show = plain_progress("chunks drafted", output.tell)
    with contextlib.closing(chat), output.at_the_end(report):
        found = runs.drafts(
            waiting,
            chat,
            timeout_s=timeout or deployment.answer_timeout_s,
            templates=prompts,
        )
        for answered, chunk in zip(found, waiting, strict=True):
            draft, row = _measured(answered, chunk, known)
            made.append(draft)
            rows.append(row)
            shown = _draft_text(draft, chunk, f"{len(made)}/{len(waiting)}", row)
            if out:
                try:
                    append(out, record(draft, chunk, place.collection, row))
                except InputError:
                    # The document of --json contains it; otherwise it would be lost.
                    output.emit("" if as_json else shown)
                    raise
            elif not as_json:
                output.emit(shown)
            show(len(made), len(waiting))


def _measured(
    draft: Draft, chunk: Chunk, known: LabelledQuestions | None
) -> tuple[Draft, RuleRow | None]:
    """The draft, doubted if labelled queries would lose its chunk; and its row of the matrix."""
    if draft.rule is None or known is None:
        return draft, None
    drafted = [replace(chunk, rule=draft.text)]
    remarks = (*draft.remarks, *loss_remarks(chunk.id, proposed.weigh(drafted, known)))
    rows = proposed.matrix_rows(drafted, known)
    return replace(draft, remarks=remarks), rows.get(draft.text)


def _no_progress(done: int, total: int) -> None:
    """Used if the drafts themselves show the progress."""


def _suggest_families(
    place: Place,
    viewing: Filtering,
    where: list[str] | None,
    out: Path | None,
    labelled: tuple[str | None, str | None],
    *,
    limit: int | None,
    as_json: bool,
) -> None:
    """Print the proposals, or write them to `out`. Raises InputError."""
    from ragfilter.stores.labels import ASKED

    if out is not None and kind(out):
        raise InputError(f"{out} exists.", remedy="Name another file with --out.")
    with place.open("rules") as bench:
        selected = select(bench, place.collection, where or (), user=viewing.viewer, limit=limit)
        output.tell(selected.incomplete)
        known = gather_labelled(labelled, bench, place, viewing)
        asked = bench.labels.queries(place.collection, ASKED).values()
        made = proposed.suggest(selected.chunks, asked, known)
    rows = proposed.matrix_rows((replace(p.chunk, rule=p.rule) for p in made.proposals), known)
    records = [_proposal_record(each, made, rows.get(each.rule)) for each in made.proposals]
    if out is not None:
        lines = (json.dumps(each, ensure_ascii=False) + "\n" for each in records)
        write_text(out, "".join(lines), remedy=OTHER_OUT)
    document = place.head(selected.incomplete) | _families_document(made, records)
    output.emit(document if as_json else _families_text(place.collection, made, rows, out))


def _proposal_record(
    each: Proposal, made: proposed.Suggested, row: RuleRow | None
) -> dict[str, Any]:
    """A proposal as a line in a file of drafts, with its evidence."""
    return {
        "id": each.chunk.id,
        "title": each.chunk.title,
        "query_must": json.loads(each.rule),
        "family": each.family,
        "names": list(each.names),
        "value": each.value,
        "matrix": None if row is None else row_document(row),
        "remarks": [*filter(None, (each.doubt,)), *loss_remarks(each.chunk.id, made.evidence)],
    }


def _families_document(made: proposed.Suggested, records: list[dict[str, Any]]) -> dict[str, Any]:
    families = [
        {
            "pattern": family.pattern,
            "members": [{"id": m.chunk.id, "value": m.named} for m in family.members],
        }
        for family in made.families
    ]
    effect = effect_document(made.evidence.effect)
    return {"families": families, "proposals": records} | effect


def _families_text(
    collection: str, made: proposed.Suggested, rows: Mapping[str, RuleRow], out: Path | None
) -> str:
    lines = []
    for family in made.families:
        lines.append(f"{family.pattern}: {counted(len(family.members), 'chunk')}")
        lines.append(f"  {'; '.join(m.named for m in family.members)}")
        example = next(p for p in made.proposals if p.family == family.pattern)
        lines.append(f"  {example.chunk.id}: {example.rule}")
        row = rows.get(example.rule)
        lines += [] if row is None else [f"  {row_text(row)}"]
    losses = made.evidence.losses
    doubtful = sum(bool(p.doubt) or p.chunk.id in losses for p in made.proposals)
    lines.append(
        f"{collection}: {counted(len(made.proposals), 'proposal')} for families: "
        f"{len(made.families)}, with doubts: {doubtful}"
    )
    if out is not None:
        lines.append(f"written to {out}; save them with: ragfilter rules import {out}")
    return "\n".join(lines) + "\n" + effect_text(made.evidence.effect)


def record(draft: Draft, chunk: Chunk, collection: str, row: RuleRow | None) -> dict[str, Any]:
    """One line of the output file; `ragfilter rules import` reads it."""
    head = {"collection": collection, "id": chunk.id, "title": chunk.title}
    matrix = None if row is None else row_document(row)
    return head | dict(runs.fields(draft)) | {"matrix": matrix}


def drafted_before(path: Path, collection: str) -> set[str]:
    """The ids that already have a rule in the output file at `path`, which need not exist.

    A last line that was cut off during writing is removed; a complete one gets its missing newline.
    Raises InputError and leaves the file unchanged if it is unreadable, not a file of drafts, or
    for another collection.
    """
    try:
        raw = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from None
    *lines, tail = raw.split(b"\n")
    # A file without a single complete draft may be anything, so nothing is removed from it.
    cut_off = bool(lines) and _is_cut_off(tail)
    if tail and not cut_off:
        lines.append(tail)
    found = [_drafted(path, n, line, collection) for n, line in enumerate(lines, start=1)]
    # Only now is it certain that the file is ours to change.
    try:
        if cut_off:
            os.truncate(path, len(raw) - len(tail))
        # Always, so that an unwritable file is reported before a model is called.
        with path.open("ab") as file:
            file.write(b"\n" if tail and not cut_off else b"")
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from None
    return {chunk_id for chunk_id in found if chunk_id is not None}


def append(path: Path, line: dict[str, Any]) -> None:
    """Append one line to the file and flush it to disk. Raises InputError."""
    try:
        with path.open("ab") as file:
            file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from None


def _draft_text(draft: Draft, chunk: Chunk, place: str, row: RuleRow | None) -> str:
    """A draft as printed if no file is written."""
    second = ", second answer" if draft.repaired else ""
    title = " ".join(chunk.name.split())
    lines = [f"{place}  {chunk.id}  {title}  ({draft.category}{second})"]
    lines.append(f"  {draft.text}" if draft.rule is not None else f"  no draft: {draft.error}")
    lines += [] if row is None else [f"  {row_text(row)}"]
    lines += [f"  doubt: {remark}" for remark in draft.remarks]
    return "\n".join(lines) + "\n"


def totals_text(totals: runs.Totals, *, before: int) -> str:
    """The totals in one line; `before` is the number of drafts made by an earlier run."""
    about = "about " if totals.usage.estimated else ""
    parts = [
        f"{totals.drafted} drafted ({totals.repaired} by a second answer, "
        f"{totals.doubtful} with doubts)",
        f"{totals.without} without a draft",
    ]
    parts += [f"{before} drafted before"] if before else []
    cost = "" if totals.cost is None else f", cost {money(totals.cost, totals.currency)}"
    return (
        f"{', '.join(parts)}; {about}{totals.usage.prompt_tokens:,} prompt and "
        f"{totals.usage.completion_tokens:,} answer tokens{cost}, {totals.seconds:.1f} s. "
        "Nothing is saved to the collection.\n"
    )


def expected_text(chunks: int, usage: Usage, prices: Prices | None) -> str:
    """The approximate cost of the first answers for this many chunks, printed before the first
    call."""
    paid = prices and f", cost {money(prices.of(usage), prices.currency)}"
    return (
        f"{counted(chunks, 'chunk')} to draft: about {usage.prompt_tokens:,} prompt and "
        f"{usage.completion_tokens:,} answer tokens{paid or ''}; up to three times as much if "
        "first answers have faults."
    )


def without_text(made: Sequence[Draft]) -> str:
    """Why chunks have no draft: each reason once, with its chunks; empty if all have one."""
    by_reason: dict[str, list[str]] = {}
    for draft in made:
        if draft.rule is None:
            by_reason.setdefault(draft.error, []).append(draft.chunk_id)
    lines = []
    for reason, ids in by_reason.items():
        named = ", ".join(" ".join(i.split()) for i in ids[:MOST_NAMED])
        more = f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else ""
        lines.append(f"  {named}{more}: {reason}\n")
    return "".join(["Without a draft:\n", *lines]) if lines else ""


def next_text(path: Path, collection: str, *, doubtful: int) -> str:
    """What to do with the file next; `doubtful` is the number of drafts with remarks."""
    words = ["ragfilter", "rules", "import", str(path), "--collection", collection]
    doubts = (
        " Drafts with doubts, listed under remarks, are held back until the remarks are removed."
    )
    return (
        "Review the drafts, then save the ones you want to "
        f"keep.{doubts if doubtful else ''}\n{shlex.join(words)}\n"
    )


def plain_progress(what: str, tell: Callable[[str], None]) -> Progress:
    """Progress for a log instead of a terminal: a line for each tenth, if there are many chunks."""

    def show(done: int, total: int) -> None:
        tenth = done * 10 // total if total else 10
        if total >= MANY and tenth > (done - 1) * 10 // total:
            tell(f"{done:,} of {total:,} {what}")

    return show


def totals_document(totals: runs.Totals) -> dict[str, Any]:
    """The same for `--json`."""
    values: dict[str, Any] = asdict(totals) | {"seconds": round(totals.seconds, 3)}
    usage: dict[str, Any] = values.pop("usage")
    paid = {name: values.pop(name) for name in ("cost", "currency")}
    return values | usage | ({} if paid["cost"] is None else paid)


def _is_cut_off(tail: bytes) -> bool:
    """Whether `tail` may be the beginning of a draft. Drafts are objects, and a truncated object
    cannot be parsed."""
    if not tail.startswith(b"{"):
        return False
    try:
        json.loads(tail)
    except ValueError:
        return True
    except RecursionError:
        pass
    return False


def _drafted(path: Path, number: int, line: bytes, collection: str) -> str | None:
    """The id in one line of the output file, None if that draft has no rule."""
    try:
        data = json.loads(line)
        chunk_id, of, rule = data["id"], data["collection"], data["query_must"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _unusable(path, f"line {number} is not a draft") from None
    if of != collection:
        raise _unusable(path, f"line {number} is a draft for the collection {of!r}")
    return None if rule is None else str(chunk_id)


def _unusable(path: Path, why: str) -> InputError:
    return InputError(
        f"The drafts cannot be written to {path}: {why}.", remedy="Use another file with --out."
    )
