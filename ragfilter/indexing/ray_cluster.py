"""Embeds on a Ray cluster, for sources that one machine would take days for.

Source: docs/deployment.md#bulk. The cluster's machines need ragfilter and the model; only texts and
vectors travel. What is embedded is saved part by part, so an indexing that is interrupted goes on.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache

import numpy as np

from ragfilter.basics.extras import extra
from ragfilter.errors import InputError, ModelError
from ragfilter.models.embedder import OPENAI
from ragfilter.protocols import Embedder, Vectors
from ragfilter.workbench import make_embedder, read_deployment

LOCAL = "local"
BATCH = 64
"""Texts of one task: what a lost worker costs."""
WAIT_S = 10.0
"""How long a cluster may take to answer."""


class RayEmbedder:
    """Unit vectors from the model `name`, which every worker of the cluster loads. `address` is
    Ray's, or "local" for a cluster of this machine's cores.

    Raises InputError if there is no such cluster, and DependencyError without Ray.
    """

    at_once = 64 * BATCH
    """Texts embedded before they are saved: enough to keep many workers busy."""

    def __init__(self, name: str, address: str) -> None:
        # It would report its use over the network.
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        with extra("ray"):
            import ray
        if name.startswith(OPENAI):
            raise InputError(
                f"{name} is embedded by its endpoint, not by Ray.", remedy="Leave out --ray."
            )
        if not ray.is_initialized():
            try:
                # Ray itself tries for minutes.
                host, colon, port = address.removeprefix("ray://").partition(":")
                if colon:
                    socket.create_connection((host, int(port)), WAIT_S).close()
                ray.init(
                    address if address != LOCAL else None,
                    log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False,
                )  # fmt: skip
            except (OSError, ValueError, RuntimeError) as error:
                raise InputError(
                    f"There is no Ray cluster at {address}: {error}",
                    remedy=f'Start one with `ray start --head`, or give "{LOCAL}".',
                ) from error
        self.name = name
        # Ray repeats a task whose worker ended, up to three times.
        self._embed = ray.remote(_embed)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors (float32), shape (len(texts), dimension). Raises ModelError."""
        import ray

        parts = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        try:
            return np.concatenate(ray.get([self._embed.remote(self.name, part) for part in parts]))
        except ray.exceptions.RayError as error:
            raise ModelError(
                f"Ray did not embed the texts: {error}",
                remedy="Run the same command again to continue from there.",
            ) from error


def _embed(model: str, texts: Sequence[str]) -> Vectors:
    return _loaded(model).embed(texts)


@cache
def _loaded(model: str) -> Embedder:
    return make_embedder(model, read_deployment(), ExitStack())
