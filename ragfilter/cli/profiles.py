"""`ragfilter profiles`: what each profile sets."""

from __future__ import annotations

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import Json
from ragfilter.cli.table import table
from ragfilter.settings.profiles import PROFILES


@command()
def profiles(as_json: Json = False) -> None:
    """List the profiles and what each sets."""
    made = [{"name": p.name, "help": p.help, "values": {**p.values}} for p in PROFILES.values()]
    text = table(("profile", ""), [(p.name, p.help) for p in PROFILES.values()])
    parts.emit(made if as_json else text)
