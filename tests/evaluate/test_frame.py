"""The figures of records: calculated by hand, and compared with scipy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from evaluate.test_query_records import GAP, OWLBEARS, counted, pool_of

from ragfilter.evaluate import frame, wording
from ragfilter.evaluate.frame import by_variant, cells, layer_gains, of_kind, paired, permutation_p, rows, side_by_side
from ragfilter.evaluate.metrics import FIGURES, Curve, frontier, prefixes, within
from ragfilter.evaluate.query_records import QueryRecord, records_of
from ragfilter.evaluate.variants import CURRENT, FIXED, ORACLE, UNFILTERED, variants
from ragfilter.settings.config import load
from ragfilter.settings.schema import Settings


def row(records: Sequence[QueryRecord], name: str, settings: Settings = GAP) -> dict[str, Any]:
    return next(dict(each) for each in cells(rows(records, variants(settings))) if each["variant"] == name)


def several(*labels: Mapping[str, int]) -> list[QueryRecord]:
    return [r for n, each in enumerate(labels) for r in counted(each, name=f"q{n}")]


def test_the_rows_their_order_and_what_is_not_timed() -> None:
    table = rows(several(OWLBEARS, OWLBEARS), variants(GAP))
    names = [*table["variant"]]
    assert names[:3] == [CURRENT, UNFILTERED, FIXED]
    assert names[-1] == ORACLE
    assert set(table[table["ms"].isna()]["variant"]) == {UNFILTERED, FIXED, ORACLE}
    # One query has no cross-validated row, and none has no table.
    assert FIXED not in [*rows(counted(OWLBEARS), variants(GAP))["variant"]]
    assert rows([], variants(GAP)).empty
    assert layer_gains([], variants(GAP)).empty


def test_every_figure_is_in_the_table_of_the_queries_and_of_the_variants() -> None:
    records = several(OWLBEARS, OWLBEARS)
    by_query, by_variant = frame.frame(records, by="query"), rows(records, variants(GAP))
    for name, figure in FIGURES.items():
        if figure.kind in ("share", "labelled"):
            assert by_query[name].notna().all(), name
            assert by_variant[name].notna().all(), name


def test_the_oracle_keeps_nothing_where_nothing_is_relevant() -> None:
    settings = GAP.with_values({"quality.enabled": True, "quality.score_threshold": 1.0, "quality.reranker": "none"})
    records = counted({"c1": 0}, settings)
    assert row(records, CURRENT, settings)["f1"] == 1.0
    oracle = row(records, ORACLE, settings)
    assert (oracle["f1"], oracle["precision"], oracle["kept"]) == (1.0, 1.0, 0.0)
    assert frontier(frame.curves_of(records)) == ((1.0, 1.0),)
    # Everywhere else it keeps something, even if nothing relevant was found.
    assert row(counted({"elsewhere": 1}), ORACLE)["kept"] == 1.0


def test_settings_that_drop_from_within_the_order_exceed_the_oracle_and_it_says_so() -> None:
    labels, settings = {"c1": 1, "c4": 1}, load(profile="query-must", environ={}).settings
    pool = pool_of([0.10, 0.11, 0.12, 0.13])
    blocked = '{"contain": "griffin"}'
    hits = [
        replace(hit, chunk=replace(hit.chunk, rule=blocked)) if hit.id in ("c2", "c3") else hit for hit in pool.hits
    ]
    records = records_of("q", replace(pool, hits=tuple(hits)), labels, variants(settings))
    assert row(records, CURRENT, settings)["f1"] == 1.0
    oracle = row(records, ORACLE, settings)
    assert oracle["f1"] == pytest.approx(2 / 3)
    assert "can exceed it" in oracle["about"]


def test_labels_of_every_kind() -> None:
    for labels, figures in [
        # c1 and c2 are kept. Unlabelled chunks count as irrelevant, and are counted.
        ({"c1": 1}, {"precision": 0.5, "recall": 1.0, "f1": 2 / 3, "unlabelled": 1, "f1_most": 1}),
        ({"c1": 1, "c2": 0}, {"precision": 0.5, "unlabelled": 0, "f1_most": 2 / 3}),
        ({"c5": 1}, {"precision": 0.0, "recall": 0.0, "f1": 0.0, "ndcg": 0.0}),
        ({f"c{i}": 1 for i in range(1, 6)}, {"precision": 1.0, "recall": 0.4, "unlabelled": 0}),
    ]:
        found = row(counted(labels), CURRENT)
        assert {name: found[name] for name in figures} == pytest.approx(figures)


def test_nothing_kept_of_nothing_found_is_right_where_nothing_is_relevant() -> None:
    for labels, value in [({"x": 0}, 1.0), ({"x": 1}, 0.0)]:
        found = row(counted(labels, distances=[]), CURRENT)
        assert (found["precision"], found["f1"], found["ndcg"]) == (value, value, value)


def test_figures_of_all_chunks_up_to_a_distance() -> None:
    for threshold, figures in [
        # Relevant are the chunks at 0.10 and 0.11 of one query, and only the one at 0.45 of the
        # other, whose chunks at 0.10 and 0.11 are unlabelled.
        (0.05, {"precision": 0, "recall": 0, "f1": 0, "kept": 0, "unlabelled": 0}),
        (0.11, {"precision": 0.5, "recall": 0.5, "f1": 0.5, "kept": 2, "unlabelled": 1}),
        (0.45, {"precision": (2 / 3 + 1 / 3) / 2, "recall": 1, "f1": (0.8 + 0.5) / 2}),
        (9.0, {"kept": 5, "f1": (4 / 7 + 2 / 6) / 2}),
    ]:
        records = several({**OWLBEARS, "c3": 0, "c4": 0, "c5": 0}, {"c3": 1, "c4": 0, "c5": 0})
        found = within(frame.curves_of(records), threshold)
        assert {name: found[name] for name in figures} == pytest.approx(figures)


def test_the_oracles_line_beats_every_fixed_k() -> None:
    curves = frame.curves_of(several(*({f"c{n}": 1, f"c{n + 1}": 1} for n in range(1, 5))))
    line = frontier(curves)
    assert [recall for recall, _ in line] == sorted(recall for recall, _ in line)
    best = max(p * r * 2 / (p + r) for r, p in line if p + r)
    assert best >= prefixes(curves)["f1"].mean(0).max()


def test_what_each_layer_buys() -> None:
    settings = GAP.with_values({"query_must.enabled": True})
    gains = layer_gains(counted(OWLBEARS, settings), variants(settings))
    assert {(g["group"], g["layer"]): g["f1"] for g in cells(gains)} == {
        ("added", "query_must"): 0.0,
        ("added", "cutoff"): pytest.approx(1 - 4 / 7),
        ("left out", "query_must"): 0.0,
        ("left out", "cutoff"): pytest.approx(1 - 4 / 7),
    }


def record(name: str, relevant: int, **kept: tuple[int, int]) -> list[QueryRecord]:
    """A question with `relevant` chunks; `kept` are (chunks, relevant ones) by variant."""
    return [
        QueryRecord(
            id=name,
            query=f"text of {name}",
            variant=variant,
            labelled=True,
            relevant=relevant,
            kept=n,
            found=found,
            unlabelled=0,
            tokens=10 * n,
            curve=Curve(name, relevant, (0.1,), (1,), (10,), (1.0,)) if variant == "a" else None,
        )
        for variant, (n, found) in kept.items()
    ]


def sides(*records: Sequence[QueryRecord]) -> pd.DataFrame:
    table = frame.frame([each for some in records for each in some], by="query")
    there = by_variant(table)
    return side_by_side(there["a"], there["b"])


def test_the_interval_of_a_gain_stays_between_minus_and_plus_one() -> None:
    # The skewed interval of these gains would end at 1.8.
    gains = np.array([1.0, 0.9, *[0.0] * 8])
    ends = {name: each.ends for name, each in frame.means({"f1": gains, "tokens": gains}, limited=False).items()}
    assert ends["f1"] == pytest.approx((-0.356, 1.0), abs=1e-3)
    assert ends["tokens"] == pytest.approx((-0.356, 1.806), abs=1e-3)


def test_wins_losses_and_the_severest_loss() -> None:
    # F1 with a and b: q1 0.5 and 1, q2 1 and 0, q3 equal; only b has q4.
    records = (
        record("q1", 1, a=(3, 1), b=(1, 1)),
        record("q2", 1, a=(1, 1), b=(4, 0)),
        record("q3", 2, a=(2, 2), b=(2, 2)),
        record("q4", 1, b=(1, 1)),
    )
    both = sides(*records)
    pairs = paired(both)
    assert (pairs.queries, pairs.wins, pairs.losses, pairs.ties) == (3, 1, 1, 1)
    assert pairs.gain.mean == pytest.approx((0.5 - 1) / 3)
    changes = cells(frame.most_changed(both))
    assert [(c["id"], c["f1_a"], c["f1_b"]) for c in changes] == [("q2", 1.0, 0.0), ("q1", 0.5, 1.0), ("q3", 1.0, 1.0)]
    assert (changes[0]["kept_a"], changes[0]["tokens_b"]) == (1, 40)
    # This holds for the table too, which leaves out variants that not all queries have.
    whole = [each for some in records[:3] for each in some]
    table = cells(frame.frame(whole, against="a"))
    assert [(row["wins"], row["losses"], row["p_value"]) for row in table] == [(0, 0, 1.0), (1, 1, pairs.p_value)]
    assert [*frame.frame([*whole, *records[3]])["variant"]] == ["b"]


def test_missing_labels_are_told_only_where_a_kept_chunk_has_none() -> None:
    row: dict[str, Any] = {"kept": 2.0, "unlabelled": 1.0, "f1": 0.5, "f1_most": 0.75}
    assert "1.0 have no label: F1 is 0.500" in wording.unlabelled(row)
    for unlabelled in (0.0, None):
        assert wording.unlabelled(row | {"unlabelled": unlabelled, "f1": None}) == ""


def test_different_questions_with_the_same_id_are_not_compared() -> None:
    a = frame.frame(record("1", 1, a=(1, 1)), by="query")
    other = [replace(each, query="something else") for each in record("1", 1, b=(1, 0))]
    both = side_by_side(a, frame.frame(other, by="query"))
    assert (len(both), paired(both).queries, paired(both).p_value) == (0, 0, 1.0)


def test_the_questions_of_a_kind() -> None:
    for kind, names in [
        ("failures", ["worse", "nothing found"]),
        ("changed", ["worse", "better", "great", "greater", "great at a loss"]),
        ("highlights", ["greater", "great"]),
    ]:
        # By name: F1 and its gain, recall, and that of the unfiltered first k.
        table = pd.DataFrame(
            [
                ("worse", 0.3, -0.1, 0.5, 1.0),
                ("nothing found", 0.0, 0.0, 0.0, 0.0),
                ("as before", 0.5, 0.0, 1.0, 1.0),
                ("better", 0.6, 0.1, 1.0, 1.0),
                ("great", 0.8, 0.2, 1.0, 1.0),
                ("greater", 1.0, 0.6, 1.0, 1.0),
                ("great at a loss", 0.7, 0.4, 0.5, 1.0),
            ],
            columns=["id", "f1", "gain", "recall", "recall_a"],
        )
        assert [*of_kind(table, kind)["id"]] == names


def test_the_test_is_scipys_where_all_exchanges_are_tried() -> None:
    from scipy.stats import permutation_test

    apart = np.array([0.2, -0.1, 0.3, 0.05, 0.15, 0.22])
    theirs = permutation_test((apart,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert permutation_p(apart) == pytest.approx(theirs.pvalue)
    # Sums of 0.82 (as it is), 0.92 and 1.02, and their opposites: 6 of 64 exchanges.
    assert permutation_p(apart) == pytest.approx(6 / 64)


def test_many_queries_are_exchanged_at_random_and_repeatably() -> None:
    apart = np.random.default_rng(1).normal(0.1, 0.2, 60)
    assert permutation_p(apart) == permutation_p(apart) < 0.01
    assert permutation_p(np.zeros(60)) == 1.0
