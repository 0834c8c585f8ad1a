"""Loads sentence-transformers models: embedding models and cross-encoders.

Source: docs/design.md#parts. No network is used at run time, unless the user asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ragfilter.errors import DependencyError, ModelError


def quiet_loading() -> None:
    """Keep loading bars off standard error, telemetry off the network, and torch off more cores
    than there are or others need. Call it before sentence-transformers is imported."""
    # The hub's client reports at its first use, even if it only looks for files.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    # Torch's threads wait for each other many times a text. By default they spin meanwhile, and
    # where something else needs a core, such as the browser that waits for the answer, embedding
    # a question takes ten times as long. OpenMP reads this once, while torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    cores = os.cpu_count() or 1
    if torch.get_num_threads() > cores:
        torch.set_num_threads(cores)


@contextmanager
def explain_failures(
    kind: str, name: str, *, offline: bool, owner: str, instead: str
) -> Iterator[None]:
    """Raises ModelError where the `kind` of model called `name` cannot be loaded.

    Names without an owner are those of `owner`, and `instead` needs no fetching.
    """
    try:
        yield
    except (DependencyError, ModelError):
        raise
    except Exception as error:
        from huggingface_hub.errors import LocalEntryNotFoundError

        if offline and isinstance(error.__cause__, LocalEntryNotFoundError):
            full = name if "/" in name else f"{owner}/{name}"
            raise ModelError(
                f"The {kind} {name} is not installed on this machine.",
                remedy=f"Fetch it once with `hf download {full}`, let ragfilter fetch it with "
                f"RAGFILTER_FETCH_MODELS=true, or choose {instead}.",
            ) from error
        raise ModelError(
            f"The {kind} {name} cannot be loaded: {first_line(error)}.",
            remedy=f"Use the name or folder of a {owner} model, or choose {instead}.",
        ) from error


def first_line(error: BaseException) -> str:
    """The first line of an error's text, without a full stop at its end."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300].rstrip(".")
