"""Reports: a single HTML text that requests nothing and contains only what its user may see."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest

from ragfilter.answer.answer import Answer
from ragfilter.answer.context_packing import pack
from ragfilter.engine.replay import replay
from ragfilter.evaluate.crossval import Interval
from ragfilter.evaluate.frame import by_variant, frame, side_by_side
from ragfilter.evaluate.learning import Provenance
from ragfilter.evaluate.measured_runs import ComparedRuns, MeasuredRun
from ragfilter.evaluate.metrics import Curve
from ragfilter.evaluate.query_records import QueryRecord
from ragfilter.evaluate.tuning import recorded
from ragfilter.evaluate.variants import CURRENT, UNFILTERED, variants
from ragfilter.model import PUBLIC, UNRESTRICTED, Chunk, Hit, Pool, PoolResult, User
from ragfilter.protocols import Prices
from ragfilter.publish import drawing, reports
from ragfilter.publish.reports import NamedSettings, ReportOrigin, ShownAnswer, shown_answer
from ragfilter.settings.config import Given, of_profile
from ragfilter.settings.schema import Settings
from ragfilter.stores.run_store import Plan, Run

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
ORIGIN = ReportOrigin("rules", "v1", "all-MiniLM-L6-v2", "l2", PUBLIC, AT)
EVIL = '<img src=x onerror="alert(1)"> {{ 7 * 7 }} [here](https://evil.example) \ud800'
DISTANCES = (0.10, 0.14, 0.17, 0.60, 0.63, 0.90)


def settings(name: str, **values: Any) -> Settings:
    paths = {key.replace("__", "."): value for key, value in values.items()}
    return of_profile(name, Given("test", paths))


GAP = settings("adaptive-gap", clearance__enabled=True)
PLAIN = settings("unfiltered", clearance__enabled=True, retrieval__k=5)


def result(own: Settings, user: User = PUBLIC) -> PoolResult:
    """Six hits with a cliff after the third; the fourth is secret, the second is hostile."""
    chunks = [Chunk(f"c{n}", f"text {n}", title=f"title {n}", clearance=3 if n == 4 else 0) for n in range(1, 7)]
    chunks[1] = replace(chunks[1], title=EVIL, text=EVIL)
    hits = tuple(
        Hit(chunk, distance, rank)
        for rank, (chunk, distance) in enumerate(zip(chunks, DISTANCES, strict=True), start=1)
    )
    return replay(Pool(f"Who? {EVIL}", "rules", "l2", hits), own, user)


class Tags(HTMLParser):
    """Every tag with its attributes, and the visible text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def pages() -> dict[str, str]:
    called = (NamedSettings(f"A {EVIL}", "unfiltered", PLAIN), NamedSettings("B", "adaptive-gap", GAP))
    answers = [ShownAnswer("with the filter", "quoted", EVIL, ((1, EVIL),))]
    run = run_of(2, query_set=EVIL)
    return {
        "query": reports.of_query(result(GAP), "adaptive-gap", ORIGIN, answers=answers),
        "two": reports.of_two((result(PLAIN), result(GAP)), called, ORIGIN, answers=answers),
        "run": reports.of_run(MeasuredRun(run, RECORDS)),
        "runs": reports.of_runs(compared(run, run), called),
    }


def run_of(queries: int, **plan: Any) -> Run:
    """A complete run with this in its plan."""
    given = {
        "collection": "rules",
        "query_set": "mine",
        "profile": "adaptive-gap",
        "changes": {},
        "viewer": PUBLIC,
        "collection_version": "v1",
        "labels_version": "l1",
        "model": "m",
        "space": "l2",
    }
    return Run(7, AT, "ann", "", Plan(**(given | plan), queries=queries), queries)


def compared(a: Run, b: Run, settings: tuple[Settings, Settings] | None = None) -> ComparedRuns:
    """The unfiltered search of one run compared with the current settings of the other."""
    sides = by_variant(frame(RECORDS, by="query"))
    both = side_by_side(sides[UNFILTERED], sides[CURRENT])
    return ComparedRuns((a, b), settings or (PLAIN, GAP), both)


def records_of(name: str, kept: int) -> list[QueryRecord]:
    """A question of which every variant keeps `kept` chunks, and the run's settings one."""
    query = f"{name} {EVIL}"
    curve = Curve(query, 1, (0.1, 0.2, 0.3), (1, 0, 0), (100, 200, 300), (1.0, 1.0, 1.0))
    counts = {v.name: kept for v in variants(settings("adaptive-gap"))} | {CURRENT: 1}
    return [
        QueryRecord(
            id=name,
            query=query,
            variant=variant,
            labelled=True,
            relevant=1,
            kept=n,
            found=1,
            unlabelled=0,
            tokens=100 * n,
            lost=1,
            ndcg=1.0,
            ms=0.1,
            curve=curve if variant == UNFILTERED else None,
        )
        for variant, n in counts.items()
    ]


RECORDS = (*records_of("q1", 3), *records_of("q2", 1))


def test_a_report_asks_nobody_and_takes_text_as_text() -> None:
    for name in ["query", "two", "run", "runs"]:
        page = pages()[name]
        page.encode("utf-8")
        read = Tags(page)
        assert {"script", "link", "img", "a", "iframe", "object"}.isdisjoint(t for t, _ in read.tags), name
        for _, attributes in read.tags:
            assert not {"src", "href", "onerror", "onload", "style", "action"} & attributes.keys()
        assert not re.search(r"url\(|@import", page), name
        policy = next(a["content"] for t, a in read.tags if a.get("http-equiv"))
        assert policy == "default-src 'none'; style-src 'unsafe-inline'", name
        # Literally, and not as a template.
        assert '<img src=x onerror="alert(1)"> {{ 7 * 7 }}' in read.text, name
        assert len(page) < 100_000, name


@pytest.mark.parametrize("hits", [result(GAP).pool.hits, ()], ids=["some kept", "none found"])
@pytest.mark.parametrize("lacking", ["", "Collection 'rules' is incomplete."])
def test_a_report_says_once_that_the_collection_is_incomplete(hits: tuple[Hit, ...], lacking: str) -> None:
    made = replay(Pool("Who?", "rules", "l2", hits, incomplete=lacking), GAP)
    called = NamedSettings("A", "adaptive-gap", GAP), NamedSettings("B", "adaptive-gap", GAP)
    for page in (reports.of_query(made, "adaptive-gap", ORIGIN), reports.of_two((made, made), called, ORIGIN)):
        assert Tags(page).text.count("is incomplete.") == bool(lacking)


def test_what_a_query_was_asked_and_why_what_fell() -> None:
    page = reports.of_query(result(GAP), "adaptive-gap", ORIGIN, prices=Prices(2.0, 0.0, "EUR"), answers=())
    text = Tags(page).text
    assert "Plain search found 5 passages; 3 pass the filter: 2 came after the cliff." in text
    assert "2 came after the cliff" in text
    assert "embedding model all-MiniLM-L6-v2, l2" in text
    assert "--collection rules --config ragfilter.toml" in text
    assert 'profile = "adaptive-gap"' in text
    # Chunks and tokens before and after, and 1,000 questions' cost at 2 for a million tokens.
    cell = r'<td class="n">([\d.,]+)(?: EUR)?</td>'
    rows = re.findall(r"<tr><td>(with[^<]*)</td>" + cell * 3, page)
    assert [(name, chunks) for name, chunks, *_ in rows] == [
        ("without the filter (first 5)", "5"),
        ("with the filter", "3"),
    ]
    assert re.search(r"less, (under )?0\.[0-9]{4} EUR saved per question", text)
    assert page.count(" EUR</td>") == 2
    for _, _, tokens, cost in rows:
        assert float(cost) == pytest.approx(int(tokens) * 2 / 1000, abs=1e-4)


def test_a_report_holds_what_its_user_may_see() -> None:
    for user in [PUBLIC, User(2), UNRESTRICTED]:
        kept_secret = user != UNRESTRICTED
        made = result(settings("unfiltered", clearance__enabled=kept_secret), user)
        called = NamedSettings("x", "unfiltered", made.settings)
        both = reports.of_two((made, made), (called, called), ORIGIN)
        for page in (reports.of_query(made, "unfiltered", ORIGIN), both):
            assert ("title 4" in page) is not kept_secret
            assert ("text 4" in page or "title 4" in page) is not kept_secret


def test_an_answer_says_that_the_context_may_not_hold_it() -> None:
    answer = Answer(text="text 1 [1]", citations=(1,), extractive=True, doubt="it is far")
    made = shown_answer("with the filter", answer, pack(result(GAP).kept, GAP))
    page = reports.of_query(result(GAP), "adaptive-gap", ORIGIN, answers=[made])
    assert "The context may not hold the answer: it is far." in Tags(page).text
    # The page counts the chunks of both prompts together.
    assert made.cites[0][0] == 1
    assert shown_answer("with the filter", answer, pack(result(GAP).kept, GAP), (6,)).cites[0][0] == 6


def test_a_report_names_the_command_that_repeats_it() -> None:
    for plan, words in [
        ({"query_set": "mine, with LLM labels"}, "--queries mine --with-llm"),
        ({"query_set": "q.jsonl, labels of my q.tsv"}, "--queries q.jsonl --qrels 'my q.tsv'"),
        ({"viewer": UNRESTRICTED}, "--save 'run 7'"),
        ({"viewer": User(2, ("referee", "a b"))}, "--save 'run 7' --level 2 --department 'a b' --department referee"),
    ]:
        page = Tags(reports.of_run(MeasuredRun(run_of(2, **plan), RECORDS)))
        assert f"{words} " in f"{page.text} "
        if user := plan.get("viewer"):
            own = settings("adaptive-gap", clearance__enabled=not user.unrestricted)
            query = Tags(reports.of_query(result(own, user), "adaptive-gap", ORIGIN))
            options = words.removeprefix("--save 'run 7'")
            assert f"ragfilter.toml{options} " in f"{query.text} "


def test_the_drawings_stand_inside_their_frames() -> None:
    every = [
        drawing.gains([0.5, -1.0, 0.0]),
        drawing.tradeoff([("a", 0.0, 1.0), ("b", 1.0, 0.0)], [(0.0, 1.0), (1.0, 1.0)], ["b"]),
        drawing.intervals([("a", Interval(0.5, (0.2, 0.8))), ("b", Interval(1.0, (1.0, 1.0)))], "a"),
    ]
    for each in every:
        places = [at for line in each.lines for at in line.points]
        places += [(p.x, p.y) for p in each.points]
        assert all(0 <= x <= each.width and 0 <= y <= each.height for x, y in places)
    # A gain goes up, a loss down.
    up, down = (line.points for line in every[0].lines if line.css.startswith("bar"))
    assert up[0][1] > up[1][1]
    assert down[0][1] < down[1][1]


def test_settings_that_saw_the_labels_get_no_verdict() -> None:
    for labels, why in [("l1", "tuned on these same labels"), ("l2", "may have seen some of these questions")]:
        pool = Pool("Who?", "rules", "l2", ())
        tuned = recorded(GAP, [pool] * 20, Provenance("l1", "2026-03-01"))
        run = run_of(2, changes=tuned.changed_from(settings("adaptive-gap")), labels_version=labels)
        called = (NamedSettings("A", "unfiltered", PLAIN), NamedSettings("B", "adaptive-gap", tuned))
        shown = MeasuredRun(run, RECORDS)
        both = compared(run, run, (PLAIN, tuned))
        for page in (reports.of_run(shown), reports.of_runs(both, called)):
            assert why in Tags(page).text
            assert "the best fixed k (cross-validated)" not in Tags(page).text
            assert "A in mean F1" not in Tags(page).text
        assert why in shown.in_sample
        assert shown.over_fixed_k is None, labels


def test_reports_tell_what_differs_between_two_runs() -> None:
    for other, said in [
        ({}, ""),
        ({"viewer": User(2)}, "The two sides were measured as different users"),
        ({"labels_version": "l2"}, "different questions or labels"),
        ({"collection": "others"}, "different collections"),
    ]:
        called = (NamedSettings("A", "unfiltered", PLAIN), NamedSettings("B", "adaptive-gap", GAP))
        text = Tags(reports.of_runs(compared(run_of(2), run_of(2, **other)), called)).text
        assert said in text
        assert bool(said) == bool(re.search("different|between the two|B others", text))
