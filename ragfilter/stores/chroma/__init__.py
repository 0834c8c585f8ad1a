"""Chroma as a store. Everything here needs the extra `chroma`."""

from __future__ import annotations

from ragfilter.basics.extras import extra

with extra("chroma"):
    import chromadb as chromadb
    import httpx as httpx
    import packaging as packaging
