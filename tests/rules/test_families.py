"""Families of similar chunks with distinct titles, and the rules proposed for them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ragfilter.ingest import bundled
from ragfilter.model import Chunk
from ragfilter.rules.families import NAME_ALONE, find_families, propose
from ragfilter.rules.match import CompiledRules

Groups = list[list[str]]


def table(who: str, number: int) -> Chunk:
    text = f"The score a {who} needs to roll on a die to hit an opponent with armor class {number}."
    title = f"Attack matrix for {who}s - Opponent Armor Class {number}"
    return Chunk(f"{who}-{number}", text, title)


def alike(*titles: str) -> list[Chunk]:
    text = "What one needs to know and may do there"
    return [Chunk(title, f"{text}: {title}.", title) for title in titles]


def block(*titles: str) -> list[Chunk]:
    """Stat blocks in various words."""
    return [
        Chunk(title, f"Armor Class {n + 2}. {title} has {'fur, ' * n}Hit Points {n * 7}.", title)
        for n, title in enumerate(titles)
    ]


def groups(chunks: Sequence[Chunk], *texts: str) -> list[Groups]:
    made = propose(find_families(chunks), texts)
    return [[[*group] for group in each.rule.contain_one_of] for each in made]


CLERICS = [table("cleric", n) for n in (5, 6, -7)]
FIGHTERS = [table("fighter", n) for n in (5, 6, -7)]
OTHERS = [
    Chunk("a", "On wings.", "Notes on flow, part 1"),
    Chunk("b", "On tails and their drag at high speed.", "Notes on flow, part 2"),
    Chunk("c", "What the tunnel measured, and how.", "Notes on flow, part 3"),
    Chunk("d", "Nothing.", "Armor"),
    Chunk("e", "Nothing.", ""),
]


def test_titles_that_count_the_same_thing_are_a_family_if_their_texts_are_alike() -> None:
    (family,) = find_families([*OTHERS, *CLERICS, *FIGHTERS])
    assert family.pattern == "armor class #"
    assert [member.named for member in family.members[:4]] == [
        "clerics armor class 5",
        "clerics armor class 6",
        "clerics armor class -7",
        "fighters armor class 5",
    ]
    assert find_families(CLERICS[:2]) == find_families([CLERICS[0]] * 3) == ()


def test_a_proposal_is_met_by_its_own_value_alone() -> None:
    for titles, meets, misses in [
        (
            ("Clerics, levels 1-3", "Clerics, levels 4-6", "Clerics, levels 7-9"),
            "a 2nd level cleric",
            "a 5th level cleric",
        ),
        (
            ("Release 1.0 notes", "Release 1.1 notes", "Release 2.0 notes"),
            "what is new in release 1.0?",
            "a grade of 1.0",
        ),
    ]:
        first, *_ = propose(find_families(alike(*titles)), ["a fighter of the 8th level"])
        compiled = CompiledRules([first.rule.text])
        assert compiled.scan(meets).passes(first.rule.text)
        assert not compiled.scan(misses).passes(first.rule.text)


@pytest.mark.parametrize(
    ("form", "rule"),
    [
        ("Price list {y} {r} - {g}", [["2022"], ["{r}"], ["boots", "boot"]]),
        ("Price list {y}: {g}, {r}", [["2022"], ["boots", "boot"], ["{r}"]]),
    ],
)
@pytest.mark.parametrize("regions", [("Europe", "America"), ("EU", "US")])
def test_a_rule_asks_for_every_mark_that_tells_titles_apart(form: str, rule: Groups, regions: Sequence[str]) -> None:
    goods = ("Boots", "Ropes", "Scarves")
    titles = [form.format(y=y, r=r, g=g) for y in (2022, 2023, 2024) for r in regions for g in goods]
    first, *_ = groups(alike(*titles))
    wanted = [[regions[0].lower()] if group == ["{r}"] else group for group in rule]
    assert all(set(group) <= set(made) for group, made in zip(wanted, first, strict=True))
    assert not [term for group in first for term in group if term == "eus"]


def test_names_that_a_title_lists_are_alternatives() -> None:
    lists = ("clerics, druids and monks", "magic-users/illusionists", "thieves")
    chunks = alike(*(f"Table for {who} - AC {n}" for who in lists for n in (3, 4)))
    first, second, third = (set(names) for names, _ in groups(chunks)[::2])
    assert first == {"clerics", "cleric", "druids", "druid", "monks", "monk"}
    assert {"magic-user", "illusionists"} <= second
    assert third == {"thief", "thieves"}


def test_short_titles_above_the_same_kinds_of_values_are_a_family() -> None:
    beasts = block("Mire Wolf", "Ash Drake, Adult", "Ash Drake, Young", "Gloom Crab")
    (family,) = find_families([*beasts, *OTHERS])
    assert family.pattern == "armor class #, hit points #"
    made = propose([family], ())
    assert [[[*group] for group in each.rule.contain_one_of] for each in made] == [
        [["mire", "mires"], ["wolf", "wolves"]],
        [["ash", "ashes"], ["drake", "drakes"], ["adult", "adults"]],
        [["ash", "ashes"], ["drake", "drakes"], ["young", "youngs"]],
        [["gloom", "glooms"], ["crab", "crabs"]],
    ]
    # A person has to review them, because a question may name none of these words.
    assert {each.doubt for each in made} == {NAME_ALONE}
    assert {each.doubt for each in propose(find_families(CLERICS), ())} == {""}


def test_a_number_with_a_unit_after_its_noun_is_doubtful() -> None:
    for form, doubts in (
        (
            "Layflat hose {} mm",
            {
                "a question may say “25 mm” first",
                "a question may say “32 mm” first",
                "a question may say “40 mm” first",
            },
        ),
        ("{} mm layflat hose", {""}),
        ("Layflat hose {}", {""}),
    ):
        hoses = [Chunk(str(n), f"It is {n} mm wide and comes on a roll.", form.format(n)) for n in (25, 32, 40)]
        assert {each.doubt for each in propose(find_families(hoses), ())} == doubts, form


def test_other_titles_are_no_family() -> None:
    for chunks in [
        # Too few; only one kind of value; sentences as titles.
        block("Wolf", "Crab"),
        [Chunk(t, f"{t} has armor class 3.", t) for t in ("Wolf", "Crab", "Drake")],
        block(*(f"The effect of heat on {x} plates under steady load" for x in "abcd")),
    ]:
        assert find_families(chunks) == ()


def test_spellings_come_from_texts_and_questions() -> None:
    asked = ["to hit AC 6?", "against armour class of 6", "a clear glass 6", "level 6"]
    (name, value) = groups([*CLERICS, *FIGHTERS], *asked)[1]
    assert set(name) == {"cleric", "clerics"}
    assert {"armor class 6", "armour class of six", "ac 6", "a.c. 6", "ac6"} <= set(value)
    assert not [term for term in value if "level" in term or "glass" in term]


def test_a_proposal_is_met_by_a_question_with_the_own_title() -> None:
    records = [Chunk(r["id"], r["text"], r.get("title", "")) for r in bundled.demo_rows()]
    made = propose(find_families(records), [chunk.text for chunk in records])
    compiled = CompiledRules(each.rule.text for each in made)
    assert all(compiled.scan(each.chunk.title).passes(each.rule.text) for each in made)
    matrices = [p for p in made if p.chunk.id.startswith("attack-matrix")]
    assert len({each.rule for each in matrices}) == 84
    assert {each.family for each in matrices} == {"armor class #"}
