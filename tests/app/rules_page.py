"""The Rules page under AppTest, read as a curator reads it."""

from __future__ import annotations

import re
from time import monotonic, sleep
from typing import Any

from waiting import PATIENT_S

from ragfilter.ui import resources

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
MATRIX = "attack-matrix-clerics-ac-6"


def rules_frame(page: Any) -> Any:
    """The table of the chunks."""
    (frame,) = [f.value for f in page.at.dataframe if "state" in f.value]
    return frame


def open_chunk(page: Any, chunk_id: str) -> Any:
    page.session.rules.chunk = chunk_id
    return page.run()


def write(page: Any, text: str) -> Any:
    page.at.text_area(key="rule-editor").set_value(text)
    return page.run()


def told(page: Any) -> str:
    return "\n".join(page.html)


def wait_until_told(page: Any, words: str) -> None:
    """Run the page again until it has these words, since questions are gathered in the background."""
    until = monotonic() + PATIENT_S
    while words not in told(page):
        assert monotonic() < until, told(page)
        sleep(0.05)
        page.run()


def stored(chunk_id: str) -> str | None:
    rule: str | None = resources.open_resources().bench.collection("demo").rule(chunk_id)
    return rule


def choose_part(page: Any, part: str) -> Any:
    return page.choose("rules-part", part)


def select(page: Any, name: str, chunk_id: str) -> Any:
    """Click the row of a chunk in the table called `name`."""
    key = next(k for k in page.at.session_state if re.fullmatch(rf"{name}-\d+", k))
    frame = next(f.value for f in page.at.dataframe if key in f.proto.id)
    row = list(frame["id"]).index(chunk_id)
    page.at.session_state[key] = {"selection": {"rows": [row], "columns": [], "cells": []}}
    return page.run()


def confirmed(page: Any, button: str, sure: str) -> Any:
    """Press a button, after ticking the box `sure` if there is one."""
    if sure in {box.key for box in page.at.checkbox}:
        page.at.checkbox(key=sure).check()
        page.run()
    return page.press(button)


def save_bulk(page: Any) -> Any:
    return confirmed(page, "bulk-save", "bulk-sure")


def turn_latest(page: Any, turn: str) -> Any:
    """Undo or redo the latest change under History."""
    choose_part(page, "History")
    (frame,) = [f.value for f in page.at.dataframe if "who" in f.value]
    page.session.rules.step = int(frame["edit"][0])
    return confirmed(page.run(), f"history-{turn}", f"history-{turn}-sure")
