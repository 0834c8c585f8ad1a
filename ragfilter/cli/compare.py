"""`ragfilter compare`: profiles and settings side by side, and the unfiltered search.

Source: Intelligent Chunk Filtering, "Before/After Comparison Framework".
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Annotated

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.labelled import LabelledOptions
from ragfilter.cli.options import Json, Limit, Place, Viewing
from ragfilter.cli.sides import measure_sides
from ragfilter.errors import SettingsError
from ragfilter.evaluate.sides import Side, before_and_after
from ragfilter.settings.profiles import PROFILES


@command()
def compare(
    labelled: LabelledOptions,
    place: Place,
    viewing: Viewing,
    profile: Annotated[
        list[str] | None,
        typer.Option(
            "--profile", "-p", help=f"Profile to compare: {', '.join(PROFILES)}. Repeatable."
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            help="Compare each profile with these changes: 'layer.field=value …'. Repeatable; an "
            "empty string means the unchanged profile."
        ),
    ] = None,
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """Compare profiles or settings with an unfiltered search over a list of queries.

    --set applies to every side.
    """
    made = _sides(profile or (), vary or (), viewing)
    measure_sides(
        "compare", before_and_after(made), labelled, place, viewing.user,
        limit=limit, as_json=as_json,
    )  # fmt: skip


def _sides(profiles: Sequence[str], vary: Sequence[str], viewing: Viewing) -> tuple[Side, ...]:
    """One side for every profile and every set of varied settings. Raises SettingsError."""
    sides: dict[str, Side] = {}
    for name in profiles or (None,):
        for text in vary or ("",):
            loaded = parts.load_config(
                name, viewing.config, viewing.values, {"--vary": _pairs(text)}
            )
            label = " ".join([loaded.profile + viewing.with_config, *text.split()])
            sides[label] = Side(label, loaded.settings)
    return tuple(sides.values())


def _pairs(text: str) -> dict[str, str]:
    """The pairs in one `--vary`; a value with spaces needs quotes. Raises SettingsError."""
    try:
        pairs = shlex.split(text)
    except ValueError as error:
        raise SettingsError(
            f"--vary {text}: {error}.", remedy="Close the quotation marks."
        ) from None
    wrong = next((pair for pair in pairs if "=" not in pair), None)
    if wrong is not None:
        raise SettingsError(
            f"--vary {text}: there is no '=' in {wrong!r}.",
            remedy="Write --vary 'layer.field=value …'.",
        )
    return dict(parts.parse_set(pair) for pair in pairs)
