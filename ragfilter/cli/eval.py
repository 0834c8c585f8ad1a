"""`ragfilter eval`: the filtered result next to the unfiltered one, over labelled queries."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.labelled import LabelledOptions, warn_in_sample, warn_of
from ragfilter.cli.options import Filtering, Json, Place
from ragfilter.cli.output import percent, table
from ragfilter.evaluate import run, told
from ragfilter.evaluate.run import Evaluation, KeptChunks, Means, QueryRow
from ragfilter.text.numbers import counted
from ragfilter.text.query_id import query_name


@command(name="eval")
def evaluate(
    labelled: LabelledOptions, place: Place, filtering: Filtering, as_json: Json = False
) -> None:
    """Compare the filtered with the unfiltered result over labelled queries."""
    loaded, user = filtering.load()
    settings = loaded.settings
    with labelled.open("eval", place, user) as (_, backends, labels, unknown):
        parts.tell_learned_elsewhere(settings, backends)
        warn_of(labels)
        notes = warn_in_sample(settings, labels, place.collection)
        made = run.evaluate(
            labels.queries, labels.qrels, settings, backends, user,
            progress=parts.progress("queries"),
        )  # fmt: skip
        head = place.head(backends.incomplete)
    head |= {"unknown_labels": unknown, "profile": loaded.profile, "with_llm": labelled.llm}
    head |= {"notes": notes} | document(made)
    used = f"profile {loaded.profile}{filtering.with_config}"
    parts.emit(head if as_json else f"{place.collection}, {used}: {evaluation_text(made)}")


def document(evaluation: Evaluation) -> dict[str, Any]:
    """The document of `eval --json` as plain values, without the collection and profile."""
    best = evaluation.best_fixed_k
    return {
        "k": evaluation.k,
        "queries": len(evaluation.rows),
        "unfiltered": asdict(evaluation.unfiltered),
        "filtered": asdict(evaluation.filtered),
        "best_fixed_k": best and {"k": best.k, **asdict(best.means)},
        "noise_reduction": evaluation.noise_reduction,
        "lost": sum(len(row.lost) for row in evaluation.rows),
        "waiting": sum(row.waiting for row in evaluation.rows),
        "unlabelled": list(evaluation.unlabelled),
        "per_query": [_document(row) for row in evaluation.rows],
    }


def _document(row: QueryRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "query": row.query,
        "n_relevant": len(row.relevant),
        "unfiltered": _side_document(row.unfiltered),
        "filtered": _side_document(row.filtered) | {"ids": list(row.filtered.ids)},
        "noise_reduction": row.noise_reduction,
        "lost": list(row.lost),
        "status": row.status,
    }


def _side_document(side: KeptChunks) -> dict[str, Any]:
    return {
        "kept": side.kept,
        "relevant_kept": side.relevant_kept,
        **asdict(side.scores),
        "unlabelled": side.unlabelled,
        "f1_most": side.f1_most,
    }


def evaluation_text(evaluation: Evaluation) -> str:
    """Means, the best fixed k and one line per query."""
    k = evaluation.k
    best = evaluation.best_fixed_k
    sides = [
        (f"unfiltered, k {k}", evaluation.unfiltered),
        *([(f"best fixed k, {best.k}", best.means)] if best else []),
        ("filtered", evaluation.filtered),
    ]
    means = table(_MEANS, (_means_line(name, of) for name, of in sides))
    lines = [counted(len(evaluation.rows), "labelled query"), "", means.rstrip()]
    lines += ["", "best fixed k: each query with the k that is best on the others"] if best else []
    mean = evaluation.filtered
    range_ = told.unlabelled(mean.mean_kept, mean.unlabelled, mean.f1, mean.f1_most)
    lines += ["", range_] if range_ else []
    lines += ["", f"noise reduction {percent(evaluation.noise_reduction)}", ""]
    lines.append(table(_QUERIES, map(_query_line, evaluation.rows)).rstrip())
    if evaluation.unlabelled:
        bare = counted(len(evaluation.unlabelled), "query")
        lines += ["", f"left out: {bare} without a usable label"]
    fell_back = told.fell_back(sum(row.waiting for row in evaluation.rows))
    lines += ["", fell_back] if fell_back else []
    return "\n".join(lines) + "\n"


_MEANS = ("mean", "precision", "recall", "F1", "F1 upper bound", "kept")
_QUERIES = ("query", "relevant", "kept", "P", "R", "F1", "F1 unfiltered", "noise cut", "lost",
            "status")  # fmt: skip


def _means_line(name: str, means: Means) -> tuple[str, ...]:
    shares = (means.precision, means.recall, means.f1, means.f1_most)
    return (name, *(f"{share:.3f}" for share in shares), f"{means.mean_kept:.1f}")


def _query_line(row: QueryRow) -> tuple[str, ...]:
    scores = row.filtered.scores
    shares = (scores.precision, scores.recall, scores.f1, row.unfiltered.scores.f1)
    return (
        query_name(row.id, row.query, 34),
        str(len(row.relevant)),
        str(row.filtered.kept),
        *(f"{share:.3f}" for share in shares),
        percent(row.noise_reduction),
        str(len(row.lost)),
        row.status,
    )
