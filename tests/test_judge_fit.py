"""What each chunk sends to the judge: the most distinctive sentences first, with an even share of the room."""

from __future__ import annotations

from collections.abc import Sequence

from ragfilter.answer.context_packing import SHORTENED
from ragfilter.judge.prompt import Block, blocks, excerpt
from ragfilter.judge.prompts import FIELDS
from ragfilter.model import Chunk
from ragfilter.text.shared_words import estimate_tokens

TABLE = "Swords are sold by smiths. Axes cost six. A dagger deals 1d4. Clubs are free."


def fitted(*chunks: Chunk, room: int, most: int = 10_000, query: str = "why?") -> Sequence[Block]:
    return blocks(query, [(c, "0.5") for c in chunks], room=room, most=most, fields=FIELDS)


def test_an_excerpt_holds_the_telling_sentences() -> None:
    for tokens, query, expected in [
        # Each sentence costs its tokens and 2 for a mark: 9, 6, 7 and 6.
        (28, "why?", TABLE),
        (9, "A dagger?", "… A dagger deals 1d4."),
        (16, "A dagger?", "Swords are sold by smiths. … A dagger deals 1d4."),
        # If the best sentence does not fit, the beginning.
        (4, "A dagger?", "A dagger deals"),
        (0, "why?", ""),
    ]:
        assert excerpt(query, TABLE, tokens) == expected


def test_short_chunks_stay_whole_and_long_ones_share_what_they_leave() -> None:
    short = Chunk("s", "Short.")
    long = [Chunk(f"l{n}", "word " * 400) for n in range(3)]
    first, *others = fitted(short, *long, room=400)
    assert not first.shortened
    assert "Short.\n</chunk>" in first.text
    sizes = [estimate_tokens(block.text) for block in others]
    # 400 − 22 of the short one, among three.
    assert max(sizes) <= 126
    assert min(sizes) >= 120
    assert all(block.shortened and f"{SHORTENED}\n</chunk>" in block.text for block in others)


def test_the_head_gives_way_before_the_text_does() -> None:
    refs = tuple(f"api:Reference{n}" for n in range(20))
    chunk = Chunk("a", "word " * 50, title="T" * 150, type="operation", source="f.yaml", refs=refs)
    (block,) = fitted(chunk, room=60)
    assert f"\ntitle: {'T' * 19} … {'T' * 18}\n" in block.text
    assert "type:" not in block.text
    assert block.text.count("word") >= 10
