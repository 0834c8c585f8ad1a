"""`ragfilter rules check`, `test`, `list` and `matrix`: problems, expectations, states and effects of rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from ragfilter.cli import options
from ragfilter.cli.label_options import QueryOptions
from ragfilter.cli.output import progress, show, table, warn
from ragfilter.cli.program import command
from ragfilter.cli.rules import select as selection
from ragfilter.cli.rules.select import Where, rules
from ragfilter.errors import InputError
from ragfilter.evaluate import rule_matrix
from ragfilter.evaluate.effect import suggest
from ragfilter.evaluate.query_records import completed_pools
from ragfilter.evaluate.rule_matrix import Matrix, RuleRow
from ragfilter.model import Chunk, User
from ragfilter.rules import lint, rule_files
from ragfilter.rules.overview import RuleFilter, brief
from ragfilter.rules.rule import Rule, RuleTexts, ValidChanges, parse, read_rule, shorten, texts_of
from ragfilter.stores.label_book import ASKED
from ragfilter.text.numbers import counted, signed
from ragfilter.text.titles import telling_titles


@command(rules, json=True)
def check(
    place: options.Place,
    filtering: options.Filtering,
    saving: selection.Saving,
    where: Where = None,
    kinds: Annotated[
        options.Texts,
        "--kind",
        "List, or with --apply fix, only findings of this kind; family proposes rules for similar chunks that have "
        "none. Repeatable. Default: all but family; with --apply, the certain fixes.",
    ] = None,
    apply: Annotated[bool, "Save the fixes in one step; see --dry-run and --yes."] = False,
    rules_file: Annotated[options.File, "--rules", "Check the rules of an exported file."] = None,
    strict: Annotated[bool, "Also exit with 1 if warnings remain."] = False,
) -> int:
    """Find and fix rules that do not work as intended. Exits with 1 if errors remain."""
    if not apply:
        options.refuse(
            "without --apply", queries=saving.queries, qrels=saving.qrels, yes=saving.yes, dry_run=saving.dry_run
        )
    # Only the page lists drafts; `suggest` writes its own to a file.
    known = [kind for kind in lint.KINDS if kind != "draft"]
    unknown = next((kind for kind in kinds or () if kind not in known), None)
    if unknown is not None:
        raise InputError(f"--kind {unknown!r} is not a kind.", remedy=f"Use one of {', '.join(known)}.")
    grave = lint.SEVERITIES[: 2 if strict else 1]
    if rules_file is not None:
        options.refuse("beside --rules", apply=apply, where=where)
        chunks, refused = rule_files.read(rules_file)
        findings = _of_kinds(lint.analyse(chunks), kinds)
        document, lines = _summary(str(rules_file), len(lint.rules_of(chunks.values())), findings)
        show(document | {"refused": refused}, *(line.message for line in refused), *lines)
        return selection.FOUND if refused or any(f.severity in grave for f in findings) else 0

    user = filtering.viewer
    fixed: ValidChanges = {}
    proposals: list[lint.Finding] = []
    saved = selection.SaveOutcome()
    with place.open("rules") as bench:
        if kinds and "family" in kinds:
            every = selection.select(bench, place.collection, where, user=user).chunks
            questions = bench.labels.queries(place.collection, ASKED).values()
            advice = suggest(every, questions)
            proposals = [advice.finding(p, p.chunk) for p in advice.proposals if not p.chunk.rule]
        selected = selection.select(bench, place.collection, [*(where or ()), "rule=any"], user=user)
        entries = bench.collection(place.collection).entries()
        # A rule may be shared with a chunk that is not selected.
        catalogue = {i: chunk for i, chunk in entries.items() if user.sees(chunk)}
        catalogue |= {chunk.id: chunk for chunk in selected.chunks}
        stored = {chunk.id: chunk.rule for chunk in selected.chunks}
        stored |= {i: None for finding in proposals for i in finding.chunk_ids}
        ruled = lint.rules_of(selected.chunks)
        if apply:
            accepted = {i: each.fixed for each in proposals if each.sure for i in each.chunk_ids}
            fixed = lint.fix_rules(catalogue, ruled, kinds or ()) | accepted
            saved = saving.save(fixed, stored, bench, place, filtering)
    if saved.done:
        ruled = {i: rule for i, rule in {**ruled, **fixed}.items() if rule is not None}
        proposals = [each for each in proposals if not each.sure]
    findings = _of_kinds([*lint.analyse(catalogue, ruled), *proposals], kinds)
    document, lines = _summary(place.collection, len(ruled), findings)
    document["incomplete"] = selected.incomplete
    if apply:
        document |= {"fixed": fixed, "saved": saved.done, "effect": saved.effect}
        diff = selection.change_text(stored, texts_of(fixed)) if saving.dry_run else ""
        outcome = f"{counted(len(fixed), 'rule')} {'fixed' if saved.done else 'would be fixed'}"
        lines += [diff, outcome, selection.effect_text(saved.effect)]
    show(document, *lines)
    return selection.FOUND if any(f.severity in grave for f in findings) or not saved.wanted else 0


def _of_kinds(findings: Sequence[lint.Finding], kinds: Sequence[str] | None) -> list[lint.Finding]:
    return lint.by_severity(finding for finding in findings if not kinds or finding.kind in kinds)


def _summary(name: str, rules: int, findings: Sequence[lint.Finding]) -> tuple[dict[str, Any], list[str]]:
    """The findings about a collection or file as a JSON document, and as text with a better rule where there is one."""
    lines = []
    for finding in findings:
        place = f" {finding.place}" if finding.place else ""
        lines.append(f"{finding.severity}: {', '.join(finding.chunk_ids)}{place}: {finding.message}")
        if finding.fix is not None:
            better = finding.fixed.text if finding.fixed else "no rule"
            lines.append(f"  {'better' if finding.sure else 'perhaps'}: {better}")
    counts = Counter(finding.severity for finding in findings)
    figures = ", ".join(counted(counts[severity], severity) for severity in lint.SEVERITIES)
    lines.append(f"{name}: {counted(rules, 'rule')}, {figures}")
    totals = {f"{severity}s": counts[severity] for severity in lint.SEVERITIES}
    return {"collection": name, "rules": rules, **totals, "findings": findings}, lines


@command(rules, name="test", json=True)
def run_expectations(
    file: Annotated[Path, "JSONL with question, stay and go (chunk ids)."],
    place: options.Place,
    viewing: options.Viewing,
    rules_file: Annotated[options.File, "--rules", "Test the rules of an exported file."] = None,
) -> int:
    """Check that rules keep and drop the chunks that a file expects. Exits with 1 if not."""
    expectations = rule_files.read_expectations(file)
    known: RuleTexts
    incomplete = ""
    if rules_file is not None:
        in_file, refused = rule_files.read(rules_file)
        for line in refused:
            raise InputError(
                f"{rules_file}, line {line.line}: {line.error.rstrip('.')}.",
                remedy="`ragfilter rules check --rules FILE` lists every such line.",
            )
        wanted = {i for expectation in expectations for i in (*expectation.stay, *expectation.go)}
        missing = sorted(wanted.difference(in_file))
        known = dict.fromkeys(missing) | {i: chunk.rule for i, chunk in in_file.items()}
        if missing:
            warn(
                f"{rules_file} has no line for {counted(len(missing), 'chunk')}, such as "
                f"{missing[0]}: treated as having no rule."
            )
    else:
        user = viewing.viewer
        with place.open("rules") as bench:
            chunks, incomplete = place.entries(bench)
        known = {i: chunk.rule for i, chunk in chunks.items() if user.sees(chunk)}
    outcome = rule_files.check_rules(expectations, known)
    show(
        asdict(outcome) | {"incomplete": incomplete},
        *(
            f"line {each.line}: {each.chunk_id} must {each.must}: {each.reason} ({each.question})"
            for each in outcome.broken
        ),
        f"{counted(outcome.questions, 'question')}, {counted(outcome.tested, 'expectation')}, "
        f"{len(outcome.broken)} broken",
    )
    return selection.FOUND if outcome.broken else 0


TITLE_WIDTH = 44
MAX_CROWDING = 10
FIGURES = "queries", "blocks", "passes", "overlap", "conflicts", "precision", "adds to F1", "adds to recall", "fires"


@command(rules, name="list", json=True)
def list_(
    place: options.Place,
    viewing: options.Viewing,
    where: Where = None,
    limit: Annotated[int | None, "List only the first N.", {"min": 1, "max": options.MAX_NUMBER}] = None,
) -> None:
    """List chunks with their rules, most urgent first."""
    user = viewing.viewer
    with place.open("rules") as bench:
        chunks, incomplete = place.entries(bench)
        visible = sum(map(user.sees, chunks.values()))
        wanted = {*selection.select_ids(bench, place.collection, where, user)}
        listing = selection.list_chunks(user, bench, place.collection).find(RuleFilter())
    rows = [row for row in listing if row.id in wanted]
    listed = rows[:limit]
    documents = [
        {
            **{name: getattr(row.chunk, name) for name in ("id", "title", "type", "source")},
            "state": row.state,
            "changed": row.changed,
            "rule": row.chunk.rule or None,
            "brief": brief(read_rule(row.chunk.rule)),
        }
        for row in listed
    ]
    titles = telling_titles([row.chunk.title for row in listed], TITLE_WIDTH)
    # The rule comes last, since it may be long.
    body = [
        (", ".join(row.words), row.id, title, document["brief"])
        for row, title, document in zip(listed, titles, documents, strict=True)
    ]
    first = f", the first {len(body):,} shown" if len(body) < len(rows) else ""
    show(
        place.head(incomplete) | {"chunks": visible, "found": len(rows), "rows": documents},
        table(("state", "id", "title", "rule"), body) if body else "",
        f"{place.collection}: {len(rows):,} of {counted(visible, 'chunk')}{first}",
    )


@command(rules, json=True)
def matrix(
    place: options.Place,
    filtering: options.Filtering,
    measuring: QueryOptions,
    chunk: Annotated[
        str | None, options.text_argument(metavar="CHUNK", help="Show only this chunk's rule, by group and term.")
    ] = None,
) -> None:
    """Show the effect of every rule over many questions, most harmful rule first.

    Questions without labels count only if no question has labels."""
    if measuring.queries is None:
        raise InputError("--queries is missing.", remedy="Pass queries, such as --queries asked.")
    loaded, user = filtering.load()
    # Gathered with rules on, so that the pools have enough chunks that pass them.
    settings = loaded.settings.with_values({"query_must.enabled": True})
    with place.open("rules") as bench:
        labels = measuring.read(bench, place, user, bare=True)
        assert labels is not None
        store = bench.collection(place.collection)
        catalogue, head = store.entries(), place.head(store.incomplete)
        rule = None if chunk is None else _rule_of(chunk, catalogue, user)
        pools = completed_pools(
            labels.labelled or labels.queries, settings, place.backends(bench), user, progress=progress("queries")
        )
    questions = pools, labels.qrels, catalogue.values(), settings, user
    name = "labelled" if labels.qrels else "history"
    if rule is None:
        result = rule_matrix.build_matrix(*questions)
        names = [_named(row.chunk_ids) for row in result.rules]
        show(head | {name: result}, name, _rows_text(result.rules, "chunks", names), _matrix_text(result))
    else:
        rows = rule_matrix.build_parts(rule, *questions)
        names = [f"{row.place} {shorten(rule.written(row.place))}" for row in rows]
        show(head | {name: rows}, name, _rows_text(rows, "part", names))


def _rule_of(chunk_id: str, catalogue: Mapping[str, Chunk], user: User) -> Rule:
    if chunk_id not in catalogue or not user.sees(catalogue[chunk_id]):
        raise InputError(f"There is no chunk {chunk_id!r}.", remedy="Check its id.")
    if rule := catalogue[chunk_id].rule:
        return parse(rule)
    raise InputError(f"The chunk {chunk_id!r} has no rule.", remedy="Name another.")


def _matrix_text(result: Matrix) -> str:
    text = ""
    if result.crowding:
        first = result.crowding[:MAX_CROWDING]
        body = [(row.chunk_id, row.retrieved, row.irrelevant, row.kept) for row in first]
        text = f"\n{table(('without a rule', 'retrieved', 'irrelevant', 'kept wrongly'), body)}"
        more = len(result.crowding) - len(first)
        text += f"and {more} more\n" if more else ""
    waiting = f", {result.waiting} fell back" if result.waiting else ""
    figures = f"{counted(len(result.rules), 'rule')} over {counted(result.queries, 'question')}"
    return f"{text}{figures}{waiting}\n"


def _rows_text(rows: Sequence[RuleRow], first: str, names: Sequence[str]) -> str:
    body = []
    for name, row in zip(names, rows, strict=True):
        precision = "–" if row.precision is None else f"{row.precision:.2f}"
        # What a rule adds is the negative of the difference that leaving it out makes.
        gains = ("–" if without is None else signed(-without, 4) for without in (row.delta_f1, row.delta_recall))
        body.append(
            (name, row.queries, row.blocks, row.passes, row.overlap, len(row.conflicts), precision, *gains, row.fires)
        )
    return table((first, *FIGURES), body)


def _named(ids: Sequence[str]) -> str:
    return ids[0] if len(ids) == 1 else f"{ids[0]} and {len(ids) - 1} more"
