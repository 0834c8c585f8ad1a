"""The palette: marks are distinguishable for every kind of colour vision, and text and marks from their background.

coloraide computes colour vision deficiency (Machado, Oliveira and Fernandes, 2009), differences (CIEDE2000, where about
1 can just be seen), and contrast (WCAG 2.1, 1.4.3: text 4.5, 1.4.11: graphical marks 3).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

import pytest
from coloraide import Color

from ragfilter.layers.registry import LAYERS
from ragfilter.ui.look import theme
from ragfilter.ui.look.theme import Ink

CONFIG = tomllib.loads((Path(__file__).resolve().parents[1] / ".streamlit" / "config.toml").read_text("utf-8"))["theme"]
THEMES = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])

APART = 8.0
"""Minimum difference of any two marks: several times the just visible. Signs differ as well."""
FAR_APART = 12.0
"""Minimum difference between kept marks and others, and between the four kinds of kept marks."""
TEXT_CONTRAST = 4.5
MARK_CONTRAST = 3.0

VISIONS = (None, "protan", "deutan", "tritan")


def contrast(one: str, two: str) -> float:
    """The WCAG contrast, 1 to 21."""
    return Color(one).contrast(two, method="wcag21")


def faint(pairs: Iterable[tuple[str, str, str]], least: float) -> dict[tuple[str, str], float]:
    """The pairs of a colour and its background, by name, with less contrast than `least`."""
    return {
        (name, ground): round(contrast(colour, ground), 2)
        for name, colour, ground in pairs
        if contrast(colour, ground) < least
    }


PINNING = ("entities", "words")
"""Layers that drop nothing."""


def configured(dark: bool) -> dict[str, str]:
    return CONFIG["dark" if dark else "light"]  # type: ignore[no-any-return]


def grounds(dark: bool) -> set[str]:
    """Every background that something is drawn on."""
    main = configured(dark)
    places = (main, configured(dark)["sidebar"])
    names = ("backgroundColor", "secondaryBackgroundColor")
    return {place[name] for place in places for name in names} | {theme.SURFACE[dark]}  # type: ignore[index]


def marks(dark: bool) -> dict[str, str]:
    """Colours of outcomes and layers. A hit of a layer that pins is pinned, and looks the same."""
    of_outcomes = {name: mark.colour(dark=dark) for name, mark in theme.OUTCOMES.items()}
    of_layers = {f"layer {name}": mark.colour(dark=dark) for name, mark in theme.LAYERS.items()}
    for name in PINNING:
        assert of_layers.pop(f"layer {name}") == of_outcomes["pinned"]
    return of_outcomes | of_layers


@THEMES
@pytest.mark.parametrize("vision", VISIONS)
def test_marks_stay_apart(vision: str | None, dark: bool) -> None:
    colours = {name: Color(colour) for name, colour in marks(dark).items()}
    if vision is not None:
        colours = {n: c.filter(vision, method="machado").clip() for n, c in colours.items()}
    close = {}
    for one, two in combinations(colours, 2):
        least = FAR_APART if one == "kept" or {one, two} <= theme.OUTCOMES.keys() else APART
        apart = colours[one].delta_e(colours[two], method="2000")
        if apart < least:
            close[one, two] = round(apart, 1)
    assert close == {}


def test_signs_and_shapes_differ_too() -> None:
    every = {**theme.OUTCOMES, **theme.LAYERS}
    for name in PINNING:
        assert every.pop(name) == theme.Mark(
            *(getattr(every["pinned"], n) for n in ("sign", "symbol", "light", "dark"))
        )
    apart = [*every.values(), *{mark for layer in LAYERS for mark in layer.marks.values()}]
    assert len({mark.sign for mark in apart}) == len(apart)
    assert len({mark.symbol for mark in apart}) == len(apart)


@THEMES
def test_marks_stand_out_from_their_ground(dark: bool) -> None:
    drawn = marks(dark) | {
        "curve": Ink(dark).curve,
        "ticks of steps": theme.MUTED[dark],
        "ticks and thumbs": configured(dark)["primaryColor"],
    }
    pairs = [(name, colour, ground) for name, colour in drawn.items() for ground in grounds(dark)]
    assert faint(pairs, MARK_CONTRAST) == {}


@THEMES
def test_text_stands_out_from_its_ground(dark: bool) -> None:
    main = configured(dark)
    texts = {
        "text": theme.TEXT[dark],
        "muted text": theme.MUTED[dark],
        "what would be lost": theme.LOST[dark],
        "the theme's text": main["textColor"],
        "links": main["linkColor"],
        "grey text": main["grayColor"],
        "headline and citations": theme.OUTCOMES["kept"].colour(dark=dark),
    }
    pairs = [(name, colour, ground) for name, colour in texts.items() for ground in grounds(dark)]
    header = main["dataframeHeaderBackgroundColor"]
    pairs += [
        ("code", main["codeTextColor"], main["codeBackgroundColor"]),
        ("table header", main["dataframeHeaderTextColor"], header),
        ("main button", theme.ON_PRIMARY[dark], main["primaryColor"]),
        *(("chip " + word, theme.TEXT[dark], tint) for word, tint in theme.chips(dark=dark).items()),
    ]
    # The JSON of a rule, in its text area; kept and muted are above.
    for name, mark in (("keys", theme.OUTCOMES["pinned"]), ("numbers", theme.LAYERS["query_must"])):
        pairs.append((name, mark.colour(dark=dark), main["secondaryBackgroundColor"]))
    # A chosen segment or tab is written in the primary colour on a tenth of it.
    for ground in (main["backgroundColor"], theme.SURFACE[dark]):
        chosen = Color(ground).mix(main["primaryColor"], 0.1, space="srgb").to_string(hex=True)
        pairs.append(("chosen segment", main["primaryColor"], chosen))
    assert faint(pairs, TEXT_CONTRAST) == {}


def test_theme_and_configuration_agree() -> None:
    for dark in (False, True):
        main = configured(dark)
        assert main["textColor"] == theme.TEXT[dark]
        assert main["grayColor"] == theme.MUTED[dark]
        assert main["borderColor"] == theme.LINE[dark]
    assert f'fill="{theme.OUTCOMES["kept"].light}"' in theme.ICON
