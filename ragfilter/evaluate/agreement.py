"""How far an LLM's labels agree with people's. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Grades = Mapping[str, Mapping[str, int]]
"""Question → chunk id → grade."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement over the pairs that both have labelled. `kappa` is Cohen's, over relevant or
    not; None if there are no pairs, or if chance alone would give full agreement."""

    pairs: int
    agreed: int
    kappa: float | None

    @property
    def told(self) -> str:
        """The agreement in one sentence."""
        if not self.pairs:
            return (
                "No chunk is labelled by both people and the LLM, so their agreement is unknown: "
                "label some of the LLM's chunks."
            )
        kappa = "not defined" if self.kappa is None else f"{self.kappa:.2f}"
        return (
            f"LLM and people agree on {self.agreed} of {self.pairs} pairs (relevant or not), "
            f"Cohen's kappa {kappa}."
        )


def agreement(human: Grades, llm: Grades) -> Agreement:
    """Cohen's kappa: (observed − expected) / (1 − expected) agreement on what is relevant.

    Source: Cohen, "A coefficient of agreement for nominal scales", 1960.
    """
    both = [
        (grade > 0, llm[query][chunk] > 0)
        for query, grades in human.items()
        for chunk, grade in grades.items()
        if chunk in llm.get(query, {})
    ]
    n = len(both)
    if not n:
        return Agreement(0, 0, None)
    agreed = sum(one == other for one, other in both)
    ours, theirs = (sum(pair[i] for pair in both) / n for i in (0, 1))
    expected = ours * theirs + (1 - ours) * (1 - theirs)
    kappa = None if expected == 1 else (agreed / n - expected) / (1 - expected)
    return Agreement(n, agreed, kappa)
