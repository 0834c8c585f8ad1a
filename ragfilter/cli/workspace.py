"""`ragfilter workspace copy`: copy a whole workspace to another place."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from ragfilter.cli import output
from ragfilter.cli.app import command, make_group
from ragfilter.cli.options import Json
from ragfilter.text.numbers import counted

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
