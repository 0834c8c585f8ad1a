"""Measuring: records calculated by hand, the calls of models, and what is saved."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from evaluate.line import Line

from ragfilter.engine.gather import Backends
from ragfilter.engine.replay import replay
from ragfilter.errors import ChatError, InputError, SettingsError
from ragfilter.evaluate.evaluation import document, evaluate, score
from ragfilter.evaluate.frame import cells, frame
from ragfilter.evaluate.labelled_queries import Labels, labels_version, measurable, visible
from ragfilter.evaluate.query_records import (
    QueryRecord,
    completed_pools,
    from_document,
    measure,
    records_of,
    to_document,
)
from ragfilter.evaluate.variants import CURRENT, UNFILTERED, Variant, variants, with_unfiltered
from ragfilter.evaluate.wording import left_out
from ragfilter.judge.call import JudgementCache
from ragfilter.layers.registry import SWITCHES
from ragfilter.model import UNRESTRICTED, Chunk, Hit, Pool, User
from ragfilter.protocols import Delta, Message, Usage
from ragfilter.settings.config import load
from ragfilter.settings.schema import Settings, TunedOn

GAP = load(profile="adaptive-gap", environ={}).settings
K4 = Settings().with_values({"retrieval.k": 4, "cutoff.min_results": 0})
OWLBEARS = {"c1": 2, "c2": 2}
"""Five owlbears of which two are relevant, as in the source documents."""


def pool_of(distances: Sequence[float]) -> Pool:
    hits = (Hit(Chunk(f"c{i}", f"text {i}"), distance, i) for i, distance in enumerate(distances, 1))
    return Pool("owlbears", "c", "l2", tuple(hits), exhaustive=True)


def counted(
    labels: Mapping[str, int],
    settings: Settings = GAP,
    distances: Sequence[float] = (0.10, 0.11, 0.45, 0.46, 0.47),
    name: str = "q",
) -> tuple[QueryRecord, ...]:
    """The records of one query with all variants."""
    return records_of(name, pool_of(distances), labels, variants(settings))


def pool(query: str, *ranked: tuple[str, float], **fields: object) -> Pool:
    hits = tuple(
        Hit(Chunk(i, i, **fields), d, rank)  # type: ignore[arg-type]
        for rank, (i, d) in enumerate(ranked, start=1)
    )
    return Pool(query, "demo", "l2", hits)


# Two relevant, then a cliff of 0.3; a third relevant one after the first four.
CLIFF = pool("cliff", ("a", 0.1), ("b", 0.15), ("x", 0.45), ("y", 0.46), ("c", 0.47), ("z", 0.48))
# No cliff: all five stay, and the second and fifth are relevant.
FLAT = pool("flat", ("u", 0.1), ("d", 0.12), ("v", 0.14), ("w", 0.16), ("e", 0.18))
QRELS = {"cliff": {"a": 2, "b": 1, "c": 1, "x": 0}, "flat": {"d": 1, "e": 1}}


class World(Line):
    """The line, and a judge that keeps a question's labelled chunks."""

    def __init__(self, fails_on: str = "") -> None:
        super().__init__()
        self.fails_on = fails_on
        self.asked: list[Sequence[Message]] = []

    def stream(self, messages: Sequence[Message], **_: object) -> Iterator[Delta]:
        self.asked.append(messages)
        query = re.findall(r"^Query: (.*)$", messages[-1].content, re.MULTILINE)[0]
        if query == self.fails_on:
            raise ChatError("It hangs.", kind="timeout")
        # The strict prompt keeps the first relevant chunk only.
        relevant = [i for i, grade in NUMBERS.qrels[NAMES[query]].items() if grade]
        if "cannot do without" in messages[0].content:
            relevant = relevant[:1]
        yield Delta("\n".join(f"{i} -> KEEP" for i in relevant))
        yield Delta(usage=Usage(300, 20))

    def backends(self, *, chat: bool = True, remember: bool = False) -> Backends:
        judgements = JudgementCache() if remember else None
        return Backends(self, self, None, self if chat else None, judgements)


# Of the first four (0 1 2 3), two are relevant; of 10 9 11 8, three.
NUMBERS = Labels({"zero": "0", "ten": "10"}, {"zero": {"0": 1, "1": 2, "2": 0}, "ten": {"10": 1, "9": 1, "11": 1}})
NAMES = {text: i for i, text in NUMBERS.queries.items()}
FOUR = K4.with_values({"cutoff.enabled": False})
LLM = FOUR.with_values({"judge.enabled": True, "judge.max_chunks": 4})
TWO = FOUR.with_values({"cutoff.enabled": True, "cutoff.strategy": "fixed", "cutoff.max_results": 2})


def named(**settings: Settings) -> tuple[Variant, ...]:
    return tuple(Variant(name, "settings", each) for name, each in settings.items())


def measured(
    compared: Sequence[Variant], world: World | None = None, labels: Labels = NUMBERS, **given: Any
) -> list[QueryRecord]:
    backends = (world or World()).backends(**given)
    return [each for records in measure(labels, compared, backends, timed=True) for each in records]


def means(records: Sequence[QueryRecord]) -> dict[str, dict[str, Any]]:
    return {row["variant"]: dict(row) for row in cells(frame(records))}


def test_sides_by_hand() -> None:
    records = measured(with_unfiltered(named(two=TWO, judged=LLM)))
    assert [(r.id, r.variant, r.ids) for r in records] == [
        ("zero", "unfiltered, k 4", ("0", "1", "2", "3")),
        ("zero", "two", ("0", "1")),
        ("zero", "judged", ("0", "1")),
        # Equal distances are sorted by id, and ids are texts.
        ("ten", "unfiltered, k 4", ("10", "11", "9", "12")),
        ("ten", "two", ("10", "11")),
        ("ten", "judged", ("10", "11", "9")),
    ]
    plain, two, llm = means(records).values()
    assert (plain["kept"], two["kept"], llm["kept"]) == (4, 2, 2.5)
    assert plain["precision"] == pytest.approx((2 / 4 + 3 / 4) / 2)
    assert (plain["recall"], two["precision"], llm["precision"], llm["recall"]) == (1, 1, 1, 1)
    assert two["recall"] == pytest.approx((1 + 2 / 3) / 2)
    # Three irrelevant ones before, none after.
    assert (plain["noise_reduction"], llm["noise_reduction"]) == (0, 1)
    assert (plain["llm_tokens"], two["llm_tokens"], llm["llm_tokens"]) == (0, 0, 320)
    assert (plain["llm_ms"], llm["fallbacks"], llm["queries"]) == (0, 0, 2)
    assert llm["llm_ms"] > 0
    assert all(record.query_ms >= record.llm_ms for record in records)
    assert two["tokens"] < plain["tokens"]


def test_the_plain_side_has_every_layer_off_and_searches_all_files_if_one_side_does() -> None:
    some = FOUR.with_values({"retrieval.source_pattern": "*.md", "clearance.enabled": True})
    for compared in (named(all=LLM, some=some), named(some=some, all=LLM)):
        plain = with_unfiltered(compared)[0]
        assert (plain.plain, plain.settings.retrieval.source_pattern) == (True, "")
        assert not any(plain.settings.get(f"{layer}.enabled") for layer in SWITCHES)


def test_without_labels_there_are_no_scores() -> None:
    bare = Labels(NUMBERS.queries, {})
    plain, two = means(measured(with_unfiltered(named(two=TWO)), labels=bare)).values()
    assert all(two[name] is None for name in ("precision", "recall", "f1", "unlabelled"))
    assert (plain["kept"], two["kept"], two["noise_reduction"]) == (4, 2, None)


def test_nothing_is_asked_before_it_is_wanted_and_only_of_an_llm_that_is_there() -> None:
    world = World()
    records = measure(NUMBERS, named(judged=LLM), world.backends())
    assert world.asked == []
    next(records)
    assert len(world.asked) == 1
    assert len(measured(named(two=TWO), chat=False)) == 2
    with pytest.raises(InputError, match="needs an LLM") as refused:
        measured(named(two=TWO, judged=LLM), chat=False)
    assert "OPENAI_API_KEY" in refused.value.remedy


def test_a_remembered_answer_counts_with_what_it_took() -> None:
    world = World()
    records = measured(named(once=LLM, again=LLM), world, remember=True)
    assert len(world.asked) == 2
    once, again = means(records).values()
    assert once["llm_tokens"] == again["llm_tokens"] == 320
    assert once["llm_ms"] == again["llm_ms"] > 0
    assert all(record.query_ms >= record.llm_ms for record in records)


def test_queries_are_measured_one_by_one_and_those_done_are_left_out() -> None:
    line = Line()
    labels = Labels({"a": "1", "b": "7", "c": "9"}, {"a": {"1": 1}, "b": {"7": 1, "8": 1}})
    backends, compared = Backends(line, line), variants(GAP)
    assert [each[0].id for each in measure(labels, compared, backends)] == ["a", "b"]
    assert line.embedded == ["1", "7"]
    [rest] = measure(labels, compared, backends, done={"a"})
    plain = next(record for record in rest if record.curve)
    assert (plain.variant, plain.relevant) == (UNFILTERED, 2)
    assert plain.curve
    assert plain.curve.grades[:3] == (1, -1, 1)


def test_what_was_tuned_elsewhere_is_left_out_unless_it_is_current() -> None:
    tuned = TunedOn(
        collection="other",
        embedder="",
        space="cosine",
        reranker="",
        labels="v1",
        queries=20,
        date="",
        strategy="gap",
        values={"cutoff.gap_threshold": GAP.cutoff.gap_threshold},
    )
    by_gap = GAP.with_values({"cutoff.tuned_on": tuned.json_text})
    compared = variants(by_gap.with_values({"cutoff.strategy": "relative"}))
    labels, line = Labels({"a": "1"}, {"a": {"1": 1}}), Line()
    [records] = measure(labels, compared, Backends(line, line))
    assert {v.name for v in compared} - {r.variant for r in records} == {"gap"}
    assert left_out(records, compared).startswith("Not measured: gap. What was tuned")
    with pytest.raises(SettingsError, match="tuned on other with distances cosine, not l2"):
        list(measure(labels, variants(by_gap), Backends(line, line)))


def test_what_is_counted_is_what_a_replay_keeps() -> None:
    settings = load(profile="full", environ={}).settings
    rules = {3: '{"contain": "griffin"}', 5: '{"contain": "owlbears"}'}
    plain = pool_of([0.3 + 0.02 * n + 0.2 * (n > 5) for n in range(60)])
    hits = [Hit(Chunk(h.id, h.chunk.text, rule=rules.get(h.rank)), h.distance, h.rank) for h in plain.hits]
    ruled, compared = Pool("owlbears", "c", "l2", tuple(hits), exhaustive=True), variants(settings)
    kept = {r.variant: r.ids for r in records_of("q", ruled, OWLBEARS, compared)}
    for variant in compared:
        if not variant.plain:
            assert kept[variant.name] == tuple(h.id for h in replay(ruled, variant.settings).kept)
    assert len(set(map(len, kept.values()))) > 3


def test_records_survive_being_saved_without_naming_a_chunk() -> None:
    records = counted(OWLBEARS)
    saved = json.loads(json.dumps(to_document(records)))
    assert "c1" not in json.dumps(saved)
    again = from_document(saved)
    assert frame(again, by="query").equals(frame(records, by="query"))
    assert [r.curve for r in again] == [r.curve for r in records]


def test_clearance_is_the_same_in_every_row_and_no_row_beside_asks_an_llm() -> None:
    settings = load(profile="llm-filter", environ={}).settings
    for on in (True, False):
        compared = variants(settings.with_values({"clearance.enabled": on}))
        assert {each.settings.clearance.enabled for each in compared} == {on}
        assert [each.name for each in compared if each.settings.judge.enabled] == [CURRENT]


def test_figures_of_two_queries() -> None:
    made = score({"cliff": CLIFF, "flat": FLAT}, QRELS, K4)
    cliff, flat = made.rows
    assert (cliff.n_relevant, cliff.unfiltered.ids, cliff.filtered.ids) == (3, ("a", "b", "x", "y"), ("a", "b"))
    scores = [(s.precision, s.recall, s.f1) for s in (cliff.unfiltered, cliff.filtered, flat.unfiltered, flat.filtered)]
    assert scores == [
        pytest.approx((1 / 2, 2 / 3, 4 / 7)),
        pytest.approx((1, 2 / 3, 4 / 5)),
        pytest.approx((1 / 4, 1 / 2, 1 / 3)),
        pytest.approx((2 / 5, 1, 4 / 7)),
    ]
    assert (cliff.noise_reduction, flat.noise_reduction) == (1.0, 0.0)
    assert made.noise_reduction == pytest.approx(1 - 3 / 5)
    assert (made.unfiltered.mean_kept, made.filtered.mean_kept) == (4, 3.5)
    assert made.filtered.f1 == pytest.approx((4 / 5 + 4 / 7) / 2)
    # Unlabelled: y in cliff; u, v, w in flat. If they were relevant, F1 would be 6/8 and 8/9
    # unfiltered, 4/5 and 1 filtered.
    assert (made.unfiltered.unlabelled, made.filtered.unlabelled) == (2, 1.5)
    assert made.unfiltered.f1_most == pytest.approx((6 / 8 + 8 / 9) / 2)
    assert made.filtered.f1_most == pytest.approx((4 / 5 + 1) / 2)
    # The third is beyond the unfiltered four.
    strict = K4.with_values({"cutoff.strategy": "fixed", "cutoff.max_results": 1})
    assert score({"cliff": CLIFF}, QRELS, strict).rows[0].lost == ("b", "c")
    wide = score({"flat": FLAT}, QRELS, K4.with_values({"retrieval.k": 1}))
    assert wide.noise_reduction == 1 - 3 / 1


def test_the_best_fixed_k_is_the_best_mean_and_not_the_best_of_each() -> None:
    # F1 at k 1..6: cliff .50 .80 .67 .57 .75 .67; flat 0 .50 .40 .33 .57 .57; best mean at 5, .66.
    best = score({"cliff": CLIFF, "flat": FLAT}, QRELS, K4).best_fixed_k
    assert best is not None
    assert best.k == 5
    # Each is measured with what is best on the other: cliff with 5, flat with 2.
    assert best.means.f1 == pytest.approx((6 / 8 + 1 / 2) / 2)
    assert best.means.mean_kept == 3.5
    # With one query nothing can be held out.
    assert score({"cliff": CLIFF}, QRELS, K4).best_fixed_k is None


def test_nothing_kept_counts_as_zero() -> None:
    barred = pool("cliff", ("a", 0.1), ("x", 0.2), clearance=None)
    hidden = K4.with_values({"clearance.enabled": True})
    row = score({"cliff": barred}, QRELS, hidden).rows[0]
    assert (row.filtered.kept, row.filtered.precision) == (0, 0)
    assert row.status == "insufficient_clearance"
    # The unfiltered side obeys clearance too, so there is no noise to reduce.
    assert (row.unfiltered.kept, row.noise_reduction) == (0, None)


def test_queries_without_labels_are_left_out() -> None:
    made = score({"cliff": CLIFF, "new": FLAT}, QRELS, K4)
    assert [row.id for row in made.rows] == ["cliff"]
    with pytest.raises(ValueError, match="no query has a label"):
        score({"new": FLAT}, QRELS, K4)
    line, told = Line(), list[tuple[int, int]]()
    asked = {"first": "0", "unlabelled": "9", "second": "29"}
    qrels = {"first": {"0": 1}, "second": {"29": 1}}
    backends = Backends(line, line)
    over = evaluate(asked, qrels, K4, backends, progress=lambda *done: told.append(done))
    assert (line.embedded, told) == (["0", "29"], [(1, 2), (2, 2)])
    assert over.unlabelled == ("unlabelled",)
    pools = completed_pools(asked, K4, backends)
    again = score(pools, qrels, K4)
    assert (again.filtered, again.unlabelled) == (over.filtered, over.unlabelled)


def test_the_document_is_plain_and_has_the_promised_keys() -> None:
    made = document(score({"cliff": CLIFF, "flat": FLAT}, QRELS, K4))
    assert json.dumps(made, allow_nan=False)
    scores = {"precision", "recall", "f1", "f1_most", "mean_kept", "unlabelled"}
    for side in ("unfiltered", "filtered"):
        assert set(made[side]) == scores
    assert set(made["best_fixed_k"]) == {"k", *scores}
    assert (made["queries"], made["k"], made["lost"], made["waiting"]) == (2, 4, 1, 0)
    first = made["per_query"][0]
    assert (first["id"], first["n_relevant"], first["status"]) == ("cliff", 3, "ok")
    assert first["filtered"]["ids"] == ("a", "b")
    assert (first["filtered"]["kept"], first["filtered"]["relevant_kept"]) == (2, 2)


CATALOGUE = {"open": Chunk("open"), "shut": Chunk("shut", clearance=3)}


def test_labels_of_hidden_chunks_and_of_those_that_are_gone_do_not_count() -> None:
    labels = Labels({"a": "x", "b": "y"}, {"a": {"open": 1, "shut": 2, "gone": 1}, "b": {"shut": 1}})
    assert visible(labels, CATALOGUE, User(1)).qrels == {"a": {"open": 1}}
    assert visible(labels, CATALOGUE, UNRESTRICTED).qrels == {"a": {"open": 1, "shut": 2}, "b": {"shut": 1}}
    # If a store is too large to list its chunks, none is known to be gone.
    assert visible(labels, {}, UNRESTRICTED) == labels


def test_questions_whose_relevant_chunks_are_all_gone_are_left_out() -> None:
    qrels = {
        "some": {"open": 1, "gone": 1},
        "gone": {"open": 0, "gone": 1},
        "shut": {"open": 0, "shut": 1},
        "none": {"open": 0, "gone": 0},
    }
    labels = Labels(dict.fromkeys(qrels, "x"), qrels)
    assert list(measurable(labels, CATALOGUE, UNRESTRICTED).qrels) == ["some", "shut", "none"]
    assert list(measurable(labels, CATALOGUE, User(1)).qrels) == ["some", "none"]
    lost = Labels(labels.queries, {"gone": qrels["gone"], "none": qrels["none"]})
    with pytest.raises(InputError, match="None of the chunks labelled as relevant"):
        measurable(lost, CATALOGUE, UNRESTRICTED)
    # If nothing ever was relevant, nothing is lost.
    bare = Labels(labels.queries, {"none": {"open": 0}})
    assert measurable(bare, CATALOGUE, UNRESTRICTED) == bare


def test_the_labels_version_knows_questions_and_grades() -> None:
    base = Labels({"a": "x", "b": "y"}, {"a": {"1": 1}})
    versions = {
        labels_version(each) for each in (base, Labels({"a": "z"}, base.qrels), Labels(base.queries, {"a": {"1": 2}}))
    }
    assert len(versions) == 3
    assert labels_version(Labels({"a": "x"}, base.qrels)) == labels_version(base)
