"""The most important settings next to the curve: a second view of those in the sidebar."""

from __future__ import annotations

import streamlit as st

from ragfilter.layers.cutoff import acting, cut_of
from ragfilter.layers.registry import layer
from ragfilter.layers.strategies.registry import strategy
from ragfilter.model import PoolResult
from ragfilter.report.thresholds import first_step, limits
from ragfilter.settings.schema import field
from ragfilter.text import numbers
from ragfilter.ui.kit import controls
from ragfilter.ui.look import html
from ragfilter.ui.session import state

VIEW = "tune"
SHORT = {"cutoff.max_results": "k", "retrieval.k": "k", "cutoff.gap_threshold": "Min gap",
         "cutoff.distance_offset": "Offset", "cutoff.skip_first": "Skip first"}  # fmt: skip


def paths(result: PoolResult) -> tuple[str, ...]:
    """The settings that currently decide where the curve is cut."""
    settings = acting(result)
    cutoff = layer("cutoff")
    if cutoff.enabled(settings):
        used = cutoff.used(settings)
        return tuple(f"cutoff.{name}" for name in cutoff.first if name in used)
    return ("retrieval.k",) if layer("top_k").enabled(settings) else ()


def draw(result: PoolResult) -> None:
    """Draw the settings in one row, which keeps its height if there are none."""
    shown = paths(result)
    with st.container(key="tune", horizontal=True, vertical_alignment="top", gap="small"):
        own = state.own()
        for path in shown:
            controls.draw_setting(
                field(path), result.settings, own, view=VIEW, label=SHORT.get(path, "")
            )
        if not shown:
            html.draw(
                '<p class="rf-hint">The cutoff is off, and the judge decides how many stay. Switch '
                "Cutoff on in the sidebar to tune a threshold here.</p>"
            )
    html.draw(f'<ul class="rf-limits" aria-label="Limits in force">{limits_in_force(result)}</ul>')


def limits_in_force(result: PoolResult) -> str:
    """The limit that decided how many stay, the other limits that applied, then those not
    reached."""
    every = limits(result)
    bound = [each.words for each in reversed(every) if each.bound]
    items = [f"<li><b>{html.text(words)}</b></li>" for words in bound[:1]]
    items += [f"<li>{html.text(words)}</li>" for words in bound[1:]]
    chosen, detail = result.settings.cutoff.strategy, cut_of(result)
    if detail is not None and detail.cut.strategy != chosen:
        name = strategy(chosen).title or chosen
        items.append(f"<li>{html.text(f'{name} is chosen, but {detail.instead}')}.</li>")
    tall = first_step(result)
    if tall is not None:
        items.append(
            f"<li>The largest gap, {numbers.distance(tall)}, comes first. It is ignored while "
            "<i>Skip the first step</i> is on.</li>"
        )
    items += [f"<li>{html.text(each.words)}</li>" for each in every if not each.bound]
    return "".join(items)
