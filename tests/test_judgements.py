"""What is remembered of the judge's answers: bounded, without failures, safe in threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from ragfilter.judgements import Judgements, key
from ragfilter.ports import Message
from ragfilter.types import Judgement, Verdict

SAID = Judgement(("a",), (Verdict("a", "KEEP"),), model="m", prompt_tokens=9, ms=120.0)


def test_an_answer_comes_back_marked_as_remembered() -> None:
    kept = Judgements()
    assert kept.get("k") is None
    kept.put("k", SAID)
    found = kept.get("k")
    assert found == SAID
    assert found is not None
    assert (found.cached, found.prompt_tokens, found.ms) == (True, 9, 120.0)
    assert ("k" in kept, "other" in kept, len(kept)) == (True, False, 1)


def test_the_one_unused_for_longest_goes_first() -> None:
    kept = Judgements(3)
    for name in "abc":
        kept.put(name, SAID)
    kept.get("a")
    kept.put("d", SAID)
    assert [name in kept for name in "abcd"] == [True, False, True, True]
    assert len(kept) == 3


def test_failures_are_not_kept() -> None:
    kept = Judgements()
    kept.put("k", replace(SAID, error="It hangs."))
    assert (len(kept), kept.usual_ms("m")) == (0, None)


def test_the_usual_time_is_the_median_of_the_models_last_calls() -> None:
    kept = Judgements(2)
    for n, ms in enumerate((100.0, 900.0, 200.0)):
        kept.put(str(n), replace(SAID, ms=ms))
    assert kept.usual_ms("m") == 200.0
    assert kept.usual_ms("another") is None
    for n in range(20):
        kept.put(str(n), replace(SAID, ms=50.0))
    assert kept.usual_ms("m") == 50.0


BASE = ("q", "m", "default@1-ab", (Message("system", "s"), Message("user", "u")), ("a", "b"))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, "p"),
        (1, "n"),
        (2, "strict@1-ab"),
        (3, (Message("system", "s"), Message("user", "v"))),
        (3, (Message("user", "s"), Message("user", "u"))),
        (3, (Message("system", "su"),)),
        (4, ("a",)),
        (4, ("b", "a")),
        (4, ("ab",)),
    ],
)
def test_whatever_the_answer_depends_on_is_in_the_key(place: int, value: object) -> None:
    changed = [*BASE]
    changed[place] = value  # type: ignore[call-overload]
    assert key(*changed) != key(*BASE)  # type: ignore[arg-type]
    assert key(*BASE) == key(*BASE)


def test_a_key_is_made_of_any_text() -> None:
    assert len(key("\ud800", "m", "v", (Message("user", "\udfff"),), ("\ud800",))) == 64


def test_many_threads_share_it() -> None:
    kept = Judgements(10)

    def work(n: int) -> bool:
        for i in range(200):
            name = str((n * 7 + i) % 25)
            kept.put(name, SAID)
            found = kept.get(name)
            if found is not None and found != SAID:
                return False
        return len(kept) <= 10

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert len(kept) == 10
