"""`ragfilter cache`: the size of the LLM answer cache, and emptying it. Source:
docs/design.md#cache.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ragfilter.cli import output
from ragfilter.cli.app import command
from ragfilter.cli.options import DataDir, Json
from ragfilter.errors import InputError
from ragfilter.text.numbers import counted


@command()
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Delete all cached answers.")] = False,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Show the size of the LLM answer cache. Works while the app is running."""
    from ragfilter.stores.cache import FOLDER, MB, DiskCache
    from ragfilter.workbench import read_deployment

    where = read_deployment(data_dir=data_dir)
    path = where.data_dir.expanduser() / FOLDER
    kept = DiskCache(path, where.cache_mb)
    try:
        if clear:
            kept.clear()
        entries, size = kept.size()
    except Exception as error:
        remedy = "Remove it." if clear else "Run `ragfilter cache --clear`, or remove it."
        raise InputError(f"{path} cannot be used: {error!r}.", remedy=remedy) from None
    finally:
        kept.close()
    most = where.cache_mb
    limit = f"of at most {most:g} MB" if most else "and none is added: it is off"
    said = ("cleared: " if clear else "") + counted(entries, "answer")
    text = f"{path}: {said}, {size / MB:.1f} MB {limit} (RAGFILTER_CACHE_MB)\n"
    document = {"path": str(path), "entries": entries, "bytes": size, "limit_mb": most}
    output.emit(document if as_json else text)
