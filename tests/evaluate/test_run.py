"""The evaluation: figures calculated by hand on small pools, and the conventions."""

from __future__ import annotations

import json

import pytest
from line import Line

from ragfilter.cli.eval import document, evaluation_text
from ragfilter.engine.search import Backends
from ragfilter.errors import InputError
from ragfilter.evaluate import labels, run
from ragfilter.evaluate.beir import Labels
from ragfilter.model import Chunk, Hit, Pool
from ragfilter.settings.schema import Settings

K4 = Settings().with_values({"retrieval.k": 4, "cutoff.min_results": 0})


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


def test_figures_of_two_queries() -> None:
    made = run.score({"cliff": CLIFF, "flat": FLAT}, QRELS, K4)
    cliff, flat = made.rows
    assert (cliff.relevant, cliff.unfiltered.ids, cliff.filtered.ids) == (
        {"a", "b", "c"}, ("a", "b", "x", "y"), ("a", "b"),
    )  # fmt: skip
    scores = [
        (s.scores.precision, s.scores.recall, s.scores.f1)
        for s in (cliff.unfiltered, cliff.filtered, flat.unfiltered, flat.filtered)
    ]
    assert scores == [
        pytest.approx((1 / 2, 2 / 3, 4 / 7)),
        pytest.approx((1, 2 / 3, 4 / 5)),
        pytest.approx((1 / 4, 1 / 2, 1 / 3)),
        pytest.approx((2 / 5, 1, 4 / 7)),
    ]
    assert (cliff.noise_reduction, flat.noise_reduction) == (1.0, 0.0)
    assert made.noise_reduction == pytest.approx(1 - 3 / 5)
    assert (made.unfiltered.mean_kept, made.filtered.mean_kept) == (4, 3.5)
    assert made.unfiltered.f1 == pytest.approx((4 / 7 + 1 / 3) / 2)
    assert made.filtered.f1 == pytest.approx((4 / 5 + 4 / 7) / 2)
    assert made.filtered.precision == pytest.approx((1 + 2 / 5) / 2)
    assert made.filtered.recall == pytest.approx((2 / 3 + 1) / 2)
    # Unlabelled: y in cliff; u, v, w in flat. If they were relevant, F1 would be 6/8 and 8/9
    # unfiltered, 4/5 and 1 filtered.
    assert (made.unfiltered.unlabelled, made.filtered.unlabelled) == (2, 1.5)
    assert made.unfiltered.f1_most == pytest.approx((6 / 8 + 8 / 9) / 2)
    assert made.filtered.f1_most == pytest.approx((4 / 5 + 1) / 2)


def test_the_best_fixed_k_is_the_best_mean_and_not_the_best_of_each() -> None:
    # F1 at k 1..6: cliff .50 .80 .67 .57 .75 .67; flat 0 .50 .40 .33 .57 .57; best mean at 5, .66.
    made = run.score({"cliff": CLIFF, "flat": FLAT}, QRELS, K4).best_fixed_k
    assert made is not None
    assert made.k == 5
    # Each is measured with what is best on the other: cliff with 5, flat with 2.
    assert made.means.f1 == pytest.approx((6 / 8 + 1 / 2) / 2)
    assert made.means.mean_kept == 3.5
    # With one query nothing can be held out.
    assert run.score({"cliff": CLIFF}, QRELS, K4).best_fixed_k is None


def best_k(same: Pool, relevant: dict[str, int]) -> int:
    """The best k of two queries with the same hits and labels."""
    made = run.score({"q": same, "r": same}, {"q": relevant, "r": relevant}, K4).best_fixed_k
    assert made is not None
    return made.k


def test_the_smallest_k_wins_among_equals() -> None:
    three = pool("q", ("x", 0.1), ("a", 0.2), ("b", 0.3), ("y", 0.4))
    # F1 at k 2: 2·1/(2+2) = 1/2; at 3: 2·2/(3+2) = 4/5; only one comes first.
    assert best_k(three, {"a": 1, "b": 1}) == 3
    single = pool("q", ("a", 0.1), ("b", 0.2))
    assert best_k(single, {"zz": 1}) == 1


def test_the_sweep_looks_deeper_than_k() -> None:
    deep = pool("q", *((f"c{i:02d}", 0.1 + i / 1000) for i in range(60)))
    relevant = {f"c{i:02d}": 1 for i in range(60)}
    assert best_k(deep, relevant) == 50


def test_lost_are_the_relevant_chunks_of_the_pool_that_are_dropped() -> None:
    strict = K4.with_values({"cutoff.strategy": "fixed", "cutoff.max_results": 1})
    row = run.score({"cliff": CLIFF}, QRELS, strict).rows[0]
    # The third is beyond the unfiltered four.
    assert row.lost == ("b", "c")


def test_nothing_kept_counts_as_zero() -> None:
    barred = pool("cliff", ("a", 0.1), ("x", 0.2), clearance=None)
    hidden = K4.with_values({"clearance.enabled": True})
    row = run.score({"cliff": barred}, QRELS, hidden).rows[0]
    assert (row.filtered.kept, row.filtered.scores.precision) == (0, 0)
    assert row.status == "insufficient_clearance"
    # The unfiltered side obeys clearance too, so there is no noise to reduce.
    assert (row.unfiltered.kept, row.noise_reduction) == (0, None)


def test_noise_reduction_is_negative_where_the_filter_adds_noise() -> None:
    wide = K4.with_values({"retrieval.k": 1})
    made = run.score({"flat": FLAT}, QRELS, wide)
    assert made.noise_reduction == 1 - 3 / 1


def test_queries_without_labels_are_left_out() -> None:
    made = run.score({"cliff": CLIFF, "new": FLAT}, QRELS, K4)
    assert [row.id for row in made.rows] == ["cliff"]
    with pytest.raises(ValueError, match="no query has a label"):
        run.score({"new": FLAT}, QRELS, K4)


def test_document_is_plain_and_has_the_promised_keys() -> None:
    made = document(run.score({"cliff": CLIFF, "flat": FLAT}, QRELS, K4))
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    means = {"precision", "recall", "f1", "f1_most", "mean_kept", "unlabelled"}
    for side in ("unfiltered", "filtered"):
        assert set(made[side]) == means
    assert set(made["best_fixed_k"]) == {"k", *means}
    assert (made["queries"], made["k"], made["lost"], made["waiting"]) == (2, 4, 1, 0)
    first = made["per_query"][0]
    assert (first["id"], first["n_relevant"], first["status"]) == ("cliff", 3, "ok")
    assert first["filtered"]["ids"] == ["a", "b"]
    assert (first["filtered"]["kept"], first["filtered"]["relevant_kept"]) == (2, 2)


def test_people_are_told_that_the_best_k_is_held_out() -> None:
    told = evaluation_text(run.score({"cliff": CLIFF, "flat": FLAT}, QRELS, K4))
    assert "best fixed k: each query with the k that is best on the others\n" in told
    assert "best fixed k" not in evaluation_text(run.score({"cliff": CLIFF}, QRELS, K4))


def test_evaluate_gathers_labelled_queries_once_and_tells_its_progress() -> None:
    line = Line()
    told: list[tuple[int, int]] = []
    made = run.evaluate(
        {"first": "0", "unlabelled": "9", "second": "29"},
        {"first": {"0": 1, "1": 1}, "second": {"29": 1}},
        K4,
        Backends(line, line),  # type: ignore[arg-type]
        progress=lambda done, total: told.append((done, total)),
    )
    assert line.embedded == ["0", "29"]
    assert told == [(1, 2), (2, 2)]
    assert [row.unfiltered.ids for row in made.rows] == [
        ("0", "1", "2", "3"), ("29", "28", "27", "26"),
    ]  # fmt: skip
    assert made.unlabelled == ("unlabelled",)


def test_the_demo_has_its_own_labels() -> None:
    made = labels.load("demo", "demo")
    assert len(made.queries) >= 60
    assert set(made.qrels) <= set(made.queries)
    with pytest.raises(InputError, match="Only one of"):
        labels.load("demo", "qrels.tsv")


def test_choosing_among_queries() -> None:
    given = Labels({"a": "1", "b": "2", "c": "3"}, {"a": {"x": 1}, "b": {"x": 1}})
    assert set(labels.choose(given).queries) == {"a", "b", "c"}
    assert set(labels.choose(given, only=["a"]).queries) == {"a"}
    chosen = labels.choose(given, leave_out=["a"])
    assert (set(chosen.queries), set(chosen.qrels)) == ({"b", "c"}, {"b"})
    with pytest.raises(InputError, match="no query 'zz'"):
        labels.choose(given, only=["zz"])
    with pytest.raises(InputError, match="No query with a label"):
        labels.choose(given, only=["c"])
