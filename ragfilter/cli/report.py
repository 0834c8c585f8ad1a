"""The command group `ragfilter report`: write an HTML file to share. Source: docs/design.md#reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from ragfilter.cli import options, output
from ragfilter.cli.options import DataDir, File, Filtering, Place, Text, file_of, load_config
from ragfilter.cli.program import command, make_group
from ragfilter.cli.query import answer_of, ask
from ragfilter.cli.runs import RunId
from ragfilter.engine.pool import unfiltered
from ragfilter.engine.replay import replay_as_user
from ragfilter.errors import InputError, SettingsError
from ragfilter.evaluate import measured_runs
from ragfilter.model import PoolResult
from ragfilter.publish import reports
from ragfilter.settings.profiles import PROFILES
from ragfilter.workbench import Workbench

report = make_group("report")

Out = Annotated[File, "--out", "-o", "Output file. Default: standard output."]


@command(report)
def query(
    text: Annotated[str, "The question."],
    place: Place,
    filtering: Filtering,
    against: Annotated[Text, "Side A: a profile, settings file, saved settings, or run."] = None,
    answer: Annotated[bool, "Include the answers of both sides. May call an LLM."] = False,
    out: Out = None,
) -> None:
    """Report what the filter does to one question, or how two settings differ on it."""
    loaded, user = filtering.load()
    with place.open("report") as bench:
        backends, prices = place.backends(bench), bench.prices
        result = replay_as_user(ask(text, loaded.settings, backends, user))
        collection = backends.collection
        origin = reports.ReportOrigin(
            collection.name,
            bench.version_seen(collection.name, result.user),
            backends.embedder.name,
            collection.space,
            result.user,
            datetime.now(UTC),
        )

        def answers(sides: Sequence[tuple[str, PoolResult]]) -> list[reports.ShownAnswer]:
            shown = sides if answer else ()
            return [reports.shown_answer(name, *answer_of(each, bench)) for name, each in shown]

        if against is None:
            plain = replace(result, kept=unfiltered(result.pool, result.settings, result.user))
            sides = [("without the filter", plain), ("with the filter", result)]
            page = reports.of_query(result, loaded.profile, origin, prices=prices, answers=answers(sides))
        else:
            other = compared_settings(against, bench)
            first = replay_as_user(ask(text, other.settings, backends, user))
            these = reports.NamedSettings("these settings", loaded.profile, result.settings)
            names = replace(other, settings=first.settings), these
            both = answers([("A", first), ("B", result)])
            page = reports.of_two((first, result), names, origin, prices=prices, answers=both)
    output.write(page, out)


@command(report, "run")
def run_(number: RunId, data_dir: DataDir = None, out: Out = None) -> None:
    """Report a saved run: every alternative with its interval, the layers, and lost chunks."""
    with options.open_for(data_dir, "report") as bench:
        run = measured_runs.load(bench.runs.get(number), bench.runs)
        since = measured_runs.changed_since(run.run.plan, bench)
    if not run.records:
        raise InputError(
            f"Run {number} has no measured query yet.",
            remedy="Continue it with the same `ragfilter eval --save` command.",
        )
    output.write(reports.of_run(run, bench.prices, since=since), out)


@command(report)
def compare(run: RunId, other: RunId, data_dir: DataDir = None, out: Out = None) -> None:
    """Report two runs side by side: wins, losses, ties, and the queries that changed most."""
    with options.open_for(data_dir, "report") as bench:
        a, b = (measured_runs.load(bench.runs.get(number), bench.runs) for number in (run, other))
        compared = measured_runs.compare(a, b, bench)
    if compared.sides.empty:
        raise InputError(
            f"Runs {run} and {other} have no queries in common.", remedy="Compare runs over the same query set."
        )
    first, second = (
        reports.NamedSettings(f"run {each.run.id}", each.run.plan.profile, each.settings) for each in (a, b)
    )
    output.write(reports.of_runs(compared, (first, second), bench.prices), out)


def compared_settings(against: str, bench: Workbench) -> reports.NamedSettings:
    """The settings that `--against` names. Raises InputError, SettingsError."""
    if against.isdecimal() and len(against) < 10:
        run = bench.runs.get(int(against))
        return reports.NamedSettings(f"run {run.id}", run.plan.profile, measured_runs.settings_of(run))
    profile, file = (against, None) if against in PROFILES else (None, Path(against))
    try:
        file = file and file_of(file, bench.deployment)
    except SettingsError as error:
        raise SettingsError(
            f"There is no profile {against!r}. {error.message}",
            remedy=f"Choose one of: {', '.join(PROFILES)}. {error.remedy}",
        ) from None
    loaded = load_config(profile, file, None, {})
    return reports.NamedSettings(file.name if file else against, loaded.profile, loaded.settings)
