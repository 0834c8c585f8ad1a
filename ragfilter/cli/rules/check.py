"""`ragfilter rules check` and `test`: what is wrong with rules, with fixes, and whether they do
what a file expects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ragfilter.cli.app import command
from ragfilter.cli.options import Filtering, Json, Place, Viewing, refuse_beside, refuse_without
from ragfilter.cli.output import show, warn
from ragfilter.cli.rules.select import (
    FOUND,
    Saved,
    Saving,
    Where,
    change_text,
    rules,
    select,
)
from ragfilter.errors import InputError
from ragfilter.rules import rule_files
from ragfilter.rules.lint import (
    KINDS,
    SEVERITIES,
    Finding,
    analyse,
    by_severity,
    fix_rules,
    rules_of,
)
from ragfilter.rules.rule import read_text
from ragfilter.rules.rule_files import (
    Outcome,
    RefusedLine,
    check_rules,
    read,
    read_expectations,
)
from ragfilter.text.numbers import counted


@command(rules)
def check(
    place: Place,
    filtering: Filtering,
    saving: Saving,
    where: Where = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            help="List, and with --apply fix, only findings of this kind; family proposes rules "
            "for similar chunks that have none. Repeatable. Default: all but family, and with "
            "--apply the fixes that are certain.",
        ),
    ] = None,
    apply: Annotated[bool, "Save the fixes in one step; see --dry-run and --yes."] = False,
    rules_file: Annotated[
        Path | None, typer.Option("--rules", help="Check the rules of an exported file.")
    ] = None,
    strict: Annotated[bool, "Exit with 1 if warnings remain, too."] = False,
    as_json: Json = False,
) -> int:
    """Find and fix rules that do not work as intended. Exits with 1 if errors remain."""
    from ragfilter.evaluate.effect import suggest
    from ragfilter.stores.labels import ASKED

    if not apply:
        refuse_without(
            "--apply", queries=saving.queries, qrels=saving.qrels, yes=saving.yes,
            dry_run=saving.dry_run,
        )  # fmt: skip
    unknown = next((kind for kind in kinds or () if kind not in KINDS), None)
    if unknown is not None:
        raise InputError(
            f"--kind {unknown!r} is not a kind.", remedy=f"Use one of {', '.join(KINDS)}."
        )
    grave = SEVERITIES[: 2 if strict else 1]
    if rules_file is not None:
        refuse_beside("--rules", apply=apply, where=where)
        chunks, refused = read(rules_file)
        findings = _of_kinds(analyse(chunks), kinds)
        count = len(rules_of(chunks.values()))
        document = _document(str(rules_file), count, findings) | {"refused": refused}
        show(document, _text(str(rules_file), count, findings, refused), as_json=as_json)
        return FOUND if refused or any(f.severity in grave for f in findings) else 0

    user = filtering.viewer
    fixed: dict[str, str | None] = {}
    proposals: list[Finding] = []
    saved = Saved(None, wanted=True, done=False)
    with place.open("rules") as bench:
        if kinds and "family" in kinds:
            every = select(bench, place.collection, where, user=user).chunks
            asked = bench.labels.queries(place.collection, ASKED).values()
            made = suggest(every, asked)
            proposals = [made.finding(p, p.chunk) for p in made.proposals if not p.chunk.rule]
        selected = select(bench, place.collection, [*(where or ()), "rule=any"], user=user)
        entries = bench.collection(place.collection).entries()
        # A rule may be shared with a chunk that is not selected.
        catalogue = {i: chunk for i, chunk in entries.items() if user.sees(chunk)}
        catalogue |= {chunk.id: chunk for chunk in selected.chunks}
        stored = {chunk.id: chunk.rule for chunk in selected.chunks}
        stored |= {i: None for finding in proposals for i in finding.chunk_ids}
        ruled = rules_of(selected.chunks)
        if apply:
            fixed = fix_rules(catalogue, ruled, kinds or ())
            fixed |= {i: each.fixed for each in proposals if each.sure for i in each.chunk_ids}
            saved = saving.save(fixed, stored, bench, place, filtering)
    if saved.done:
        ruled |= {i: read_text(rule) for i, rule in fixed.items() if rule}
        ruled = {i: rule for i, rule in ruled.items() if fixed.get(i, rule) is not None}
        proposals = [each for each in proposals if not each.sure]
    findings = _of_kinds([*analyse(catalogue, ruled), *proposals], kinds)
    document = _document(place.collection, len(ruled), findings)
    document["incomplete"] = selected.incomplete
    text = _text(place.collection, len(ruled), findings)
    if apply:
        changes = [{"id": i, "before": stored[i], "after": rule} for i, rule in fixed.items()]
        document |= {"fixed": changes, "saved": saved.done} | saved.document
        text += change_text(stored, fixed) if saving.dry_run else ""
        verb = "fixed" if saved.done else "would be fixed"
        text += f"{counted(len(fixed), 'rule')} {verb}\n{saved.text}"
    show(document, text, as_json=as_json)
    return FOUND if any(f.severity in grave for f in findings) or not saved.wanted else 0


def _of_kinds(findings: Sequence[Finding], kinds: Sequence[str] | None) -> list[Finding]:
    return by_severity(finding for finding in findings if not kinds or finding.kind in kinds)


def _document(name: str, rules: int, findings: Sequence[Finding]) -> dict[str, Any]:
    """The document of `--json`; `name` is the collection's or the file's."""
    counts = Counter(finding.severity for finding in findings)
    figures = {f"{severity}s": counts[severity] for severity in SEVERITIES}
    return {"collection": name, "rules": rules, **figures, "findings": findings}


def _text(
    name: str, rules: int, findings: Sequence[Finding], refused: Sequence[RefusedLine] = ()
) -> str:
    """Errors first, each with a better rule if there is one."""
    lines = [line.message for line in refused]
    for finding in findings:
        place = f" {finding.place}" if finding.place else ""
        ids = ", ".join(finding.chunk_ids)
        lines.append(f"{finding.severity}: {ids}{place}: {finding.message}")
        if finding.fix is not None:
            better = "better" if finding.sure else "perhaps"
            lines.append(f"  {better}: {finding.fix.stored or 'no rule'}")
    counts = Counter(finding.severity for finding in findings)
    figures = ", ".join(counted(counts[severity], severity) for severity in SEVERITIES)
    lines.append(f"{name}: {counted(rules, 'rule')}, {figures}")
    return "\n".join(lines) + "\n"


@command(rules, name="test")
def run_expectations(
    file: Annotated[Path, "JSONL with question, stay and go (chunk ids)."],
    place: Place,
    viewing: Viewing,
    rules_file: Annotated[
        Path | None, typer.Option("--rules", help="Test the rules of an exported file.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Check that rules keep and drop the chunks that a file expects. Exits with 1 if not."""
    expectations = read_expectations(file)
    known: Mapping[str, str | None]
    incomplete = ""
    if rules_file is not None:
        in_file, refused = rule_files.read(rules_file)
        for line in refused:
            raise InputError(
                f"{rules_file}, line {line.line}: {line.error.rstrip('.')}.",
                remedy="`ragfilter rules check --rules FILE` names every such line.",
            )
        named = {i for expectation in expectations for i in (*expectation.stay, *expectation.go)}
        missing = sorted(named.difference(in_file))
        known = dict.fromkeys(missing) | {i: chunk.rule for i, chunk in in_file.items()}
        if missing:
            warn(
                f"{rules_file} has no line for {counted(len(missing), 'chunk')}, such as "
                f"{missing[0]}: treated as having no rule."
            )
    else:
        user = viewing.viewer
        with place.open("rules") as bench:
            store = bench.collection(place.collection)
            chunks = store.entries()
            incomplete = store.incomplete
        warn(incomplete)
        known = {i: chunk.rule for i, chunk in chunks.items() if user.sees(chunk)}
    outcome = check_rules(expectations, known)
    document = asdict(outcome) | {"incomplete": incomplete}
    show(document, _outcome_text(outcome), as_json=as_json)
    return FOUND if outcome.broken else 0


def _outcome_text(outcome: Outcome) -> str:
    lines = [
        f"line {each.line}: {each.chunk_id} must {each.must}: {each.reason} ({each.question})"
        for each in outcome.broken
    ]
    figures = f"{counted(outcome.questions, 'question')}, {counted(outcome.tested, 'expectation')}"
    lines.append(f"{figures}, {len(outcome.broken)} broken")
    return "\n".join(lines) + "\n"
