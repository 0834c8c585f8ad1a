"""One measurement, four views: `eval`, `gate`, Evaluate and `rf.measure` have the same figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from labelled_demo import put_labelled

import ragfilter as rf
from ragfilter.cli.program import main
from ragfilter.engine.pipeline import search_and_filter
from ragfilter.evaluate import measured_runs, query_sets
from ragfilter.evaluate.frame import COUNTED, SCORED
from ragfilter.evaluate.variants import CURRENT, FIXED, UNFILTERED
from ragfilter.ingest import bundled
from ragfilter.settings.config import load
from ragfilter.settings.deployment import Deployment
from ragfilter.workbench import Workbench

pytestmark = [pytest.mark.model, pytest.mark.slow]


def test_figures_agree_wherever_they_are_shown(
    copy_demo: Callable[[], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    place, settings = copy_demo(), load(profile="full", environ={}).settings
    with Workbench.open(Deployment(data_dir=place)) as bench:
        put_labelled(bench.labels, "some", [*bundled.qrels("demo")][::5])
        labels = query_sets.load(bench.labels, "demo", "some")
        backends = bench.backends("demo")
        results = {i: search_and_filter(text, settings, backends, wide=True) for i, text in labels.labelled.items()}
        plan = measured_runs.plan(labels, "some", "full", settings, backends, None, bench)
        started = bench.runs.begin(plan, who="ann")
        measured_runs.go_on(started, labels, bench.runs, backends)
        shown = measured_runs.load(bench.runs.get(started.id), bench.runs)
    library = rf.measure(results, labels.qrels)

    def printed(command: str, *options: str) -> Any:
        capsys.readouterr()
        where = ["-c", "demo", "--queries", "some", "--data-dir", str(place)]
        assert main([command, *where, "-p", "full", *options, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    command = printed("eval")
    kept = {"mean_kept": "kept"}
    for name, document, means in (
        (CURRENT, command["filtered"], library.filtered),
        (UNFILTERED, command["unfiltered"], library.unfiltered),
        (FIXED, command["best_fixed_k"], library.best_fixed_k and library.best_fixed_k.means),
    ):
        row = shown.row(name)
        assert row is not None
        for figure in document.keys() - {"k"}:
            everywhere = [document[figure], getattr(means, figure), row[kept.get(figure, figure)]]
            assert everywhere == pytest.approx([document[figure]] * 3, abs=1e-9), (name, figure)
    assert [row.filtered.ids for row in library.rows] == [
        tuple(each["filtered"]["ids"]) for each in command["per_query"]
    ]

    least = [f"--min={figure}=0" for figure in ("precision", "recall", "f1")]
    gate = printed("gate", *least, "--max", "kept=99")
    checks = {check["figure"]: check["value"] for check in gate["checks"]}
    assert gate["f1"] == pytest.approx(command["filtered"]["f1"], abs=1e-9)
    for figure, value in checks.items():
        row = shown.row(CURRENT)
        assert row is not None
        assert figure in (*SCORED, *COUNTED)
        assert value == pytest.approx(row[figure], abs=1e-9), figure

    # A run measured by the command is the run that the page shows.
    saved = printed("eval", "--save", "again")
    own = next(row for row in saved["rows"] if row["variant"] == CURRENT)
    assert own["f1"] == pytest.approx(command["filtered"]["f1"], abs=1e-9)
