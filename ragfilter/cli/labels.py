"""The command group `ragfilter labels`: make, import, export and list labels. Source: docs/design.md#labels."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ragfilter.basics.files import write_text
from ragfilter.cli import output
from ragfilter.cli.options import DryRun, File, Filtering, Place, Viewing, load_config, refuse
from ragfilter.cli.program import command, make_group
from ragfilter.cli.query import ask
from ragfilter.errors import InputError, StoreError
from ragfilter.evaluate import labelling, query_sets
from ragfilter.evaluate.query_files import read_import, read_spans, span_lines, write
from ragfilter.indexing.order import keep_quotes, remap_labels
from ragfilter.layers.cutoff import cutoff_detail
from ragfilter.layers.references import find_chunks
from ragfilter.results.rows import rows as list_rows
from ragfilter.stores.label_book import LABELLED, UNCOUNTED, conflicts, qrels_of, visible_labels
from ragfilter.stores.preferences import CHOICES, PairSide
from ragfilter.stores.relabel import Relabelled, add_spans, choices, drop_gone
from ragfilter.text.numbers import counted

labels = make_group("labels")

SetName = Annotated[str, "--set-name", "Name of the query set. The sets labelled and asked always exist."]


@command(labels, "import", json=True)
def import_(
    place: Place,
    queries: Annotated[File, "Questions: BEIR's queries.jsonl, .csv or .txt."] = None,
    qrels: Annotated[File, "Labels, as BEIR or TREC qrels."] = None,
    spans: Annotated[
        Path | None, "Labels of spans: JSON lines with question, source, and quote or start and end."
    ] = None,
    sources: Annotated[File, "Folder of the texts that start and end refer to."] = None,
    name: SetName = "",
    by_llm: Annotated[bool, "Mark these labels as made by an LLM."] = False,
    replace: Annotated[bool, "Replace a set of this name."] = False,
) -> None:
    """Import questions as a query set, or labels of spans. Labels are credited to a labeller named after the file."""
    if spans is not None:
        refuse("beside --spans", queries=queries, qrels=qrels, set_name=name, by_llm=by_llm, replace=replace)
        texts = read_spans(spans, sources)
        with place.open("labels") as bench:
            store = bench.collection(place.collection)
            chunks = store.chunks([*store.entries()]).values()
            summary = add_spans(bench.labels, place.collection, chunks, texts, who=spans.name)
            _show_mapped(place, summary, store.incomplete)
        if not summary.mapped:
            remedy = "Choose their chunks on Evaluate, under Questions and labels, or import them with their start."
            raise InputError("No label counts, since several chunks may be meant.", remedy=remedy)
        return
    refuse("without --spans", sources=sources)
    if queries is None:
        raise InputError("The questions are missing.", remedy="Pass --queries, or --spans.")
    if qrels is None:
        refuse("without --qrels", by_llm=by_llm)
    collection = place.collection
    questions, rows = read_import(queries, qrels)
    with place.open("labels") as bench:
        (ids, incomplete), set_name = place.entries(bench), name or queries.stem
        unknown = query_sets.import_set(
            bench.labels,
            collection,
            set_name,
            questions,
            rows,
            ids,
            who=qrels.name if qrels else "",
            made_by="llm" if by_llm else "human",
            replace=replace,
            otherwise="Choose another --set-name, or replace it with --replace.",
            incomplete=incomplete,
        )
    if unknown and not output.as_json:
        output.warn(f"{counted(len(unknown), 'labelled id')} not in the collection, such as {unknown[0]!r}.")
    output.show(
        place.head(incomplete)
        | {"set": set_name, "queries": len(questions), "labels": len(rows), "unknown_labels": unknown},
        f"{collection}: query set {set_name} with {counted(len(questions), 'query')}, {counted(len(rows), 'label')}",
    )


@command(labels, "map", json=True)
def map_(
    place: Place,
    dry_run: DryRun = False,
    drop: Annotated[bool, "--drop-gone", "Remove the labels whose text is gone."] = False,
) -> None:
    """Map labels to the chunks that hold the labelled text after another chunking.

    Indexing does this too. Labels that are ambiguous or gone do not count, and are listed."""
    with place.open("labels") as bench:
        store = bench.collection(place.collection)
        if drop and store.incomplete:
            raise StoreError(f"No label was removed. {store.incomplete}")
        keep_quotes(bench, place.collection)
        remapping = remap_labels(bench, place.collection, dry=dry_run)
        removed = drop_gone(bench.labels, place.collection) if drop and not dry_run else 0
        _show_mapped(place, remapping, store.incomplete, removed)


def _show_mapped(place: Place, remapping: Relabelled, incomplete: str, removed: int = 0) -> None:
    output.show(
        place.head(incomplete) | {"mapped": remapping.mapped, "lost": remapping.lost, "removed": removed},
        f"{place.collection}: {remapping.words or 'no label had to be mapped'}",
        *(
            f"  {candidates}: {' '.join(quoted.split())[:TEXT_CHARS]!r} for {query!r}"
            for query, quoted, candidates in remapping.lost
        ),
        f"  removed: {counted(removed, 'label')}" if removed else "",
    )


@command(labels)
def export(
    place: Place,
    viewing: Viewing,
    folder: Annotated[Path, "Folder to write queries.jsonl and the qrels to."],
    name: SetName = "labelled",
    trec: Annotated[bool, "Write TREC qrels instead of BEIR qrels."] = False,
    spans: Annotated[bool, "Also write the texts that people labelled, as spans.jsonl."] = False,
    llm: Annotated[bool, "--with-llm", "Also write an LLM's labels, to their own file."] = False,
) -> None:
    """Write a query set and its labels, if it has any, as BEIR or TREC files."""
    user, collection = viewing.viewer, place.collection
    with place.open("labels") as bench:
        catalogue, _ = place.entries(bench)
        people, by_llm = query_sets.exported(bench.labels, collection, name, catalogue, user)
        questions = {text.strip() for text in people.queries.values()}
        lines: list[str] = []
        if spans:
            keep_quotes(bench, collection)
            places, history = bench.labels.quotations(collection), bench.labels.history(collection)
            history = [each for each in history if each.query in questions or name == LABELLED]
            by_people = {each.id: each for each in history if each.made_by == "human"}
            # Other labels may belong to hidden chunks.
            gone = "" if user.unrestricted else UNCOUNTED
            absent = [i for i in by_people.values() if i.chunk_id.startswith(gone) and i.chunk_id not in catalogue]
            chunks = bench.collection(collection).chunks([*catalogue] if absent else []).values()
            seen = {i for i, *_ in choices(places, absent, chunks, user)} | {*visible_labels(history, catalogue, user)}
            lines = [*span_lines({i: each for i, each in by_people.items() if each in seen}, places)]
            left = {(each.query, each.chunk_id) for each in absent if each not in seen or each.id not in places}
            why = "and their text is unknown" if user.unrestricted else "and only users who see everything get the text"
            output.warn(f"Left out: {counted(len(left), 'label')} without a chunk, {why}." if left else "")
    written = [*write(people, folder, "trec" if trec else "beir", by_llm=by_llm if llm else None)]
    if spans:
        write_text(folder / "spans.jsonl", "".join(lines), remedy="Name another folder.")
        written.append(folder / "spans.jsonl")
    output.emit(output.text_of(*map(str, written)))


@command(labels, "list", json=True)
def list_(place: Place, viewing: Viewing) -> None:
    """Count a collection's labels and query sets, and show where labellers disagree."""
    user, collection = viewing.viewer, place.collection
    with place.open("labels") as bench:
        catalogue, incomplete = place.entries(bench)
        sets = query_sets.sets(bench.labels, collection, catalogue, user)
        every = bench.labels.standing(collection)
    visible = visible_labels(every, catalogue, user)
    agreed, disputes = query_sets.agreed(visible), conflicts(visible)
    people = ", ".join(sorted({each.who for each in visible if each.made_by == "human"}))
    by_llm = sum(each.made_by == "llm" for each in visible)
    questions = counted(len({each.query for each in visible}), "question")
    grades = [", ".join(f"{each.who} says {each.grade}" for each in pair) for pair in disputes]
    output.show(
        place.head(incomplete) | {"sets": sets, "labels": visible, "conflicts": disputes, "llm": agreed},
        f"{collection}: {counted(len(visible), 'label')} on {questions}{people and f', by {people}'}",
        *(f"  set {name}: {counted(count, 'query')}" for name, count in sets.items()),
        *(
            f"  conflict: {label.chunk_id} for {label.query!r}: {grade}"
            for (label, *_), grade in zip(disputes, grades, strict=True)
        ),
        f"  {counted(by_llm, 'label')} by an LLM. {agreed.sentence}" if by_llm else "",
    )


@command(labels, json=True)
def propose(
    place: Place,
    viewing: Viewing,
    name: SetName = "labelled",
    depth: Annotated[int, "Top chunks to label for every question.", {"min": 1, "max": 200}] = 10,
    yes: Annotated[bool, "Call the LLM. Without this, only the cost is shown."] = False,
) -> None:
    """Have an LLM label the top chunks of every question, and those that people have labelled.

    These labels are marked as made by an LLM, and count only on request."""
    user, collection = viewing.user, place.collection
    settings = load_config(None, viewing.config, viewing.values, {}).settings
    with place.open("labels") as bench:
        backends, deployment = place.backends(bench), bench.deployment
        catalogue = bench.collection(collection).entries()
        questions = query_sets.questions(bench.labels, collection, name, catalogue, viewing.viewer)
        standing = bench.labels.standing(collection)
        requests = list(labelling.requests(questions.values(), standing, settings, backends, user, depth=depth))
        bill = labelling.bill(requests, backends, bench.prices)
        output.tell(bill.sentence)
        labelled, failed = 0, 0
        show = output.progress("calls")

        def report() -> None:
            entries = bench.collection(collection).entries()
            standing = bench.labels.standing(collection)
            agreed = query_sets.agreed(visible_labels(standing, entries, viewing.viewer))
            document = place.head(backends.incomplete) | {"set": name, "asked": yes}
            document |= asdict(bill) | {"labels": labelled, "failed": failed, "llm": agreed}
            lost = f", {counted(failed, 'call')} failed" if failed else ""
            text = f"{collection}: {counted(labelled, 'label')}{lost}. {agreed.sentence}"
            output.show(document, text if yes else "The LLM was not called. Add --yes to call it.")

        timeout_s = deployment.answer_timeout_s
        try:
            proposals = labelling.propose(requests if yes else (), settings, backends, timeout_s=timeout_s)
            for done, proposal in enumerate(proposals, start=1):
                labelled += labelling.keep(proposal, bench.labels, collection, backends)
                failed += bool(proposal.error)
                show(done, bill.calls + bill.remembered)
        finally:
            report()


TEXT_CHARS = 300
Question = Annotated[str, typer.Argument(help="The question.")]


@command(labels)
def mark(
    question: Question,
    chunks: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of the chunks.")],
    place: Place,
    grade: Annotated[int, "--grade", "-g", "2 relevant, 1 partly, 0 not.", {"min": 0, "max": 2}] = 2,
) -> None:
    """Label chunks as relevant to a question, all or none. Replaces your earlier labels."""
    if not question.strip():
        raise InputError("The question is empty.", remedy="Write the question to label for.")
    with place.open("labels") as bench:
        existing = find_chunks(bench.collection(place.collection), set(chunks))
        missing = [i for i in chunks if i not in existing]
        if missing:
            raise InputError(
                f"There is no chunk {missing[0]!r} in {place.collection}.",
                remedy="Use the ids that `ragfilter labels next` lists.",
            )
        bench.labels.label(place.collection, question, list(dict.fromkeys(chunks)), grade, who=bench.deployment.user)
    output.emit(f"{place.collection}: {counted(len(set(chunks)), 'chunk')} labelled {grade}\n")


@command(labels)
def undo(place: Place, last: Annotated[int, "--last", "-n", "How many labels to take back.", {"min": 1}] = 1) -> None:
    """Take back your last labels. The labels that they replaced count again."""
    with place.open("labels") as bench:
        me = bench.deployment.user
        standing = bench.labels.standing(place.collection)
        latest = [label for label in standing if (label.who, label.made_by) == (me, "human")][-last:]
        bench.labels.take_back([label.id for label in latest])
    lines = [f"taken back: {each.chunk_id} = {each.grade} for {each.query!r}" for each in latest]
    output.emit(output.text_of(*lines or [f"{me} has no labels in {place.collection}"]))


@command(labels, "next", json=True)
def next_(
    question: Question,
    place: Place,
    filtering: Filtering,
    first: Annotated[int, "-n", "How many chunks to list.", {"min": 1}] = 5,
    blind: Annotated[bool, "In an order that reveals neither rank nor outcome."] = False,
) -> None:
    """List the chunks to label next: the first ranks, those near the cut, some of the rest."""
    loaded, user = filtering.load()
    with place.open("labels") as bench:
        result = ask(question, loaded.settings, place.backends(bench), user)
        standing = bench.labels.standing(place.collection, question)
        me = bench.deployment.user
    # A blind labeller may label what others have labelled.
    mine_or_all = (label for label in standing if label.who == me) if blind else standing
    judged = qrels_of(mine_or_all).get(question.strip(), {})
    detail, rows = cutoff_detail(result), list_rows(result)
    order = labelling.to_label(rows, detail.ids if detail else (), question, blind=blind)
    chunks = {hit.id: hit.chunk for hit in result.hits}
    left = [chunks[i] for i in order if i not in judged]
    shown = [{"id": each.id, "title": each.name, "text": each.text} for each in left[:first]]
    output.show(
        place.head(result.pool.incomplete) | {"left": len(left), "next": shown},
        *(f"{each.id}  {each.name}\n  {' '.join(each.text.split())[:TEXT_CHARS]}" for each in left[:first]),
        f"{counted(len(left), 'chunk')} left to label",
    )


@command(labels, "preferences", json=True)
def preferences(place: Place, viewing: Viewing) -> None:
    """List the votes on pairs of answers. Votes on hidden or deleted chunks are left out."""
    user, collection = viewing.viewer, place.collection
    with place.open("labels") as bench:
        catalogue = bench.collection(collection).entries()
        every = bench.preferences.of(collection)
    visible = {i for i, chunk in catalogue.items() if user.sees(chunk)}
    listed = [
        each for each in every if user.unrestricted or visible.issuperset([*each.first.chunks, *each.second.chunks])
    ]
    lines = [(each.query, *map(_side, (each.first, each.second)), CHOICES[each.choice], each.who) for each in listed]
    none = f"{collection}: no votes yet. The Answer panel and the Compare page take them."
    output.show(listed, output.table(("question", "first", "second", "choice", "who"), lines) if listed else none)


def _side(side: PairSide) -> str:
    changed = f" with {counted(len(side.settings), 'change')}" if side.settings else ""
    return f"{side.profile}{changed}, {counted(len(side.chunks), 'chunk')}"
