"""A text without the spans that the prune layer struck. Pure."""

from __future__ import annotations

Span = tuple[int, int]
"""The places in a text from which and up to which something is struck."""
GAP = "…"
"""Stands in the context for what is left out."""


def kept_runs(text: str, struck: tuple[Span, ...]) -> tuple[str, ...]:
    """What is left of a text without its struck spans, which are in order."""
    edges = [0, *(edge for span in struck for edge in span), len(text)]
    runs = (text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True))
    return tuple(run for run in runs if run.strip()) if struck else (text,)


def without(text: str, struck: tuple[Span, ...]) -> str:
    """A text without its struck spans, with a mark in place of each."""
    if not struck:
        return text
    runs = [run if run[-1].isspace() else f"{run} " for run in kept_runs(text, struck)]
    begins = f"{GAP} " if struck[0][0] == 0 else ""
    ends = GAP if struck[-1][1] == len(text) else ""
    return f"{begins}{f'{GAP} '.join(runs)}{ends}".rstrip()
