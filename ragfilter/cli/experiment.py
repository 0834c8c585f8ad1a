"""`ragfilter experiment`: the judge's prompts side by side.

Source: Intelligent Chunk Filtering, "Experimental Tuning Process"; docs/design.md#judge-prompts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from ragfilter.cli.app import command
from ragfilter.cli.labelled import LabelledOptions
from ragfilter.cli.options import Filtering, Json, Limit, Place
from ragfilter.cli.sides import measure_sides
from ragfilter.evaluate.sides import prompt_sides
from ragfilter.judge import prompts as judge_prompts


@command()
def experiment(
    labelled: LabelledOptions,
    place: Place,
    filtering: Filtering,
    variants: Annotated[
        str, typer.Option(help="Prompt variants to try, separated by commas. Default: all.")
    ] = "",
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """Measure the judge's prompt variants on labelled queries. Needs an LLM.

    The default profile is llm-filter.
    """
    named = dict.fromkeys(name.strip() for name in variants.split(",") if name.strip())
    prompts = tuple(named) or judge_prompts.names()
    based = replace(filtering, profile=filtering.profile or "llm-filter")
    for name in prompts:
        # Checked as the setting that it becomes.
        based.load({"--variants": {"judge.prompt": name}})
    sides = prompt_sides(based.load()[0].settings, prompts)
    measure_sides(
        "experiment", sides, labelled, place, filtering.user,
        limit=limit, as_json=as_json, needs_labels=True,
    )  # fmt: skip
