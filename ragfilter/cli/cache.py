"""`ragfilter cache`: the size of the LLM answer cache, and emptying it. Source:
docs/design.md#cache.
"""

from __future__ import annotations

import sqlite3
from typing import Annotated

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import DataDir, Json
from ragfilter.errors import InputError


@command()
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Delete all cached answers.")] = False,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Show the size of the LLM answer cache. Works while the app is running."""
    from ragfilter.stores.cache import FILE, MB, DiskCache
    from ragfilter.workbench import read_deployment

    where = read_deployment(data_dir=data_dir)
    path = where.data_dir.expanduser() / FILE
    kept = DiskCache(path, where.cache_mb)
    try:
        if clear:
            kept.clear()
        size = kept.size()
    except (OSError, sqlite3.Error) as error:
        remedy = "Remove it." if clear else "Run `ragfilter cache --clear`, or remove it."
        raise InputError(f"{path} cannot be used: {error}.", remedy=remedy) from None
    finally:
        kept.close()
    if as_json:
        document = {
            "path": str(path),
            "entries": size.entries,
            "bytes": size.bytes,
            "limit_mb": where.cache_mb,
        }
        parts.emit(parts.dumps(document))
        return
    answers = "1 answer" if size.entries == 1 else f"{size.entries:,} answers"
    limit = (
        f"of at most {where.cache_mb:g} MB" if where.cache_mb else "and none is added: it is off"
    )
    said = "cleared: " if clear else ""
    parts.emit(f"{path}: {said}{answers}, {size.bytes / MB:.1f} MB {limit} (RAGFILTER_CACHE_MB)\n")
