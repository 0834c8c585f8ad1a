"""Reports on one question, with one or two sets of settings, and on labelled queries, for a run or two sides. Pure.

A report on a question contains only what its user can see, even if an operator makes it. A report on queries has
questions and figures, but no chunks. Each is one HTML text with its styles and plots inline. Every value is escaped,
since a chunk's text is data, and a content security policy in the file forbids all requests."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from ragfilter import __version__
from ragfilter.answer.answer import DOUBT, Answer
from ragfilter.answer.context_packing import Context
from ragfilter.engine.pool import unfiltered
from ragfilter.engine.replay import replay_as_user
from ragfilter.errors import extra
from ragfilter.evaluate import frame, wording
from ragfilter.evaluate.frame import ABOUT_LAYERS, interval_of
from ragfilter.evaluate.measured_runs import ComparedRuns, MeasuredRun, measured_queries, settings_name
from ragfilter.evaluate.metrics import FIGURES, frontier
from ragfilter.evaluate.variants import CURRENT
from ragfilter.layers.registry import LAYERS
from ragfilter.model import Hit, PoolResult, User
from ragfilter.protocols import Prices
from ragfilter.publish import drawing
from ragfilter.results.rows import contrast, reason, rows
from ragfilter.results.summary import Story, prompt_size, sentences, story
from ragfilter.settings.config import to_toml
from ragfilter.settings.schema import Settings
from ragfilter.text import numbers
from ragfilter.text.normalise import mend_characters

if TYPE_CHECKING:
    from jinja2 import Environment

    from ragfilter.stores.run_store import Run


@dataclass(frozen=True, slots=True)
class ReportOrigin:
    """The origin of a report, so that it can be reproduced."""

    collection: str
    collection_version: str
    model: str
    space: str
    user: User
    at: datetime
    labels: str = ""

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Labels and values, in order."""
        return (
            ("collection", f"{self.collection}, version {self.collection_version}"),
            ("embedding model", f"{self.model}, {self.space}"),
            *([("labels", f"version {self.labels}")] if self.labels else []),
            ("seen as", viewed(self.user)),
            ("made", f"{self.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC by ragfilter {__version__}"),
        )


def origin_of(run: Run) -> ReportOrigin:
    """The origin of a run's figures."""
    plan = run.plan
    return ReportOrigin(
        plan.collection, plan.collection_version, plan.model, plan.space, plan.viewer, run.at, plan.labels_version
    )


def render(template: str, **values: Any) -> str:
    """Render a template."""
    page = _environment().get_template(template).render(layers=LAYERS, **values)
    # Foreign text may contain lone surrogates, which cannot be written to a file.
    return mend_characters(page)


def command(*words: str, user: User) -> str:
    """A shell command that makes a report again as its user."""
    level = () if user.unrestricted else ("--level", str(user.level))
    departments = (word for name in user.departments for word in ("--department", name))
    return shlex.join(("ragfilter", *words, *level, *departments))


def viewed(user: User) -> str:
    """The user for whom a report was made, in words."""
    if user.unrestricted:
        return "everyone: clearance is off"
    departments = f", departments {', '.join(user.departments)}" if user.departments else ""
    return f"level {user.level}{departments}"


@cache
def _environment() -> Environment:
    with extra("app"):
        from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ragfilter.publish"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": numbers.count,
        "counted": numbers.counted,
        "money": numbers.money,
        "signed": numbers.signed,
        "p_value": numbers.p_value,
        "gain": wording.gain,
        "ends": wording.ends,
        "written": lambda value, figure: frame.written(figure, value),
        "between": lambda of, figure: wording.between_ends(of, partial(frame.written, figure), "–"),
        "reason": reason,
        "toml": to_toml,
    }
    return environment


MAX_DROPPED = 30
KEEPERS = {"Only A keeps": "a", "Both keep": "both", "Only B keeps": "b"}
QUOTED = "quoted from the chunks, without an LLM"


@dataclass(frozen=True, slots=True)
class NamedSettings:
    """Settings with their name, and the profile they started from."""

    name: str
    profile: str
    settings: Settings


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer as a report shows it. `doubt` says that the context may not contain the answer, or
    that the LLM failed."""

    name: str
    by: str
    text: str
    cites: tuple[tuple[int, str], ...]
    doubt: str = ""


def of_query(
    result: PoolResult,
    profile: str,
    origin: ReportOrigin,
    *,
    prices: Prices | None = None,
    answers: Sequence[ShownAnswer] = (),
    called: str = "",
) -> str:
    """A report on one question: what was dropped and why, and the effect on prompt and answer.
    `called` names the settings."""
    result = replay_as_user(result)
    listed = rows(result)
    texts = {hit.id: hit.chunk.text for hit in result.kept}
    kept = sorted((row for row in listed if row.place is not None), key=lambda row: row.place or 0)
    dropped = [row for row in listed if row.place is None]
    k = result.settings.retrieval.k
    plain = unfiltered(result.pool, result.settings, result.user)
    account = story(result)
    return render(
        "query.html",
        query=result.query,
        incomplete=result.pool.incomplete,
        sentences=_sentences(account, prices),
        sides=[
            _size(f"without the filter (first {k})", plain, result.settings),
            _size("with the filter", result.kept, result.settings),
        ],
        prices=prices,
        curve=drawing.curve(listed, k),
        answers=answers,
        kept=[(row, texts[row.id]) for row in kept],
        drops=account.drops,
        dropped=dropped[:MAX_DROPPED],
        why={i: fall.words for fall in account.drops for i in fall.ids},
        more=max(len(dropped) - MAX_DROPPED, 0),
        settings=[(f"Settings{called and f': {called}'} (ragfilter.toml)", result.settings, profile)],
        commands=[_command(result, "ragfilter.toml")],
        origin=origin,
    )


def of_two(
    results: tuple[PoolResult, PoolResult],
    names: tuple[NamedSettings, NamedSettings],
    origin: ReportOrigin,
    *,
    prices: Prices | None = None,
    answers: Sequence[ShownAnswer] = (),
) -> str:
    """A report on one question with two sets of settings: what each keeps or drops, and why."""
    a, b = map(replay_as_user, results)
    contrasted = contrast(a, b)
    sides = {f"A: {names[0].name}": a, f"B: {names[1].name}": b}
    return render(
        "contrast.html",
        query=a.query,
        incomplete=a.pool.incomplete or b.pool.incomplete,
        names=[each.name for each in names],
        sentences=[(label, _sentences(story(each), prices)) for label, each in sides.items()],
        sides=[_size(label, each.kept, each.settings) for label, each in sides.items()],
        prices=prices,
        groups=[(title, [each for each in contrasted if each.keeper == keeper]) for title, keeper in KEEPERS.items()],
        answers=answers,
        settings=_files(names),
        commands=[_command(a, "a.toml"), _command(b, "b.toml")],
        origin=origin,
    )


def _files(names: tuple[NamedSettings, NamedSettings]) -> list[tuple[str, Settings, str]]:
    """The settings of both sides as files."""
    return [
        (f"{letter.upper()}: {each.name} ({letter}.toml)", each.settings, each.profile)
        for letter, each in zip("ab", names, strict=True)
    ]


def _sentences(account: Story, prices: Prices | None) -> tuple[str, ...]:
    return sentences(account, *((prices.prompt, prices.currency) if prices else ()))


def _command(result: PoolResult, file: str) -> str:
    words = ("--collection", result.pool.collection, "--config", file)
    return command("query", result.query, *words, user=result.user)


def _size(name: str, hits: Sequence[Hit], settings: Settings) -> dict[str, object]:
    """The chunks and tokens in a side's prompt."""
    sent, total = prompt_size(hits, settings)
    return {"name": name, "chunks": sent, "tokens": total}


def shown_answer(name: str, answer: Answer, context: Context, cited: Sequence[int] = ()) -> ShownAnswer:
    """An answer for a report, made from a context. `cited` are the numbers that its text gives the context's chunks,
    if not their places."""
    titles = [hit.chunk.name for hit in context.chunks]
    return ShownAnswer(
        name,
        QUOTED if answer.extractive else f"by {answer.model}",
        answer.text or answer.error,
        tuple((cited[n - 1] if cited else n, titles[n - 1]) for n in answer.citations if n <= len(titles)),
        (answer.error if answer.text else "") or (DOUBT.format(why=answer.doubt) if answer.doubt else ""),
    )


MAX_QUERIES = 30


def of_run(measured: MeasuredRun, prices: Prices | None = None, *, since: Sequence[str] = ()) -> str:
    """A report on a run: every alternative with its interval, the gains of each layer, and lost chunks. `since` has the
    notes of `measured_runs.changed_since`."""
    run, curves, queries = measured.run, measured.curves, measured.questions
    rows = frame.cells(measured.rows)
    lost = queries[queries["lost"] > 0].sort_values("lost", ascending=False, kind="stable")
    labels = {name: each.label for name, each in FIGURES.items() if "report" in each.tables}
    ends = {row["variant"]: {name: interval_of(row, name) for name in labels} for row in rows}
    return render(
        "run.html",
        run=run,
        called=settings_name(run),
        questions=len(queries),
        sentences=_verdicts(measured, since),
        f1=drawing.intervals([(name, each["f1"]) for name, each in ends.items() if each["f1"]], CURRENT),
        tradeoff=drawing.tradeoff(
            [(row["variant"], row["recall"], row["precision"]) for row in rows],
            frontier(curves),
            [row["variant"] for row in rows if row["group"] in ("settings", "plain", "oracle")],
            CURRENT,
        ),
        rows=rows,
        ends=ends,
        labels=labels,
        prices=prices,
        cost=frame.cost,
        current=CURRENT,
        gains=[
            {"layer": row["layer"], "group": row["group"]}
            | {name: interval_of(row, name) for name in ("f1", "recall", "tokens")}
            for row in frame.cells(measured.gains)
        ],
        about_layers=ABOUT_LAYERS,
        lost=frame.cells(lost.head(MAX_QUERIES)),
        more=max(len(lost) - MAX_QUERIES, 0),
        settings=[("Settings (ragfilter.toml)", measured.settings, run.plan.profile)],
        commands=[_eval_command(run, "ragfilter.toml")],
        origin=origin_of(run),
    )


def of_runs(compared: ComparedRuns, names: tuple[NamedSettings, NamedSettings], prices: Prices | None = None) -> str:
    """A report on two sides, which are rows of two runs, over the same queries."""
    run, changes = compared.runs[1], compared.changes
    changed = [each for each in changes if each["gain"]]
    verdict = f"B is {wording.compared(compared.paired.gain)} A in mean F1."
    if any(compared.in_sample):
        verdict = "No winner is declared, because at least one side may have been tuned on these labels."
    return render(
        "runs.html",
        compared=compared,
        prices=prices,
        names=[each.name for each in names],
        query_set=run.plan.query_set,
        verdict=verdict,
        gains=drawing.gains([each["gain"] for each in changes]),
        changes=changed[:MAX_QUERIES],
        more=max(len(changed) - MAX_QUERIES, 0),
        settings=_files(names),
        commands=[_eval_command(run, f"{letter}.toml") for letter in "ab"],
        origin=origin_of(run),
    )


def _eval_command(run: Run, file: str) -> str:
    saved = run.name or f"run {run.id}"
    return command("eval", "--config", file, *measured_queries(run.plan), "--save", saved, user=run.plan.viewer)


def _verdicts(measured: MeasuredRun, since: Sequence[str]) -> list[str]:
    run, current = measured.run, measured.row(CURRENT)
    verdicts = [
        "" if run.complete else f"The run was stopped after {run.done} of {run.plan.queries} questions.",
        *since,
        wording.over_fixed_k(measured.over_fixed_k, measured.in_sample),
        *wording.about_records(measured.records, measured.variants),
        wording.unlabelled(current) if current else "",
    ]
    return [sentence for sentence in verdicts if sentence]
