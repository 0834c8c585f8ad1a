"""How long the Rules page's table and previews take over 100,000 chunks, half of them with rules.

Targets: a preview of an edit in 300 ms; nothing that is done at every click takes longer either.
Run: PYTHONPATH=. python benchmarks/bench_rules_page.py
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import partial

from benchmarks.bench_rule_matrix import pools, timed
from benchmarks.bench_rules import rules
from ragfilter.evaluate.effect import make_labelled
from ragfilter.model import Chunk
from ragfilter.rules.overview import Checks, RuleFilter, make_listing
from ragfilter.rules.rule import Rule
from ragfilter.settings.config import load

CHUNKS = 100_000
QUESTIONS = 200
EDITED = Rule(contain_one_of=(("paladin",),))


def main() -> None:
    ruled = rules(CHUNKS // 2)
    texts: list[str | None] = [*ruled, *[None] * (CHUNKS - len(ruled))]
    random.Random(0).shuffle(texts)
    chunks = {f"c{i}": Chunk(f"c{i}", "", f"Table of monsters, page {i}", rule=rule) for i, rule in enumerate(texts)}
    checks = Checks()
    timed("list 100,000 chunks, first time", lambda: make_listing(chunks.values(), checks))
    listing = timed("list them again", lambda: make_listing(chunks.values(), checks))
    timed("sort them by what needs attention", lambda: listing.find(RuleFilter()))
    timed("filter them by two words", lambda: listing.find(RuleFilter(text="monsters 77")))
    changed = {**chunks, "c7": replace(chunks["c7"], rule=EDITED.text)}
    timed("list them after an edit", lambda: make_listing(changed.values(), checks))
    settings = load(profile="full", environ={}).settings
    by_question = pools(list(chunks.values()), QUESTIONS)
    qrels = {i: {hit.id: 1 for hit in pool.hits[:5]} for i, pool in by_question.items()}
    known = timed("replay 200 questions, once", lambda: make_labelled(by_question, qrels, settings))
    counts = Counter(hit.id for pool in by_question.values() for hit in pool.hits)
    seldom, often = next(iter(by_question.values())).hits[0].id, counts.most_common(1)[0][0]
    for chunk in (seldom, often):
        what = f"preview an edit of a chunk that {counts[chunk]} of the questions find"
        timed(what, partial(known.effect, {chunk: EDITED}))
    everywhere = dict.fromkeys((pool.hits[0].id for pool in by_question.values()), EDITED)
    distinct = {i: replace(c, rule=f'{{"contain":"word {i}"}}') for i, c in chunks.items()}
    table = timed("list 100,000 distinct rules", lambda: make_listing(distinct.values(), checks))

    def first_edit() -> None:
        table.with_unsaved([often]).find(RuleFilter())
        known.effect({often: EDITED})

    timed("mark a chunk's first draft in them, sort and preview it", first_edit)
    timed("preview a bulk change of the first hit of each", lambda: known.effect(everywhere))
    timed("take over an edit that was saved", lambda: known.renew(changed))


if __name__ == "__main__":
    main()
