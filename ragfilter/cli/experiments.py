"""`ragfilter compare` and `ragfilter experiment`: the same queries under several settings.

Source: Intelligent Chunk Filtering, "Before/After Comparison Framework" and "Experimental Tuning
Process"; docs/design.md#judge-prompts. Each finished measurement counts: stopped early (Ctrl+C, a
failure), both print what is there.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragfilter.cli import parts
from ragfilter.cli.commands import app
from ragfilter.cli.options import (
    CollectionName,
    ConfigFile,
    DataDir,
    Departments,
    Except,
    Json,
    Level,
    Limit,
    Only,
    ProfileName,
    QrelsFile,
    QueriesFile,
    SetValues,
    Verbose,
)
from ragfilter.errors import InputError, SettingsError
from ragfilter.settings.profiles import PROFILES

if TYPE_CHECKING:
    from ragfilter.evaluate.beir import Labels
    from ragfilter.evaluate.experiment import Side
    from ragfilter.model import User


@app.command()
def compare(
    queries: QueriesFile,
    qrels: QrelsFile = None,
    collection: CollectionName = "demo",
    profile: Annotated[
        list[str] | None,
        typer.Option(
            "--profile", "-p", help=f"Profile to compare: {', '.join(PROFILES)}. Repeatable."
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            help="Compare each profile with these settings: 'layer.field=value …'. Repeatable; "
            "an empty string is the unchanged profile.",
        ),
    ] = None,
    config: ConfigFile = None,
    values: SetValues = None,
    level: Level = None,
    department: Departments = None,
    only: Only = None,
    leave_out: Except = None,
    limit: Limit = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Compare profiles or settings with an unfiltered search, over a list of queries.

    --set applies to every side.
    """
    parts.start_logging(verbose)
    made = _sides(profile or (), vary or (), config, values or ())
    from ragfilter.evaluate.experiment import before_and_after

    labels = _labels(queries, qrels, only or (), leave_out or (), limit)
    user = parts.user_of(level, department, values)
    _run("compare", before_and_after(made), labels, collection, data_dir, user, as_json=as_json)


@app.command()
def experiment(
    queries: QueriesFile,
    qrels: QrelsFile = None,
    variants: Annotated[
        str,
        typer.Option("--variants", help="Prompt variants to try, comma-separated. Default: all."),
    ] = "",
    collection: CollectionName = "demo",
    profile: ProfileName = None,
    config: ConfigFile = None,
    values: SetValues = None,
    level: Level = None,
    department: Departments = None,
    only: Only = None,
    leave_out: Except = None,
    limit: Limit = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Measure the judge's prompt variants on labelled queries. Needs an LLM.

    The default profile is llm-filter.
    """
    parts.start_logging(verbose)
    from ragfilter.evaluate.experiment import prompt_sides
    from ragfilter.judge import prompts as judge_prompts

    named = dict.fromkeys(name.strip() for name in variants.split(",") if name.strip())
    prompts = tuple(named) or judge_prompts.names()
    base = profile or "llm-filter"
    for name in prompts:
        # A name is checked as the setting that it becomes.
        parts.load_config(base, config, values, {"--variants": {"judge.prompt": name}})
    settings = parts.load_config(base, config, values, {}).settings
    sides = prompt_sides(settings, prompts)
    labels = _labels(queries, qrels, only or (), leave_out or (), limit)
    if not labels.qrels:
        raise InputError("--qrels is missing.", remedy="An experiment needs labelled queries.")
    user = parts.user_of(level, department, values)
    _run("experiment", sides, labels, collection, data_dir, user, as_json=as_json)


def _sides(
    profiles: Sequence[str], vary: Sequence[str], config: Path | None, values: Sequence[str]
) -> tuple[Side, ...]:
    """One side for every profile and every set of varied settings. Raises SettingsError."""
    from ragfilter.evaluate.experiment import Side

    sides: dict[str, Side] = {}
    for name in profiles or (None,):
        for text in vary or ("",):
            loaded = parts.load_config(name, config, values, {"--vary": _pairs(text)})
            label = " ".join([loaded.profile, *text.split()])
            sides[label] = Side(label, loaded.settings)
    return tuple(sides.values())


def _pairs(text: str) -> dict[str, str]:
    """The settings of one `--vary`; a value with spaces stands in quotes. Raises SettingsError."""
    try:
        pairs = shlex.split(text)
    except ValueError as error:
        raise SettingsError(f"--vary {text}: {error}.", remedy="Close the quotation.") from None
    wrong = next((pair for pair in pairs if "=" not in pair), None)
    if wrong is not None:
        raise SettingsError(
            f"--vary {text}: there is no '=' in {wrong!r}.",
            remedy="Write --vary 'layer.field=value …'.",
        )
    return dict(parts.parse_set(pair) for pair in pairs)


def _labels(
    queries: str,
    qrels: str | None,
    only: Sequence[str],
    leave_out: Sequence[str],
    limit: int | None,
) -> Labels:
    """The chosen queries; where there are labels, only those that have some. Raises InputError."""
    from ragfilter.evaluate import beir, labels

    if qrels is None and queries not in labels.DEMOS:
        texts = beir.read_queries(Path(queries))
        unknown = sorted({*only, *leave_out} - texts.keys())
        if unknown:
            raise InputError(
                f"There is no query {unknown[0]!r}.", remedy="Look up the ids in the queries file."
            )
        chosen = {
            i: text for i, text in texts.items() if i not in leave_out and (not only or i in only)
        }
        return beir.Labels(dict(islice(chosen.items(), limit)), {})
    found = labels.choose(labels.load(queries, qrels), only=only, leave_out=leave_out)
    labelled = {i: text for i, text in found.queries.items() if i in found.qrels}
    return beir.Labels(dict(islice(labelled.items(), limit)), found.qrels)


def _run(
    what: str,
    sides: Sequence[Side],
    labels: Labels,
    collection: str,
    data_dir: Path | None,
    user: User,
    *,
    as_json: bool,
) -> None:
    from ragfilter.cli import experiment_text
    from ragfilter.evaluate import experiment as measuring

    measured: list[measuring.Measured] = []
    total = len(labels.queries) * len(sides)
    unknown: list[str] = []

    def report() -> None:
        complete = len(measured) == total
        if not measured and not complete:
            return
        if as_json:
            head = {
                "collection": collection,
                "queries": len(labels.queries),
                "complete": complete,
                "incomplete": incomplete,
                "unknown_labels": unknown,
            }
            parts.emit(parts.dumps(head | measuring.document(measured, sides)))
        else:
            parts.emit(experiment_text.text(measured, sides, collection, total=total))

    show = parts.progress("measurements")
    with parts.open_for(data_dir, what) as bench:
        # Before anything is read, so that nobody waits for this answer.
        measuring.check(sides, bench.chat)
        backends = parts.backends(bench, collection)
        incomplete = backends.incomplete
        unknown += parts.unknown_labels(labels, backends)
        with parts.at_the_end(report):
            for one in measuring.measure(labels.queries, labels.qrels, sides, backends, user):
                measured.append(one)
                show(len(measured), total)
