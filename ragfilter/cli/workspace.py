"""`ragfilter workspace copy` and `cache`: copy a whole workspace to another place, and the size of
its cache of LLM answers. Source: docs/design.md#cache."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from ragfilter.cli import output
from ragfilter.cli.app import command, make_group
from ragfilter.cli.options import DataDir, Json
from ragfilter.errors import InputError
from ragfilter.text.numbers import counted
from ragfilter.text.urls import shown

group = make_group("workspace", "Copy the workspace to another place.")


@command(group)
def copy(
    source: Annotated[str, "The workspace to copy: a folder, or postgresql://…"],
    target: Annotated[str, "Where to: an empty or missing folder, or an empty database."],
    as_json: Json = False,
) -> None:
    """Copy a whole workspace, such as a folder into PostgreSQL. Interrupted, it goes on when run
    again. At the end, counts and checksums of both are compared.

    What other programs made in Chroma, saved settings, prompts and templates are not copied.
    """
    from ragfilter.stores.moving import copy_workspace
    from ragfilter.workbench import open_workspace_of, read_deployment

    with (
        open_workspace_of(read_deployment(data_dir=source), "copy") as here,
        open_workspace_of(read_deployment(data_dir=target), "copy") as there,
    ):
        done = copy_workspace(here, there, output.progress)
    lines = (
        f"{each.name}: {counted(each.count, 'row')}, {each.new:,} copied now, the same in both "
        f"(sha256 {each.checksum[:12]})\n"
        for each in done
    )
    output.show([asdict(each) for each in done], "".join(lines), as_json=as_json)


@command()
def cache(
    clear: Annotated[bool, "Delete all cached answers."] = False,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Show the size of the LLM answer cache. Works while the app is running."""
    from ragfilter.stores.cache import FOLDER, MB, open_cache
    from ragfilter.workbench import read_deployment

    deployment = read_deployment(data_dir=data_dir)
    folder, limit_mb = deployment.data_dir.expanduser(), deployment.cache_mb
    path = shown(deployment.address) if deployment.address else folder / FOLDER
    answers = open_cache(folder, deployment.address, limit_mb)
    try:
        if clear:
            answers.clear()
        entries, size = answers.size()
    except Exception as error:
        remedy = "Remove it." if clear else "Run `ragfilter cache --clear`, or remove it."
        raise InputError(f"{path} cannot be used: {error!r}.", remedy=remedy) from None
    finally:
        answers.close()
    limit = f"of at most {limit_mb:g} MB" if limit_mb else "and none is added: it is off"
    state = ("cleared: " if clear else "") + counted(entries, "answer")
    output.show(
        {"path": path, "entries": entries, "bytes": size, "limit_mb": limit_mb},
        f"{path}: {state}, {size / MB:.1f} MB {limit} (RAGFILTER_CACHE_MB)\n",
        as_json=as_json,
    )
