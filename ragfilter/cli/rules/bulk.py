"""`ragfilter rules bulk`: one change over the rules of a selection, saved as one step."""

from __future__ import annotations

from typing import Annotated

import typer

from ragfilter.cli.app import command
from ragfilter.cli.options import Filtering, Json, Place, text_option
from ragfilter.cli.output import show
from ragfilter.cli.rules.select import FOUND, Saving, Where, change_text, rules, select
from ragfilter.errors import InputError
from ragfilter.rules import bulk as changes
from ragfilter.rules.bulk import RuleChange
from ragfilter.text.numbers import counted

ONE = "Pass one of --set-rule, --add-group, --spellings-of, --replace and --remove."


@command(rules)
def bulk(
    place: Place,
    filtering: Filtering,
    saving: Saving,
    where: Where = None,
    set_rule: Annotated[str | None, "Set this rule (JSON) for every chunk."] = None,
    group: Annotated[
        list[str] | None, text_option("--add-group", help="Term of a new group. Repeatable.")
    ] = None,
    anchor: Annotated[
        str | None, text_option("--spellings-of", help="Add --spelling to groups with this.")
    ] = None,
    spellings: Annotated[
        list[str] | None, text_option("--spelling", help="Term to add. Repeatable.")
    ] = None,
    swap: Annotated[
        tuple[str, str] | None, typer.Option("--replace", metavar="OLD NEW", help="Replace a term.")
    ] = None,
    remove: Annotated[bool, "Remove the rules."] = False,
    as_json: Json = False,
) -> int:
    """Change all rules of a selection in one step, or none if one of them cannot be written.

    Exits with 1 if rules were left out because they cannot be read, or if nothing was saved because
    labelled queries would lose recall.
    """
    change = _change(set_rule, group, anchor, spellings, swap, remove=remove)
    with place.open("rules") as bench:
        selected = select(bench, place.collection, where, user=filtering.viewer)
        if not selected.chunks:
            raise InputError("No chunk matches --where.", remedy="Check its ids, titles and types.")
        plan = changes.plan(change, selected.chunks)
        saved = saving.save(plan.after, plan.before, bench, place, filtering)
    document = place.head(selected.incomplete) | {
        "dry_run": saving.dry_run,
        "saved": saved.done,
        "changes": [
            {"id": i, "before": plan.before[i], "after": rule} for i, rule in plan.after.items()
        ],
        "unchanged": plan.unchanged,
        "refused": [{"id": i, "error": why} for i, why in plan.refused.items()],
    }
    text = "" if saved.done else change_text(plan.before, plan.after)
    text += "".join(f"refused: {i}: {why}\n" for i, why in plan.refused.items())
    text += (
        f"{place.collection}: {change.label}: {counted(len(plan.after), 'rule')} "
        f"{'changed' if saved.done else 'would be changed'}, {len(plan.unchanged)} unchanged, "
        f"{len(plan.refused)} refused\n"
    )
    show(document | saved.document, text + saved.text, as_json=as_json)
    return 0 if saved.wanted and not plan.refused else FOUND


def _change(
    set_rule: str | None,
    group: list[str] | None,
    anchor: str | None,
    spellings: list[str] | None,
    swap: tuple[str, str] | None,
    *,
    remove: bool,
) -> RuleChange:
    if sum((set_rule is not None, bool(group), anchor is not None, swap is not None, remove)) != 1:
        raise InputError("Exactly one change is required.", remedy=ONE)
    if (anchor is None) != (not spellings):
        raise InputError(
            "--spellings-of and --spelling must be used together.", remedy="Pass both, or neither."
        )
    if set_rule is not None:
        return changes.set_rule(set_rule)
    if group:
        return changes.add_group(group)
    if anchor is not None:
        return changes.add_spellings(anchor, spellings or ())
    return changes.remove() if swap is None else changes.replace_term(*swap)
