"""The workspace: its files, and the lock that keeps other processes out.

Source: docs/design.md#chroma: two processes on one embedded Chroma folder lose data silently.

    chroma/         the embedded vector store
    copies/         our own copy of every indexed collection (Parquet)
    settings/       settings saved under a name (TOML)
    prompts/        the user's own prompts for the judge (TOML)
    templates/      the user's own prompt templates for drafts of rules
    catalogues/     the chunks of collections without their texts (Parquet)
    uploads/        uploaded files that wait to be indexed
    foreign.json    how foreign collections are opened
    ragfilter.db    journal, labels, drafts of rules, preferences, runs (SQLite)
    sentences.db    vectors of the chunks' sentences, for answers, and of unfinished indexing (SQLite)
    cache.db        answers of LLMs, for later runs (SQLite)
    .lock           locked while a process owns the folder
    .owner.json     a note on that process; only read if the lock is taken

Threads of one process (Streamlit sessions are threads) share one open workspace: opening the same folder again returns
the same object, which closes after as many calls of `close` as of `open`. With a vector server, nothing here needs a
single owner, so the folder is not locked. A workspace at an address (``postgresql://…``) is in that database; its
folder holds uploads and copies of settings."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from datetime import datetime
from functools import cached_property
from hashlib import blake2b
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ragfilter.basics import database
from ragfilter.basics.database import TEXT
from ragfilter.basics.files import TextFiles
from ragfilter.errors import InputError, WorkspaceLocked, extra
from ragfilter.model import User

with extra("chroma"):
    import sqlalchemy as sa
    from filelock import BaseFileLock, FileLock, Timeout

if TYPE_CHECKING:
    from ragfilter.stores.base import VersionedCollection, VersionedStore
    from ragfilter.stores.caches import VectorCache
    from ragfilter.stores.chroma import Server
    from ragfilter.stores.copies import Copies
    from ragfilter.stores.postgres.foreign import TableCollection
    from ragfilter.stores.postgres.store import PgCollection, PgStore
    from ragfilter.stores.qdrant import QdrantPlace

    Store: TypeAlias = VersionedStore[Any] | PgStore
    StoredCollection: TypeAlias = VersionedCollection | PgCollection | TableCollection

# One per process, like the lock: Chroma also has only one system per folder and process.
_open: dict[Path, Workspace] = {}
_opening = threading.RLock()
_files = database.table("workspace_files", sa.UniqueConstraint("name"), name=TEXT, text=TEXT)


class Workspace:
    """The files, lock and store of a workspace. Open it with `Workspace.open`, and use it in a `with` or close it."""

    def __init__(
        self, path: Path, server: Server | QdrantPlace | None, database_url: str, catalogue_limit: float, address: str
    ) -> None:
        self.path = path
        self.server = server
        self.address = address
        self.database_url = database_of(path, database_url, address)
        self.files = text_files(path, address)
        self._catalogue_limit = catalogue_limit
        self._lock = lock_file(path / ".lock")
        self._store: Store | None = None
        self._times_open = 0

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        kind: str = "ragfilter",
        server: Server | QdrantPlace | None = None,
        database_url: str = "",
        catalogue_limit: float = inf,
        address: str = "",
    ) -> Workspace:
        """Open the folder at `path`, and create it if it is missing.

        `kind` tells other processes what has it open ("app", "index"). With `server`, the vectors are on that server,
        and if others share it, the folder is not locked. With `address`, everything is in that database. Searches use
        no catalogue for collections with more chunks than `catalogue_limit`. Raises WorkspaceLocked, and InputError if
        `path` is unusable."""
        folder = _folder(path)
        with _opening:
            workspace = _open.get(folder)
            if workspace is None:
                workspace = cls(folder, server, database_url, catalogue_limit, address)
                if not workspace.shared:
                    workspace._own(kind)
                _open[folder] = workspace
            elif (workspace.server, workspace.address) != (server, address):
                message = f"The workspace {folder} is already open with another vector store."
                raise InputError(message, remedy="Close it first, or open another folder.")
            workspace._times_open += 1
            return workspace

    @property
    def shared(self) -> bool:
        """Whether other processes can open it too."""
        return bool(self.address) or (self.server is not None and self.server.shared)

    def versioned_store(self) -> VersionedStore[Any]:
        """The store of a workspace in a folder. Raises StoreError."""
        return cast("VersionedStore[Any]", self.store())

    @property
    def chroma_dir(self) -> Path:
        return self.path / "chroma"

    @property
    def copies_dir(self) -> Path:
        return self.path / "copies"

    @property
    def contents(self) -> Copies | PgStore:
        """What was indexed: our own copies of the collections, or the database. Raises StoreError."""
        if self.address:
            return cast("PgStore", self.store())
        from ragfilter.stores.copies import Copies

        return Copies(self.copies_dir)

    @cached_property
    def vectors(self) -> VectorCache:
        """The vectors of sentences, and of unfinished indexing."""
        from ragfilter.stores.caches import VectorCache

        return VectorCache(self.path, self.address)

    def copied(self) -> list[str]:
        """The names of the collections that have a copy, sorted."""
        return sorted(path.stem for path in self.copies_dir.glob("*.parquet"))

    def content_of(self, collection: StoredCollection, user: User) -> str:
        """The fingerprint of the indexed content that `user` can see; indexing the same files
        elsewhere gives the same. For a foreign collection: its version, or its chunks' ids."""
        from ragfilter.stores.copies import content_fingerprint

        if user.unrestricted:
            return collection.content or collection.version
        known = self.contents.summary(collection.name).fingerprints
        seen = (i for i, chunk in collection.entries().items() if user.sees(chunk))
        return content_fingerprint(collection.embedder, {i: known.get(i, "") for i in seen})

    def version_seen(self, collection: StoredCollection, user: User) -> str:
        """The version of the collection for `user`, which changes only with chunks and rules that they can see."""
        if user.unrestricted:
            return collection.version
        chunks = collection.entries().items()
        rules = sorted((i, chunk.rule) for i, chunk in chunks if user.sees(chunk))
        seen = json.dumps([self.content_of(collection, user), rules])
        return blake2b(seen.encode(), digest_size=16).hexdigest()

    def store(self) -> Store:
        """The vector store, opened on first use. Raises StoreError."""
        with _opening:
            if self._times_open < 1:
                raise InputError(f"The workspace {self.path} is closed.", remedy="Open it again.")
            if self._store is None:
                self._store = self._open_store()
                self._store.catalogue_limit = self._catalogue_limit
            return self._store

    def close(self) -> None:
        """Close the store and release the lock. Further calls do nothing."""
        with _opening:
            self._times_open = max(0, self._times_open - 1)
            if self._times_open > 0 or _open.get(self.path) is not self:
                return
            del _open[self.path]
            try:
                if self._store is not None:
                    self._store.close()
                    self._store = None
                self.files.close()
                if "vectors" in vars(self):
                    self.vectors.close()
            finally:
                if self._lock.is_locked:
                    with contextlib.suppress(OSError):
                        _note(self.path).unlink(missing_ok=True)
                    self._lock.release()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open_store(self) -> Store:
        # Imported here: chromadb takes a second, and not every command needs it.
        if self.address:
            from ragfilter.stores.postgres.store import PgStore

            return PgStore(self.address)
        if self.server is not None:
            return self.server.open()
        from ragfilter.stores.chroma import ChromaStore

        return ChromaStore.folder(self.chroma_dir)

    def _own(self, kind: str) -> None:
        if not take_lock(self._lock):
            raise WorkspaceLocked(
                f"The workspace {self.path} is in use by {_holder(self.path)}.",
                remedy="Stop that process, or use another folder.",
                action="folder",
            )
        since = datetime.now().astimezone().isoformat(timespec="seconds")
        note = {"pid": os.getpid(), "kind": kind, "since": since}
        # Only informs the next process; the lock works without it.
        with contextlib.suppress(OSError):
            _note(self.path).write_text(json.dumps(note), encoding="utf-8")


def database_of(folder: Path, database_url: str, address: str) -> str:
    """The URL of the database of the workspace in `folder`."""
    return address or database_url or f"sqlite:///{folder / 'ragfilter.db'}"


def text_files(folder: Path, address: str) -> TextFiles:
    """The text files of the workspace in `folder`, or at an address."""
    return SharedTextFiles(folder, address) if address else TextFiles(folder)


def lock_file(path: Path) -> BaseFileLock:
    """A lock that any thread of this process can release."""
    return FileLock(path, thread_local=False)


def take_lock(lock: BaseFileLock) -> bool:
    """Take the lock; False if another holds it. Raises InputError if its file is unusable."""
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    except OSError as error:
        message = f"The lock {lock.lock_file} cannot be opened: {error.strerror}."
        remedy = "Make it a file that this user can write, or use another folder."
        raise InputError(message, remedy=remedy, action="folder") from None
    return True


def _folder(path: str | os.PathLike[str]) -> Path:
    folder = Path(path).expanduser()
    try:
        folder = folder.resolve()
        for part in (folder, folder / "copies"):
            part.mkdir(parents=True, exist_ok=True)
        # Root can write where `os.access` says no, and this also detects a full or read-only disk.
        probe = folder / f".probe-{os.getpid()}-{threading.get_ident()}"
        probe.touch()
        probe.unlink()
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"The workspace folder {folder} cannot be used: {reason}."
        raise InputError(message, remedy="Use a writable folder.", action="folder") from error
    return folder


def _note(folder: Path) -> Path:
    return folder / ".owner.json"


def _holder(folder: Path) -> str:
    try:
        note = json.loads(_note(folder).read_text(encoding="utf-8"))
        return f"{note['kind']} (process {note['pid']}, since {note['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


class SharedTextFiles(database.Book, TextFiles):
    """Text files in the database at `url`, copied to `folder` for reading. Also raises StoreError."""

    tables = (_files,)

    def __init__(self, folder: Path, url: str) -> None:
        TextFiles.__init__(self, folder)
        database.Book.__init__(self, url)

    def names(self, under: str) -> list[str]:
        start = f"{under}/"
        every = (name for (name,) in self._read(sa.select(_files.c.name)))
        return [name.removeprefix(start) for name in every if name.startswith(start)]

    def path(self, name: str) -> Path:
        text = self.read(name)
        if text is None:
            super().delete(name)
        else:
            super().write(name, text)
        return super().path(name)

    def read(self, name: str) -> str | None:
        rows = self._read(sa.select(_files).filter_by(name=name))
        return rows[0].text if rows else None

    def write(self, name: str, text: str) -> None:
        self._write(_files.delete().filter_by(name=name), _files.insert().values(name=name, text=text))

    def delete(self, name: str) -> None:
        self._write(_files.delete().filter_by(name=name))
