"""Late interaction and cross-encoders, with real models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ragfilter.errors import ModelError
from ragfilter.models.embedders import BundledEmbedder
from ragfilter.models.rerankers import OFFSET, SLOPE, CrossEncoderReranker, LateInteraction
from ragfilter.protocols import Vectors

ROOT = Path(__file__).resolve().parents[2]
GIANT = "The hill giant hurls rocks and is stronger than a troll."
OWL = "An owl sees in the dark and flies without a sound."


class Counting(BundledEmbedder):
    """The real model, which counts the texts whose tokens were encoded."""

    def __init__(self) -> None:
        super().__init__()
        self.encoded: list[str] = []

    def tokens(self, texts: Sequence[str]) -> list[Vectors]:
        self.encoded += texts
        return super().tokens(texts)


@pytest.fixture(scope="module")
def embedder() -> Counting:
    return Counting()


@pytest.fixture
def late(embedder: Counting) -> LateInteraction:
    embedder.encoded.clear()
    return LateInteraction(embedder)


@pytest.mark.model
def test_late_interaction_is_the_mean_best_cosine_over_query_tokens(late: LateInteraction, embedder: Counting) -> None:
    asked, chunk = (
        tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
        for tokens in BundledEmbedder().tokens(["hill giant", GIANT])
    )
    best = [max(float(q @ c) for c in chunk) for q in asked[1:-1]]
    raw = sum(best) / len(best)
    assert late.raw("hill giant", [GIANT]) == pytest.approx([raw], abs=1e-3)
    expected = 1 / (1 + np.exp(-(SLOPE * raw + OFFSET)))
    assert late.score("hill giant", [GIANT]) == pytest.approx([expected], abs=5e-3)


@pytest.mark.model
def test_a_second_query_over_the_same_chunks_encodes_only_itself(late: LateInteraction, embedder: Counting) -> None:
    first = late.score("hill giant", [GIANT, OWL, GIANT])
    assert sorted(embedder.encoded) == sorted(["hill giant", GIANT, OWL])
    embedder.encoded.clear()
    late.score("owl", [OWL, GIANT])
    assert embedder.encoded == ["owl"]
    assert late.score("hill giant", [GIANT, OWL, GIANT]) == first


@pytest.mark.model
def test_a_chunk_larger_than_the_cache_gets_its_score(late: LateInteraction, embedder: Counting) -> None:
    assert LateInteraction(embedder, cache_bytes=1).score("owl", [OWL]) == late.score("owl", [OWL])


@pytest.mark.model
def test_odd_texts_and_queries_get_a_score(late: LateInteraction) -> None:
    for odd in ["", "\x00", "a\ud800", "x" * 100_000, "🙂"]:
        for score in (*late.score("owl", [odd, OWL]), *late.score(odd, [OWL])):
            assert 0 < score < 1, odd[:9]


def test_late_interaction_without_its_model_says_so(tmp_path: Path) -> None:
    late = LateInteraction(BundledEmbedder(tmp_path))
    with pytest.raises(ModelError, match="cannot be read"):
        late.score("owl", [OWL])


def test_a_cross_encoder_scores_through_a_sigmoid(cross_encoders: Path) -> None:
    import torch
    from transformers import BertForSequenceClassification, BertTokenizer

    reranker = CrossEncoderReranker(str(cross_encoders / "one"))
    assert reranker.name == f"cross_encoder:{cross_encoders / 'one'}"
    texts = ["the giant", "a owl", "the giant", ""]
    scores = reranker.score("owl", texts)

    tokenizer = BertTokenizer.from_pretrained(cross_encoders / "one")
    model = BertForSequenceClassification.from_pretrained(cross_encoders / "one").eval()
    for text, score in zip(texts, scores, strict=True):
        with torch.no_grad():
            logit = float(model(**tokenizer("owl", text, return_tensors="pt")).logits[0, 0])
        assert score == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-5)
    assert scores[0] == pytest.approx(scores[2])
