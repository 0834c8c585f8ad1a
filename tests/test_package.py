"""`pip install .`: a wheel with every file of the package, which works without a checkout."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import packed
import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from syrupy.assertion import SnapshotAssertion
from waiting import PROCESS_S

ROOT = Path(__file__).resolve().parents[1]


def files_of_the_package() -> set[str]:
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "ragfilter").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    with ZipFile(wheel) as opened:
        names = opened.namelist()
    assert {name for name in names if ".dist-info/" not in name} == files_of_the_package()


def test_the_sdist_holds_the_package_and_what_builds_it(wheel: Path) -> None:
    (sdist,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(sdist) as opened:
        names = {each.name.partition("/")[2] for each in opened if each.isfile()}
    made = {"PKG-INFO", "setup.cfg"}
    held = {name for name in names if not name.startswith("ragfilter.egg-info/")}
    assert held == files_of_the_package() | set(packed.BUILT_FROM) | made


def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as opened:
        (name,) = (n for n in opened.namelist() if n.endswith("/METADATA"))
        return message_from_bytes(opened.read(name))


def wanted(wheel: Path) -> dict[str, list[Requirement]]:
    """The requirements of the core ("") and each extra."""
    found: dict[str, list[Requirement]] = {"": []}
    for line in metadata(wheel).get_all("Requires-Dist", []):
        requirement = Requirement(line)
        found.setdefault(extra_of(requirement), []).append(requirement)
    return found


def extra_of(requirement: Requirement) -> str:
    named = re.search(r'extra == "(\w+)"', str(requirement.marker))
    return named[1] if named else ""


def pinned() -> dict[str, str]:
    """The product's packages in requirements.txt, with their versions."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if line.strip() and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pairs if name != "pytest"}


def test_the_core_is_light(wheel: Path) -> None:
    light = {"numpy", "pydantic", "ahocorasick-rs", "cachetools"}
    assert {r.name for r in wanted(wheel)[""]} == light


def test_the_extra_all_brings_every_other(wheel: Path) -> None:
    extras = wanted(wheel)
    brought = {"all"}
    for _ in extras:
        own = [r for extra in brought for r in extras[extra] if r.name == "ragfilter"]
        brought |= {e for r in own for e in r.extras}
    assert brought == set(extras) - {""}


def test_every_pin_is_in_its_range_and_every_range_of_the_app_has_a_pin(wheel: Path) -> None:
    extras = wanted(wheel)
    parts = ["", "chroma", "models", "openai", "eval", "ingest", "app"]
    ranges = [r for part in parts for r in extras[part] if r.name != "ragfilter"]
    pins = pinned()
    assert {canonicalize_name(r.name) for r in ranges} == set(pins)
    for requirement in ranges:
        assert pins[canonicalize_name(requirement.name)] in requirement.specifier, requirement


def test_what_reaches_into_a_package_supports_the_range_that_is_installed(wheel: Path) -> None:
    checked = re.compile(r'^check_version\("([\w-]+)", "(\S+)", extra="(\w+)"\)$', re.MULTILINE)
    ranges = {(r.name, extra): r.specifier for extra, many in wanted(wheel).items() for r in many}
    found = [
        groups
        for path in (ROOT / "ragfilter").rglob("*.py")
        for groups in checked.findall(path.read_text(encoding="utf-8"))
    ]
    assert {name for name, _, _ in found} == {"chromadb", "openai", "httpx2"}
    for name, supported, extra in found:
        assert ranges[name, extra] == SpecifierSet(supported)


# The core alone

CORE = """
from ragfilter.engine.replay import replay
from ragfilter.layers.cutoff import cut
from ragfilter.model import Chunk, Hit, Pool
from ragfilter.results.document import document
from ragfilter.results.rows import csv, rows
from ragfilter.results.summary import summary
from ragfilter.settings.config import load

settings = load(profile="full").settings
print(cut([0.12, 0.18, 0.22, 0.35, 0.50], load(profile="adaptive-gap").settings.cutoff).kept)

rule = '{"contain": "troll"}'
chunks = [Chunk("c1"), Chunk("c2", rule=rule), Chunk("c3"), Chunk("c4"), Chunk("c5")]
distances = [0.12, 0.18, 0.22, 0.75, 0.80]
hits = tuple(Hit(c, d, rank) for rank, (c, d) in enumerate(zip(chunks, distances), start=1))
result = replay(Pool("hill giant", "c", "l2", hits), settings)
print([hit.id for hit in result.kept])
print(csv(rows(result)).count("\\n"), len(document(result)) > 5)

import ragfilter as rf

docs = ["Trolls regenerate.", "Trolls fear fire.", "The weather in spring."]
flt = rf.Filter("full")
made = flt("Do trolls heal?", docs, [0.31, 0.38, 0.60], metric="cosine", user=rf.User(level=1))
print(made, len(made.to_dict()["hits"]), made.dropped[0].layer)
"""
"""A program that uses the core; below, its output."""

CORE_PRINTS = """\
4
['c1', 'c3']
6 True
<Result: 2 of 3 kept, gap 0.220 ≥ 0.100 after hit 2> 3 cutoff
"""

MEASURE = """
import sys
sys.modules |= dict.fromkeys(("yaml", "markdown_it", "pypdf", "chromadb", "sqlalchemy"))

import ragfilter as rf
labels = rf.read_labels("queries.jsonl", "qrels.tsv")
result = rf.Filter("adaptive-gap")("what", [{"id": "a", "text": "this"}], [0.1], metric="l2")
print(rf.measure({"q": result}, labels.qrels).filtered.f1)
"""
"""A program that needs only the extra `eval`."""

IMPORT_ALL = """
import importlib, pkgutil, sys
import ragfilter

def watch(event, arguments):
    path = str(arguments[0]) if event == "open" else ""
    if path.startswith(ragfilter.__path__[0] + "/") and ".py" not in path:
        print(path)

sys.addaudithook(watch)
NEEDS_EXTRAS = tuple(sys.argv[1:])
for found in pkgutil.walk_packages(ragfilter.__path__, "ragfilter.", onerror=lambda name: None):
    if not found.name.startswith(NEEDS_EXTRAS):
        importlib.import_module(found.name)
"""
BEYOND_THE_CORE = (
    "ragfilter.__main__ ragfilter.cli ragfilter.basics.database ragfilter.evaluate ragfilter.indexing "
    "ragfilter.ingest ragfilter.library.haystack ragfilter.library.langchain ragfilter.library.llamaindex "
    "ragfilter.library.workspace ragfilter.models.openai ragfilter.publish ragfilter.rules.drafting "
    "ragfilter.rules.edits ragfilter.rules.journal ragfilter.streamlit_app ragfilter.service ragfilter.stores "
    "ragfilter.testing ragfilter.ui ragfilter.workbench"
).split()
"""Modules that may need an extra when they are imported; no other may."""

LACKING = """
chroma     import ragfilter.stores.chroma
chroma     import ragfilter.stores.copies
chroma     import ragfilter.workbench
openai     import ragfilter.models.openai
openai     import ragfilter as rf; rf.Filter(judge='some-model')
models     from ragfilter.models.embedders import SentenceEmbedder; SentenceEmbedder('m').prepare()
models     from ragfilter.models.embedders import *; BundledEmbedder().prepare()
models     from ragfilter.models.rerankers import *; CrossEncoderReranker('m').model()
models     import ragfilter as rf; rf.Filter(reranker='late_interaction')
eval       from ragfilter.results.rows import frame; frame([])
eval       from ragfilter.evaluate.metrics import *; ndcg([['a']], {'a': 1})
ingest     import ragfilter.ingest.load
ingest     from ragfilter.basics.files import *; parse_yaml('', place='')
app        import ragfilter.cli.program
langchain  import ragfilter as rf; rf.Filter().as_langchain()
llamaindex import ragfilter as rf; rf.Filter().as_llamaindex()
haystack   import ragfilter as rf; rf.Filter().as_haystack()
mcp        from ragfilter.library.tools import *; make_server(None)
serve      import ragfilter.service.routes
otel       import ragfilter as rf; rf.trace()
"""
"""The extra that the error names → the code that lacks it."""
TRY_ALL = """
import sys
from ragfilter.errors import DependencyError
for code in sys.argv[1:]:
    try:
        exec(code, {})
    except DependencyError as error:
        print(error)
"""


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts folder of a fresh environment with only the core, as `pip install` makes it."""
    folder = tmp_path_factory.mktemp("bare")
    return packed.install(wheel, folder, "--no-compile")


def ask(command: list[str], cwd: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=PROCESS_S)


def test_the_core_filters_without_any_extra(bare: Path, tmp_path: Path, bare_environ: dict[str, str]) -> None:
    made = ask([str(bare / "python"), "-c", CORE], tmp_path, bare_environ)
    assert (made.stderr, made.stdout) == ("", CORE_PRINTS)


def test_no_module_of_the_core_needs_an_extra_or_reads_a_file_when_imported(
    bare: Path, tmp_path: Path, bare_environ: dict[str, str]
) -> None:
    made = ask([str(bare / "python"), "-c", IMPORT_ALL, *BEYOND_THE_CORE], tmp_path, bare_environ)
    assert (made.stderr, made.stdout) == ("", "")


@pytest.mark.slow
def test_measuring_needs_no_ingest(tmp_path: Path, bare_environ: dict[str, str]) -> None:
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "what"}\n', encoding="utf-8")
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n", encoding="utf-8")
    made = ask([sys.executable, "-c", MEASURE], tmp_path, bare_environ | {"PYTHONPATH": str(ROOT)})
    assert (made.returncode, made.stdout) == (0, "1.0\n"), made.stderr


def test_a_missing_extra_is_named(bare: Path, tmp_path: Path, bare_environ: dict[str, str]) -> None:
    tried = [line.split(maxsplit=1) for line in LACKING.strip().splitlines()]
    command = [str(bare / "python"), "-c", TRY_ALL, *(code for _, code in tried)]
    told = ask(command, tmp_path, bare_environ)
    assert told.returncode == 0, told.stderr
    for (extra, code), error in zip(tried, told.stdout.splitlines(), strict=True):
        said = rf"\w+ is not installed\. Run: pip install 'ragfilter\[{extra}\]'"
        assert re.fullmatch(said, error), code


def test_the_command_without_its_extra_says_so_in_one_line(
    bare: Path, tmp_path: Path, bare_environ: dict[str, str], snapshot: SnapshotAssertion
) -> None:
    made = ask([str(bare / "ragfilter"), "cut", "0.1", "0.2"], tmp_path, bare_environ)
    assert made.returncode == 2
    assert made.stderr == snapshot
