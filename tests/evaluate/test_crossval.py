"""Cross-validation and intervals: small tables calculated by hand, and a comparison with scipy."""

from __future__ import annotations

import numpy as np
import pytest

from ragfilter.evaluate import wording
from ragfilter.evaluate.crossval import Target, assign_folds, folds_of, interval, intervals, pick

TABLE = np.array([[0.9, 0.5], [0.9, 0.5], [0.0, 0.5], [0.0, 0.5]])


def test_folds_are_of_equal_size_and_no_more_than_queries() -> None:
    for queries, folds, used in [(10, 5, 5), (3, 5, 3), (7, 2, 2)]:
        sizes = np.bincount(assign_folds(queries, folds))
        assert (len(sizes), sizes.sum()) == (used, queries)
        assert sizes.max() - sizes.min() <= 1, queries


def test_folds_are_the_same_every_time_and_not_in_the_order_of_the_file() -> None:
    folds = assign_folds(50, 5)
    assert folds.tolist() == assign_folds(50, 5).tolist()
    assert folds.tolist() != (np.arange(50) % 5).tolist()


def test_queries_with_the_same_text_share_a_fold() -> None:
    texts = [f"Question {n // 2}" for n in range(20)]
    folds = folds_of([*texts[::2], *(text.upper() + " " for text in texts[1::2])], 5)
    assert folds[:10].tolist() == folds[10:].tolist() == assign_folds(10, 5).tolist()
    # Without repeated texts, or if all texts are the same, single queries are held out.
    assert folds_of([f"q{n}" for n in range(20)], 5).tolist() == assign_folds(20, 5).tolist()
    assert folds_of(["Who?"] * 3, 5).tolist() == assign_folds(3, 5).tolist()


@pytest.mark.parametrize(("queries", "folds"), [(1, 5), (0, 5), (10, 1)])
def test_nothing_can_be_held_out_of_one(queries: int, folds: int) -> None:
    with pytest.raises(ValueError, match="at least two"):
        assign_folds(queries, folds)


def test_the_first_of_equal_candidates_is_chosen() -> None:
    assert Target().choose({"f1": np.array([[0.1, 0.5, 0.5]])}) == 1
    # 0.1 + 0.2 is a little more than 0.3.
    assert Target().choose({"f1": np.array([[0.3, 0.1], [0.0, 0.2]])}) == 0


def test_a_query_is_measured_with_what_the_others_chose() -> None:
    # Without the first two the second candidate is best (0.5 against 0), and the other way round.
    chosen = Target().held_out({"f1": TABLE}, np.array([0, 0, 1, 1]))
    assert chosen.tolist() == [1, 1, 0, 0]
    assert pick(TABLE, chosen).tolist() == [0.5, 0.5, 0.0, 0.0]
    # In-sample each candidate alone would show 0.45 or 0.5; held out it is 0.25.
    assert pick(TABLE, chosen).mean() == 0.25


def test_an_interval_of_symmetric_values_is_students() -> None:
    from scipy.stats import sem, t

    values = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    ours = interval(values)
    # 0.45 ± 2.365 × 0.2449 / √8
    assert ours.ends == pytest.approx((0.2452, 0.6548), abs=1e-4)
    theirs = t.interval(0.95, 7, loc=values.mean(), scale=sem(values))
    assert ours.ends == pytest.approx(tuple(theirs))


def test_no_end_is_where_no_figure_can_be() -> None:
    scores = np.array([1.0] * 8 + [0.2, 0.1])
    made = intervals(np.stack([scores, 90 * scores], axis=1), 0.0, [1.0, np.inf])
    highest = [each.ends[1] for each in made if each.ends]
    assert highest[0] == 1.0
    assert highest[1] > 90
    assert interval(scores).ends != made[0].ends


def test_few_questions_have_no_interval() -> None:
    for values, known in [
        ([0.4], False),
        ([0.1, 0.9] * 3 + [0.5], False),
        ([0.1, 0.9] * 4, True),
        # Equal values say nothing about the spread.
        ([0.4] * 8, False),
        ([0.0] * 60, False),
        ([1.0] * 19 + [0.0], False),
        ([1.0] * 18 + [0.0] * 2, True),
    ]:
        made = interval(np.array(values))
        assert made.mean == pytest.approx(np.mean(values)), values
        assert (made.ends is not None) == known, values
        assert (wording.TOO_FEW in wording.gain(made)) == (not known), values


def test_a_gain_is_claimed_only_where_an_interval_excludes_0() -> None:
    for values, gain in [
        ([0.2, 0.2], False),
        # The signs of five are all one way by chance: 2 / 2⁵ > 0.05.
        ([0.1] * 5 + [0.0] * 3, False),
        ([0.1, 0.2] * 3 + [0.0] * 20, True),
        ([0.1, 0.2] * 4, True),
        # Student's interval, 0.067 ± 2.201 × 0.078 / √12, is above 0; but two large losses in 12 may be a third of all.
        ([0.1] * 10 + [-0.1] * 2, False),
        ([0.1] * 5 + [-0.1] * 4, False),
    ]:
        made, turned = interval(np.array(values)), interval(-np.array(values))
        assert (made.shows_gain, made.shows_loss) == (gain, False), values
        assert (turned.shows_gain, turned.shows_loss) == (False, gain), values
