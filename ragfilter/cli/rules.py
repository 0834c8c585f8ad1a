"""The command group `ragfilter rules`: lint, export and import, history, undo and redo.

Source: docs/design.md#rules and docs/design.md#cli. `import`, `undo` and `redo` write, through the
journal. `suggest` is in `ragfilter.cli.rules_suggest`. The clearance settings in force hold for the
commands that read chunks, and what they leave out is told; the journal is for the one who keeps it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragfilter.cli import parts
from ragfilter.cli.commands import app
from ragfilter.cli.options import (
    MOST,
    CollectionName,
    ConfigFile,
    DataDir,
    Departments,
    Json,
    Level,
    ProfileName,
    QrelsFile,
    SetValues,
    Verbose,
    Where,
    in_words,
)
from ragfilter.errors import InputError

if TYPE_CHECKING:
    from ragfilter.cli.rule_files import Plan
    from ragfilter.cli.selecting import Selection
    from ragfilter.evaluate.effect import Effect
    from ragfilter.model import User
    from ragfilter.rules.journal import Edit, Journal
    from ragfilter.settings.schema import Settings
    from ragfilter.stores.chroma.collection import ChromaCollection
    from ragfilter.workbench import Workbench

FOUND = 1
rules = typer.Typer(
    help="Draft, check, export, import, undo and redo query_must rules.",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(rules, name="rules")

OneChunk = Annotated[
    str | None,
    typer.Argument(metavar="CHUNK", help="Only this chunk's edits.", callback=in_words),
]


@rules.callback(invoke_without_command=True)
def _group(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        parts.emit(f"{context.get_help()}\n")


def viewer_of(
    config: Path | None,
    values: list[str] | None,
    level: int | None,
    departments: list[str] | None,
) -> User:
    """As whom the settings in force let the user look."""
    from ragfilter.layers.clearance import viewer

    settings = parts.load_config(None, config, values, {}).settings
    return viewer(parts.user_of(level, departments, values), settings)


def tell(notice: str) -> None:
    """One line on standard error, where there is something to tell."""
    if notice:
        typer.echo(f"ragfilter: {notice}", err=True)


def with_rules(
    collection: str,
    where: list[str] | None,
    config: Path | None,
    values: list[str] | None,
    level: int | None,
    departments: list[str] | None,
    data_dir: Path | None,
) -> Selection:
    """The selected chunks that have a rule; what is missing among them is told."""
    user = viewer_of(config, values, level, departments)
    from ragfilter.cli.selecting import select

    with parts.open_for(data_dir, "rules") as bench:
        selected = select(bench.collection(collection), [*(where or ()), "rule=any"], user=user)
    tell(selected.notice)
    return selected


@rules.command()
def lint(
    collection: CollectionName = "demo",
    where: Where = None,
    config: ConfigFile = None,
    values: SetValues = None,
    level: Level = None,
    department: Departments = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    verbose: Verbose = 0,
) -> int:
    """Find rules that do not work as intended. Exits with 1 if there are errors."""
    parts.start_logging(verbose)
    chosen = with_rules(collection, where, config, values, level, department, data_dir)
    from ragfilter.cli import rule_text
    from ragfilter.rules.lint import lint as find

    texts = {chunk.id: chunk.rule or "" for chunk in chosen.chunks}
    findings = find(texts, {chunk.id: chunk.title for chunk in chosen.chunks})
    if as_json:
        document = rule_text.lint_document(collection, len(texts), findings)
        parts.emit(parts.dumps(document | {"incomplete": chosen.incomplete}))
    else:
        parts.emit(rule_text.lint_text(collection, len(texts), findings))
    return FOUND if any(finding.severity == "error" for finding in findings) else 0


@rules.command(name="export")
def export(
    collection: CollectionName = "demo",
    out: Annotated[
        Path | None,
        typer.Option(help="Output file, as CSV where its name ends so. Default: standard output."),
    ] = None,
    where: Where = None,
    config: ConfigFile = None,
    values: SetValues = None,
    level: Level = None,
    department: Departments = None,
    data_dir: DataDir = None,
    verbose: Verbose = 0,
) -> None:
    """Write the rules as JSONL, or as CSV: id, title and query_must."""
    parts.start_logging(verbose)
    chosen = with_rules(collection, where, config, values, level, department, data_dir)
    from ragfilter.cli import rule_files

    if rule_files.is_csv(out):
        text = rule_files.csv_text(chosen.chunks)
    else:
        text = "".join(rule_files.lines(chosen.chunks))
    if out is None:
        parts.emit(text)
    else:
        rule_files.write(out, text)
        parts.emit(f"{collection}: {len(chosen.chunks)} rules written to {out}\n")


@rules.command(name="import")
def import_(
    file: Annotated[Path, typer.Argument(help="JSONL or CSV with id and query_must, or drafts.")],
    collection: CollectionName = "demo",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only report what would be saved or refused.")
    ] = False,
    with_doubts: Annotated[
        bool, typer.Option("--with-doubts", help="Also save drafts with remarks.")
    ] = False,
    queries: Annotated[
        str | None,
        typer.Option(
            "--queries",
            help="With --dry-run: labelled queries (path of queries.jsonl, or demo or adsapi for "
            "their own), to see what the change does to them.",
        ),
    ] = None,
    qrels: QrelsFile = None,
    profile: ProfileName = None,
    config: ConfigFile = None,
    values: SetValues = None,
    level: Level = None,
    department: Departments = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    verbose: Verbose = 0,
) -> int:
    """Save the rules of a file, each through the journal.

    Drafts with remarks are held back. Exits with 1 if any rule is held back or refused.
    """
    parts.start_logging(verbose)
    from ragfilter.cli import rule_files, rule_text

    if queries is not None and not dry_run:
        raise InputError("--queries only goes with --dry-run.", remedy="Add --dry-run.")
    with parts.open_for(data_dir, "rules") as bench:
        store = bench.collection(collection)
        stored = {i: c.rule for i, c in store.catalogue().items()}
        tell(store.incomplete)
        plan = rule_files.plan(file, stored, with_doubts=with_doubts)
        saved, refusals = list[rule_files.Change](), list(plan.refusals)
        effect = None
        if queries is not None:
            loaded = parts.load_config(profile, config, values, {})
            user = parts.user_of(level, department, values)
            effect = _effect(plan, bench, collection, (queries, qrels), loaded.settings, user)

        def report() -> None:
            what = collection, plan, saved, refusals
            if as_json:
                made = rule_text.import_document(*what, dry_run=dry_run)
                parts.emit(parts.dumps(made | rule_text.effect_document(effect)))
            else:
                parts.emit(rule_text.import_text(*what, dry_run=dry_run))
                parts.emit(rule_text.effect_text(effect))

        outcomes = (
            plan.changes
            if dry_run
            else rule_files.save(
                plan.changes,
                store,
                bench.journal,
                who=bench.deployment.user,
                progress=parts.progress("rules saved"),
            )
        )
        with parts.at_the_end(report):
            for outcome in outcomes:
                if isinstance(outcome, rule_files.Refusal):
                    refusals.append(outcome)
                else:
                    saved.append(outcome)
    return FOUND if refusals or plan.held else 0


def _effect(
    plan: Plan,
    bench: Workbench,
    collection: str,
    files: tuple[str, str | None],
    settings: Settings,
    user: User,
) -> Effect:
    """What the planned changes do to labelled queries; what the labels lack is told."""
    from ragfilter.evaluate import labels, run
    from ragfilter.evaluate.effect import measure_effect

    known = labels.choose(labels.load(*files))
    backends = parts.backends(bench, collection)
    parts.unknown_labels(known, backends)
    labelled = {i: text for i, text in known.queries.items() if i in known.qrels}
    pools = run.gather_all(labelled, settings, backends, user, progress=parts.progress("queries"))
    changes = {change.chunk_id: change.after for change in plan.changes}
    return measure_effect(pools, known.qrels, settings, changes, user)


@rules.command()
def history(
    chunk: OneChunk = None,
    collection: CollectionName = "demo",
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="Maximum number of edits.")] = 20,
    data_dir: DataDir = None,
    as_json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """List the edits of rules, newest first."""
    parts.start_logging(verbose)
    from ragfilter.cli import rule_text

    with parts.open_for(data_dir, "rules") as bench:
        bench.collection(collection)
        found = bench.journal.history(collection, chunk, limit=limit)
    if as_json:
        parts.emit(parts.dumps([rule_text.edit_document(edit) for edit in found]))
    elif found:
        parts.emit(rule_text.history_text(found))
    else:
        typer.echo("No rule has been edited yet.", err=True)


@rules.command()
def undo(
    chunk: OneChunk = None,
    collection: CollectionName = "demo",
    data_dir: DataDir = None,
    as_json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Undo the last edit of the collection, or of one chunk."""
    from ragfilter.rules import edits

    parts.start_logging(verbose)
    with parts.open_for(data_dir, "rules") as bench:
        store, journal, who = _journalled(bench, collection)
        made = edits.undo(store, journal, who=who, chunk_id=chunk)
    _emit_edit(made, as_json=as_json)


@rules.command()
def redo(
    chunk: OneChunk = None,
    collection: CollectionName = "demo",
    data_dir: DataDir = None,
    as_json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Redo the edit that was undone last."""
    from ragfilter.rules import edits

    parts.start_logging(verbose)
    with parts.open_for(data_dir, "rules") as bench:
        store, journal, who = _journalled(bench, collection)
        made = edits.redo(store, journal, who=who, chunk_id=chunk)
    _emit_edit(made, as_json=as_json)


def _journalled(bench: Workbench, collection: str) -> tuple[ChromaCollection, Journal, str]:
    return bench.collection(collection), bench.journal, bench.deployment.user


def _emit_edit(edit: Edit, *, as_json: bool) -> None:
    from ragfilter.cli import rule_text

    parts.emit(parts.dumps(rule_text.edit_document(edit)) if as_json else rule_text.edit_text(edit))
