"""`ragfilter rules export`: the rules as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragfilter.basics.files import write_text
from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import OTHER_OUT, Place, Viewing, Where
from ragfilter.cli.rules.group import rules, select_rules
from ragfilter.rules import rule_files as files


@command(rules)
def export(
    place: Place,
    viewing: Viewing,
    out: Annotated[
        Path | None,
        typer.Option(help="Output file; CSV if its name ends in .csv. Default: standard output."),
    ] = None,
    where: Where = None,
) -> None:
    """Write the rules as JSONL, or as CSV: id, title and query_must.

    Rules edited later are listed as changed since this export, if it has all rules that were edited
    before, and goes to a file or pipe.
    """
    with place.open("rules") as bench:
        # Read before the rules, so that no edit counts as exported that is not in the file.
        last_edit = bench.journal.last_edit(place.collection)
        edited = bench.journal.edited_since_export(place.collection)
        every = bench.collection(place.collection).entries()
    user = viewing.viewer
    lacking = (i for i in edited if i not in every or not user.sees(every[i]))
    whole = user.unrestricted or not any(lacking)
    chosen = select_rules(place, viewing, where)

    if files.is_csv(out):
        text = files.csv_text(chosen.chunks)
    else:
        text = "".join(files.lines(chosen.chunks))
    if out is None:
        kept = parts.emit(text, as_file=True)
    else:
        write_text(out, text, remedy=OTHER_OUT)
        parts.emit(f"{place.collection}: {len(chosen.chunks)} rules written to {out}\n")
        kept = True
    # What is not in the file still counts as changed since the last export.
    if kept and not where and whole and not chosen.incomplete:
        with place.open("rules") as bench:
            bench.journal.mark_exported(place.collection, last_edit)
