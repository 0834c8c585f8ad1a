"""Parses an OpenAPI file, or says in one line why it cannot. Source: docs/design.md#formats."""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath
from typing import Any

from ragfilter.basics.files import read_text
from ragfilter.errors import InputError
from ragfilter.ingest.markdown import front_matter
from ragfilter.ingest.yaml import parse_yaml
from ragfilter.protocols import Progress
from ragfilter.text.characters import loads

SUFFIXES = (".json", ".yaml", ".yml")
TEXTS = (".md", ".markdown")
# A file that says it is a description, but cannot be parsed, is an error and not another file.
_SAYS_OPENAPI = re.compile(r"""(?:^|[{,])\s*["']?(?:openapi|swagger)["']?\s*:""", re.MULTILINE)


def read_tree(path: Path, *, source: str, progress: Progress | None = None) -> dict[str, Any]:
    """The tree of an OpenAPI 3 file, JSON or YAML; `progress` counts characters.

    Raises InputError naming `source`: unreadable, broken (with the line), not OpenAPI, OpenAPI 2.
    """
    return _checked(parse(read_text(path, source), path.suffix, source, progress), source)


def read_tree_if_any(
    path: Path, *, source: str, progress: Progress | None = None
) -> dict[str, Any] | None:
    """Like `read_tree`, but None for a file that does not say that it is such a description."""
    text = read_text(path, source)
    if not _SAYS_OPENAPI.search(text):
        return None
    tree = parse(text, path.suffix, source, progress)
    version = tree.get("openapi", tree.get("swagger")) if isinstance(tree, dict) else None
    # A mapping under that name is a tool's configuration.
    return _checked(tree, source) if isinstance(version, str | int | float) else None


def read_part(path: Path, *, source: str, progress: Progress | None = None) -> object:
    """What a file holds that is referred to: a text if it is Markdown, and None if it is of a kind
    that holds no part. Raises InputError naming `source`."""
    suffix = path.suffix.lower()
    if suffix in TEXTS:
        text = read_text(path, source)
        return text[front_matter(text)[0] :]
    if suffix and suffix not in SUFFIXES:
        return None
    return parse(read_text(path, source), suffix, source, progress)


def beside(folder: Path, name: str) -> Path | None:
    """The file `name` in `folder` or below it, unless it is hidden or a link leads out."""
    path = folder / name
    try:
        is_inside = path.is_file() and path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError):  # Too long for a name, or no text.
        return None
    is_hidden = any(part.startswith(".") for part in PurePosixPath(name).parts)
    return path if is_inside and not is_hidden else None


def parse(text: str, suffix: str, source: str, progress: Progress | None = None) -> object:
    """JSON or YAML as plain values. Raises InputError: `source` and the line."""
    if suffix.lower() != ".json":
        if text.lstrip()[:1] == "{":
            # JSON is YAML too, and ten times as fast to read.
            try:
                return _json(text, progress)
            except (ValueError, RecursionError):
                pass
        return parse_yaml(text, place=source, progress=progress)
    try:
        return _json(text, progress)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{source}, line {error.lineno}: this is not JSON ({error.msg}).",
            remedy="Correct the JSON there; YAML needs a file name that ends in .yaml.",
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{source}: this JSON cannot be read ({error}).", remedy="Nest it less deeply."
        ) from None


def _json(text: str, progress: Progress | None) -> object:
    # It is read in one step, so there is nothing to tell in between.
    if progress is not None:
        progress(0, len(text))
    tree: object = loads(text)
    if progress is not None:
        progress(len(text), len(text))
    return tree


def _checked(tree: object, source: str) -> dict[str, Any]:
    if isinstance(tree, dict) and "openapi" in tree:
        version = tree["openapi"]
        if re.match(r"3(\.|$)", str(version)):
            return tree
        raise InputError(
            f"{source}: OpenAPI version {str(version)[:40]!r} cannot be read.",
            remedy="Convert it to OpenAPI 3.0 or 3.1.",
        )
    if isinstance(tree, dict) and "swagger" in tree:
        raise InputError(
            f"{source}: this is OpenAPI 2 (Swagger); only OpenAPI 3 can be read.",
            remedy="Convert it first, for example with swagger2openapi.",
        )
    raise not_openapi(source)


def not_openapi(source: str) -> InputError:
    """What to say of a JSON or YAML file that describes no API."""
    return InputError(
        f"{source}: this is not an OpenAPI description (no openapi version at the top).",
        remedy="Use an OpenAPI 3 file, or turn the data into JSONL records.",
    )
