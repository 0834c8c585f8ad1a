"""The words of the page with their meanings, as docs/glossary.md has them."""

from __future__ import annotations

TERMS = {
    "chunk": "A passage of the corpus: the unit that is stored, found, kept or dropped.",
    "clearance": "A chunk's level of secrecy; 0 is public. Also the layer that hides what a user "
    "may not see.",
    "cliff": "The gap at which a cutoff cuts.",
    "comparison": 'A query about two or more things, such as "X vs Y". Each thing is a *side*.',
    "context": "The chunks that fit into the prompt, numbered for citation.",
    "cutoff": "The layer that cuts the ranked list where relevance falls off.",
    "department": "The group whose users may see a chunk; none means everybody's.",
    "distance": "How far a chunk is from the query in the collection's space. Lower is better.",
    "expansion": "Chunks that the judge brings in along references (`EXPAND_n`).",
    "extractive": "An answer made of quoted sentences, without an LLM.",
    "fallback": "What a layer does where it cannot do its work; visible as an outcome.",
    "gap": "The difference between the distances of two neighbours.",
    "judge": "The layer that asks an LLM which chunks help.",
    "k": "How many results are wanted at most.",
    "layer": "One step of the filter: a pure function from hits to hits and decisions.",
    "operator": "Somebody who sees everything, hidden chunks included.",
    "pin": "To keep a chunk whatever its distance: the best for a side of a comparison, one whose "
    "rule holds, one that states a value of the query.",
    "profile": "Named settings.",
    "rank": "A hit's place by distance, from 1. A hit's *place* counts the kept ones only.",
    "rerank": "To score hits again with a model that reads query and chunk together.",
    "rule": "A chunk's `query_must`: the terms a query must hold for the chunk to stay.",
    "similarity": "Closeness from a distance; 1 is identical. Higher is better.",
    "strategy": "A way to find the cut: `gap`, `fixed`, `autocut`, `adaptive_k`, `moving_avg`, "
    "`spike`, `car`, `otsu`, `relative`, `calibrated`.",
    "unfiltered": "The first k of the plain search: what the filtered result is compared with.",
}
