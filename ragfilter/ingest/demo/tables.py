"""The generated tables of the demo collection.

Each function yields plain records, one per chunk, and depends on nothing but the literal data above
it. Three families of tables are near-duplicates of each other and therefore carry a ``query_must``
rule: the attack matrices, the psionic blast tables and the encounter tables. The ability tables are
few and distinct; they carry none and always pass.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

Record: TypeAlias = dict[str, Any]

ARMOR_CLASSES = range(10, -11, -1)


class Group(NamedTuple):
    """One class group that shares an attack matrix.

    ``bands`` holds (first level, last level or None for "and above", base score): the die score
    needed is the base minus the opponent's armor class.
    """

    slug: str
    title: str
    phrase: str
    bands: tuple[tuple[int, int | None, int], ...]
    spellings: tuple[str, ...]
    refs: tuple[str, ...]


GROUPS = (
    Group(
        slug="clerics",
        title="I.A. ATTACK MATRIX FOR CLERICS, DRUIDS AND MONKS",
        phrase="a cleric, druid or monk",
        bands=(
            (1, 3, 20),
            (4, 6, 18),
            (7, 9, 16),
            (10, 12, 14),
            (13, 15, 12),
            (16, 18, 10),
            (19, None, 9),
        ),
        spellings=("cleric", "clerics", "druid", "druids", "monk", "monks", "priest", "priests"),
        refs=("the-cleric", "character-classes-druid-1", "the-monk"),
    ),
    Group(
        slug="fighters",
        title="I.B. ATTACK MATRIX FOR FIGHTERS, PALADINS, RANGERS AND BARDS",
        phrase="a fighter, paladin, ranger or bard",
        bands=(
            (0, 0, 21),
            (1, 2, 20),
            (3, 4, 18),
            (5, 6, 16),
            (7, 8, 14),
            (9, 10, 12),
            (11, 12, 10),
            (13, 14, 8),
            (15, 16, 6),
            (17, None, 4),
        ),
        # Level 0 is a row of this matrix, so men-at-arms and ordinary humans look it up too.
        spellings=(
            "fighter",
            "fighters",
            "paladin",
            "paladins",
            "ranger",
            "rangers",
            "bard",
            "bards",
            "warrior",
            "warriors",
            "man-at-arms",
            "man at arms",
            "men-at-arms",
            "men at arms",
            "0-level",
            "0 level",
            "0th level",
            "zero level",
            "level 0",
        ),
        refs=("the-fighter", "the-paladin", "the-ranger", "the-bard"),
    ),
    Group(
        slug="magic-users",
        title="I.C. ATTACK MATRIX FOR MAGIC-USERS AND ILLUSIONISTS",
        phrase="a magic-user or illusionist",
        bands=((1, 5, 21), (6, 10, 19), (11, 15, 16), (16, 20, 13), (21, None, 11)),
        spellings=(
            "magic-user",
            "magic-users",
            "magic user",
            "magic users",
            "illusionist",
            "illusionists",
            "wizard",
            "wizards",
            "mage",
            "mages",
        ),
        refs=("the-magic-user", "the-illusionist"),
    ),
    Group(
        slug="thieves",
        title="I.D. ATTACK MATRIX FOR THIEVES AND ASSASSINS",
        phrase="a thief or assassin",
        bands=((1, 4, 21), (5, 8, 19), (9, 12, 16), (13, 16, 14), (17, 20, 12), (21, None, 10)),
        spellings=("thief", "thieves", "assassin", "assassins", "rogue", "rogues"),
        refs=("the-thief", "the-assassin"),
    ),
)

_ARMOR_WORN = {
    10: "An opponent of armor class 10 wears no armor and carries no shield.",
    9: "An opponent of armor class 9 carries a shield but wears no armor.",
    8: "An opponent of armor class 8 wears leather or padded armor.",
    7: "An opponent of armor class 7 wears studded leather or ring mail.",
    6: "An opponent of armor class 6 wears scale mail, or ring mail with a shield.",
    5: "An opponent of armor class 5 wears chain mail.",
    4: "An opponent of armor class 4 wears banded or splint mail, or chain mail with a shield.",
    3: "An opponent of armor class 3 wears plate mail.",
    2: "An opponent of armor class 2 wears plate mail and a shield.",
    1: "An opponent of armor class 1 wears plate mail, a shield and one point of magic.",
    0: "An opponent of armor class 0 wears plate mail, a shield and two points of magic.",
}

_NUMBER_WORDS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
)


def score_needed(base: int, armor_class: int) -> int:
    """The d20 score that hits; deliberately not clamped to 1..20."""
    return base - armor_class


def ac_slug(armor_class: int) -> str:
    """The armor class as it appears in ids: ``6`` or ``minus-6``."""
    return str(armor_class) if armor_class >= 0 else f"minus-{-armor_class}"


def ac_spellings(armor_class: int) -> list[str]:
    """The ways in which a question names this armor class.

    Every spelling carries the words "armor class" or "ac": a bare number would also match levels,
    strengths and distances. "ac-6" is listed for the negative class only, for nobody hyphenates
    the positive one.
    """
    number = str(armor_class)
    names = ("armor class", "armour class", "ac", "a.c.")
    terms = [f"{name} {link}{number}" for name in names for link in ("", "of ")]
    terms.append(f"ac{number}")
    word = _NUMBER_WORDS[abs(armor_class)]
    if armor_class >= 0:
        spoken = [word]
    else:
        spoken = [f"minus {-armor_class}", f"negative {-armor_class}", f"minus {word}"]
    terms += [f"{name} {link}{s}" for s in spoken for name in names[:3] for link in ("", "of ")]
    return terms


def _band(first: int, last: int | None) -> str:
    if last is None:
        return f"Level {first} and above"
    return f"Level {first}" if first == last else f"Level {first}-{last}"


def attack_matrices() -> Iterator[Record]:
    """The 84 attack matrices: 4 class groups by armor class 10 to -10."""
    for index, group in enumerate(GROUPS):
        for ac in ARMOR_CLASSES:
            needed = [(band, score_needed(band[2], ac)) for band in group.bands]
            rows = "; ".join(f"{_band(first, last)}: {score}" for (first, last, _), score in needed)
            worn = _ARMOR_WORN.get(
                ac,
                f"An opponent of armor class {ac} owes it to strong magic, great agility or a "
                "monstrous hide.",
            )
            notes = []
            if needed[0][1] > 20:
                notes.append("Where more than 20 is needed, only a natural 20 or bonuses hit.")
            if needed[-1][1] < 2:
                notes.append("Where less than 2 is needed, only a natural 1 misses.")
            text = " ".join(
                [
                    f"The score {group.phrase} needs to roll on a 20-sided die to hit an opponent "
                    f"with armor class {ac}, by the level of the attacker. {rows}. Add strength "
                    "and magic bonuses to the roll, not to the score. " + worn,
                    *notes,
                ]
            )
            yield {
                "id": f"attack-matrix-{group.slug}-ac-{ac_slug(ac)}",
                "title": f"{group.title} - Opponent Armor Class {ac}",
                "text": text,
                "type": "special",
                "source": "referee-guide.md",
                "page": 74 + index,
                "refs": ["using-the-combat-tables", *group.refs],
                "query_must": {
                    "contain_one_of": [list(group.spellings), ac_spellings(ac)],
                    "match": "word",
                },
            }


# -- psionic blast ---------------------------------------------------------------------------------

# First score, last score, saving throw at short, medium and long range, share of each outcome.
_PSIONIC = (
    (1, 5, 19, 17, 15, (5, 20, 25, 20, 30)),
    (6, 9, 17, 15, 13, (10, 20, 25, 25, 20)),
    (10, 13, 15, 13, 11, (15, 25, 25, 20, 15)),
    (14, 15, 13, 11, 9, (20, 30, 20, 20, 10)),
    (16, 17, 11, 9, 7, (25, 30, 20, 15, 10)),
    (18, 19, 9, 7, 5, (35, 30, 15, 15, 5)),
    (20, 21, 7, 5, 4, (40, 30, 15, 10, 5)),
    (22, 25, 5, 4, 3, (50, 30, 10, 8, 2)),
)
_PSIONIC_OUTCOMES = ("dazed", "stunned", "panic-stricken", "confused", "comatose")

_PSIONIC_SPELLINGS = [
    "psionic",
    "psionics",
    "psionic blast",
    "psionically",
    "psychic",
    "mind blast",
    "mental blast",
]
_MENTAL_SPELLINGS = ["intelligence", "intelligent", "wisdom", "wise", "int", "wis"]


def psionic_tables() -> Iterator[Record]:
    """The psionic blast tables, one per range of the better of intelligence and wisdom.

    The rule asks for a psionic word, for intelligence or wisdom, and for a number of the range.
    Asking for both endpoints would let a question quoting the title through and nothing else: the
    reader who has a victim of intelligence 12 says "12", so every number of the range is listed in
    one group. Word matching keeps "1" from matching 10; "10-13" contains the word 10 anyway, but is
    spelled out so that a curator who switches the rule to substrings still finds it.
    """
    for index, (first, last, short, medium, long, shares) in enumerate(_PSIONIC):
        letter = chr(ord("A") + index)
        outcomes = ", ".join(
            f"{low:02d}-{high:02d} {name} for {rounds}"
            for (low, high), name, rounds in zip(
                _percentiles(shares),
                _PSIONIC_OUTCOMES,
                ("1d4 rounds", "2d4 rounds", "1d6 rounds", "3d4 rounds", "1d6 days"),
                strict=True,
            )
        )
        text = (
            f"What a psionic blast does to a non-psionic creature whose better score of "
            f"intelligence and wisdom is {first}-{last}. The victim rolls a 20-sided die to "
            f"save: {short} or higher within 20 feet, {medium} within 40 feet, {long} within "
            "60 feet; add 2 with a helm that wards the mind. A save means no effect. On a "
            f"failure roll d100: {outcomes}. A victim already dazed or confused moves one "
            "outcome further down the list."
        )
        yield {
            "id": f"psionic-blast-{first}-{last}",
            "title": f"IV.{letter}. PSIONIC BLAST ATTACK UPON NON-PSIONIC CREATURE - "
            f"Intelligence/Wisdom {first}-{last}",
            "text": text,
            "type": "special",
            "source": "referee-guide.md",
            "page": 79,
            "refs": ["psionic-combat", "psionic-attack-modes"],
            "query_must": {
                "contain_one_of": [
                    _PSIONIC_SPELLINGS,
                    _MENTAL_SPELLINGS,
                    [
                        *(str(score) for score in range(first, last + 1)),
                        f"{first}-{last}",
                        f"{first} to {last}",
                    ],
                ],
                "match": "word",
            },
        }


def _percentiles(shares: tuple[int, ...]) -> list[tuple[int, int]]:
    """Percent shares as d100 ranges, the last one ending at 100."""
    ranges = []
    start = 1
    for share in shares:
        ranges.append((start, start + share - 1))
        start += share
    return ranges


# -- encounters ------------------------------------------------------------------------------------

_MEETING = [
    "encounter",
    "encounters",
    "encountered",
    "encountering",
    "wandering",
    "random monster",
    "random monsters",
    "monster",
    "monsters",
    "creature",
    "creatures",
    "beast",
    "beasts",
    "animals",
    "meet",
    "meets",
    "run into",
    "roam",
    "roams",
    "lurk",
    "lurks",
    "live",
    "lives",
    "found in",
    "attack us",
]

# Terrain as a place, never as half of a monster's name: "hill" alone would let the hill tables into
# every question about a hill giant, "sea" into those about a sea serpent.
_TERRAIN = {
    "plain": [
        "plain",
        "plains",
        "grassland",
        "grasslands",
        "prairie",
        "steppe",
        "steppes",
        "savanna",
        "meadow",
        "meadows",
        "open country",
        "farmland",
        "tundra",
    ],
    "forest": ["forest", "forests", "wood", "woods", "woodland", "woodlands", "jungle", "taiga"],
    "hills": ["hills", "hilly", "hill country", "foothills", "downs", "highland", "highlands"],
    "mountains": [
        "mountains",
        "mountainous",
        "mountain range",
        "mountain pass",
        "a mountain",
        "the mountain",
        "peaks",
    ],
    "swamp": ["swamp", "swamps", "marsh", "marshes", "marshland", "bog", "bogs", "fen", "fens"],
    "desert": ["desert", "deserts", "dunes", "wasteland", "wastelands", "ice waste", "badlands"],
    "coast": ["coast", "coasts", "coastal", "shore", "shores", "beach", "beaches", "seaside"],
    "river": ["rivers", "the river", "a river", "lake", "lakes", "fresh water", "freshwater"],
    "sea": ["at sea", "the sea", "open sea", "seas", "ocean", "oceans", "open water", "voyage"],
    "faerie": ["faerie", "fairy", "fey", "sylvan", "enchanted wood", "enchanted forest"],
    "caverns": ["cavern", "caverns", "caves", "a cave", "the cave"],
    "mines": ["mines", "a mine", "the mine", "old mine", "tunnels", "mineshaft"],
    "crypts": ["crypt", "crypts", "tomb", "tombs", "catacomb", "catacombs", "burial"],
    "sewers": ["sewer", "sewers", "beneath the city", "under the city"],
    "depths": ["depths", "deepest", "deep underground", "underworld"],
}

_ARCTIC = [
    "arctic",
    "polar",
    "frozen",
    "icy",
    "ice waste",
    "snow",
    "snowy",
    "tundra",
    "taiga",
    "glaciers",
    "far north",
]
_TROPICAL = ["tropical", "tropic", "tropics", "jungle", "jungles", "equatorial", "savanna"]
_UNDERGROUND = ["subterranean", "underground", "dungeon", "dungeons"]

_CLIMATE = {"Arctic": _ARCTIC, "Tropical": _TROPICAL}

# Climate, terrain, title of the setting, how often to check, creatures from common to very rare.
_ENCOUNTERS: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    (
        "Temperate",
        "plain",
        "Plain",
        "morning, evening and midnight",
        (
            "wild horses (10-40)",
            "wolves (4-16)",
            "a merchant caravan with guards",
            "ants, giant (2-12)",
            "orcs on the march (30-120)",
            "lions (2-8)",
            "centaurs (4-16)",
            "griffons hunting (1-6)",
            "an ankheg under the furrows",
            "a blue dragon on the wing",
        ),
    ),
    (
        "Temperate",
        "forest",
        "Forest",
        "morning, noon, evening and midnight",
        (
            "stags and does (4-24)",
            "wolves (4-16)",
            "boars (1-6)",
            "brown bears (1-4)",
            "giant spiders (1-6)",
            "bandits with an ambush laid (20-80)",
            "owlbears (1-4)",
            "a treant and its grove",
            "a unicorn",
            "a green dragon asleep",
        ),
    ),
    (
        "Temperate",
        "hills",
        "Hills",
        "noon, night and before dawn",
        (
            "goats (5-20)",
            "dwarves on the road (10-40)",
            "goblins (20-80)",
            "ogres (2-8)",
            "gnolls (10-60)",
            "hill giants (1-6)",
            "mountain lions (1-2)",
            "bulettes (1-2)",
            "trolls at a ford (1-8)",
            "a copper dragon",
        ),
    ),
    (
        "Temperate",
        "mountains",
        "Mountains",
        "morning and night",
        (
            "eagles (2-8)",
            "goats (5-20)",
            "orcs of a mountain hold (30-120)",
            "dwarves (10-40)",
            "stone giants (1-8)",
            "harpies (2-12)",
            "wyverns (1-4)",
            "trolls (1-8)",
            "chimeras (1-3)",
            "a red dragon in its lair",
        ),
    ),
    (
        "Temperate",
        "swamp",
        "Swamp",
        "every four hours, day and night",
        (
            "giant frogs (4-24)",
            "snakes, poisonous (1-8)",
            "lizard men (10-40)",
            "giant leeches (4-16)",
            "crocodiles (2-8)",
            "will-o-wisps (1-3)",
            "trolls (1-6)",
            "a shambling mound",
            "a hydra of six heads",
            "a black dragon",
        ),
    ),
    (
        "Temperate",
        "desert",
        "Desert",
        "morning and night",
        (
            "nomads on camels (20-80)",
            "vultures (4-16)",
            "giant scorpions (1-4)",
            "jackals (4-24)",
            "dervishes (10-40)",
            "basilisks (1-2)",
            "giant lizards (1-6)",
            "a lamia in the ruins",
            "a djinni",
            "a brass dragon",
        ),
    ),
    (
        "Temperate",
        "coast",
        "Coast",
        "morning, evening and midnight",
        (
            "gulls and seals (any number)",
            "fisherfolk (10-30)",
            "giant crabs (2-12)",
            "raiders ashore from a longship (20-60)",
            "pirates (20-80)",
            "harpies on the cliffs (2-8)",
            "mermen (10-40)",
            "sahuagin by night (10-40)",
            "a sea hag",
            "a bronze dragon",
        ),
    ),
    (
        "Temperate",
        "river",
        "Rivers And Lakes",
        "noon and night",
        (
            "giant pike (1-4)",
            "otters (2-8)",
            "boatmen with a laden barge",
            "river pirates (10-40)",
            "giant turtles (1-3)",
            "nixies (10-40)",
            "giant beavers (4-16)",
            "a troll under the bridge",
            "a water spirit",
            "a dragon turtle in a large lake",
        ),
    ),
    (
        "Temperate",
        "sea",
        "Open Sea",
        "dawn, noon and midnight",
        (
            "dolphins (2-20)",
            "a merchant ship",
            "sharks (3-12)",
            "whales (1-8)",
            "pirates (one or two ships)",
            "mermen (20-80)",
            "sea lions, the monstrous kind (2-8)",
            "a giant octopus",
            "a sea serpent",
            "a dragon turtle",
        ),
    ),
    (
        "Temperate",
        "faerie",
        "Faerie And Sylvan Settings",
        "every four hours, day and night",
        (
            "brownies (4-16)",
            "pixies (5-20)",
            "sprites (10-60)",
            "elves of the woods (20-80)",
            "satyrs (2-8)",
            "dryads (1-4)",
            "centaurs (4-16)",
            "leprechauns (1-8)",
            "a nymph at her pool",
            "unicorns (1-4)",
        ),
    ),
    (
        "Arctic",
        "plain",
        "Plain (Tundra)",
        "noon and night",
        (
            "reindeer (20-80)",
            "wolves (5-30)",
            "hunters with sledges (10-40)",
            "musk oxen (4-24)",
            "winter wolves (2-8)",
            "mammoths (1-12)",
            "woolly rhinoceroses (1-6)",
            "frost giants (1-4)",
            "a remorhaz",
            "a white dragon on the wing",
        ),
    ),
    (
        "Arctic",
        "forest",
        "Forest (Taiga)",
        "noon and night",
        (
            "elk (2-12)",
            "wolves (5-30)",
            "trappers (5-20)",
            "wolverines (1-3)",
            "cave bears (1-2)",
            "winter wolves (2-8)",
            "giant owls (1-4)",
            "frost giants felling timber (1-4)",
            "an ice troll",
            "a sleeping white dragon",
        ),
    ),
    (
        "Arctic",
        "hills",
        "Hills",
        "noon and night",
        (
            "white hares and foxes",
            "wolves (5-30)",
            "goblins wrapped in furs (10-60)",
            "cave bears (1-2)",
            "ogres (2-8)",
            "mammoths (1-8)",
            "yeti (1-4)",
            "winter wolves (2-8)",
            "frost giants (1-6)",
            "a white dragon",
        ),
    ),
    (
        "Arctic",
        "mountains",
        "Mountains",
        "noon only; storms keep most creatures in",
        (
            "snow leopards (1-2)",
            "eagles (1-4)",
            "yeti (1-6)",
            "dwarves of an ice hold (10-40)",
            "winter wolves (2-8)",
            "ice trolls (1-6)",
            "frost giants in their hall (2-12)",
            "a remorhaz",
            "a silver dragon in the shape of an old man",
            "white dragons (1-3)",
        ),
    ),
    (
        "Arctic",
        "swamp",
        "Swamp (Frozen Fen)",
        "noon and night",
        (
            "geese and ducks in summer",
            "midges, a blinding swarm",
            "wolves (5-20)",
            "muskrats, giant (2-8)",
            "will-o-wisps (1-2)",
            "the drowned dead, walking (4-16)",
            "ice toads (1-6)",
            "a freezing mist that hunts",
            "an ice troll",
            "a white dragon",
        ),
    ),
    (
        "Arctic",
        "desert",
        "Desert (Ice Waste)",
        "once a day, at noon",
        (
            "nothing but wind",
            "ravens (2-8)",
            "explorers half starved (3-18)",
            "polar bears (1-3)",
            "winter wolves (2-8)",
            "ice mephits (2-12)",
            "frost giants (1-4)",
            "a remorhaz",
            "a wraith in the snow",
            "a white dragon in an ice cave",
        ),
    ),
    (
        "Arctic",
        "coast",
        "Coast",
        "dawn and dusk",
        (
            "seals (5-50)",
            "polar bears (1-4)",
            "walruses (4-24)",
            "sealers in skin boats (10-40)",
            "raiders from a longship (20-60)",
            "killer whales (2-8)",
            "selkies (4-16)",
            "frost giants fishing (1-4)",
            "an ice hag",
            "a white dragon over the floes",
        ),
    ),
    (
        "Arctic",
        "sea",
        "Open Sea",
        "dawn and dusk",
        (
            "icebergs, with no creature",
            "whales (1-10)",
            "killer whales (2-12)",
            "seals (10-60)",
            "a whaling ship",
            "giant squid (1)",
            "narwhals (4-16)",
            "a ghost ship locked in ice",
            "a sea serpent",
            "a white dragon",
        ),
    ),
    (
        "Tropical",
        "plain",
        "Plain (Savanna)",
        "morning, evening and midnight",
        (
            "antelopes (20-80)",
            "lions (2-12)",
            "herdsmen with cattle (10-60)",
            "hyenas (4-16)",
            "elephants (3-18)",
            "rhinoceroses (1-6)",
            "gnolls (10-60)",
            "giant ants (4-40)",
            "a lammasu",
            "a brass dragon",
        ),
    ),
    (
        "Tropical",
        "forest",
        "Forest (Jungle)",
        "every four hours, day and night",
        (
            "monkeys (10-60)",
            "poisonous snakes (1-6)",
            "headhunters (20-80)",
            "leopards (1-2)",
            "tigers (1-4)",
            "giant constrictors (1-2)",
            "giant spiders (2-8)",
            "carnivorous apes (2-8)",
            "a couatl",
            "a green dragon",
        ),
    ),
    (
        "Tropical",
        "hills",
        "Hills",
        "noon and night",
        (
            "baboons (10-40)",
            "leopards (1-2)",
            "ogres (2-8)",
            "giant lizards (2-8)",
            "giant wasps (2-12)",
            "bandits (20-80)",
            "hill giants (1-4)",
            "manticores (1-4)",
            "a gorgon",
            "a copper dragon",
        ),
    ),
    (
        "Tropical",
        "mountains",
        "Mountains",
        "morning and night",
        (
            "vultures (4-16)",
            "apes (2-8)",
            "hill folk with slings (10-60)",
            "giant eagles (1-6)",
            "wyverns (1-6)",
            "manticores (1-4)",
            "fire giants near the craters (1-6)",
            "hell hounds (2-8)",
            "salamanders in the lava (1-3)",
            "a red dragon",
        ),
    ),
    (
        "Tropical",
        "swamp",
        "Swamp",
        "every four hours, day and night",
        (
            "crocodiles (3-24)",
            "giant frogs (4-24)",
            "lizard men (10-60)",
            "poisonous snakes (1-8)",
            "hippopotamuses (2-12)",
            "giant mosquitoes (5-20)",
            "a nest of nagas (1-2)",
            "dinosaurs, swamp-dwelling (1-4)",
            "a hydra of eight heads",
            "a black dragon",
        ),
    ),
    (
        "Tropical",
        "desert",
        "Desert",
        "dusk and midnight",
        (
            "camels, wild (2-16)",
            "nomads (20-120)",
            "giant scorpions (1-6)",
            "dervishes (10-60)",
            "vipers (1-8)",
            "giant ant lions (1-2)",
            "androsphinxes (1)",
            "mummies near a tomb (1-6)",
            "an efreeti",
            "a blue dragon under the sand",
        ),
    ),
    (
        "Tropical",
        "coast",
        "Coast",
        "morning, evening and midnight",
        (
            "sea birds and turtles",
            "giant crabs (3-18)",
            "islanders in canoes (10-60)",
            "pirates burying a chest (20-60)",
            "sharks in the lagoon (3-12)",
            "crocodiles, salt water (1-6)",
            "sahuagin (10-60)",
            "sirens on a rock (1-4)",
            "a giant cyclops",
            "a bronze dragon",
        ),
    ),
    (
        "Tropical",
        "sea",
        "Open Sea",
        "dawn, noon and midnight",
        (
            "flying fish and dolphins",
            "sharks (3-18)",
            "a trading ship with spices",
            "pirates (one to three ships)",
            "giant rays (1-4)",
            "mermen (20-100)",
            "tritons (10-40)",
            "a floating mat of living weed",
            "a kraken",
            "a dragon turtle",
        ),
    ),
    (
        "Subterranean",
        "caverns",
        "Caverns",
        "every three turns",
        (
            "bats (20-80)",
            "giant rats (5-50)",
            "cave crickets (2-12)",
            "troglodytes (10-40)",
            "piercers on the roof (2-8)",
            "carrion crawlers (1-6)",
            "goblins (10-60)",
            "a roper among the pillars",
            "hook horrors (1-6)",
            "a beholder",
        ),
    ),
    (
        "Subterranean",
        "mines",
        "Mines And Tunnels",
        "every three turns",
        (
            "giant rats (5-50)",
            "kobolds (20-80)",
            "dwarves reopening a shaft (5-30)",
            "giant beetles (2-8)",
            "rust monsters (1-2)",
            "duergar (4-24)",
            "gray ooze (1-3)",
            "xorn (1-4)",
            "an umber hulk",
            "an earth elemental loose from its binder",
        ),
    ),
    (
        "Subterranean",
        "crypts",
        "Crypts And Tombs",
        "every two turns",
        (
            "skeletons (3-30)",
            "zombies (3-24)",
            "ghouls (2-16)",
            "giant centipedes (2-16)",
            "shadows (2-12)",
            "grave robbers (3-12)",
            "wights (1-8)",
            "a mummy and its servants",
            "spectres (1-4)",
            "a vampire",
        ),
    ),
    (
        "Subterranean",
        "sewers",
        "Sewers",
        "every two turns",
        (
            "giant rats (5-50)",
            "beggars and smugglers (3-18)",
            "wererats (2-12)",
            "giant leeches (2-8)",
            "crocodiles grown pale (1-3)",
            "an otyugh in its heap",
            "green slime (1-4)",
            "thieves moving goods (3-12)",
            "a gelatinous cube",
            "a doppelganger",
        ),
    ),
    (
        "Subterranean",
        "depths",
        "The Depths",
        "every six turns",
        (
            "fungus folk (4-24)",
            "giant lizards, eyeless (2-8)",
            "duergar slavers (10-40)",
            "troglodytes (10-60)",
            "drow patrol (6-24)",
            "trolls (2-12)",
            "mind flayers (1-4)",
            "purple worms (1-2)",
            "a beholder",
            "a black dragon by a sunless lake",
        ),
    ),
)

# d100 shares from the most common to the rarest line, 100 in all.
_ENCOUNTER_SHARES = (20, 16, 14, 12, 10, 9, 7, 5, 4, 3)


# Climates in the order of their pages, as they stand in a sentence.
_CLIMATE_PHRASES = {
    "Temperate": "a temperate",
    "Arctic": "an arctic",
    "Tropical": "a tropical",
    "Subterranean": "no",
}


def _encounter_rule(climate: str, terrain: str) -> Record:
    """What a question must say before this encounter table is worth its place.

    Always the terrain and a word that asks for creatures, so that "can I forage in a forest" is
    left to the travel rules. "The climate, but only if one is mentioned" cannot be written as a
    required group. Temperate land is what a campaign means when it says no more, so the temperate
    tables pass unless another climate is named (the price: a question that names two climates loses
    the temperate one), and the others ask for theirs by name. Underground terrain needs no climate
    at all: a cave says it.
    """
    terrain_words = _TERRAIN[terrain]
    if climate == "Temperate":
        return {
            "contain_one_of": [terrain_words, _MEETING],
            "contain_none_of": [*_ARCTIC, *_TROPICAL, *_UNDERGROUND],
            "match": "word",
        }
    if climate == "Subterranean":
        return {"contain_one_of": [terrain_words, _MEETING], "match": "word"}
    return {
        "contain_one_of": [terrain_words, _CLIMATE[climate], _MEETING],
        "match": "word",
    }


def encounter_tables() -> Iterator[Record]:
    """Random encounter tables by climate and terrain."""
    for climate, terrain, setting, checks, creatures in _ENCOUNTERS:
        lines = "; ".join(
            f"{low:02d}-{high:02d} {creature}"
            for (low, high), creature in zip(
                _percentiles(_ENCOUNTER_SHARES), creatures, strict=True
            )
        )
        underground = climate == "Subterranean"
        where = "underground" if underground else f"in {_CLIMATE_PHRASES[climate]} climate"
        die = "6" if underground else "10"
        yield {
            "id": f"encounters-{climate.lower()}-{terrain}",
            "title": f"{climate} Conditions - {setting}",
            "text": (
                f"Random encounter table for {setting.lower()} {where}. Check at these times: "
                f"{checks}; a 1 on a d{die} means an encounter. Then roll d100: {lines}. Numbers "
                "in parentheses are those met away from the lair."
            ),
            "type": "special",
            "source": "referee-guide.md",
            "page": 182 + list(_CLIMATE_PHRASES).index(climate),
            "refs": ["random-encounter-checks", "encounter-distance"],
            "query_must": _encounter_rule(climate, terrain),
        }


# -- abilities -------------------------------------------------------------------------------------

# Id, title, page, refs, text. Few and distinct: no rule, they always pass.
_ABILITY_TABLES: tuple[tuple[str, str, int, tuple[str, ...], str], ...] = (
    (
        "strength-table-1",
        "STRENGTH TABLE I.: LIMITS AND EXCEPTIONAL SCORES",
        9,
        ("strength", "strength-table-2", "the-fighter"),
        "Strength runs from 3 to 18 at the start of play. Only fighters, paladins and rangers with "
        "a natural 18 roll percentile dice for exceptional strength, written 18/01 to 18/00. "
        "Highest score by race: human 18/00, half-orc 18/99, dwarf 18/99, half-elf 18/90, elf "
        "18/75, gnome 18/50, halfling 17. Least score by class: fighter 9, paladin 12, ranger 13, "
        "monk 15, bard 15, assassin 12; other classes may be as weak as they like. A score raised "
        "by magic above the limit of the race lasts only as long as the magic.",
    ),
    (
        "strength-table-2",
        "STRENGTH TABLE II.: ABILITY ADJUSTMENTS",
        9,
        ("strength", "strength-table-1", "using-the-combat-tables", "encumbrance"),
        "Adjustment to hit, adjustment to damage, extra weight carried in coins, and chance in six "
        "to open a stuck door. Strength 3: -3 hit, -1 damage, -350, 1. Strength 4-5: -2, -1, -250, "
        "1. Strength 6-7: -1, none, -150, 1. Strength 8-11: none, none, none, 2. Strength 12-13: "
        "none, none, +100, 2. Strength 14-15: none, none, +200, 2. Strength 16: +1 hit, +1 damage, "
        "+350, 3. Strength 17: +1 hit, +1 damage, +500, 3. Strength 18: +1 hit, +2 damage, +750, "
        "3. Fighters only: 18/01-75: +2 hit, +3 damage; 18/76-99: +2 hit, +4 damage; 18/00: +3 "
        "hit, +6 damage. Every class uses the columns for melee attacks.",
    ),
    (
        "intelligence-table-1",
        "INTELLIGENCE TABLE I.: LANGUAGES",
        10,
        ("intelligence", "languages"),
        "Number of languages that can be learned beyond the native tongue, the speech of the race "
        "and the tongue of the alignment. Intelligence 3-7: none, and speech is broken. "
        "Intelligence 8-9: 1. Intelligence 10-11: 2. Intelligence 12-13: 3. Intelligence 14-15: 4. "
        "Intelligence 16: 5. Intelligence 17: 6. Intelligence 18: 7. Each new language takes six "
        "months of practice with a speaker, or three with a paid tutor. Below intelligence 9 a "
        "character cannot read or write, and below 6 cannot be taught to.",
    ),
    (
        "intelligence-table-2",
        "INTELLIGENCE TABLE II.: SPELLS OF MAGIC-USERS",
        10,
        ("intelligence", "the-magic-user", "character-classes-magic-user"),
        "For magic-users and illusionists: the chance to understand a given spell, and the least "
        "and greatest number of spells of each spell level that can be known. Intelligence 9: 35 "
        "percent, 4 to 6 spells. Intelligence 10-12: 45 percent, 5 to 7. Intelligence 13-14: 55 "
        "percent, 6 to 9. Intelligence 15-16: 65 percent, 7 to 11. Intelligence 17: 75 percent, 8 "
        "to 14. Intelligence 18: 85 percent, 9 to 18. A failed roll is final until the caster "
        "gains a level. Intelligence 16 or more is needed for spells of the eighth level, 18 for "
        "the ninth.",
    ),
    (
        "wisdom-table-1",
        "WISDOM TABLE I.: MENTAL SAVING THROWS",
        11,
        ("wisdom", "saving-throws"),
        "Adjustment to saving throws against attacks on the mind, such as charm, fear, illusion, "
        "possession and suggestion. Wisdom 3: -3. Wisdom 4: -2. Wisdom 5-7: -1. Wisdom 8-14: none. "
        "Wisdom 15: +1. Wisdom 16: +2. Wisdom 17: +3. Wisdom 18: +4. The adjustment applies to "
        "every class. It does not help against a psionic blast, which has tables of its own, nor "
        "against spells that work on the body, such as slow or polymorph.",
    ),
    (
        "wisdom-table-2",
        "WISDOM TABLE II.: BONUS SPELLS OF CLERICS",
        11,
        ("wisdom", "the-cleric", "character-classes-druid-1"),
        "Extra spells a day for clerics and druids of high wisdom, once they are of a level to "
        "cast spells of that power. Wisdom 13: one first level spell. Wisdom 14: two first level. "
        "Wisdom 15: also one second level. Wisdom 16: also a further second level. Wisdom 17: also "
        "one third level. Wisdom 18: also one fourth level. The bonuses add up from line to line. "
        "A cleric of poor wisdom may see a spell fail: 20 percent at wisdom 9, 15 at 10, 10 at 11, "
        "5 at 12.",
    ),
    (
        "dexterity-table-1",
        "DEXTERITY TABLE I.: REACTION, MISSILES AND DEFENSE",
        12,
        ("dexterity", "armor-class", "missile-fire", "surprise"),
        "Adjustment to surprise and reaction, to hit with missiles, and to armor class. Dexterity "
        "3: -3, -3, armor class worse by 4. Dexterity 4: -2, -2, worse by 3. Dexterity 5: -1, -1, "
        "worse by 2. Dexterity 6: none, none, worse by 1. Dexterity 7-14: no adjustments at all. "
        "Dexterity 15: none, none, better by 1. Dexterity 16: +1, +1, better by 2. Dexterity 17: "
        "+2, +2, better by 3. Dexterity 18: +3, +3, better by 4. The adjustment to armor class is "
        "lost when the defender is surprised, bound, or struck from behind.",
    ),
    (
        "dexterity-table-2",
        "DEXTERITY TABLE II.: ADJUSTMENTS FOR THIEVES",
        12,
        ("dexterity", "the-thief", "thief-function-table"),
        "Percent added to or taken from the skills of thieves, in the order pick pockets, open "
        "locks, find traps, move silently, hide in shadows. Dexterity 9: -15, -10, -10, -20, -10. "
        "Dexterity 10: -10, -5, -10, -15, -5. Dexterity 11: -5, none, -5, -10, none. Dexterity "
        "12-15: no change, save that 12 costs 5 when moving silently. Dexterity 16: none, +5, "
        "none, none, none. Dexterity 17: +5, +10, none, +5, +5. Dexterity 18: +10, +15, +5, +10, "
        "+10. Assassins use the same line for their lesser skills.",
    ),
    (
        "constitution-table-1",
        "CONSTITUTION TABLE I.: HIT POINT ADJUSTMENT",
        13,
        ("constitution", "hit-points", "hit-dice-by-class"),
        "Hit points added to or taken from every hit die rolled, that is, at every level up to the "
        "last die of the class. Constitution 3: -2 per die. Constitution 4-6: -1 per die. "
        "Constitution 7-14: no adjustment. Constitution 15: no adjustment, but the first die is "
        "never less than 3. Constitution 16: +1 hit point per level. Constitution 17: +2 per "
        "level, or +3 for fighters, paladins and rangers. Constitution 18: +2 per level, or +4 for "
        "fighters, paladins and rangers. A die never gives less than 1 hit point.",
    ),
    (
        "constitution-table-2",
        "CONSTITUTION TABLE II.: SHOCK AND RESURRECTION",
        13,
        ("constitution", "death-and-dying"),
        "Chance to survive system shock, as from petrification or a forced change of shape, and "
        "chance to return from the dead. Constitution 3-5: 40 percent shock, 45 percent "
        "resurrection. Constitution 6-8: 55 and 60. Constitution 9-11: 65 and 70. Constitution "
        "12-13: 80 and 84. Constitution 14-15: 89 and 93. Constitution 16: 95 and 96. Constitution "
        "17: 97 and 98. Constitution 18: 99 and 100. Every return from death lowers constitution "
        "by one for good, and nobody returns more often than the score with which play began.",
    ),
    (
        "charisma-table",
        "CHARISMA TABLE: FOLLOWERS AND REACTIONS",
        14,
        ("charisma", "henchmen", "loyalty", "encounter-reactions"),
        "Greatest number of henchmen, adjustment to their loyalty, adjustment to the reaction of "
        "strangers. Charisma 3-4: 1 henchman, -25 percent, -20 percent. Charisma 5-6: 2, -15, -10. "
        "Charisma 7-8: 3, -5, none. Charisma 9-12: 4, none, none. Charisma 13-14: 5, +5, +5. "
        "Charisma 15: 7, +15, +15. Charisma 16: 8, +20, +25. Charisma 17: 10, +30, +30. Charisma "
        "18: 15, +40, +35. The number limits henchmen only; hirelings who serve for coin are "
        "limited by the purse.",
    ),
)


def ability_tables() -> Iterator[Record]:
    """The tables of the six abilities."""
    for identity, title, page, refs, text in _ABILITY_TABLES:
        yield {
            "id": identity,
            "title": title,
            "text": text,
            "type": "special",
            "source": "players-handbook.md",
            "page": page,
            "refs": list(refs),
        }


def all_tables() -> Iterator[Record]:
    """Every generated table, in a fixed order."""
    yield from attack_matrices()
    yield from psionic_tables()
    yield from encounter_tables()
    yield from ability_tables()
