"""Formats numbers and shortened lists for people, on the page and on the command line."""

from __future__ import annotations

from collections.abc import Sequence


def distance(value: float | None) -> str:
    """Format a distance, similarity, gap or score with three decimals; a dash for None."""
    return "–" if value is None else f"{value:.3f}"


def apart(left: float, sign: str, right: float) -> str:
    """``0.3498 < 0.3500``: with at least three decimals, and enough that the two differ."""
    for decimals in range(3, 10):
        pair = f"{left:.{decimals}f}", f"{right:.{decimals}f}"
        if pair[0] != pair[1]:
            break
    return f" {sign} ".join(pair)


def ms(value: float) -> str:
    """Milliseconds with one decimal; from one second on, seconds."""
    return f"{value / 1000:,.1f} s" if value >= 1000 else f"{value:.1f} ms"


def count(value: int) -> str:
    """A whole number with thousands separators."""
    return f"{value:,}"


def counted(value: int, what: str) -> str:
    """``1 rule``, ``3 rules``, ``2 queries``."""
    if value != 1:
        what = f"{what[:-1]}ies" if what.endswith("ry") else f"{what}s"
    return f"{value:,} {what}"


def first_warnings(warnings: Sequence[str], most: int = 5) -> tuple[str, ...]:
    """The first few warnings, and the number of further ones."""
    rest = len(warnings) - most
    more = (f"… and {counted(rest, 'more such warning')}.",) if rest > 0 else ()
    return (*warnings[:most], *more)


def first_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """``a, b and 3 more``: at most `most` of the names, and the number of the others."""
    rest = len(names) - most
    return between.join(names[:most]) + (f" and {count(rest)} more" if rest > 0 else "")


def chunk_count(value: int) -> str:
    """``1 chunk``, ``3 chunks``."""
    return counted(value, "chunk")


def token_count(value: int) -> str:
    """``412 tokens``."""
    return counted(value, "token")


def exchanged(sent: int, back: int, *, estimated: bool = False) -> str:
    """The tokens of a prompt and its answer: ``about 5,000 + 700 tokens``."""
    return f"{'about ' if estimated else ''}{sent:,} + {token_count(back)}"


def limit(ms: int) -> str:
    """A time limit: ``5 s``, ``0.5 s``."""
    return f"{ms / 1000:g} s"


def money(value: float, currency: str = "") -> str:
    """A price with four decimals: ``0.0040 EUR``, ``$0.0040`` or ``0.0040``; ``under 0.0001`` if it is smaller."""
    under, amount = ("under ", "0.0001") if 0 < value < 0.0001 else ("", f"{value:.4f}")
    if any(character.isalpha() for character in currency):
        return f"{under}{amount} {currency}"
    return f"{under}{currency}{amount}"


def signed(value: float, digits: int = 3) -> str:
    """``+0.120``, ``−0.031``; a value that rounds to 0 has no minus."""
    return f"{value:+z,.{digits}f}".replace("-", "−")


def p_value(value: float) -> str:
    """``p 0.034``; a p value is never 0."""
    return "p < 0.001" if value < 0.001 else f"p {value:.3f}"


def time_left(seconds: float | None) -> str:
    """``about 40 s left``, ``about 3 min left``; empty if it is not known."""
    if seconds is None:
        return ""
    if seconds < 60:
        return f"about {max(round(seconds), 1)} s left"
    if seconds < 5400:
        return f"about {round(seconds / 60)} min left"
    return f"about {seconds / 3600:.1f} h left"
