"""The words of the page with their meanings, as in docs/glossary.md."""

from __future__ import annotations

TERMS = {
    "chunk": "A passage of the corpus: the unit that is stored, found, kept or dropped.",
    "clearance": "The level that a user needs to see a chunk. 0 is public. The clearance "
    "layer hides what a user may not see.",
    "cliff": "The gap at which a cutoff cuts.",
    "comparison": 'A query about two or more things, such as "X vs Y". Each thing is a *side*.',
    "context": "The chunks that fit into the prompt, numbered for citation.",
    "cutoff": "The layer that cuts the ranked list where relevance falls off.",
    "department": "The group whose users may see a chunk. A chunk without a department is open to "
    "all.",
    "distance": "How far a chunk is from the query in the collection's space. Lower is better.",
    "expansion": "Chunks that the judge brings in along references (`EXPAND_n`).",
    "extractive": "An answer made of quoted sentences, without an LLM.",
    "fallback": "What a layer does if it cannot do its work. It is shown as an outcome.",
    "gap": "The difference between the distances of two neighbours.",
    "judge": "The layer that asks an LLM which chunks help.",
    "k": "The maximum number of results.",
    "layer": "One step of the filter: a pure function from hits to hits and decisions.",
    "operator": "Somebody who sees everything, hidden chunks included.",
    "pin": "To keep a chunk at any distance: the best one for a side of a comparison, one whose "
    "rule holds, or one that states a value of the query.",
    "profile": "Named settings.",
    "rank": "A hit's position by distance, from 1. Its *place* counts only the kept hits.",
    "rerank": "To score hits again with a model that reads query and chunk together.",
    "rule": "A chunk's `query_must`: the terms that a query must contain for the chunk to be kept.",
    "similarity": "Closeness, computed from the distance. Higher is better, and 1 is identical.",
    "strategy": "A way to find the cut: `gap`, `fixed`, `autocut`, `adaptive_k`, `moving_avg`, "
    "`spike`, `car`, `otsu`, `relative`, `calibrated`.",
    "unfiltered": "The first k of the plain search, with which the filtered result is compared.",
}
