"""Fixtures shared by several test folders. waiting.py has the limits on how long tests wait."""

from __future__ import annotations

import functools
import gc
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
import typer.main
from encoded import is_bundled, share_encodings
from faults import Serve, servers
from filelock import FileLock
from hypothesis import HealthCheck, settings
from packed import build
from waiting import PATIENT_S, PROCESS_S

from ragfilter.engine import pipeline
from ragfilter.judge import prompts as judge_prompts
from ragfilter.models.embedders import BundledEmbedder

if TYPE_CHECKING:
    from ragfilter.stores.chroma import ChromaStore

# Until all tests are collected, there is hardly any garbage, since imported objects stay.
gc.disable()

# A busy machine is slow, which does not make a law false.
settings.register_profile("ragfilter", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fast", settings.get_profile("ragfilter"), max_examples=20)
settings.load_profile("ragfilter")

# The workers share the machine, and torch's threads spin while they wait for each other: on a busy machine that takes
# ten times the CPU time. Read when torch is imported, here and in our own processes.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when haystack is imported

ROOT = Path(__file__).resolve().parents[1]
CRANFIELD = Path(__file__).resolve().parents[2] / "shared" / "data" / "cranfield"


# Folders and files that load a model or large libraries, open stores or start processes.
SLOW = set(
    (
        "app browser integrations llm models stores test_cli.py test_cli_errors.py test_cli_eval.py test_cli_rules.py "
        "test_cli_rules_bulk.py test_cli_rules_csv.py test_cli_rules_list.py test_cli_rules_suggest.py "
        "test_database.py test_deadline.py test_faults.py test_index.py test_publish.py test_service.py "
        "test_tracing.py test_two_instances.py test_typed_program.py test_urls.py test_workspace.py"
    ).split()
)
LONGEST = {"llm": 0, "browser": 1, "integrations": 1, "app": 2}
LONGEST |= dict.fromkeys(("test_incomplete.py", "test_ray.py", "test_recipes.py", "test_twin.py", "test_whatif.py"), 2)
SLOW_FIXTURES = {"adsapi_workspace", "cross_encoders", "demo_workspace", "store", "wheel", "workspace"}


def pytest_configure(config: pytest.Config) -> None:
    """`make quick` tries fewer examples of each law."""
    if config.option.markexpr == "not slow":
        settings.load_profile("fast")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make quick` does not import the files that it would leave out."""
    inside = collection_path.parent == ROOT / "tests" and collection_path.name in SLOW
    return True if inside and config.option.markexpr == "not slow" else None


def pytest_collection_finish() -> None:
    """Enable garbage collection from here on, except for imported objects, which would take a tenth of the time."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(10_000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that load a model, open a store or install something as `slow`. They run first, so that no worker has
    a long file left at the end. The LLM's tests need no demo, so another worker can index it meanwhile."""
    for item in items:
        fixtures = SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ()))
        if _folder(item) in SLOW or fixtures or item.get_closest_marker("model"):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: LONGEST.get(_folder(item), len(LONGEST)))


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT / "tests").parts[0]


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of a run share."""
    base = tmp_path_factory.getbasetemp()
    # Under xdist each worker has its own folder inside that of the run.
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session", autouse=True)
def encodings(run_folder: Path) -> Iterator[Path]:
    """Load the bundled model and build the command line once per process, and encode a text once
    per run: hundreds of tests open a workspace, run a command or search for the demo's questions.
    Returns the folder of the vectors, for a server."""
    plain, build = BundledEmbedder._load, typer.main.get_command

    def all_commands(app: typer.Typer) -> Any:
        from ragfilter.cli.program import load_commands

        load_commands()
        return build(app)

    bundled = functools.cache(lambda: plain(BundledEmbedder()))

    def load(self: BundledEmbedder) -> Any:
        return bundled() if is_bundled(self) else plain(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BundledEmbedder, "_load", load)
        patch.setattr(typer.main, "get_command", functools.cache(all_commands))
        share_encodings(run_folder / "encodings", patch.setattr)
        yield run_folder / "encodings"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting or key of the machine reaches a test."""
    for name in list(os.environ):
        if name.startswith(("RAGFILTER_", "OPENAI_")) and not name.startswith("RAGFILTER_TEST_"):
            monkeypatch.delenv(name)
    # No server that is asked has a certificate, but each HTTP client would read all authorities first, for 60 ms.
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", os.devnull)


@pytest.fixture(autouse=True)
def _packaged_prompts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a workspace's own judge prompts, which opening it makes known to the process, from other tests."""
    monkeypatch.setattr(judge_prompts, "_own", None)
    judge_prompts._read.cache_clear()


@pytest.fixture(autouse=True)
def _patient_rerankers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a reranker the time that a busy machine needs, unless a test has set a second or less.
    The default suits a user who waits in front of the page."""
    within = pipeline.within

    def patient(seconds: float, work: Callable[[], Any]) -> Any:
        return within(seconds if seconds <= 1 else PATIENT_S, work)

    monkeypatch.setattr(pipeline, "within", patient)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts OpenAI-protocol servers with a given behaviour: ``serve(behave)``."""
    with servers() as start:
        yield start


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaStore]:
    """An empty store in its own folder, one per test file."""
    from ragfilter.stores.chroma import ChromaStore

    store = ChromaStore.folder(tmp_path_factory.mktemp("chroma"))
    yield store
    store.close()


@pytest.fixture(scope="session")
def cranfield() -> Path:
    """The folder of the Cranfield collection (in BEIR's format), if it is available."""
    if not (CRANFIELD / "corpus.jsonl").exists():
        pytest.skip("the Cranfield data set is not on this machine")
    return CRANFIELD


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of Chromium. Skips if it is not installed, fails if it is required."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path:
        return path
    if os.environ.get("RAGFILTER_TEST_REQUIRE_BROWSER"):
        pytest.fail("Chromium is required for this run and is not installed")
    pytest.skip("install Chromium (Debian: apt-get install chromium) for the browser tests")


@pytest.fixture(scope="session")
def wheel(run_folder: Path) -> Path:
    """The wheel of the package, next to its sdist, built once for all workers of a run."""
    folder = run_folder / "wheel"
    with FileLock(run_folder / "wheel.lock"):
        if not folder.exists():
            folder.mkdir()
            build(folder)
    (wheel,) = folder.glob("dist/*.whl")
    return wheel


@pytest.fixture(scope="session")
def bare_environ() -> dict[str, str]:
    """The environment for a process of our own, without any setting or key of the machine."""
    ours = ("RAGFILTER_", "OPENAI_", "STREAMLIT_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


@pytest.fixture(scope="session")
def demo_workspace(run_folder: Path) -> Path:
    """A workspace with the demo collection, indexed once for all workers of a run.

    Do not open it, because only one process can; make a copy with `copy_demo`.
    """
    return _indexed("demo", run_folder)


@pytest.fixture(scope="session")
def adsapi_workspace(run_folder: Path) -> Path:
    """The same with the collection adsapi. Use a copy of it."""
    return _indexed("adsapi", run_folder)


def _indexed(name: str, shared: Path) -> Path:
    """A workspace with a demo collection, made by whichever worker comes first. None of its thousands of sentences is
    embedded, as in a collection that is too large: answers embed the few that they need."""
    from ragfilter.indexing import embed_ahead
    from ragfilter.indexing.order import Order, carry_out
    from ragfilter.settings.deployment import Deployment
    from ragfilter.workbench import Workbench

    folder, done = shared / f"{name}-workspace", shared / f"{name}-workspace.done"
    with FileLock(shared / f"{name}-workspace.lock"):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            with pytest.MonkeyPatch.context() as patch, Workbench.open(Deployment(data_dir=folder)) as bench:
                patch.setattr(embed_ahead, "MAX_SENTENCES", 0)
                carry_out(Order(name, name), bench)
                assert not [*embed_ahead.prepare(bench, bench.workspace.vectors)]
            done.touch()
    return folder


@pytest.fixture(scope="session")
def copy_demo(demo_workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Copies the workspace with the demo collection, for one test or module to open and change."""

    def copy() -> Path:
        target = tmp_path_factory.mktemp("workspace") / "workspace"
        shutil.copytree(demo_workspace, target)
        return target

    return copy


@pytest.fixture(scope="session")
def cross_encoders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three tiny models: one score, three scores, no head."""
    from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("models")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "owl", "giant", "the", "a"]
    (folder / "vocab.txt").write_text("\n".join(words))
    config = {
        "vocab_size": len(words),
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 64,
    }
    for name, kind, labels in (
        ("one", BertForSequenceClassification, 1),
        ("three", BertForSequenceClassification, 3),
        ("headless", BertModel, 1),
    ):
        model = kind(BertConfig(**config, num_labels=labels))
        model.save_pretrained(folder / name)
        BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder / name)
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server: RAGFILTER_TEST_POSTGRES, or one that is started.

    Under root, it runs as another user, who cannot access pytest's folders.
    """
    if url := os.environ.get("RAGFILTER_TEST_POSTGRES"):
        yield url
        return
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", folder)
        patch.setenv("PGCTLTIMEOUT", f"{PROCESS_S:.0f}")
        required = os.environ.get("RAGFILTER_TEST_REQUIRE_POSTGRES")
        pgserver = __import__("pgserver") if required else pytest.importorskip("pgserver")
        # A busy machine takes longer than the ten seconds that it allows.
        pg_ctl = pgserver.postgres_server.pg_ctl
        patient = functools.partial(pg_ctl, timeout=PROCESS_S)
        patch.setattr(
            pgserver.postgres_server,
            "pg_ctl",
            lambda args, *, pgdata, user, timeout=None: patient(args, pgdata=pgdata, user=user),
        )
        server = pgserver.get_server(Path(folder) / "data")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture
def address(postgres: str) -> str:
    """The address of an empty database."""
    import sqlalchemy as sa

    engine = sa.create_engine(postgres, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text("DROP SCHEMA public CASCADE"))
        connection.execute(sa.text("CREATE SCHEMA public"))
        # Data need not survive a crash of the machine.
        connection.execute(sa.text("ALTER SYSTEM SET fsync = off"))
        connection.execute(sa.text("SELECT pg_reload_conf()"))
    engine.dispose()
    return postgres


@pytest.fixture(params=["", pytest.param("address", marks=pytest.mark.slow)])
def book_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database of each kind."""
    return request.getfixturevalue(request.param) if request.param else f"sqlite:///{tmp_path}/books.db"
