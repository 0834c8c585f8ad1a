"""`ragfilter rules lint`: rules that do not work as intended, and their fixes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import Filtering, Json, Place, Where
from ragfilter.cli.rules.effect import Saved, Saving, effect_document, effect_text
from ragfilter.cli.rules.group import FOUND, rules
from ragfilter.cli.rules.select import select
from ragfilter.errors import InputError
from ragfilter.rules.findings import KINDS, SEVERITIES, Finding, by_severity
from ragfilter.rules.lint import analyse, fix_rules, rules_of, usual_words
from ragfilter.rules.rule import read_text
from ragfilter.rules.rule_files import read
from ragfilter.text.numbers import counted


@command(rules)
def lint(
    place: Place,
    filtering: Filtering,
    saving: Saving,
    where: Where = None,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="Save the fixes that lint proposes, in one step. --dry-run, --queries and --yes "
            "apply to this option.",
        ),
    ] = False,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            help="With --fix: fix only findings of this kind. Repeatable. Default: the fixes "
            "that are certain.",
        ),
    ] = None,
    rules_file: Annotated[
        Path | None,
        typer.Option(
            "--rules",
            help="Check the rules of this file (JSONL or CSV, as exported) instead of a "
            "collection's. Needs no workspace.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if warnings remain, too.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Find and fix rules that do not work as intended. Exits with 1 if errors remain."""
    if not fix:
        parts.refuse_without(
            "--fix", kind=kinds, queries=saving.queries, qrels=saving.qrels, yes=saving.yes,
            dry_run=saving.dry_run,
        )  # fmt: skip
    unknown = next((kind for kind in kinds or () if kind not in KINDS), None)
    if unknown is not None:
        raise InputError(
            f"--kind {unknown!r} is not a kind.", remedy=f"Use one of {', '.join(KINDS)}."
        )
    if rules_file is not None:
        if fix or where:
            raise InputError(
                "--rules can only check a file.",
                remedy="Leave out --fix and --where, or import the file.",
            )
        return _lint_file(rules_file, strict=strict, as_json=as_json)
    from ragfilter.evaluate import stored

    viewer = filtering.viewer

    mended: Mapping[str, str | None] = {}
    saved = Saved(None, wanted=True, done=False)
    with place.open("rules") as bench:
        selected = select(bench, place.collection, [*(where or ()), "rule=any"], user=viewer)
        parts.tell(selected.incomplete)
        texts = {chunk.id: chunk.rule or "" for chunk in selected.chunks}
        every = bench.collection(place.collection).entries()
        # A rule may be shared with a chunk that is not selected.
        catalogue = {i: chunk for i, chunk in every.items() if viewer.sees(chunk)}
        catalogue |= {chunk.id: chunk for chunk in selected.chunks}
        asked = stored.every_question(bench.labels, place.collection, every, viewer)
        usual = usual_words(asked)
        if fix:
            ruled = rules_of(selected.chunks)
            mended = fix_rules(catalogue, ruled, kinds or (), usual=usual)
            saved = saving.save(mended, texts, bench, place, filtering)
    left = {**texts, **mended} if saved.done else texts
    ruled = {i: read_text(rule) for i, rule in left.items() if rule}
    findings = analyse(catalogue, ruled, usual=usual)
    document = lint_document(place.collection, len(texts), findings)
    document["incomplete"] = selected.incomplete
    text = lint_text(place.collection, len(texts), findings)
    if fix:
        fixed = [{"id": i, "before": texts[i], "after": rule} for i, rule in mended.items()]
        document |= {"fixed": fixed, "saved": saved.done} | effect_document(saved.effect)
        for i, rule in mended.items() if saving.dry_run else ():
            text += f"{i}\n- {texts[i]}\n+ {rule or 'no rule'}\n"
        verb = "fixed" if saved.done else "would be fixed"
        text += f"{counted(len(mended), 'rule')} {verb}\n{effect_text(saved.effect)}"
    parts.emit(document if as_json else text)
    return FOUND if _fails(findings, strict=strict) or not saved.wanted else 0


def _lint_file(path: Path, *, strict: bool, as_json: bool) -> int:
    read_chunks, refusals = read(path)
    chunks = {i: chunk for i, chunk in read_chunks.items() if chunk.rule}
    findings = analyse(chunks)
    document = lint_document(str(path), len(chunks), findings)
    document["refused"] = [asdict(each) for each in refusals]
    refused = "".join(f"{refusal.told}\n" for refusal in refusals)
    parts.emit(document if as_json else refused + lint_text(str(path), len(chunks), findings))
    return FOUND if _fails(findings, strict=strict) or refusals else 0


def _fails(findings: Sequence[Finding], *, strict: bool) -> bool:
    grave = ("error", "warning") if strict else ("error",)
    return any(finding.severity in grave for finding in findings)


def lint_document(name: str, rules: int, findings: Sequence[Finding]) -> dict[str, Any]:
    """The document of `lint --json`; `name` is that of a collection or file."""
    counts = Counter(finding.severity for finding in findings)
    return {
        "collection": name,
        "rules": rules,
        **{f"{severity}s": counts[severity] for severity in SEVERITIES},
        "findings": [finding.model_dump(mode="json") for finding in findings],
    }


def lint_text(collection: str, rules: int, findings: Sequence[Finding]) -> str:
    """Errors first, each with a better rule if there is one."""
    lines: list[str] = []
    for finding in by_severity(findings):
        place = f" {finding.place}" if finding.place else ""
        ids = ", ".join(finding.chunk_ids)
        lines.append(f"{finding.severity}: {ids}{place}: {finding.message}")
        if finding.fix is not None:
            better = "better" if finding.sure else "perhaps"
            lines.append(f"  {better}: {finding.fixed or 'no rule'}")
    counts = Counter(finding.severity for finding in findings)
    figures = ", ".join(counted(counts[severity], severity) for severity in SEVERITIES)
    lines.append(f"{collection}: {counted(rules, 'rule')}, {figures}")
    return "\n".join(lines) + "\n"
