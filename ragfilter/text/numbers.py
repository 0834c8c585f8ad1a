"""Formats numbers for people, on the page and on the command line. Pure."""

from __future__ import annotations


def distance(value: float | None) -> str:
    """Three decimals; a dash where there is none. Also for similarities, gaps and scores."""
    return "–" if value is None else f"{value:.3f}"


def apart(left: float, sign: str, right: float) -> str:
    """``0.3498 < 0.3500``: with as many decimals, three at least, as make the two differ."""
    for decimals in range(3, 10):
        pair = f"{left:.{decimals}f}", f"{right:.{decimals}f}"
        if pair[0] != pair[1]:
            break
    return f" {sign} ".join(pair)


def ms(value: float) -> str:
    """Milliseconds with one digit; seconds from one second on."""
    return f"{value / 1000:,.1f} s" if value >= 1000 else f"{value:.1f} ms"


def count(value: int) -> str:
    """A whole number with thousands separators."""
    return f"{value:,}"


def counted(value: int, what: str) -> str:
    """``1 rule``, ``3 rules``, ``2 queries``."""
    if value != 1:
        what = f"{what[:-1]}ies" if what.endswith("ry") else f"{what}s"
    return f"{value:,} {what}"


def chunks(value: int) -> str:
    """``1 chunk``, ``3 chunks``."""
    return counted(value, "chunk")


def tokens(value: int) -> str:
    """``412 tokens``."""
    return counted(value, "token")


def exchanged(sent: int, back: int, *, estimated: bool = False) -> str:
    """The tokens of a prompt and its answer: ``about 5,000 + 700 tokens``."""
    return f"{'about ' if estimated else ''}{sent:,} + {tokens(back)}"


def seconds(value: float) -> str:
    """A time to wait in words: ``about 0.2 s``."""
    return "under 0.1 s" if value < 0.1 else f"about {value:.1f} s"


def limit(ms: int) -> str:
    """A time limit: ``5 s``, ``0.5 s``."""
    return f"{ms / 1000:g} s"


def money(value: float, currency: str = "") -> str:
    """A price, four decimals; one that those cannot show is not called 0. ``0.0040 EUR``,
    ``$0.0040``, and without a currency ``0.0040``."""
    under, amount = ("under ", "0.0001") if 0 < value < 0.0001 else ("", f"{value:.4f}")
    if any(character.isalpha() for character in currency):
        return f"{under}{amount} {currency}"
    return f"{under}{currency}{amount}"


def signed(value: float, digits: int = 3) -> str:
    """``+0.120``, ``−0.031``; what rounds to 0 has no minus."""
    return f"{value:+z,.{digits}f}".replace("-", "−")


def p_value(value: float) -> str:
    """``p 0.034``; a p value is never 0."""
    return "p < 0.001" if value < 0.001 else f"p {value:.3f}"
