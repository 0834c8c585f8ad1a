"""The demo collection keeps the properties that tuning and presentations rely on."""

import re
from itertools import pairwise

import pytest

from ragfilter.ingest import bundled

RECORDS = {record["id"]: record for record in bundled.demo_rows()}


def test_there_are_84_attack_matrices() -> None:
    matrices = [record for record in RECORDS.values() if "ATTACK MATRIX" in record["title"]]
    assert len(matrices) == 84
    assert (
        RECORDS["attack-matrix-fighters-ac-minus-6"]["title"]
        == "I.B. ATTACK MATRIX FOR FIGHTERS, PALADINS, RANGERS AND BARDS - "
        "Opponent Armor Class -6"
    )


@pytest.mark.parametrize(
    ("chunk", "row"),
    [
        ("attack-matrix-clerics-ac-6", "Level 7-9: 10;"),
        ("attack-matrix-fighters-ac-3", "Level 7-8: 11;"),
        ("attack-matrix-fighters-ac-9", "Level 3-4: 9;"),
        ("attack-matrix-fighters-ac-10", "Level 17 and above: -6."),
        ("attack-matrix-magic-users-ac-minus-10", "Level 1-5: 31;"),
        ("attack-matrix-thieves-ac-0", "Level 21 and above: 10."),
    ],
)
def test_hand_worked_scores(chunk: str, row: str) -> None:
    assert row in RECORDS[chunk]["text"]


def test_the_spellings_name_the_class_and_only_that_class() -> None:
    def spellings(armor_class: str) -> set[str]:
        return set(RECORDS[f"attack-matrix-thieves-ac-{armor_class}"]["query_must"]["contain_one_of"][1])

    assert {"armor class 3", "armor class of 3", "ac 3", "ac of 3", "a.c. 3", "ac3"} <= spellings("3")
    named = {"armor class -6", "armor class minus 6", "ac -6", "ac minus 6"}
    assert named <= spellings("minus-6")
    assert not spellings("6") & spellings("minus-6")


def test_percentiles_cover_the_die() -> None:
    rolled = [each for i, each in RECORDS.items() if i.startswith(("encounters-", "psionic-blast"))]
    assert len(rolled) == 39
    for record in rolled:
        lines = re.findall(r"\b(\d{2,3})-(\d{2,3}) [a-z]", record["text"].partition("d100")[2])
        ends = [(int(low), int(high)) for low, high in lines]
        assert ends[0][0] == 1, record["id"]
        assert ends[-1][1] == 100, record["id"]
        assert all(b[0] == a[1] + 1 for a, b in pairwise(ends)), record["id"]


def test_references_resolve() -> None:
    missing = {
        (record["id"], ref)
        for record in RECORDS.values()
        for ref in record.get("refs", [])
        if ref not in RECORDS or ref == record["id"]
    }
    assert missing == set()


def test_secrets_are_guarded_and_never_labelled() -> None:
    secrets = {record["id"] for record in RECORDS.values() if record["type"] == "secret"}
    assert len(secrets) >= 12
    assert all(RECORDS[name]["clearance"] >= 1 for name in secrets)
    labelled = {chunk for labels in bundled.qrels("demo").values() for chunk in labels}
    assert not labelled & {name for name, record in RECORDS.items() if record.get("clearance", 0)}


def test_labels_are_complete() -> None:
    assert bundled.qrels("demo").keys() <= bundled.queries("demo").keys()
    # Two questions have no answer here, so that finding nothing can be shown and tested.
    assert {text for query, text in bundled.queries("demo").items() if query not in bundled.qrels("demo")} == {
        "What is a lightsaber?",
        "How does a starship hyperdrive work?",
    }
    for query, labels in bundled.qrels("demo").items():
        assert labels.keys() <= RECORDS.keys(), query
        assert set(labels.values()) <= {1, 2}, query


FIGHT = "Who is more likely to win in a fight - a 4th level fighter with an armor class of 3 or a "
BOTH = " have a strength of 16, a constitution of 16, and a dexterity of 12. They both wield long swords."
SEED_QUERIES = {
    # Filtering
    "cleric-ac6": ("What does a 7th level cleric need to roll to hit an opponent with armor class 6?"),
    "cleric-ac6-strength": ("What does a 7th level cleric with strength 17 need to roll to hit armor class 6?"),
    "cleric-ac6-strength-short": ("What does a 7th level cleric with strength 17 need to roll to hit AC 6?"),
    "fighter-fighter": (f"{FIGHT}7th level fighter with an armor class of 9? Both fighters{BOTH}"),
    "fighter-druid": f"{FIGHT}7th level druid with an armor class of 9? Both characters{BOTH}",
    "fighter-fighter-short": "Who wins: 4th level fighter (AC 3) vs 7th level fighter (AC 9)?",
    "fighter-druid-short": "Who wins: 4th level fighter (AC 3) vs 7th level druid (AC 9)?",
    # Adaptive Filtering Algorithm
    "abilities": "abilities",
    "monsters-01": "Tell me about beholders",
    "monsters-02": "beholder",
    "monsters-03": "What is a beholder?",
    "monsters-04": "Tell me about dragons",
    "monsters-05": "dragon",
    "monsters-06": "monsters",
    "monsters-07": "Tell me about owlbears",
    "monsters-08": "What is a lightsaber?",
    "monsters-68": "Tell me about monsters",
    # Adaptive Result Filtering
    "monsters-09": "What monster is more powerful, a hill giant or a troll?",
    "monsters-10": "hill giant vs troll",
    "monsters-11": "Black Dragon vs Gold Dragon",
}
"""Every question in the source documents about such a collection, literally."""


def test_the_source_documents_questions_stand_verbatim() -> None:
    queries = bundled.queries("demo")
    assert {name: queries.get(name) for name in SEED_QUERIES} == SEED_QUERIES


def test_the_source_documents_questions_are_labelled_where_they_have_an_answer() -> None:
    assert SEED_QUERIES.keys() - bundled.qrels("demo").keys() == {"monsters-08"}
