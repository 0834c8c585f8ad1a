"""What the page says about the answering model next to its name."""

from __future__ import annotations

DEMONSTRATION = "smollm2-135m"
"""The model that `make local-llm` serves."""
TINY = "a tiny demonstration model, often wrong"


def is_tiny(model: str) -> bool:
    """Whether `model` is the one that `make local-llm` serves."""
    return DEMONSTRATION in model.casefold()


def called(model: str) -> str:
    """The model's name and, if it is the demonstration model, a warning."""
    return f"{model}, {TINY}" if is_tiny(model) else model
