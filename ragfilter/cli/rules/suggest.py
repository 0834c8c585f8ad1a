"""`ragfilter rules suggest`: drafts of rules by an LLM for a selection of chunks, or proposals
without one for families of chunks (`ragfilter.cli.rules.families`).

Source: docs/design.md#drafting and docs/design.md#cli. Nothing is written to the collection.
`ragfilter.cli.rules.drafting` makes the output.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from ragfilter.cli import options, output
from ragfilter.cli.app import command
from ragfilter.cli.options import SET_HELP, Filtering, Json, Place, QrelsFile, Where
from ragfilter.cli.rules.saving import gather_labelled, loss_remarks
from ragfilter.cli.rules.select import rules, select
from ragfilter.errors import InputError, SettingsError
from ragfilter.evaluate.proposed import weigh
from ragfilter.model import Chunk
from ragfilter.rules import drafting as runs
from ragfilter.rules.draft import Draft

if TYPE_CHECKING:
    from ragfilter.evaluate.effect import LabelledQuestions
    from ragfilter.evaluate.rule_matrix import RuleRow

SAMPLE = 40
"""Number of chunks from which the cost is estimated."""


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
        from ragfilter.cli.rules.families import suggest_families

        labelled = queries, qrels
        suggest_families(place, viewing, where, out, labelled, limit=limit, as_json=as_json)
        return
    if not llm:
        raise SettingsError(
            "Drafting needs an LLM.",
            remedy="Add --llm to use the configured one, or --families to work without one.",
        )
    user = viewing.viewer
    from ragfilter.cli.rules import drafting
    from ragfilter.rules.templates import with_folder
    from ragfilter.workbench import chat_of

    done = drafting.drafted_before(out, place.collection) if out else set()
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
        output.tell(drafting.expected_text(len(waiting), expected, bench.prices))
    made: list[Draft] = []
    rows: list[RuleRow | None] = []
    started = perf_counter()

    def report() -> None:
        totals = runs.total(made, perf_counter() - started, bench.prices)
        before = len(chosen) - len(waiting)
        if as_json:
            document = place.head(selected.incomplete)
            document |= {"selected": len(chosen), "before": before}
            document |= drafting.totals_document(totals)
            drafted = zip(made, waiting, rows, strict=False)
            document["drafts"] = [drafting.record(d, c, place.collection, r) for d, c, r in drafted]
            output.emit(document)
        else:
            output.emit(drafting.totals_text(totals, before=before))
            if out:
                output.emit(drafting.without_text(made))
                if totals.drafted or before:
                    output.emit(drafting.next_text(out, place.collection, doubtful=totals.doubtful))

    show = output.progress("chunks drafted")
    if not out and not as_json and sys.stdout.isatty():
        show = _no_progress
    elif not sys.stderr.isatty():
        show = drafting.plain_progress("chunks drafted", output.tell)
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
            shown = drafting.text(draft, chunk, f"{len(made)}/{len(waiting)}", row)
            if out:
                try:
                    drafting.append(out, drafting.record(draft, chunk, place.collection, row))
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
    evidence = weigh([replace(chunk, rule=draft.text)], known)
    remarks = (*draft.remarks, *loss_remarks(chunk.id, evidence))
    return replace(draft, remarks=remarks), evidence.rows.get(draft.text)


def _no_progress(done: int, total: int) -> None:
    """Used if the drafts themselves show the progress."""
