"""Who asks decides what is seen, whatever the settings say: every way in, with every profile."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests
from llama_index.core.schema import NodeWithScore, TextNode

import ragfilter as rf
from ragfilter.cli.program import main
from ragfilter.library.langchain import FilterRetriever, chunk_tools
from ragfilter.library.tools import ChunkTools
from ragfilter.settings.config import of_profile
from ragfilter.settings.profiles import PROFILES
from ragfilter.workbench import Workbench

QUERY = "What is the vault like?"
VAULT: dict[str, tuple[str, dict[str, Any]]] = {
    "open": ("The vault is open.", {}),
    "note": ("The vault is deep.", {"clearance": 1}),
    "ops": ("The vault is locked at night.", {"department": "ops"}),
    "hr": ("The vault is cleaned by day.", {"department": "hr", "clearance": 3}),
    "odd": ("The vault is odd.", {"clearance": "secret"}),
}
"""An unreadable clearance hides a chunk from every named user."""
GUEST, OPS, CHIEF = rf.User(0), rf.User(1, ("ops",)), rf.User(9, ("hr", "ops"))
SEEN = {GUEST: {"open"}, OPS: {"open", "note", "ops"}, CHIEF: {"open", "note", "ops", "hr"}}
EVERYTHING = set(VAULT)
DISTANCES = dict(zip(VAULT, (0.2, 0.21, 0.22, 0.23, 0.24), strict=True))

Ask = Callable[[rf.Filter, rf.User | None], Iterable[str]]


class Near(Embeddings):
    """Every text is at its distance of `DISTANCES` from any query."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        known = {text: DISTANCES[i] for i, (text, _) in VAULT.items()}
        return [[1 - known[t], (1 - (1 - known[t]) ** 2) ** 0.5] for t in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0, 0.0]


def store() -> InMemoryVectorStore:
    made = InMemoryVectorStore(Near())
    made.add_documents([Document(t, id=i, metadata=dict(m)) for i, (t, m) in VAULT.items()])
    return made


def rows() -> list[dict[str, Any]]:
    return [{"id": i, "text": text} | more for i, (text, more) in VAULT.items()]


def documents() -> list[Document]:
    return [Document(text, id=i, metadata=more | {"score": DISTANCES[i]}) for i, (text, more) in VAULT.items()]


def nodes() -> list[NodeWithScore]:
    return [
        NodeWithScore(node=TextNode(text=text, id_=i, metadata=more), score=1 - DISTANCES[i])
        for i, (text, more) in VAULT.items()
    ]


def haystack_documents() -> list[Any]:
    import haystack

    return [
        haystack.Document(id=i, content=text, meta=dict(more), score=DISTANCES[i]) for i, (text, more) in VAULT.items()
    ]


def library(flt: rf.Filter, user: rf.User | None) -> Iterable[str]:
    return [hit.id for hit in flt(QUERY, rows(), DISTANCES.values(), metric="cosine", user=user)]


def compressor(flt: rf.Filter, user: rf.User | None) -> Iterable[str]:
    made = flt.as_langchain(metric="cosine", user=user)
    return [str(doc.id) for doc in made.compress_documents(documents(), QUERY)]


def compressor_per_call(flt: rf.Filter, user: rf.User | None) -> Iterable[str]:
    made = flt.as_langchain(metric="cosine", user=CHIEF if user else None)
    kept = made.compress_documents(documents(), QUERY, user=user)
    assert asyncio.run(made.acompress_documents(documents(), QUERY, user=user)) == kept
    return [str(doc.id) for doc in kept]


def retriever(flt: rf.Filter, user: rf.User | None) -> Iterable[str]:
    made = flt.as_langchain_retriever(store(), metric="similarity", user=user)
    return [str(doc.id) for doc in made.invoke(QUERY)]


def _chiefs(flt: rf.Filter, user: rf.User | None) -> FilterRetriever:
    """A retriever whose own user sees more than the one of the call."""
    asker = CHIEF if user else None
    return flt.as_langchain_retriever(store(), metric="similarity", user=asker)


def retriever_per_call(flt: rf.Filter, user: rf.User | None) -> Iterable[str]:
    return [str(doc.id) for doc in _chiefs(flt, user).invoke(QUERY, user=user)]


def retriever_awaited(flt: rf.Filter, user: rf.User | None) -> Iterable[str]:
    return [str(doc.id) for doc in asyncio.run(_chiefs(flt, user).ainvoke(QUERY, user=user))]


def retriever_configured(flt: rf.Filter, user: rf.User | None) -> Iterable[str]:
    chain = _chiefs(flt, user) | RunnableLambda(lambda docs: [str(doc.id) for doc in docs])
    return list(chain.invoke(QUERY, config={"configurable": {"user": user}}))


def llamaindex(flt: rf.Filter, user: rf.User | None) -> Iterable[str]:
    made = flt.as_llamaindex(metric="similarity", exponential=False, user=user)
    return [node.node_id for node in made.postprocess_nodes(nodes(), query_str=QUERY)]


def llamaindex_per_call(flt: rf.Filter, user: rf.User | None) -> Iterable[str]:
    made = flt.as_llamaindex(metric="similarity", exponential=False, user=CHIEF if user else None)
    kept = made.postprocess_nodes(nodes(), query_str=QUERY, user=user)
    awaited = made.apostprocess_nodes(nodes(), query_str=QUERY, user=user)
    assert [node.node_id for node in asyncio.run(awaited)] == [node.node_id for node in kept]
    return [node.node_id for node in kept]


def component(flt: rf.Filter, user: rf.User | None) -> Iterable[str]:
    made = flt.as_haystack(metric="cosine", user=user)
    return [doc.id for doc in made.run(QUERY, haystack_documents())["documents"]]


def pipeline(flt: rf.Filter, user: rf.User | None) -> Iterable[str]:
    import haystack

    made = haystack.Pipeline()
    made.add_component("filter", flt.as_haystack(metric="cosine", user=CHIEF if user else None))
    given = {"query": QUERY, "documents": haystack_documents()} | ({"user": user} if user else {})
    kept = made.run({"filter": given})["filter"]["documents"]
    awaited = asyncio.run(made.run_async({"filter": given}))["filter"]["documents"]
    assert awaited == kept
    return [doc.id for doc in kept]


WAYS: tuple[Ask, ...] = (
    library,
    compressor,
    compressor_per_call,
    retriever,
    retriever_per_call,
    retriever_awaited,
    retriever_configured,
    llamaindex,
    llamaindex_per_call,
    component,
    pipeline,
)


def test_a_user_sees_no_more_than_they_may_in_any_profile() -> None:
    for ask in WAYS:
        name = ask.__name__
        for profile in PROFILES:
            own = rf.Filter(profile)
            off = rf.Filter(own.settings.with_values({"clearance.enabled": False}))
            for flt in (own, off):
                for user, seen in SEEN.items():
                    kept = set(ask(flt, user))
                    assert kept, (name, profile, user)
                    assert kept <= seen, (name, profile, user)
            # Without a user the settings decide.
            public = own.settings.clearance.enabled
            assert set(ask(own, None)) <= (SEEN[GUEST] if public else EVERYTHING), (name, profile)
            assert len(set(ask(off, None))) > 1, (name, profile)
            assert len(set(ask(own, rf.User(unrestricted=True)))) > 1, (name, profile)


def test_a_result_says_that_the_layer_was_on() -> None:
    result = rf.Filter("unfiltered")(QUERY, rows(), user=OPS)
    assert (result.user, result.settings.clearance.enabled) == (OPS, True)
    assert result.trace("clearance").enabled
    assert {hit.id for hit in result.hits} == SEEN[OPS]
    for hidden in EVERYTHING - SEEN[OPS]:
        assert VAULT[hidden][0] not in json.dumps(result.to_dict())


# LangChain


@pytest.fixture
def ten() -> InMemoryVectorStore:
    """Ten documents that `unfiltered` keeps, of levels 0 to 3."""
    made = InMemoryVectorStore(_Same())
    made.add_documents([Document(f"part {i}", id=f"{i}", metadata={"clearance": i % 4}) for i in range(10)])
    return made


class _Same(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        places = [int(text.rpartition(" ")[2]) / 20 for text in texts]
        return [[1 - p, (1 - (1 - p) ** 2) ** 0.5] for p in places]

    def embed_query(self, text: str) -> list[float]:
        return [1.0, 0.0]


def test_k_is_how_many_documents_are_returned_at_most(ten: InMemoryVectorStore) -> None:
    for own, given, kept in [
        ({}, {}, "0 1 2 3 4 5 6 7 8 9"),
        ({"k": 3}, {}, "0 1 2"),
        ({"k": 3}, {"k": 5}, "0 1 2 3 4"),
        # The first `fetch_k` hits are filtered, or more if more are wanted.
        ({"fetch_k": 2}, {}, "0 1"),
        ({"fetch_k": 2}, {"k": 4}, "0 1 2 3"),
        # The first three that the user can see.
        ({"k": 3}, {"user": GUEST}, "0 4 8"),
        ({"k": 2, "user": GUEST}, {"user": rf.User(1)}, "0 1"),
    ]:
        made = rf.Filter("unfiltered").as_langchain_retriever(ten, metric="similarity", **own)
        assert " ".join(str(doc.id) for doc in made.invoke(QUERY, **given)) == kept
        assert " ".join(str(doc.id) for doc in asyncio.run(made.ainvoke(QUERY, **given))) == kept
        configured = made.invoke(QUERY, config={"configurable": given})
        assert " ".join(str(doc.id) for doc in configured) == kept


def test_each_question_of_a_batch_may_have_its_own_user(ten: InMemoryVectorStore) -> None:
    made = rf.Filter("unfiltered").as_langchain_retriever(ten, metric="similarity", user=CHIEF)
    configs: Any = [{"configurable": {"user": user}} for user in (GUEST, rf.User(1))] + [{}]
    found = made.batch([QUERY] * 3, configs)
    assert [len(docs) for docs in found] == [3, 6, 10]
    assert [len(docs) for docs in asyncio.run(made.abatch([QUERY] * 3, configs))] == [3, 6, 10]


@pytest.mark.parametrize("given", [{"k": 0}, {"k": -1}, {"k": "3"}, {"k": 2.5}, {"user": "bob"}, {"user": 0}])
def test_a_k_or_user_that_is_none_is_refused(ten: InMemoryVectorStore, given: dict[str, Any]) -> None:
    made = rf.Filter("unfiltered").as_langchain_retriever(ten, metric="similarity")
    with pytest.raises(rf.RagfilterError):
        made.invoke(QUERY, **given)
    with pytest.raises(rf.RagfilterError):
        made.invoke(QUERY, config={"configurable": given})


@pytest.mark.parametrize("user", [0, {}, "", [], False, "bob", (), 0.0])
def test_a_user_who_is_none_is_refused_whatever_its_truth(user: Any) -> None:
    flt = rf.Filter("unfiltered")
    compress = flt.as_langchain(metric="cosine", user=CHIEF)
    nodes_of = flt.as_llamaindex(metric="similarity", exponential=False, user=CHIEF)
    component = flt.as_haystack(metric="cosine", user=CHIEF)
    calls: tuple[Callable[[], object], ...] = (
        lambda: compress.compress_documents(documents(), QUERY, user=user),
        lambda: asyncio.run(compress.acompress_documents(documents(), QUERY, user=user)),
        lambda: nodes_of.postprocess_nodes(nodes(), query_str=QUERY, user=user),
        lambda: component.run(QUERY, haystack_documents(), user),
        lambda: library(flt, user),
    )
    for call in calls:
        with pytest.raises(rf.RagfilterError, match="The user is"):
            call()


def test_what_nobody_reads_is_refused(ten: InMemoryVectorStore) -> None:
    made = rf.Filter("unfiltered").as_langchain_retriever(ten, metric="similarity")
    with pytest.raises(TypeError, match="users"):
        made.invoke(QUERY, users=[GUEST])


class TestRetriever(RetrieversIntegrationTests):
    """LangChain's own tests of a retriever."""

    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @property
    def retriever_constructor(self) -> type[FilterRetriever]:
        return FilterRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"filter": rf.Filter("unfiltered"), "store": store(), "metric": "similarity"}

    @property
    def retriever_query_example(self) -> str:
        return QUERY


def test_lost_scores_name_the_retriever_that_keeps_them(caplog: pytest.LogCaptureFixture) -> None:
    compress = rf.Filter("adaptive-gap").as_langchain(metric="cosine").compress_documents
    with caplog.at_level(logging.WARNING):
        compress(documents(), QUERY)
        assert "as_langchain_retriever" not in caplog.text
        # As ContextualCompressionRetriever does over the store's own retriever.
        compress(store().as_retriever().invoke(QUERY), QUERY)
    assert "as_langchain_retriever" in caplog.text


# An open workspace


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("vault")
    source = made / "vault.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows()), encoding="utf-8")
    assert main(["index", str(source), "-c", "vault", "--data-dir", str(made / "ws")]) == 0
    return made / "ws"


@pytest.fixture(scope="module")
def bench(folder: Path) -> Iterator[Workbench]:
    with rf.open_workspace(folder) as opened:
        yield opened


def flags(user: rf.User) -> list[str]:
    departments = [word for name in user.departments for word in ("--department", name)]
    return ["--level", str(user.level), *departments]


OFF = [(), ("--set", "clearance.enabled=false")]


@pytest.mark.model
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("off", OFF)
def test_a_user_of_the_command_line_sees_no_more_in_any_profile(
    folder: Path, profile: str, off: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["-c", "vault", "--data-dir", str(folder), *off]
    for user, seen in SEEN.items():
        capsys.readouterr()
        assert main(["query", QUERY, "--json", "-p", profile, *where, *flags(user)]) == 0
        printed = capsys.readouterr().out
        assert set(json.loads(printed)["kept"]) <= seen
        assert not [i for i in EVERYTHING - seen if VAULT[i][0] in printed]


@pytest.mark.model
@pytest.mark.parametrize("off", OFF)
def test_a_user_of_the_command_line_lists_and_exports_no_more(
    folder: Path, off: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    hidden = [text for i, (text, _) in VAULT.items() if i != "open"]
    guest = flags(GUEST)
    for command in (["rules", "list"], ["collections", "export", "vault"]):
        into = ["--data-dir", str(folder), *off, *guest]
        main([*command, *([] if command[0] == "collections" else ["-c", "vault"]), *into])
        printed = capsys.readouterr().out
        assert not [text for text in hidden if text in printed], command


@pytest.mark.model
def test_a_user_of_an_open_workspace_sees_no_more_in_any_profile(bench: Workbench) -> None:
    for profile in PROFILES:
        for user, seen in SEEN.items():
            found = bench["vault"].search(QUERY, profile, user=user)
            assert {hit.id for hit in found.hits} <= seen
            tools = ChunkTools(bench, "vault", of_profile("full"), user)
            for each in (None, *PROFILES):
                told = tools.search_chunks(QUERY, profile=each)
                assert {chunk["id"] for chunk in told["chunks"]} <= seen
            assert {c["id"] for c in tools.get_chunks(list(VAULT))["chunks"]} == seen


@pytest.mark.model
def test_the_tools_of_an_agent_ask_as_the_user_of_the_run(bench: Workbench) -> None:
    search, get = chunk_tools(bench, "vault", settings="unfiltered", user=CHIEF)
    asked = {"query": QUERY}
    for user, seen in SEEN.items():
        config: Any = {"configurable": {"user": user}}
        assert {c["id"] for c in search.invoke(asked, config)["chunks"]} == seen
        awaited = asyncio.run(get.ainvoke({"ids": list(VAULT)}, config))
        assert {c["id"] for c in awaited["chunks"]} == seen
    assert {c["id"] for c in search.invoke(asked)["chunks"]} == SEEN[CHIEF]
    assert "The user is 'bob'" in str(search.invoke(asked, {"configurable": {"user": "bob"}}))
