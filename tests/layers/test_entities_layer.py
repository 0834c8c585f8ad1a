"""The pin step: the best surviving chunk of each side goes to the front."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from ragfilter.layers.entities import apply
from ragfilter.layers.layer import LayerInput, LayerOutput
from ragfilter.model import PUBLIC, Chunk, Entity, Hit, Pool
from ragfilter.rules.match import compiled_rules
from ragfilter.settings.schema import Settings
from ragfilter.text.comparison import detect

# The seed's "Hill Giant vs Troll", with its distances.
GIANT, CATEGORY, TROLL, FROST, MAMMOTH = (
    Hit(Chunk(title.lower().replace(" ", "-"), title=title, text=text), distance, rank)
    for rank, (title, text, distance) in enumerate(
        [
            ("Hill Giant", "A brute with a club.", 0.8813),
            ("GIANT", "The hill giant is the smallest of them.", 0.9313),
            ("TROLL", "It heals.", 0.9356),
            ("Frost Giant", "It lives in the cold.", 1.0763),
            ("MAMMOTH", "Prey of the hill giant and the troll.", 1.0834),
        ],
        start=1,
    )
)
HITS = (GIANT, CATEGORY, TROLL, FROST, MAMMOTH)


def pin(hits: tuple[Hit, ...], *entities: Entity, per_entity: int = 10) -> LayerOutput:
    settings = Settings().with_values({"entities.per_entity": per_entity})
    pool = Pool("q", "c", "l2", hits, entities)
    return apply(hits, LayerInput(settings, pool, compiled_rules(()).scan("q"), PUBLIC))


def test_both_sides_are_pinned_the_nearest_first() -> None:
    step = pin(HITS, Entity("troll", ("mammoth", "troll", "giant")), Entity("hill giant", ("giant", "hill-giant")))
    others = [("giant", "kept"), ("frost-giant", "kept"), ("mammoth", "kept")]
    assert step.pinned.keys() == {"troll", "hill-giant"}
    made = [(d.chunk_id, d.outcome) for d in step.decisions]
    assert made == [("hill-giant", "pinned"), ("troll", "pinned"), *others]
    assert [hit.id for hit in step.hits] == [i for i, _ in made]
    assert step.decisions[0].reason.endswith("“hill giant”")
    assert step.note == ""


def test_a_text_names_it_only_where_no_title_does() -> None:
    step = pin(HITS[1:], Entity("hill giant", ("mammoth", "hill-giant", "giant")))
    assert step.pinned.keys() == {"mammoth"}


def test_a_title_that_is_the_side_goes_before_one_that_names_it() -> None:
    hits = tuple(
        Hit(Chunk(title, title=title), 0.5 + rank / 10, rank)
        for rank, title in enumerate(["Continual Light", "Lights (lesser)", "LIGHT"], start=1)
    )
    ids = tuple(hit.id for hit in hits)
    step = pin(hits, Entity("light", ids), Entity("continual light", ids))
    assert [hit.id for hit in step.hits] == ["Continual Light", "LIGHT", "Lights (lesser)"]
    assert pin(hits[:2], Entity("light", ids)).pinned.keys() == {"Continual Light"}


@pytest.mark.parametrize(
    ("query", "titles", "pinned"),
    [
        ("difference between C and C++", ["C memory", "Rust", "C streams", "C++", "C"], {"C": "C", "C++": "C++"}),
        ("difference between C and C++", ["C++ streams", "C memory", "C#"], {"C": "C memory", "C++": "C++ streams"}),
        ("C++ vs Rust", ["C", "Rust"], {"Rust": "Rust"}),
        (
            "MySQL vs PostgreSQL performance",
            ["MySQL indexes", "Redis performance", "PostgreSQL vacuum"],
            {"MySQL": "MySQL indexes", "PostgreSQL": "PostgreSQL vacuum"},
        ),
        (
            "mysql vs postgresql pricing",
            ["MySQL", "Pricing", "PostgreSQL vacuum"],
            {"mysql": "MySQL", "postgresql pricing": "PostgreSQL vacuum"},
        ),
        ("React vs Vue hydration", ["Vue", "React", "Hydration"], {"React": "React", "Vue hydration": "Vue"}),
        # The longer reading of a side is tried first, a part of it last and only as a whole title.
        (
            "Rent vs Game in progress",
            ["Game", "Rent", "Game in progress"],
            {"Rent": "Rent", "Game": "Game in progress"},
        ),
        ("troll vs hill giant", ["Hill dwarf", "Troll"], {"troll": "Troll"}),
        (
            "iPhone 15 Pro vs 15 Pro Max",
            ["iPhone 15 Pro Max camera", "iPhone 15 Pro camera"],
            {"iPhone 15 Pro": "iPhone 15 Pro camera", "iPhone 15 Pro Max": "iPhone 15 Pro Max camera"},
        ),
        ("$PATH vs PATH", ["$PATH", "PATH"], {"$PATH": "$PATH", "PATH": "PATH"}),
        ("A+ vs A-", ["A", "A-", "A+"], {"A+": "A+", "A-": "A-"}),
        ("Yahoo! vs Yahoo", ["Yahoo!", "Yahoo"], {"Yahoo!": "Yahoo!", "Yahoo": "Yahoo"}),
        (
            "What are the security implications of OAuth vs API keys?",
            ["Security", "OAuth", "API keys"],
            {"OAuth": "OAuth", "API keys": "API keys"},
        ),
        ("VS Code vs Vim", ["Code review", "Vim", "VS Code"], {"VS Code": "VS Code", "Vim": "Vim"}),
    ],
)
def test_the_title_tells_where_a_side_ends(query: str, titles: list[str], pinned: dict[str, str]) -> None:
    hits = tuple(Hit(Chunk(title, title=title), rank / 10, rank) for rank, title in enumerate(titles, 1))
    entities = tuple(Entity(name, tuple(titles)) for name in detect(query))
    pool = Pool(query, "c", "l2", hits, entities)
    step = apply(hits, LayerInput(Settings(), pool, compiled_rules(()).scan(query), PUBLIC))
    reasons = {d.reason: d.chunk_id for d in step.decisions if d.outcome == "pinned"}
    assert reasons == {f"best chunk for “{side}”": title for side, title in pinned.items()}


def test_only_what_its_own_retrieval_found_counts(snapshot: SnapshotAssertion) -> None:
    step = pin(HITS, Entity("hill giant", ("frost-giant", "hill-giant")), per_entity=1)
    assert step.pinned == {}
    assert step.hits == HITS
    assert step.note == snapshot
