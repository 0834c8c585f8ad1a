"""`ragfilter experiment`: the judge's prompts side by side.

Source: Intelligent Chunk Filtering, "Experimental Tuning Process"; docs/design.md#judge-prompts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from ragfilter.cli.app import command
from ragfilter.cli.options import Filtering, Json, Labelled, Limit, Place
from ragfilter.cli.sides import measure_sides, read_labels
from ragfilter.errors import InputError


@command()
def experiment(
    labelled: Labelled,
    place: Place,
    filtering: Filtering,
    variants: Annotated[
        str,
        typer.Option("--variants", help="Prompt variants to try, comma-separated. Default: all."),
    ] = "",
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """Measure the judge's prompt variants on labelled queries. Needs an LLM.

    The default profile is llm-filter.
    """
    from ragfilter.evaluate.sides import prompt_sides
    from ragfilter.judge import prompts as judge_prompts

    named = dict.fromkeys(name.strip() for name in variants.split(",") if name.strip())
    prompts = tuple(named) or judge_prompts.names()
    based = replace(filtering, profile=filtering.profile or "llm-filter")
    for name in prompts:
        # A name is checked as the setting that it becomes.
        based.load({"--variants": {"judge.prompt": name}})
    sides = prompt_sides(based.load().settings, prompts)
    labels = read_labels(labelled, limit)
    if not labels.qrels:
        raise InputError("--qrels is missing.", remedy="An experiment needs labelled queries.")
    measure_sides("experiment", sides, labels, place, filtering.user, as_json=as_json)
