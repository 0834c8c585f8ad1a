"""Logs of a command on standard error, as text or as JSON lines."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

Form = Literal["text", "json"]


class JsonLines(logging.Formatter):
    """One JSON object per line. The record's `fields` appear under their own names."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def start_logging(verbose: int, form: Form | None = None) -> None:
    """Log warnings, and more with `verbose`; with a `form`, at least one line per query."""
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(max(verbose, bool(form)), 2)]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonLines() if form == "json" else logging.Formatter("%(levelname)s %(message)s")
    )
    handler.addFilter(_once())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    # Only our own logger: the libraries are noisy, and what they log seldom helps.
    logging.getLogger("ragfilter").setLevel(level)


def _once() -> Callable[[logging.LogRecord], bool]:
    """A filter that lets a warning through once, because one about a collection would repeat for
    each query."""
    seen: set[str] = set()

    def fresh(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if record.levelno != logging.WARNING:
            return True
        if text in seen:
            return False
        seen.add(text)
        return True

    return fresh
