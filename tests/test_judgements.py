"""The cache of the judge's answers: limited, without failures, thread-safe."""

from __future__ import annotations

from dataclasses import replace

from ragfilter.engine.pool import MAX_JUDGEMENTS, join_judgements
from ragfilter.judge.call import JudgementCache
from ragfilter.model import Judgement, Verdict

SAID = Judgement(("a",), (Verdict("a", "KEEP"),), model="m", prompt_key="k", prompt_tokens=9, ms=120.0)


def test_the_one_unused_for_longest_goes_first() -> None:
    kept = JudgementCache(3)
    for name in "abc":
        kept.put(replace(SAID, prompt_key=name))
    kept.get("m", "a")
    kept.put(replace(SAID, prompt_key="d"))
    assert [("m", name) in kept for name in "abcd"] == [True, False, True, True]
    assert len(kept._judgements) == 3


def test_the_usual_time_is_the_median_of_the_models_last_calls() -> None:
    kept = JudgementCache(2)
    for n, ms in enumerate((100.0, 900.0, 200.0)):
        kept.put(replace(SAID, prompt_key=str(n), ms=ms))
    assert kept.usual_ms("m") == 200.0
    assert kept.usual_ms("another") is None
    for n in range(20):
        kept.put(replace(SAID, prompt_key=str(n), ms=50.0))
    assert kept.usual_ms("m") == 50.0


def test_a_pool_holds_one_judgement_a_prompt_and_no_failure_for_a_success() -> None:
    failed = replace(SAID, verdicts=(), error="It hangs.")
    again, other = replace(failed, error="Again."), replace(SAID, prompt_key="o")
    nobody = Judgement(("a",), error="no LLM")
    for before, new, after in (
        ((), (SAID,), (SAID,)),
        ((SAID,), (failed,), (SAID,)),
        ((failed,), (SAID,), (SAID,)),
        ((failed, other), (again,), (other, again)),
        ((SAID,), (other,), (SAID, other)),
        ((SAID, other), (SAID,), (other, SAID)),
        ((nobody,), (nobody, SAID), (nobody, SAID)),
    ):
        assert join_judgements(before, new) == after
    many = [replace(SAID, prompt_key=str(n)) for n in range(40)]
    assert join_judgements((), many) == tuple(many[-MAX_JUDGEMENTS:])
