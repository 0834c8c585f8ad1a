"""Chunks that are close in meaning and state values of the same kinds, in any words. Pure.

"Armor Class: 6" in a stat block and "a beast of AC 4" in a sentence are of one kind. Two chunks are
linked if one is among the nearest of the other (by the cosine of their vectors) and both state
values of two kinds. Groups of linked chunks are families. docs/design.md#families has figures that
show why both conditions are needed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ragfilter.basics.extras import extra
from ragfilter.model import Chunk
from ragfilter.rules.named import Name, telling
from ragfilter.rules.near import Near
from ragfilter.rules.values import Value, acronym, tokens, values

CLOSE = 0.55
"""Minimum cosine similarity of two linked chunks."""
NEIGHBOURS = 10
KINDS = 2
"""Linked chunks share at least this many kinds of values."""
MOST_KINDS = 4
"""If a family has more kinds, those that most chunks state are used."""
SHOWN = 3

_HEAD = re.compile(r"(?<=\w)[\W]*[\n:(|]")
"""The end of the name that a text begins with: "Mire wolf: AC 5"."""

Kind = tuple[tuple[str, ...], bool]
"""What is counted, and whether it follows its number: 3 days."""
VectorsOf = Callable[[Sequence[str]], npt.NDArray[np.float32]]
"""From the ids of chunks to their vectors."""


def find_close(
    chunks: Sequence[Chunk], vectors_of: VectorsOf, fewest: int
) -> Iterator[tuple[str, list[Near]]]:
    """Find groups of chunks, each with its pattern. A chunk is in one group only. `vectors_of` is
    called once, with the chunks that state enough kinds of values."""
    stated = _stated([chunk.text for chunk in chunks])
    held = Counter(kind for each in stated for kind in each)
    stated = [{k: v for k, v in each.items() if held[k] >= fewest} for each in stated]
    states = [at for at, each in enumerate(stated) if len(each) >= KINDS]
    if len(states) < fewest:
        return
    vectors = vectors_of([chunks[at].id for at in states])
    for group in _connected(states, stated, vectors):
        held = Counter(kind for at in group for kind in stated[at])
        common = [kind for kind, n in held.most_common() if n >= len(group) / 2][:MOST_KINDS]
        names = _names({at: chunks[at] for at in group})
        rows = {at: [v for k in common if (v := stated[at].get(k))] for at in group}
        alone = Counter(value for row in rows.values() for value in row)
        near = [
            Near(at, (*names[at], *row), "")
            for at, row in rows.items()
            if names[at] or any(alone[value] == 1 for value in row)
        ]
        if len(common) >= KINDS and len(near) >= fewest:
            yield _pattern(near, common), near


def _stated(texts: Sequence[str]) -> list[dict[Kind, Value]]:
    """The first value of each kind that a text states. An acronym ("ac") is of the same kind as the
    words it stands for."""
    every = [values(text) for text in texts]
    counts = Counter(words for each in every for words in {value.words for value in each})
    full: dict[tuple[str, ...], tuple[str, ...]] = {}
    for words, _ in counts.most_common():
        if short := acronym(words):
            full.setdefault((short,), words)
    found: list[dict[Kind, Value]] = [{} for _ in texts]
    for kinds, each in zip(found, every, strict=True):
        for value in each:
            words = full.get(value.words, value.words)
            if words:
                kinds.setdefault(
                    (words, value.after),
                    Value(words, value.number, value.last, after=value.after),
                )
    return found


def _connected(
    states: Sequence[int],
    stated: Sequence[Mapping[Kind, Value]],
    vectors: npt.NDArray[np.float32],
) -> list[list[int]]:
    """The groups of linked texts, the largest first."""
    # These take a second to import.
    with extra("eval"):
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components
        from sklearn.neighbors import NearestNeighbors

    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-9)
    search = NearestNeighbors(n_neighbors=min(NEIGHBOURS + 1, len(states)), algorithm="brute")
    distances, neighbours = search.fit(unit).kneighbors(unit)
    links = [
        (a, b)
        for a, b in zip(*np.nonzero(distances**2 <= 2 - 2 * CLOSE), strict=True)
        if len(stated[states[a]].keys() & stated[states[neighbours[a, b]]].keys()) >= KINDS
    ]
    rows, columns = [a for a, _ in links], [neighbours[a, b] for a, b in links]
    graph = csr_array((np.ones(len(links)), (rows, columns)), shape=(len(states),) * 2)
    _, group_of = connected_components(graph, directed=False)
    groups: dict[int, list[int]] = defaultdict(list)
    for at, group in zip(states, group_of, strict=True):
        groups[group].append(at)
    return sorted(groups.values(), key=lambda group: (-len(group), group))


def _names(chunks: Mapping[int, Chunk]) -> dict[int, tuple[Name, ...]]:
    """The name of each chunk: its title or the beginning of its text, if that is one word or two.
    Otherwise the rarest word that no other title has, or a word that only its text repeats."""
    heads = {at: tokens(c.title) or tokens(_HEAD.split(c.text, 1)[0]) for at, c in chunks.items()}
    copies = Counter(heads.values())
    titles = {at: telling(tokens(chunk.title)) for at, chunk in chunks.items()}
    in_titles = Counter(word for title in titles.values() for word in set(title))
    words = {at: Counter(telling(tokens(chunk.passage))) for at, chunk in chunks.items()}
    held = Counter(word for each in words.values() for word in each)
    names: dict[int, tuple[Name, ...]] = {}
    for at, head in heads.items():
        if head and len(head) <= 2 and telling(head) == [*head] and copies[head] == 1:
            names[at] = (Name(head),)
            continue
        own = [word for word in titles[at] if in_titles[word] == 1]
        own = own or [word for word, n in words[at].items() if held[word] == 1 and n > 1]
        own.sort(key=lambda word: (held[word], -words[at][word]))
        names[at] = tuple(Name((word,)) for word in own[:1])
    return names


def _pattern(near: Sequence[Near], common: Sequence[Kind]) -> str:
    named = list(dict.fromkeys(each.values[0].named for each in near))
    shown = ", ".join([*named[:SHOWN], *(["…"] if len(named) > SHOWN else [])])
    counted = (" ".join(("#", *words) if after else (*words, "#")) for words, after in common)
    return f"{shown}: {', '.join(counted)}"
