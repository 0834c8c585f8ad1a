"""The singular and plural of a name, by the regular rules of English. Pure."""

from __future__ import annotations

_F = (
    "calf", "dwarf", "elf", "half", "knife", "leaf", "loaf",
    "scarf", "self", "shelf", "thief", "wharf", "wife", "wolf",
)  # fmt: skip
_VES = {name.removesuffix("e").removesuffix("f") + "ves": name for name in _F}
_PLURALS = {
    **_VES, "taxes": "tax", "axes": "axe", "men": "man",
    "sses": "ss", "xes": "x", "ches": "ch", "shes": "sh",
}  # fmt: skip
_REGULAR = ("human", "german", "roman", "shaman", "talisman")
_NO_PLURAL = ("ss", "us", "is", "specimen", "regimen", "abdomen")


def forms(name: str) -> tuple[str, ...]:
    """A name in singular and plural, with and without a hyphen: clerics, cleric. A name with
    letters that English does not have is left unchanged."""
    if not name.isascii():
        return without_hyphens(name)
    single = singular_of(name)
    return without_hyphens(single, name if name != single else plural_of(name))


def without_hyphens(*names: str) -> tuple[str, ...]:
    """The names, and each of them without its hyphens."""
    return tuple(dict.fromkeys((*names, *(name.replace("-", " ") for name in names))))


def singular_of(name: str) -> str:
    """The regular singular of a name; a name that is not a plural is returned unchanged."""
    if name.endswith(_NO_PLURAL) or len(name) < 3:
        return name
    for plural, single in _PLURALS.items():
        if name.endswith(plural):
            return name.removesuffix(plural) + single
    if name.endswith("ies") and len(name) > 4:
        return name.removesuffix("ies") + "y"
    return name.removesuffix("s")


def plural_of(name: str) -> str:
    """The regular plural of a name."""
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    for plural, single in _PLURALS.items():
        if name.endswith(single) and not name.endswith(_REGULAR):
            return name.removesuffix(single) + plural
    return f"{name}es" if name.endswith("s") else f"{name}s"
