"""ragfilter: see, tune and explain what is filtered out between a vector search and a prompt.

import ragfilter as rf

flt = rf.Filter("full")
result = flt(query, docs, scores, metric="cosine", user=rf.User(level=1))
for hit in result:
    print(hit.chunk.text)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragfilter.errors import RagfilterError
    from ragfilter.evaluate.evaluation import measure, recalibrate, tune
    from ragfilter.evaluate.query_files import read_labels
    from ragfilter.evaluate.recalibrate import carry_over
    from ragfilter.library.filter import Filter, cut
    from ragfilter.library.result import Result
    from ragfilter.library.tracing import trace
    from ragfilter.library.workspace import open_workspace
    from ragfilter.model import Chunk, Cut, Hit, User
    from ragfilter.settings.schema import Settings

__version__ = "0.1.0"
__all__ = [
    "Chunk",
    "Cut",
    "Filter",
    "Hit",
    "RagfilterError",
    "Result",
    "Settings",
    "User",
    "carry_over",
    "cut",
    "measure",
    "open_workspace",
    "read_labels",
    "recalibrate",
    "trace",
    "tune",
]

_PLACES = {
    "Chunk": "model.Chunk",
    "Cut": "model.Cut",
    "Filter": "library.filter.Filter",
    "Hit": "model.Hit",
    "RagfilterError": "errors.RagfilterError",
    "Result": "library.result.Result",
    "Settings": "settings.schema.Settings",
    "User": "model.User",
    "carry_over": "evaluate.recalibrate.carry_over",
    "cut": "library.filter.cut",
    "measure": "evaluate.evaluation.measure",
    "open_workspace": "library.workspace.open_workspace",
    "read_labels": "evaluate.query_files.read_labels",
    "recalibrate": "evaluate.evaluation.recalibrate",
    "trace": "library.tracing.trace",
    "tune": "evaluate.evaluation.tune",
}
"""Where each name is, so that importing the package loads nothing."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _PLACES[name].rpartition(".")
    return getattr(import_module(f"{__name__}.{module}"), attribute)


def __dir__() -> list[str]:
    return __all__
