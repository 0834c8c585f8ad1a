"""Clearance: hide chunks that the user cannot see, as `model.User` decides. It is the first layer, and it fails closed.

Source: Adaptive Retrieval System, "Security Filtering"; docs/design.md#clearance."""

from __future__ import annotations

from collections.abc import Iterable

from ragfilter.layers.layer import LayerInput, LayerOutput, LayerSpec, Mark, no_more
from ragfilter.model import Chunk, Decision, Hit, LayerTrace, PoolResult, User
from ragfilter.text import numbers

BARRED = "You do not have the clearance for any of the chunks that match this query."
UNREADABLE_MESSAGE = (
    "The clearance of the chunks that match this query cannot be read, so all are hidden. Ask the "
    "maintainer of this collection."
)


def apply(hits: tuple[Hit, ...], inputs: LayerInput) -> LayerOutput:
    """Keep the hits that the user can see. Status `insufficient_clearance` if there were hits but all are hidden."""
    user = inputs.user
    kept = tuple([hit for hit in hits if user.sees(hit.chunk)])
    decisions = tuple([_decide(hit, user) for hit in hits]) if inputs.explain else ()
    if hits and not kept:
        ways = ", or ".join(_ways([hit.chunk for hit in hits], user))
        message = f"{BARRED} Ask someone {ways}." if ways else UNREADABLE_MESSAGE
        return LayerOutput((), decisions, status="insufficient_clearance", message=message)
    return LayerOutput(kept, decisions)


def _decide(hit: Hit, user: User) -> Decision:
    level, refusal = hit.chunk.clearance, user.refusal(hit.chunk)
    reason = refusal or ("public" if level == 0 else f"clearance {level} ≤ {user.level}")
    value = None if level is None else float(level)
    return Decision(hit.chunk.id, "clearance", "dropped" if refusal else "kept", reason, value, float(user.level))


def _ways(chunks: Iterable[Chunk], user: User) -> list[str]:
    """What `user` lacks to see some of `chunks`: the highest level in each other department, and among the rest."""
    highest: dict[str, int] = {}
    for chunk in chunks:
        # Nobody belongs to a department without a name.
        if chunk.clearance is not None and chunk.department != "":
            of = chunk.department or ""
            of = "" if of in user.departments else of
            highest[of] = max(highest.get(of, 0), chunk.clearance)
    names: dict[tuple[bool, int], list[str]] = {}
    for of, level in sorted(highest.items()):
        names.setdefault((bool(of), level), []).append(of)
    ways = []
    for (foreign, level), alike in sorted(names.items()):
        parts = [f"in department {' or '.join(alike)}"] if foreign else []
        parts += [f"with clearance level {level}"] if level else []
        ways.append(" ".join(parts))
    return ways


def _line(trace: LayerTrace, result: PoolResult) -> str:
    user, hidden = result.user, trace.count("dropped")
    if hidden:
        return f"{numbers.chunk_count(hidden)} hidden"
    member = f" in {' and '.join(user.departments)}" if user.departments else ""
    return f"shows what level {user.level}{member} may see"


SPEC: LayerSpec = LayerSpec(
    name="clearance",
    title="Clearance",
    mark=Mark("⊠", "square-x-open", "#553270", "#ea63fe"),
    apply=apply,
    candidates=no_more,
    line=_line,
    off=lambda settings: "off; everyone sees everything",
    plain=lambda decision, hit, result: "were not for this user",
    explains=0,
)
