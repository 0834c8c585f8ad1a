"""Shortened titles next to each other keep their differences."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragfilter.text.titles import short_title, telling_titles

MATRIX = "I.{}. ATTACK MATRIX FOR {} AND OTHERS - Opponent Armor Class {}"


def test_a_title_alone_keeps_its_beginning_and_end() -> None:
    for title, width, expected in [
        ("Troll", 10, "Troll"),
        (
            "I.A. ATTACK MATRIX FOR CLERICS, DRUIDS AND MONKS - Opponent Armor Class 6",
            34,
            "I.A. ATTACK MATRIX … Armor Class 6",
        ),
        ("I.A. ATTACK MATRIX FOR CLERICS, DRUIDS AND MONKS - Opponent Armor Class -10", 26, "I.A. ATTACK … Class -10"),
        ("abcdefghijklmnopqrstuvwxyz", 13, "abcde … vwxyz"),
        ("abcdefghij", 5, "abcd…"),
        ("abcdefghij", 1, "…"),
    ]:
        assert short_title(title, width) == expected
        assert telling_titles([title], width) == [expected]


def test_titles_keep_the_words_that_the_others_lack() -> None:
    of_clerics = [MATRIX.format("A", "CLERICS", n) for n in (6, -6, 7)]
    of_thieves = [MATRIX.format("D", "THIEVES", n) for n in (6, -6)]
    assert telling_titles([*of_clerics, *of_thieves, "The Cleric"], 31) == [
        "I.A. … CLERICS … Armor Class 6",
        "I.A. … CLERICS … Armor Class -6",
        "I.A. … CLERICS … Armor Class 7",
        "I.D. … THIEVES … Armor Class 6",
        "I.D. … THIEVES … Armor Class -6",
        "The Cleric",
    ]


def test_titles_that_would_look_the_same_keep_what_tells_them_apart() -> None:
    titles = [
        f"Repairs > Torque values for {part}, {size}" for part in ("stem bolts", "a clamp") for size in ("M5", "M6")
    ]
    assert telling_titles([*titles, "Returns > A helmet"], 22) == [
        "… stem bolts, M5",
        "… stem bolts, M6",
        "Repairs … a clamp, M5",
        "Repairs … a clamp, M6",
        "Returns > A helmet",
    ]


WORDS = st.lists(st.sampled_from(["of", "armor", "Class", "6", "-6", "cleric,"]), max_size=9)


@given(st.lists(WORDS.map(" ".join) | st.text(max_size=80), max_size=9), st.integers(0, 60))
def test_different_titles_stay_different(titles: list[str], width: int) -> None:
    shown = telling_titles(titles, width)
    assert [len(title) <= width for title in shown] == [True] * len(titles)
    plain = [" ".join(title.split()) for title in titles]
    assert all(short == title or "…" in short or width == 0 for short, title in zip(shown, plain, strict=True))
    if width >= 5:
        assert len(set(shown)) == len(set(plain))
