"""`ragfilter rules suggest --families`: rules that tell similar chunks apart.

Nothing is written to the collection. `ragfilter rules import` reads the file, and holds back
proposals that would lose relevant chunks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ragfilter.basics.files import kind, write_text
from ragfilter.cli import output
from ragfilter.cli.options import OTHER_OUT, Filtering, Place
from ragfilter.cli.rules.saving import (
    effect_document,
    effect_text,
    gather_labelled,
    loss_remarks,
    row_text,
)
from ragfilter.cli.rules.select import select
from ragfilter.errors import InputError
from ragfilter.evaluate.proposed import Suggested, suggest
from ragfilter.evaluate.rule_matrix import row_document
from ragfilter.rules.proposals import Proposal
from ragfilter.text.numbers import counted


def suggest_families(
    place: Place,
    viewing: Filtering,
    where: list[str] | None,
    out: Path | None,
    labelled: tuple[str | None, str | None],
    *,
    limit: int | None,
    as_json: bool,
) -> None:
    """Print the proposals, or write them to `out`. Raises InputError."""
    from ragfilter.stores.labels import ASKED

    if out is not None and kind(out):
        raise InputError(f"{out} exists.", remedy="Name another file with --out.")
    with place.open("rules") as bench:
        selected = select(bench, place.collection, where or (), user=viewing.viewer, limit=limit)
        output.tell(selected.incomplete)
        known = gather_labelled(labelled, bench, place, viewing)
        asked = bench.labels.queries(place.collection, ASKED).values()
        made = suggest(selected.chunks, asked, known)
    records = [record(each, made) for each in made.proposals]
    if out is not None:
        lines = (json.dumps(each, ensure_ascii=False) + "\n" for each in records)
        write_text(out, "".join(lines), remedy=OTHER_OUT)
    document = place.head(selected.incomplete) | _document(made, records)
    output.emit(document if as_json else _text(place.collection, made, out))


def record(each: Proposal, made: Suggested) -> dict[str, Any]:
    """A proposal as a line in a file of drafts, with its evidence."""
    row = made.evidence.rows.get(each.rule)
    return {
        "id": each.chunk.id,
        "title": each.chunk.title,
        "query_must": json.loads(each.rule),
        "family": each.family,
        "names": list(each.names),
        "value": each.value,
        "matrix": None if row is None else row_document(row),
        "remarks": [*filter(None, (each.doubt,)), *loss_remarks(each.chunk.id, made.evidence)],
    }


def _document(made: Suggested, records: list[dict[str, Any]]) -> dict[str, Any]:
    families = [
        {
            "pattern": family.pattern,
            "members": [{"id": m.chunk.id, "value": m.named} for m in family.members],
        }
        for family in made.families
    ]
    effect = effect_document(made.evidence.effect)
    return {"families": families, "proposals": records} | effect


def _text(collection: str, made: Suggested, out: Path | None) -> str:
    lines = []
    for family in made.families:
        lines.append(f"{family.pattern}: {counted(len(family.members), 'chunk')}")
        lines.append(f"  {'; '.join(m.named for m in family.members)}")
        example = next(p for p in made.proposals if p.family == family.pattern)
        lines.append(f"  {example.chunk.id}: {example.rule}")
        row = made.evidence.rows.get(example.rule)
        lines += [] if row is None else [f"  {row_text(row)}"]
    losses = made.evidence.losses
    doubtful = sum(bool(p.doubt) or p.chunk.id in losses for p in made.proposals)
    lines.append(
        f"{collection}: {counted(len(made.proposals), 'proposal')} for families: "
        f"{len(made.families)}, with doubts: {doubtful}"
    )
    if out is not None:
        lines.append(f"written to {out}; save them with: ragfilter rules import {out}")
    return "\n".join(lines) + "\n" + effect_text(made.evidence.effect)
