"""The table of an evaluation, calculated by hand and compared with ir-measures."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest
from evaluate.line import Line
from ir_measures import Qrel, ScoredDoc, SetF, SetP, SetR, nDCG
from sklearn.feature_extraction.text import TfidfVectorizer

from ragfilter.engine.backends import Backends
from ragfilter.engine.replay import replay, unfiltered
from ragfilter.errors import InputError, SettingsError
from ragfilter.evaluate import beir, query_files
from ragfilter.evaluate.beir import Labels
from ragfilter.evaluate.measuring import labels_version, measurable, measure, visible
from ragfilter.evaluate.plotted import BestDistance, best_distance, frontier, within
from ragfilter.evaluate.records import QueryRecord, read, record
from ragfilter.evaluate.table import figures_of, layer_gains, prefixes_of, table
from ragfilter.evaluate.told import left_out
from ragfilter.evaluate.variants import IN_FORCE, UNFILTERED, unmeasured, variants
from ragfilter.ingest.load import load as read_file
from ragfilter.model import UNRESTRICTED, Chunk, Hit, Pool, User
from ragfilter.settings.config import load
from ragfilter.settings.learned import Calibration, TunedOn
from ragfilter.settings.schema import Settings

GAP = load(profile="adaptive-gap", environ={}).settings
OWLBEARS = {"c1": 2, "c2": 2}
"""Five owlbears of which two are relevant, as in the source documents."""


def pool_of(distances: list[float]) -> Pool:
    hits = (
        Hit(Chunk(f"c{i}", f"text {i}"), distance, i) for i, distance in enumerate(distances, 1)
    )
    return Pool("owlbears", "c", "l2", tuple(hits), complete=True)


def one(labels: dict[str, int], settings: Settings = GAP, **given: Any) -> QueryRecord:
    pool = pool_of(given.get("distances", [0.10, 0.11, 0.45, 0.46, 0.47]))
    return record("q", pool, labels, variants(settings))


def row(records: list[QueryRecord], name: str, settings: Settings = GAP) -> dict[str, float]:
    found = next(each for each in table(records, variants(settings)) if each.name == name)
    return {measure: interval.mean for measure, interval in found.means.items()}


def test_what_was_learned_is_told_to_be_better_over_its_own_questions() -> None:
    learned = Calibration(
        collection="c", embedder="", space="l2", reranker="", labels="v1",
        queries=149, relevant=300, date="2026-11-22", depth=50, intercept=-1.0,
        weights={"rank": -0.1},
    )  # fmt: skip
    settings = GAP.with_values(
        {"cutoff.strategy": "calibrated", "cutoff.calibration": learned.json_text}
    )
    about = {each.name: each.about for each in table([one(OWLBEARS, settings)], variants(settings))}
    told = "1 weights learned from 149 queries of c; its figures on those are better than on"
    assert about[IN_FORCE].startswith(told)
    assert about["calibrated"] == about[IN_FORCE]
    assert "The strategy calibrated is measured once Tune has learned it" in unmeasured([IN_FORCE])
    assert "calibrated" not in unmeasured([*about])
    assert about["gap"] == ""


def test_the_owlbears() -> None:
    made = [one(OWLBEARS)]
    fixed = row(made, UNFILTERED)
    assert (fixed["precision"], fixed["recall"]) == (0.4, 1.0)
    assert fixed["f1"] == pytest.approx(0.571, abs=5e-4)
    adaptive = row(made, IN_FORCE)
    assert (adaptive["precision"], adaptive["recall"], adaptive["f1"]) == (1.0, 1.0, 1.0)
    assert row(made, "oracle")["f1"] == 1.0


def test_the_oracle_keeps_nothing_where_nothing_is_relevant() -> None:
    settings = GAP.with_values(
        {"quality.enabled": True, "quality.score_threshold": 1.0, "quality.reranker": "none"}
    )
    made = [one({"c1": 0}, settings)]
    assert row(made, IN_FORCE, settings)["f1"] == 1.0
    oracle = row(made, "oracle", settings)
    assert (oracle["f1"], oracle["precision"], oracle["chunks"]) == (1.0, 1.0, 0.0)
    assert frontier(made) == ((1.0, 1.0),)
    # Everywhere else it keeps something, even if nothing relevant was found.
    assert row([one({"elsewhere": 1})], "oracle")["chunks"] == 1.0


def test_settings_that_drop_from_within_the_order_exceed_the_oracle_and_it_says_so() -> None:
    labels, settings = {"c1": 1, "c4": 1}, load(profile="query-must", environ={}).settings
    blocked = '{"contain": "griffin"}'
    pool = pool_of([0.10, 0.11, 0.12, 0.13])
    hits = [replace(hit, chunk=replace(hit.chunk, rule=blocked)) if hit.id in ("c2", "c3") else hit
            for hit in pool.hits]  # fmt: skip
    ruled = replace(pool, hits=tuple(hits))
    made = [record("q", ruled, labels, variants(settings))]
    assert row(made, IN_FORCE, settings)["f1"] == 1.0
    assert row(made, "oracle", settings)["f1"] == pytest.approx(2 / 3)
    oracle = table(made, variants(settings))[-1]
    assert "best prefix" in oracle.about
    assert "can exceed it" in oracle.about


def test_what_decides_nothing_has_no_milliseconds() -> None:
    made = table([one(OWLBEARS)] * 2, variants(GAP))
    untimed = {each.name for each in made if "ms" not in each.means}
    assert untimed == {UNFILTERED, "best fixed k", "oracle"}


def test_what_is_counted_is_what_a_replay_keeps() -> None:
    settings = load(profile="full", environ={}).settings
    rules = {3: '{"contain": "griffin"}', 5: '{"contain": "owlbears"}'}
    plain = pool_of([0.3 + 0.02 * n + 0.2 * (n > 5) for n in range(60)])
    hits = [replace(h, chunk=replace(h.chunk, rule=rules.get(h.rank))) for h in plain.hits]
    pool = Pool("owlbears", "c", "l2", tuple(hits), complete=True)
    named = variants(settings)
    made = record("q", pool, OWLBEARS, named)
    for variant in named:
        if not variant.plain:
            assert made.kept[variant.name].chunks == len(replay(pool, variant.settings).kept)
    assert len({kept.chunks for kept in made.kept.values()}) > 3


def test_the_judge_is_added_to_the_other_layers() -> None:
    judged = GAP.with_values({"judge.enabled": True})
    made = [record("q", pool_of([0.10, 0.11, 0.45]), OWLBEARS, variants(judged))]
    own = made[0].kept
    # It dropped one of two relevant chunks.
    kept = {**own, IN_FORCE: replace(own["+ cutoff"], chunks=1, relevant=1, tokens=1)}
    gains = layer_gains([replace(made[0], kept=kept)], variants(judged))
    assert [(gain.layer, gain.group) for gain in gains] == [
        ("cutoff", "added"), ("judge", "added"), ("cutoff", "left out"),
    ]  # fmt: skip
    assert gains[1].recall.mean == -0.5


def test_one_query_has_no_cross_validated_row_and_none_no_table() -> None:
    assert "best fixed k" not in [each.name for each in table([one(OWLBEARS)], variants(GAP))]
    assert table([], variants(GAP)) == ()
    assert layer_gains([], variants(GAP)) == ()


@pytest.mark.parametrize(
    ("labels", "figures"),
    [
        # c1 and c2 are kept. Unlabelled chunks count as irrelevant, and are counted.
        ({"c1": 1}, {"precision": 0.5, "recall": 1.0, "f1": 2 / 3, "unlabelled": 1, "f1_most": 1}),
        ({"c1": 1, "c2": 0}, {"precision": 0.5, "unlabelled": 0, "f1_most": 2 / 3}),
        ({"c5": 1}, {"precision": 0.0, "recall": 0.0, "f1": 0.0, "ndcg": 0.0}),
        ({"c1": 0}, {"precision": 0.0, "recall": 1.0, "f1": 0.0, "ndcg": 0.0}),
        ({"elsewhere": 1, "c1": 1}, {"recall": 0.5, "precision": 0.5}),
        ({f"c{i}": 1 for i in range(1, 6)}, {"precision": 1.0, "recall": 0.4, "unlabelled": 0}),
    ],
)
def test_labels_of_every_kind(labels: dict[str, int], figures: dict[str, float]) -> None:
    found = row([one(labels)], IN_FORCE)
    for name, value in figures.items():
        assert found[name] == pytest.approx(value), name


def test_nothing_kept_of_nothing_found_is_right_where_nothing_is_relevant() -> None:
    for labels, value in (({"x": 0}, 1.0), ({"x": 1}, 0.0)):
        found = row([one(labels, distances=[])], IN_FORCE)
        assert (found["precision"], found["f1"], found["ndcg"]) == (value, value, value)


@pytest.mark.slow
@pytest.mark.parametrize("name", [UNFILTERED, "otsu", IN_FORCE, "best prefix"])
def test_figures_are_those_of_ir_measures(name: str, cranfield: Path) -> None:
    """On Cranfield, with abstracts ranked by the words that they share with the query."""
    pools, qrels = ranked_cranfield(cranfield)
    named = {each.name: each for each in variants(GAP)}
    made, run = [], []
    for query_id, labels in qrels.items():
        pool = pools[query_id]
        made.append(record(query_id, pool, labels, tuple(named.values())))
        if name == "best prefix":
            kept = pool.hits[:7]
        elif named[name].plain:
            kept = unfiltered(pool, named[name].settings)
        else:
            kept = replay(pool, named[name].settings).kept
        run += [ScoredDoc(query_id, hit.id, -place) for place, hit in enumerate(kept)]
    if name == "best prefix":
        figures = {measure: values[:, 6] for measure, values in prefixes_of(made).items()}
    else:
        figures = dict(figures_of(made, name))
    judged = [Qrel(q, c, grade) for q, labels in qrels.items() for c, grade in labels.items()]
    # trec_eval's beta is the square of this one.
    measures = {"precision": SetP, "recall": SetR, "f1": SetF, "f2": SetF(beta=4.0), "ndcg": nDCG}
    for measure_name, theirs in measures.items():
        found = {m.query_id: m.value for m in ir_measures.iter_calc([theirs], judged, run)}
        ours = dict(zip(qrels, figures[measure_name], strict=True))
        assert ours == pytest.approx(found, abs=1e-9), measure_name


def random_pool(query_id: str, labels: Mapping[str, int]) -> Pool:
    at_random = random.Random(query_id)
    relevant = at_random.sample(sorted(labels), min(len(labels), at_random.randrange(6)))
    ids = [*relevant, *(f"other {i}" for i in range(20))]
    at_random.shuffle(ids)
    distances = sorted(at_random.random() for _ in ids)
    hits = (
        Hit(Chunk(i), d, rank) for rank, (i, d) in enumerate(zip(ids, distances, strict=True), 1)
    )
    return Pool("x", "c", "l2", tuple(hits))


@cache
def ranked_cranfield(folder: Path) -> tuple[dict[str, Pool], beir.Qrels]:
    """The first hundred abstracts for every labelled query by tf–idf, and the labels."""
    labels = query_files.read(folder / "queries.jsonl", folder / "qrels.tsv")
    chunks = [record.chunk for record in read_file(folder / "corpus.jsonl")]
    weigh = TfidfVectorizer(sublinear_tf=True, stop_words="english")
    corpus = weigh.fit_transform(chunk.text for chunk in chunks)
    asked = labels.labelled
    apart = 1 - (weigh.transform(asked.values()) @ corpus.T).toarray()
    pools = {}
    for query_id, row in zip(asked, apart, strict=True):
        nearest = np.argsort(row, kind="stable")[:100]
        hits = (Hit(chunks[at], float(row[at]), rank) for rank, at in enumerate(nearest, start=1))
        pools[query_id] = Pool(asked[query_id], "cranfield", "cosine", tuple(hits))
    return pools, labels.qrels


@pytest.mark.parametrize(
    ("threshold", "figures"),
    [
        # Relevant are the chunks at 0.10 and 0.11 of one query, and only the one at 0.45 of the
        # other, whose chunks at 0.10 and 0.11 are unlabelled.
        (0.05, {"precision": 0, "recall": 0, "f1": 0, "chunks": 0, "unlabelled": 0}),
        (0.11, {"precision": 0.5, "recall": 0.5, "f1": 0.5, "chunks": 2, "unlabelled": 1}),
        (0.45, {"precision": (2 / 3 + 1 / 3) / 2, "recall": 1, "f1": (0.8 + 0.5) / 2}),
        (9.0, {"chunks": 5, "f1": (4 / 7 + 2 / 6) / 2}),
    ],
)
def test_figures_of_all_chunks_up_to_a_distance(
    threshold: float, figures: dict[str, float]
) -> None:
    made = [one({**OWLBEARS, "c3": 0, "c4": 0, "c5": 0}), one({"c3": 1, "c4": 0, "c5": 0})]
    found = within(made, threshold)
    for name, value in figures.items():
        assert found[name] == pytest.approx(value), name


def test_a_record_survives_being_saved() -> None:
    made = one(OWLBEARS)
    assert read(json.loads(json.dumps(asdict(made)))) == made
    earlier = asdict(made)
    del earlier["ndcg"]
    with pytest.raises(InputError, match="An earlier version"):
        read(earlier)


@pytest.mark.parametrize(
    ("labels", "lost"),
    [
        (OWLBEARS, 0),
        # c20 is beyond the unfiltered first 15 but in the pool; "gone" is not.
        ({"c1": 1, "c3": 1, "c20": 2, "c4": 0, "gone": 1}, 2),
    ],
)
def test_lost_is_what_the_pool_holds_and_the_filter_drops(
    labels: dict[str, int], lost: int
) -> None:
    distances = [0.10, 0.11, *(0.45 + n / 100 for n in range(18))]
    assert one(labels, distances=distances).lost == lost


def test_the_oracles_line_beats_every_fixed_k() -> None:
    qrels = {str(n): {str(n): 1, str(n + 1): 1} for n in range(3, 9)}
    made = [record(i, random_pool(i, labels), labels, variants(GAP)) for i, labels in qrels.items()]
    line = frontier(made)
    assert [recall for recall, _ in line] == sorted(recall for recall, _ in line)
    assert (
        max(p * r * 2 / (p + r) for r, p in line if p + r) >= prefixes_of(made)["f1"].mean(0).max()
    )


def test_what_each_layer_buys() -> None:
    settings = GAP.with_values({"query_must.enabled": True})
    made = [one(OWLBEARS, settings)]
    gains = {(g.group, g.layer): g.f1.mean for g in layer_gains(made, variants(settings))}
    assert gains == {
        ("added", "query_must"): 0.0,
        ("added", "cutoff"): pytest.approx(1 - 4 / 7),
        ("left out", "query_must"): 0.0,
        ("left out", "cutoff"): pytest.approx(1 - 4 / 7),
    }


def test_a_run_of_an_earlier_version_has_a_table_without_what_was_added_since() -> None:
    made = record("q1", pool_of([0.1, 0.2, 0.9]), {"c1": 2}, variants(GAP))
    kept = {name: counts for name, counts in made.kept.items() if name not in ("otsu", "+ cutoff")}
    rows = table([replace(made, kept=kept)], variants(GAP))
    assert {row.name for row in table([made], variants(GAP))} - {row.name for row in rows} == {
        "otsu"
    }
    assert [gain.group for gain in layer_gains([replace(made, kept=kept)], variants(GAP))] == [
        "left out"
    ]


def test_clearance_is_the_same_in_every_row_and_no_row_beside_asks_an_llm() -> None:
    settings = load(profile="llm-filter", environ={}).settings
    for on in (True, False):
        named = variants(settings.with_values({"clearance.enabled": on}))
        assert {each.settings.clearance.enabled for each in named} == {on}
        assert [each.name for each in named if each.settings.judge.enabled] == [IN_FORCE]


def test_queries_are_measured_one_by_one_and_those_done_are_left_out() -> None:
    line = Line()
    labels = Labels({"a": "1", "b": "7", "c": "9"}, {"a": {"1": 1}, "b": {"7": 1, "8": 1}})
    backends = Backends(line, line)
    named = variants(GAP)
    assert [each.id for each in measure(labels, named, backends)] == ["a", "b"]
    [rest] = measure(labels, named, backends, done={"a"})
    assert rest.relevant == 2
    assert rest.curve.grades[:3] == (1, -1, 1)
    judged = variants(load(profile="llm-filter", environ={}).settings)
    with pytest.raises(InputError, match="needs an LLM"):
        next(measure(labels, judged, backends))


def test_what_was_tuned_elsewhere_is_left_out_unless_it_is_in_force() -> None:
    tuned = TunedOn(
        collection="other", embedder="", space="cosine", reranker="", labels="v1", queries=20,
        date="", strategy="gap", values={"cutoff.gap_threshold": GAP.cutoff.gap_threshold},
    )  # fmt: skip
    by_gap = GAP.with_values({"cutoff.tuned_on": tuned.json_text})
    named = variants(by_gap.with_values({"cutoff.strategy": "relative"}))
    labels, line = Labels({"a": "1"}, {"a": {"1": 1}}), Line()
    made = list(measure(labels, named, Backends(line, line)))
    assert {each.name for each in named} - made[0].kept.keys() == {"gap"}
    assert left_out(made, named).startswith("Not measured: gap. What was tuned")
    with pytest.raises(SettingsError, match="tuned on other with distances cosine, not l2"):
        list(measure(labels, variants(by_gap), Backends(line, line)))


def test_labels_of_hidden_chunks_and_of_those_that_are_gone_do_not_count() -> None:
    catalogue = {"open": Chunk("open"), "shut": Chunk("shut", clearance=3)}
    labels = Labels(
        {"a": "x", "b": "y"}, {"a": {"open": 1, "shut": 2, "gone": 1}, "b": {"shut": 1}}
    )
    assert visible(labels, catalogue, User(1)).qrels == {"a": {"open": 1}}
    assert visible(labels, catalogue, UNRESTRICTED).qrels == {
        "a": {"open": 1, "shut": 2}, "b": {"shut": 1}
    }  # fmt: skip
    # If a store is too large to list its chunks, none is known to be gone.
    assert visible(labels, {}, UNRESTRICTED) == labels


def test_questions_whose_relevant_chunks_are_all_gone_are_left_out() -> None:
    catalogue = {"open": Chunk("open"), "shut": Chunk("shut", clearance=3)}
    qrels = {
        "some": {"open": 1, "gone": 1},
        "gone": {"open": 0, "gone": 1},
        "shut": {"open": 0, "shut": 1},
        "none": {"open": 0, "gone": 0},
    }
    labels = Labels(dict.fromkeys(qrels, "x"), qrels)
    assert list(measurable(labels, catalogue, UNRESTRICTED).qrels) == ["some", "shut", "none"]
    assert list(measurable(labels, catalogue, User(1)).qrels) == ["some", "none"]
    lost = Labels(labels.queries, {"gone": qrels["gone"], "none": qrels["none"]})
    with pytest.raises(InputError, match="None of the chunks labelled as relevant") as raised:
        measurable(lost, catalogue, UNRESTRICTED)
    assert raised.value.remedy
    # If nothing ever was relevant, nothing is lost.
    bare = Labels(labels.queries, {"none": {"open": 0}})
    assert measurable(bare, catalogue, UNRESTRICTED) == bare


def test_the_labels_version_knows_questions_and_grades() -> None:
    base = Labels({"a": "x", "b": "y"}, {"a": {"1": 1}})
    versions = {
        labels_version(each)
        for each in (base, Labels({"a": "z"}, base.qrels), Labels(base.queries, {"a": {"1": 2}}))
    }
    assert len(versions) == 3
    assert labels_version(Labels({"a": "x"}, base.qrels)) == labels_version(base)


def test_the_best_distance_is_measured_on_held_out_queries() -> None:
    # Each query's relevant chunks are at 0.10 and 0.11, so every fold chooses the same threshold.
    made = [one(OWLBEARS) for _ in range(4)]
    assert best_distance(made) == BestDistance(0.11, 1.0)
    assert best_distance(made[:1]) is None
    # Two queries that need opposite thresholds: each is measured with the other's.
    apart = [one({"c1": 1}), one({f"c{n}": 1 for n in range(1, 6)})]
    found = best_distance(apart)
    assert found is not None
    assert found.f1 == pytest.approx(((2 * 1 / (5 + 1)) + (2 * 1 / (1 + 5))) / 2)
