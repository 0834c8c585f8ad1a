"""Builds the API documentation from the docstrings: `python -m scripts.api_docs FOLDER`.

The library only: what the app and the command line are made of has no callers.
"""

from __future__ import annotations

import sys
from pathlib import Path
from pkgutil import iter_modules

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


if __name__ == "__main__":
    pdoc.pdoc(*modules(), output_directory=Path(sys.argv[1]))
