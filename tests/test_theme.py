"""The palette: marks are distinguishable for every kind of colour vision, and text and marks from
their background.

Sources: colour vision deficiency at full severity by Machado, Oliveira and Fernandes (2009);
differences of colour as CIEDE2000 (Sharma, Wu and Dalal, 2005), where about 1 can just be seen;
contrast as WCAG 2.1 defines it (1.4.3: text 4.5, 1.4.11: graphical marks 3).
"""

from __future__ import annotations

import tomllib
from itertools import combinations
from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from ragfilter.ui.look import theme
from ragfilter.ui.look.plotting import Ink

CONFIG = tomllib.loads(
    (Path(__file__).resolve().parents[1] / ".streamlit" / "config.toml").read_text("utf-8")
)["theme"]
THEMES = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])

APART = 8.0
"""Least difference of any two marks: several times what can just be seen. Signs differ besides."""
FAR_APART = 12.0
"""Of what stays from everything, and of the four ways to stay from each other."""
TEXT_CONTRAST = 4.5
MARK_CONTRAST = 3.0

Colour = npt.NDArray[np.float64]

# Simulation matrices, from linear sRGB to linear sRGB.
VISIONS: dict[str, Colour] = {
    "normal": np.eye(3),
    "protanopia": np.array([
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ]),
    "deuteranopia": np.array([
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ]),
    "tritanopia": np.array([
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ]),
}  # fmt: skip
TO_XYZ = np.array([
    [0.4124564, 0.3575761, 0.1804375],
    [0.2126729, 0.7151522, 0.0721750],
    [0.0193339, 0.1191920, 0.9503041],
])  # fmt: skip
D65 = np.array([0.95047, 1.0, 1.08883])


def linear(colour: str) -> Colour:
    """``#rrggbb`` as linear sRGB, each component 0..1."""
    raw = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(raw <= 0.04045, raw / 12.92, ((raw + 0.055) / 1.055) ** 2.4)


def lab(light: Colour) -> tuple[float, float, float]:
    """Linear sRGB as CIE L*a*b* under D65."""
    xyz = TO_XYZ @ np.clip(light, 0, 1) / D65
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return float(116 * y - 16), float(500 * (x - y)), float(200 * (y - z))


def difference(one: tuple[float, float, float], two: tuple[float, float, float]) -> float:
    """The CIEDE2000 difference."""
    (l1, a1, b1), (l2, a2, b2) = one, two
    mean = (hypot(a1, b1) + hypot(a2, b2)) / 2
    g = 0.5 * (1 - sqrt(mean**7 / (mean**7 + 25**7)))
    c1, c2 = hypot(a1 * (1 + g), b1), hypot(a2 * (1 + g), b2)
    h1 = degrees(atan2(b1, a1 * (1 + g))) % 360
    h2 = degrees(atan2(b2, a2 * (1 + g))) % 360
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    hue = 2 * sqrt(c1 * c2) * sin(radians(turn / 2))
    l, c = (l1 + l2) / 2, (c1 + c2) / 2  # noqa: E741
    h = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    t = (
        1 - 0.17 * cos(radians(h - 30)) + 0.24 * cos(radians(2 * h))
        + 0.32 * cos(radians(3 * h + 6)) - 0.20 * cos(radians(4 * h - 63))
    )  # fmt: skip
    rotation = -2 * sqrt(c**7 / (c**7 + 25**7)) * sin(radians(60 * exp(-(((h - 275) / 25) ** 2))))
    of_l = (l2 - l1) / (1 + 0.015 * (l - 50) ** 2 / sqrt(20 + (l - 50) ** 2))
    of_c, of_h = (c2 - c1) / (1 + 0.045 * c), hue / (1 + 0.015 * c * t)
    return sqrt(of_l**2 + of_c**2 + of_h**2 + rotation * of_c * of_h)


def contrast(one: str, two: str) -> float:
    """The WCAG contrast, 1 to 21."""
    low, high = sorted(float(TO_XYZ[1] @ linear(colour)) for colour in (one, two))
    return (high + 0.05) / (low + 0.05)


PINNING = ("entities", "words")
"""Layers that drop nothing."""


def mixed(colour: str, ground: str, share: float) -> str:
    """`share` of a colour blended with a background."""
    pairs = ((int(colour[i : i + 2], 16), int(ground[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in pairs)


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


PAIRS = [  # from the paper's table of test data
    ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
    ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
    ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
    ((22.7233, 20.0904, -46.6940), (23.0331, 14.9730, -42.5619), 2.0373),
    ((90.8027, -2.0831, 1.4410), (91.1528, -1.6435, 0.0447), 1.4441),
]


@pytest.mark.parametrize(("one", "two", "expected"), PAIRS)
def test_the_measure_of_difference_is_the_published_one(
    one: tuple[float, float, float], two: tuple[float, float, float], expected: float
) -> None:
    assert difference(one, two) == pytest.approx(expected, abs=1e-4)


def test_the_measure_of_contrast_is_the_published_one() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@THEMES
@pytest.mark.parametrize("vision", VISIONS)
def test_marks_stay_apart(vision: str, dark: bool) -> None:
    seen = {name: lab(VISIONS[vision] @ linear(c)) for name, c in marks(dark).items()}
    close = {}
    for one, two in combinations(seen, 2):
        least = FAR_APART if one == "kept" or {one, two} <= theme.OUTCOMES.keys() else APART
        apart = difference(seen[one], seen[two])
        if apart < least:
            close[one, two] = round(apart, 1)
    assert close == {}


def test_signs_and_shapes_differ_too() -> None:
    every = {**theme.OUTCOMES, **theme.LAYERS}
    for name in PINNING:
        assert every.pop(name) == theme.Mark(
            *(getattr(every["pinned"], n) for n in ("sign", "symbol", "light", "dark"))
        )
    assert len({mark.sign for mark in every.values()}) == len(every)
    assert len({mark.symbol for mark in every.values()}) == len(every)


@THEMES
def test_marks_stand_out_from_their_ground(dark: bool) -> None:
    drawn = marks(dark) | {"curve": Ink.of(dark).curve, "ticks of steps": theme.MUTED[dark]}
    faint = {
        (name, ground): round(contrast(colour, ground), 2)
        for name, colour in drawn.items()
        for ground in grounds(dark)
        if contrast(colour, ground) < MARK_CONTRAST
    }
    assert faint == {}


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
        *(
            ("chip " + word, theme.TEXT[dark], tint)
            for word, tint in theme.chips(dark=dark).items()
        ),
    ]
    # The JSON of a rule, in its text area; kept and muted are above.
    for name, mark in (
        ("keys", theme.OUTCOMES["pinned"]),
        ("numbers", theme.LAYERS["query_must"]),
    ):
        pairs.append((name, mark.colour(dark=dark), main["secondaryBackgroundColor"]))
    # A chosen segment or tab is written in the primary colour on a tenth of it.
    for ground in (main["backgroundColor"], theme.SURFACE[dark]):
        chosen = mixed(main["primaryColor"], ground, 0.1)
        pairs.append(("chosen segment", main["primaryColor"], chosen))
    faint = {
        (name, ground): round(contrast(colour, ground), 2)
        for name, colour, ground in pairs
        if contrast(colour, ground) < TEXT_CONTRAST
    }
    assert faint == {}


@THEMES
def test_ticks_and_thumbs_stand_out_on_the_primary_colour(dark: bool) -> None:
    primary = configured(dark)["primaryColor"]
    assert contrast("#ffffff", primary) >= MARK_CONTRAST
    assert min(contrast(primary, ground) for ground in grounds(dark)) >= MARK_CONTRAST


def test_theme_and_configuration_agree() -> None:
    for dark in (False, True):
        main = configured(dark)
        assert main["textColor"] == theme.TEXT[dark]
        assert main["grayColor"] == theme.MUTED[dark]
        assert main["borderColor"] == theme.LINE[dark]
    assert f'fill="{theme.OUTCOMES["kept"].light}"' in theme.ICON
