"""Builds the API documentation from the docstrings: `python -m scripts.api_docs FOLDER`.

The library only: what the app and the command line are made of has no callers. A warning of pdoc is an error.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import get_type_hints

import pdoc

import ragfilter

LEFT_OUT = ("ragfilter.ui", "ragfilter.cli", "ragfilter.__main__")


def modules() -> list[str]:
    """What to document: `ragfilter` and each of its packages, in which pdoc finds the modules. The
    names of `ragfilter` itself are resolved: pdoc does not look at what is made on demand."""
    for name in ragfilter.__all__:
        setattr(ragfilter, name, getattr(ragfilter, name))
    found = (module.name for module in iter_modules(ragfilter.__path__, "ragfilter."))
    return ["ragfilter", *(name for name in found if name not in LEFT_OUT)]


def resolve_named_tuples(module: str) -> None:
    """Resolve the annotations of a module's named tuples, which pdoc would look up elsewhere."""
    for value in vars(import_module(module)).values():
        if isinstance(value, type) and issubclass(value, tuple) and value.__module__ == module:
            value.__new__.__annotations__ = get_type_hints(value)


if __name__ == "__main__":
    warnings.simplefilter("error", UserWarning)
    names = modules()
    for module in pdoc.extract.walk_specs(names):
        resolve_named_tuples(module)
    pdoc.pdoc(*names, output_directory=Path(sys.argv[1]))
