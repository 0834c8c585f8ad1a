"""The source documents' own questions, and what they expect of the filter.

Figures: Filtering, "Success Criteria"; the target figures are those of the README.
"""

from __future__ import annotations

from collections.abc import Collection

from ragfilter.ingest import bundled

STRENGTH = ("cleric-ac6-strength", "cleric-ac6-strength-short")
CLERIC = ("cleric-ac6", *STRENGTH)
FIGHTERS = ("fighter-fighter", "fighter-fighter-short")
DRUID = ("fighter-druid", "fighter-druid-short")
SEEDS = (*CLERIC, *FIGHTERS, *DRUID)
"""The three questions, in every wording that the source uses."""
CLERICS_AC_6 = "attack-matrix-clerics-ac-6"
FIGHTERS_AC_3, FIGHTERS_AC_9 = "attack-matrix-fighters-ac-3", "attack-matrix-fighters-ac-9"
CLERICS_AC_3, CLERICS_AC_9 = "attack-matrix-clerics-ac-3", "attack-matrix-clerics-ac-9"
TABLE = "strength-table-2"
# Each attacker's matrix for the other's armor class. The source names the druid's for AC 9 and the
# fighter's for AC 3 in one place, the other two in another: all four stay.
EXPECTED = {
    "cleric-ac6": {CLERICS_AC_6},
    "cleric-ac6-strength": {CLERICS_AC_6, TABLE},
    "cleric-ac6-strength-short": {CLERICS_AC_6, TABLE},
    "fighter-fighter": {FIGHTERS_AC_3, FIGHTERS_AC_9, TABLE},
    "fighter-fighter-short": {FIGHTERS_AC_3, FIGHTERS_AC_9, TABLE},
    "fighter-druid": {FIGHTERS_AC_3, FIGHTERS_AC_9, CLERICS_AC_3, CLERICS_AC_9, TABLE},
    "fighter-druid-short": {FIGHTERS_AC_3, FIGHTERS_AC_9, CLERICS_AC_3, CLERICS_AC_9, TABLE},
}
# The rows of these tables that answer, by hand from tables.jsonl.
_CLERIC_ROWS = {(CLERICS_AC_6, "Level 7-9: 10")}
_STRENGTH_17 = {(TABLE, "Strength 17: +1 hit, +1 damage, +500, 3.")}
_STRENGTH_16 = {(TABLE, "Strength 16: +1 hit, +1 damage, +350, 3.")}
_FIGHTER_4 = {(FIGHTERS_AC_3, "Level 3-4: 15"), (FIGHTERS_AC_9, "Level 3-4: 9")}
_FIGHTER_7 = {(FIGHTERS_AC_3, "Level 7-8: 11"), (FIGHTERS_AC_9, "Level 7-8: 5")}
_DRUID_7 = {(CLERICS_AC_3, "Level 7-9: 13"), (CLERICS_AC_9, "Level 7-9: 7")}
ROWS = {
    "cleric-ac6": _CLERIC_ROWS,
    "cleric-ac6-strength": _CLERIC_ROWS | _STRENGTH_17,
    "cleric-ac6-strength-short": _CLERIC_ROWS | _STRENGTH_17,
    "fighter-fighter": _FIGHTER_4 | _FIGHTER_7 | _STRENGTH_16,
    "fighter-fighter-short": _FIGHTER_4 | _FIGHTER_7,
    "fighter-druid": _FIGHTER_4 | _DRUID_7 | _STRENGTH_16,
    "fighter-druid-short": _FIGHTER_4 | _DRUID_7,
}
LEAST = {**dict.fromkeys(CLERIC, 0.87), **dict.fromkeys(FIGHTERS, 0.47), **dict.fromkeys(DRUID, 0.40)}
MOST = {**dict.fromkeys(CLERIC, 3), **dict.fromkeys(FIGHTERS, 10), **dict.fromkeys(DRUID, 12)}
"""Chunks kept, Filtering, "Success Criteria"."""
FEWEST = {**dict.fromkeys(CLERIC, 2), **dict.fromkeys(FIGHTERS, 8), **dict.fromkeys(DRUID, 10)}
"""Likewise: 2–3, 8–10 and 10–12 chunks are expected."""
RECALL = dict(zip(SEEDS, (1, 3 / 4, 3 / 4, 7 / 17, 7 / 11, 8 / 19, 8 / 13), strict=True))
"""What `full` reaches today, as a lower bound."""


def noise_reduction(name: str, kept: Collection[str], unfiltered: Collection[str]) -> float:
    """1 − irrelevant chunks kept / irrelevant chunks of the plain search."""
    relevant = {i for i, label in bundled.qrels("demo")[name].items() if label > 0}
    return 1 - len(set(kept) - relevant) / len(set(unfiltered) - relevant)
