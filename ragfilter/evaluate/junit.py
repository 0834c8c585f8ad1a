"""Checks as JUnit XML, which CI systems read. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, tostring

from ragfilter.text.normalise import whole

# Characters that XML does not allow, even escaped.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Case:
    """One check: its name, and why it failed (empty if it passed)."""

    name: str
    failure: str = ""


def junit(suite: str, cases: Sequence[Case]) -> str:
    """The report of one suite."""
    failed = sum(bool(case.failure) for case in cases)
    root = Element(
        "testsuite",
        name=_text(suite),
        tests=str(len(cases)),
        failures=str(failed),
    )
    for case in cases:
        made = SubElement(root, "testcase", classname="ragfilter.gate", name=_text(case.name))
        if case.failure:
            message = case.failure.partition("\n")[0]
            failure = SubElement(made, "failure", message=_text(message))
            failure.text = _text(case.failure)
    body: str = tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'


def _text(words: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", whole(words))
