"""Opens a workspace and all its parts, each once: store, models, journal, labels, votes, runs and drafts.

Source: docs/design.md#parts. The command line opens a workbench for one command; the app keeps one open while its
server runs. A workbench is thread-safe. `overview` lists its collections. Heavy modules (chromadb, torch) are imported
on first use."""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ragfilter.answer.answer import AnswerCache
from ragfilter.errors import CollectionMissing, StoreError
from ragfilter.judge import prompts as judge_prompts
from ragfilter.judge.call import JudgementCache
from ragfilter.layers.quality import reranker_key
from ragfilter.model import UNRESTRICTED, User
from ragfilter.models.embedders import BUNDLED, OPENAI, BundledEmbedder, SentenceEmbedder
from ragfilter.models.pruners import SentencePruner
from ragfilter.models.rerankers import CrossEncoderReranker, HttpReranker, LateInteraction, RerankEndpoint
from ragfilter.protocols import Prices, Pruner, ReplyStore, Reranker
from ragfilter.rules.journal import Journal
from ragfilter.settings.deployment import Deployment
from ragfilter.settings.schema import Quality
from ragfilter.stores.label_book import LabelBook, visible_labels
from ragfilter.stores.preferences import PreferenceBook
from ragfilter.stores.run_store import Runs
from ragfilter.stores.workspace_files import Workspace
from ragfilter.text.urls import shown

if TYPE_CHECKING:
    from ragfilter.engine.gather import Backends
    from ragfilter.models.openai import OpenAIChat, OpenAIEmbedder
    from ragfilter.rules.drafting import DraftStore
    from ragfilter.rules.templates import Template
    from ragfilter.stores.base import CollectionInfo
    from ragfilter.stores.chroma import Server
    from ragfilter.stores.opening import Stores
    from ragfilter.stores.qdrant import QdrantPlace
    from ragfilter.stores.workspace_files import StoredCollection

    NamedEmbedder = BundledEmbedder | SentenceEmbedder | OpenAIEmbedder

log = logging.getLogger(__name__)
Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Workbench:
    """The open parts. Create it with `open`, and use it in a `with` statement or close it. `chat` is None without an
    LLM endpoint. `judgements` caches the LLM's verdicts, and `replies` stores verdicts and answers for later runs."""

    deployment: Deployment
    workspace: Workspace
    embedder: NamedEmbedder
    chat: OpenAIChat | None
    _closing: ExitStack
    judgements: JudgementCache = field(default_factory=JudgementCache)
    replies: ReplyStore | None = None
    _made: dict[object, Any] = field(default_factory=dict)
    _before_closing: list[Callable[[], None]] = field(default_factory=list)
    _making: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def open(cls, deployment: Deployment, *, kind: str = "ragfilter") -> Self:
        """Open the workspace that `deployment` names, and settle any edits that a stopped process left unfinished. No
        model is loaded yet. `kind` tells other processes what has the workspace open ("app", "query"). Raises
        WorkspaceLocked, StoreError or InputError, and then leaves nothing open."""
        with ExitStack() as closing:
            judge_prompts.use_folder(prompt_folder(deployment))
            workspace = closing.enter_context(open_files_and_store(deployment, kind))
            if workspace.address:
                # Now, so that a database that does not answer is reported once.
                workspace.store()
            chat = chat_of(deployment)
            if chat is not None:
                closing.callback(chat.close)
            replies = None
            if chat is not None and deployment.cache_mb:
                from ragfilter.stores.caches import ReplyCache

                replies = ReplyCache(workspace.path, deployment.address, deployment.cache_mb)
                closing.callback(replies.close)
            endpoint = chat.endpoint if chat is not None else ""
            bench = cls(
                deployment=deployment,
                workspace=workspace,
                embedder=make_embedder(deployment.embedding_model, deployment, closing),
                chat=chat,
                _closing=closing.pop_all(),
                judgements=JudgementCache(replies=replies, endpoint=endpoint),
                replies=replies,
            )
        try:
            _settle_edits(bench)
        except BaseException:
            bench.close()
            raise
        return bench

    def __repr__(self) -> str:
        place = shown(self.deployment.address) if self.deployment.address else self.workspace.path
        return f"<{type(self).__name__}: {place}>"

    @property
    def journal(self) -> Journal:
        """The journal of edits. Like the books below, raises StoreError, and InputError if the URL is bad."""
        return self._open_book(Journal)

    @property
    def answers(self) -> AnswerCache:
        """The LLM's earlier answers."""
        return AnswerCache(self.replies, "" if self.chat is None else self.chat.endpoint)

    @property
    def prices(self) -> Prices | None:
        """The token prices, or None if none are set."""
        where = self.deployment
        prices = Prices(where.price_prompt, where.price_completion, where.currency)
        return prices if prices.prompt or prices.completion else None

    @property
    def labels(self) -> LabelBook:
        """The book of labels."""
        return self._open_book(LabelBook)

    @property
    def preferences(self) -> PreferenceBook:
        """The answers that people prefer."""
        return self._open_book(PreferenceBook)

    @property
    def runs(self) -> Runs:
        """The saved evaluations."""
        return self._open_book(Runs)

    @property
    def drafts(self) -> DraftStore:
        """The drafts of rules that await review."""
        from ragfilter.rules.drafting import DraftStore

        return self._open_book(DraftStore)

    def templates(self) -> tuple[Template, ...]:
        """The prompt templates, the user's own before the packaged ones. Raises InputError."""
        from ragfilter.rules.templates import packaged, with_folder

        folder = Path(self.deployment.rule_templates or self.workspace.path / "templates")
        return with_folder(folder) if self.deployment.rule_templates or folder.exists() else packaged()

    def collections(self) -> tuple[CollectionInfo, ...]:
        """Every collection, sorted by name, including foreign ones opened in other folders. Raises StoreError."""
        return self.stores.infos()

    @property
    def stores(self) -> Stores:
        """The stores that hold the collections."""
        from ragfilter.stores.opening import Stores

        return self.once(Stores, partial(Stores, self.workspace), close=True)

    def recorded_embedder(self, name: str) -> NamedEmbedder:
        """The embedding model that a collection was opened or made with. A model named in the
        environment applies to every collection except foreign ones. Raises StoreError."""
        if self.deployment.embedding_model:
            return self.load_embedder(self.stores.opening(name).embedder)
        return self.load_embedder(self.stores.embedder(name))

    def query_embedder(self, collection: StoredCollection) -> NamedEmbedder:
        """The embedding model for queries to a collection. Raises StoreError for a foreign one
        if nothing says that this model made its vectors: another model's results mean nothing."""
        name = collection.name
        embedder = self.recorded_embedder(name)
        if collection.ours or self.stores.opening(name).embedder:
            return embedder
        from ragfilter.stores.opening import embedder_hint

        if embedder_hint(collection) != embedder.name:
            remedy = "Open it under Collections, with the embedding model that made them."
            what = f"Nothing says that {embedder.name} made the vectors of {name!r}."
            raise StoreError(what, remedy=remedy, action="open")
        return embedder

    def load_embedder(self, model: str) -> NamedEmbedder:
        """An embedding model by name or path, created once; the workspace's if `model` is empty."""
        if model in ("", self.embedder.name):
            return self.embedder
        make = partial(make_embedder, model, self.deployment, self._closing)
        return self.once((make_embedder, model), make)

    def collection(self, name: str) -> StoredCollection:
        """The collection called `name`. Raises CollectionMissing, and StoreError if another model made its vectors."""
        try:
            # Its own model need not be checked.
            named = self.deployment.embedding_model or self.stores.opening(name).embedder
            embedder = self.recorded_embedder(name).name if named else ""
            return self.stores.of(name).collection(name, embedder=embedder)
        except CollectionMissing:
            names = ", ".join(info.name for info in self.collections())
            known = f"There are: {names}. " if names else ""
            what, copy = f"There is no collection {name!r}", "but there is a copy of it"
            if name in self.workspace.copied():
                remedy = f"{known}Rebuild it from the copy."
                raise CollectionMissing(f"{what}, {copy}.", remedy=remedy, action="rebuild") from None
            raise CollectionMissing(f"{what}.", remedy=f"{known}Index one first.", action="index") from None

    def version_seen(self, name: str, user: User) -> str:
        """The version of a collection as `user` sees it, without hidden chunks. Raises StoreError."""
        collection = self.collection(name)
        make = partial(self.workspace.version_seen, collection, user)
        return self.once((Workspace.version_seen, name, collection.version, user), make)

    def reranker(self, quality: Quality) -> Reranker:
        """The reranker that the settings ask for, created once; a cross-encoder is loaded here. Raises ModelError."""
        key = (Reranker, reranker_key(quality), quality.reranker_batch, quality.reranker_timeout_ms)
        model = self.once(key, partial(self._make_reranker, quality))
        if isinstance(model, CrossEncoderReranker):
            # Now, since loading may take longer than the time limit for scoring.
            model.prepare()
        return model

    @property
    def rerank_endpoint(self) -> RerankEndpoint:
        """The HTTP endpoint of a reranker."""
        where = self.deployment
        key = where.rerank_key.get_secret_value()
        return RerankEndpoint(where.rerank_url, key, where.price_rerank, where.currency)

    @property
    def pruner(self) -> Pruner:
        """The bundled pruner, with the workspace's embedding model."""
        return SentencePruner(self.embedder)

    def backends(self, name: str) -> Backends:
        """The store and models that `gather` needs for this collection. Raises StoreError."""
        from ragfilter.engine.gather import Backends

        collection = self.collection(name)
        models = self.reranker, self.chat, self.judgements, self.pruner
        return Backends(collection, self.query_embedder(collection), *models)

    def before_closing(self, call: Callable[[], None]) -> None:
        """Register `call` to run before anything is closed."""
        self._before_closing.append(call)

    def close(self) -> None:
        """Close everything, in reverse order. A second call does nothing."""
        while self._before_closing:
            self._before_closing.pop()()
        self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open_book(self, book: Callable[[str], Part]) -> Part:
        """A book of the workspace's database, opened once."""
        return self.once(book, partial(book, self.workspace.database_url), close=True)

    def once(self, key: object, make: Callable[[], Part], *, close: bool = False) -> Part:
        """The part with this key, created on first use; with `close`, it is closed at the end."""
        with self._making:
            if key not in self._made:
                self._made[key] = make()
                if close:
                    self._closing.callback(self._made[key].close)
            part: Part = self._made[key]
            return part

    def _make_reranker(self, quality: Quality) -> Reranker:
        if quality.reranker == "cross_encoder":
            return CrossEncoderReranker(quality.reranker_model, fetch=self.deployment.fetch_models)
        if quality.reranker == "http":
            timeout_s, batch = quality.reranker_timeout_ms / 1000, quality.reranker_batch
            endpoint, model = self.rerank_endpoint, quality.reranker_model
            reranker = HttpReranker(model, endpoint, timeout_s=timeout_s, batch=batch)
            self._closing.callback(reranker.close)
            return reranker
        # Its scores are fitted to the bundled model, whichever model made the collection.
        embedder = self.embedder
        return LateInteraction(embedder if isinstance(embedder, BundledEmbedder) else None)


def open_files_and_store(deployment: Deployment, kind: str) -> Workspace:
    """Open the files and store of a workspace. Takes `kind` and raises errors as `Workbench.open` does."""
    server: Server | QdrantPlace | None = None
    if deployment.qdrant_url and not deployment.address:
        from ragfilter.stores.qdrant import QdrantPlace

        server = QdrantPlace(deployment.qdrant_url, deployment.qdrant_key.get_secret_value())
    elif deployment.chroma_url and not deployment.address:
        from ragfilter.stores.chroma import Server

        server = Server(deployment.chroma_url, timeout_s=deployment.chroma_timeout_s)
    return Workspace.open(
        deployment.data_dir,
        kind=kind,
        server=server,
        database_url=deployment.database_url,
        address=deployment.address,
        catalogue_limit=deployment.catalogue_limit,
    )


def prompt_folder(deployment: Deployment) -> Path | None:
    """The folder of the user's own judge prompts: as configured, else in the workspace; None if there is none."""
    if deployment.judge_prompts:
        return Path(deployment.judge_prompts)
    folder = deployment.data_dir / "prompts"
    # Never an error: opening the workspace reports what is wrong with its path.
    return folder if os.path.isdir(os.path.expanduser(folder)) else None  # noqa: PTH111, PTH112


def chat_of(deployment: Deployment) -> OpenAIChat | None:
    """The configured LLM, or None. The caller closes it."""
    key = deployment.openai_api_key.get_secret_value()
    # Local servers need no key.
    if not key and not deployment.openai_base_url:
        return None
    from ragfilter.models.openai import OpenAIChat

    return OpenAIChat(model=deployment.openai_model, api_key=key, base_url=deployment.openai_base_url)


def make_embedder(model: str, deployment: Deployment, closing: ExitStack) -> NamedEmbedder:
    """The embedding model, not loaded yet: ``openai:NAME``, or a name or path; the bundled one if empty. Raises
    SettingsError."""
    if model in ("", BUNDLED, f"sentence-transformers/{BUNDLED}"):
        return BundledEmbedder()
    if not model.startswith(OPENAI):
        return SentenceEmbedder(model, fetch=deployment.fetch_models)
    from ragfilter.models.openai import OpenAIEmbedder

    name, key = model.removeprefix(OPENAI), deployment.openai_api_key.get_secret_value()
    embedder = OpenAIEmbedder(name, api_key=key, base_url=deployment.openai_base_url)
    closing.callback(embedder.close)
    return embedder


def _settle_edits(bench: Workbench) -> None:
    """Finish or roll back unfinished rule edits. A failing journal is only logged: searching does not need it."""
    try:
        unfinished = bench.journal.unfinished()
    except StoreError as error:
        log.warning("rules cannot be edited or restored: %s", error)
        return
    if not unfinished:
        return
    from ragfilter.rules.edits import STALE_S, recover

    age = STALE_S if bench.workspace.shared else 0.0
    for name in sorted({edit.collection for edit in unfinished}):
        try:
            settled = recover(bench.stores.of(name).collection(name), bench.journal, min_age_s=age)
        except StoreError as error:
            log.warning("unfinished edits in %s stay unfinished: %s", name, error)
            continue
        for edit in settled:
            if edit.batch is None:
                log.warning("the unfinished edit of %s is now %s", edit.chunk_id, edit.state)
        sizes = Counter((edit.batch, edit.state) for edit in settled if edit.batch is not None)
        for (_, state), size in sizes.items():
            log.warning("the unfinished change of %d rules is now %s", size, state)


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a collection. If unknown, `model` is empty and a figure is None."""

    info: CollectionInfo
    model: str
    chunks: int | None
    rules: int | None
    labels: int | None
    changed: datetime | None


def overview(bench: Workbench, user: User = UNRESTRICTED) -> tuple[Facts, ...]:
    """The facts of every collection, sorted by name, counting only chunks that `user` can see. Raises StoreError."""
    return tuple(_facts(bench, info, user) for info in bench.collections())


def _facts(bench: Workbench, info: CollectionInfo, user: User) -> Facts:
    chunks = info.count if user.unrestricted else None
    rules = labels = None
    with suppress(StoreError):
        known = bench.stores.of(info.name).collection(info.name).catalogue()
        if known is not None:
            chunks = known.visible(user)
            rules = sum(1 for chunk in known.values() if chunk.rule and user.sees(chunk))
            labels = len(visible_labels(bench.labels.standing(info.name), known, user))
    model = info.embedder or bench.stores.opening(info.name).embedder
    return Facts(info, model, chunks, rules, labels, _changed(bench, info))


def _changed(bench: Workbench, info: CollectionInfo) -> datetime | None:
    """When the collection was last indexed or one of its rules edited."""
    times = []
    with suppress(StoreError):
        edits = bench.journal.history(info.name)
        times += [edit.at for edit in edits if edit.state in ("done", "undone")][:1]
    with suppress(OSError, StoreError):
        times += filter(None, [bench.workspace.contents.changed().get(info.name)])
    return max(times).astimezone() if times else None
