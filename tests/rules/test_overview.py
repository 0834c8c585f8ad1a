"""The list of all chunks: states, filters, most urgent first."""

from __future__ import annotations

from collections.abc import Sequence

from ragfilter.model import Chunk
from ragfilter.rules.overview import Checks, RuleFilter, brief, make_listing
from ragfilter.rules.rule import parse

RULES = {
    "good": '{"contain":"cleric"}',
    "broken": '{"contains":"cleric"}',
    "never": '{"contain":"undead","contain_none_of":["undead"]}',
    "doubtful": '{"contain":"7","match":"substring"}',
    "twice": '{"contain_all_of":["dragon","dragon"]}',
    "bare": None,
    "hurts": '{"contain":"troll"}',
}
CHUNKS = [
    Chunk(i, "", f"Title of {i}", "table" if i == "good" else "text", "a.md", rule=rule) for i, rule in RULES.items()
]


def listed(wanted: RuleFilter, drafts: Sequence[str] = (), **given: object) -> list[str]:
    listing = make_listing(CHUNKS, Checks(), **given)  # type: ignore[arg-type]
    return [row.id for row in listing.with_unsaved(drafts).find(wanted)]


def test_a_rule_in_a_line_names_the_first_term_of_each_part() -> None:
    rule = '{"contain_one_of":[["psionic","psionics"],["1"]],"contain_none_of":["arctic","tundra"]}'
    assert brief(parse(rule)).split(", ") == ["psionic (+1)", "1", "not arctic (+1)"]


def test_what_needs_attention_comes_first() -> None:
    assert listed(RuleFilter(), drafts=["good"]) == ["broken", "never", "good", "doubtful", "twice", "hurts", "bare"]


def test_filters() -> None:
    for wanted, ids in [
        (RuleFilter(text="TITLE good"), ["good"]),
        (RuleFilter(text="undead"), ["never"]),
        (RuleFilter(types=("table",)), ["good"]),
        (RuleFilter(sources=("b.md",)), []),
        (RuleFilter(states=("invalid",)), ["broken", "never"]),
        (RuleFilter(states=("warning", "none")), ["bare", "doubtful"]),
        (RuleFilter(states=("note",)), ["twice"]),
        (RuleFilter(states=("draft",)), ["bare"]),
        (RuleFilter(states=("changed",)), ["good"]),
        (RuleFilter(text="title", states=("valid",)), ["good", "hurts"]),
    ]:
        exported = {"good": '{"contain":"druid"}', "never": RULES["never"]}
        assert listed(wanted, drafts=["bare"], exported=exported) == ids
