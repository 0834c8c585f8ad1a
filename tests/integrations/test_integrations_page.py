"""The snippets of docs/integrations.md run as they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core.schema import NodeWithScore, TextNode

PAGE = Path(__file__).resolve().parents[2] / "docs" / "integrations.md"
GAP = (0.12, 0.18, 0.22, 0.35, 0.50)


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_snippets_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import haystack

    monkeypatch.chdir(folder.parent)
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_texts(["Trolls regenerate."])
    names: dict[str, Any] = {
        "query": "How strong is a troll?",
        "vector_store": store,
        "documents": [Document(f"part {i}", metadata={"score": d}) for i, d in enumerate(GAP)],
        "haystack_documents": [haystack.Document(content=f"part {i}", score=1 - d) for i, d in enumerate(GAP)],
        "nodes": [NodeWithScore(node=TextNode(text=f"part {i}"), score=1 - d) for i, d in enumerate(GAP)],
    }
    assert len(blocks()) == 2
    for block in blocks():
        exec(compile(block, PAGE.name, "exec"), names)
    assert names["nodes"]
    assert [doc.content for doc in names["documents"]] == [f"part {i}" for i in range(4)]
    assert [tool.name for tool in names["tools"]] == ["search_chunks", "get_chunks"]
