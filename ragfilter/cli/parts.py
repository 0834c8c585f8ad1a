"""Names that moved, until their callers have followed."""

from __future__ import annotations

from ragfilter.cli.access import answer_of, ask, backends, open_for, tell_learned_elsewhere
from ragfilter.cli.options import load_config, parse_set, refuse_beside, refuse_without
from ragfilter.cli.output import at_the_end, emit, fail, progress, tell

__all__ = [
    "answer_of",
    "ask",
    "at_the_end",
    "backends",
    "emit",
    "fail",
    "load_config",
    "open_for",
    "parse_set",
    "progress",
    "refuse_beside",
    "refuse_without",
    "tell",
    "tell_learned_elsewhere",
]
