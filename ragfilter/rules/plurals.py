"""A name in singular and plural, by the regular rules of English. Pure."""

from __future__ import annotations

import re

_VES = re.compile(r"(?<=[lr])f$|(?<=[eo]a)f$|(?<=thie)f$|(?<=i)fe$")
"""Wolf, dwarf, leaf, thief and knife."""
_PLURALS = (("ves", "f"), ("ies", "y"), ("men", "man"), ("s", ""))


def forms(name: str) -> tuple[str, ...]:
    """A name in singular and plural, with and without a hyphen: clerics, cleric. One with letters
    that English has not is left as it is."""
    if not name.isascii():
        return without_hyphens(name)
    single = name
    for plural, singular in _PLURALS:
        if name.endswith(plural) and len(name) - len(plural) >= 2:
            single = name[: -len(plural)] + singular
            break
    return without_hyphens(single, name if name != single else plural_of(name))


def without_hyphens(*names: str) -> tuple[str, ...]:
    """The names, and each without its hyphens."""
    return tuple(dict.fromkeys((*names, *(name.replace("-", " ") for name in names))))


def plural_of(name: str) -> str:
    """The regular plural of a name."""
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    if name.endswith("man"):
        return f"{name[:-3]}men"
    if _VES.search(name):
        return _VES.sub("ves", name)
    return f"{name}es" if name.endswith(("s", "x", "ch", "sh")) else f"{name}s"
