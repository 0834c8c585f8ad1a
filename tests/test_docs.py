"""The documents match the code: their modules, commands, links and snippets exist and work."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pdoc
import pytest
import typer.main

import ragfilter
from ragfilter.cli.program import app, load_commands
from ragfilter.testing import MemoryCollection
from scripts import api_docs

ROOT = Path(__file__).resolve().parents[1]


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def snippets(name: str) -> list[str]:
    """The Python blocks in a document."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def rooms() -> Iterator[str]:
    for path in sorted((ROOT / "ragfilter").iterdir()):
        if path.suffix == ".py" and not path.name.startswith("__"):
            yield path.name
        elif (path / "__init__.py").exists():
            yield f"{path.name}/"


def test_the_architecture_names_every_room_and_no_file_that_is_not_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert [r for r in rooms() if not re.search(rf"(?<![\w/]){re.escape(r)}", text)] == []
    # The files that the recipes add do not exist here: tests/test_recipes.py adds them.
    text = re.sub(r"```python\n.*?```", "", text, flags=re.DOTALL)
    files = {path.name for path in ROOT.rglob("*.py") if ".venv" not in path.parts}
    assert set(re.findall(r"\b\w+\.py\b", text)) <= files


FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def commands() -> list[str]:
    """Every command line in the documents' blocks, including a CI job's, without its comment."""
    texts = [path.read_text(encoding="utf-8") for path in documents()]
    blocks = [b for text in texts for kind, b in FENCED.findall(text) if kind in ("", "yaml")]
    lines = [line.strip().removeprefix("- run: ") for b in blocks for line in b.splitlines()]
    return sorted({line.split("   #")[0].strip() for line in lines if line.startswith("ragfilter ")})


def test_the_documents_show_commands_and_options_that_exist() -> None:
    load_commands()
    assert len(commands()) > 50
    for line in commands():
        words, command = shlex.split(line)[1:], typer.main.get_command(app)
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]  # type: ignore[attr-defined]
        # A group such as `collections` may also run without a command of its own.
        alone = getattr(command, "invoke_without_command", False) and not words
        assert alone or not hasattr(command, "commands"), f"no such command: {line}"
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, line


PROMISES = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
KEEPER = re.compile(r"`((?:\w+/)*test_\w+\.py)?(?:::(test_\w+))?`")


def test_every_promise_names_a_test_that_is_there() -> None:
    promises = [line for line in PROMISES.splitlines() if line.startswith("| ") and "---" not in line]
    kept = [line for line in promises[1:] if not line.endswith("| | |")]
    assert len(kept) >= 20
    file = ""
    for line in kept:
        keepers = KEEPER.findall(line.rpartition(" | ")[2])
        assert keepers, line
        for name, case in keepers:
            # A test case without a file belongs to the file named before it.
            file = name or file
            text = (ROOT / "tests" / file).read_text(encoding="utf-8")
            assert f"def {case}(" in text if case else text, (file, case)


LINK = re.compile(r"\]\((?!https?:)([\w./-]*)(?:#([\w-]+))?\)")
CITATION = re.compile(r"docs/design\.md#([\w-]+)")


def anchors(path: Path) -> set[str]:
    """The anchors that a document sets itself, and those that GitHub gives its headings."""
    text = path.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([\w-]+)"></a>', text))


def test_every_link_leads_somewhere() -> None:
    for path in documents():
        for name, anchor in LINK.findall(path.read_text(encoding="utf-8")):
            target = (path.parent / name).resolve() if name else path
            assert target.exists(), name
            assert not anchor or anchor in anchors(target), f"{name}#{anchor}"


def test_the_code_cites_sections_of_the_design_that_are_there() -> None:
    folders = ("ragfilter", "pages", "tests", "benchmarks", "scripts")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    cited = {a for path in files for a in CITATION.findall(path.read_text(encoding="utf-8"))}
    assert len(cited) >= 10
    assert cited <= anchors(ROOT / "docs" / "design.md")


def test_the_readmes_snippet_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (snippet,) = snippets("README.md")
    exec(snippet, {})
    printed = capsys.readouterr().out.splitlines()
    said = re.search(r"print\(result\)\s+# (.*)", snippet)
    assert said is not None
    assert printed[:2] == ["Trolls regenerate.", "Trolls fear fire."]
    assert printed[-1] == said[1]


(STORE,) = (each for each in snippets("docs/library.md") if "CollectionTests" in each)
NAMES: dict[str, Any] = {"MyCollection": MemoryCollection}
exec(STORE, NAMES)
TestMyStore = NAMES["TestMyStore"]


@pytest.mark.slow
def test_the_labels_of_the_library_page_measure_and_tune_a_filter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twelve queries, each answered by the chunks before its cliff."""
    (snippet,) = (each for each in snippets("docs/library.md") if "rf.measure" in each)
    monkeypatch.chdir(tmp_path)
    sizes = {f"q{n}": 1 + n % 6 for n in range(12)}
    lines = [json.dumps({"_id": i, "text": i}) for i in sizes]
    (tmp_path / "queries.jsonl").write_text("\n".join(lines), "utf-8")
    rows = [f"{i}\tc{n}\t1" for i, size in sizes.items() for n in range(size)]
    (tmp_path / "qrels.tsv").write_text("\n".join(rows) + "\n", "utf-8")

    def search(text: str) -> tuple[list[dict[str, str]], list[float]]:
        docs = [{"id": f"c{n}", "text": f"text {n}"} for n in range(50)]
        return docs, [0.2 + 0.01 * n + 0.3 * (n >= sizes[text]) for n in range(50)]

    import ragfilter as rf

    first = rf.Filter("adaptive-gap")
    names = {"rf": rf, "search": search, "flt": first}
    exec(snippet, names)
    evaluation: Any = names["evaluation"]
    assert capsys.readouterr().out == (
        f"F1 {evaluation.filtered.f1:.3f}, of the best fixed k {evaluation.best_fixed_k.means.f1:.3f}\n"
    )
    assert evaluation.filtered.f1 > evaluation.best_fixed_k.means.f1
    assert names["flt"] is not first


def test_the_snippet_of_the_rules_page_measures_rules(capsys: pytest.CaptureFixture[str]) -> None:
    """Four tables that differ in a number, one with a rule that its question does not meet."""
    (snippet,) = (each for each in snippets("docs/rules.md") if "build_matrix" in each)
    import ragfilter as rf

    tables: list[dict[str, Any]] = [
        {"id": f"t{n}", "title": f"Attack table, armor class {n}", "text": f"Armor class {n}: 1{n}"}
        for n in range(2, 6)
    ]
    tables[0]["query_must"] = {"contain_one_of": [["armor class 2", "armor class 2"], ["troll"]]}
    flt = rf.Filter("full")
    asked = {f"q{n}": f"What hits armor class {n}?" for n in range(2, 6)}
    results = {i: flt(text, tables, [0.2] * 4, metric="cosine") for i, text in asked.items()}
    labels = SimpleNamespace(qrels={f"q{n}": {f"t{n}": 1} for n in range(2, 6)})
    names: dict[str, Any] = {"flt": flt, "results": results, "labels": labels}
    exec(snippet, names)
    said = r"[1-9] findings, 1 rules; the proposals lose relevant chunks: False\n"
    assert re.fullmatch(said, capsys.readouterr().out)
    assert len(names["proposed"]) == 4
    assert names["matrix"].rules[0].conflicts == (("q2", "t2"),)


@pytest.mark.model
def test_the_workspace_snippet_of_the_library_page_runs(
    copy_demo: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copy_demo().parent)
    (snippet,) = (each for each in snippets("docs/library.md") if "open_workspace" in each)
    names: dict[str, Any] = {}
    exec(snippet, names)
    assert len(names["result"]) > 1


@pytest.mark.model
def test_the_workspace_snippet_of_the_rules_page_saves_and_undoes(
    copy_demo: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copy_demo().parent)
    (snippet,) = (each for each in snippets("docs/rules.md") if "open_workspace" in each)
    names: dict[str, Any] = {}
    exec(snippet, names)
    saved = names["saved"]
    assert {edit.after for edit in saved} == {'{"contain_one_of":[["owlbear","owlbears"]]}'}
    rules = {r["id"]: r["query_must"] for r in map(json.loads, names["file"].splitlines())}
    assert all(rules[edit.chunk_id] for edit in saved)
    assert "owlbear" in names["why"]
    import ragfilter as rf

    with rf.open_workspace("workspace") as ws:
        now = ws.collection("demo").rules([edit.chunk_id for edit in saved])
        assert {rule or None for rule in now.values()} == {None}


def test_the_api_documentation_has_the_docstrings() -> None:
    # Warns of a module that is named twice.
    found = {*pdoc.extract.walk_specs(api_docs.modules())}
    assert {"ragfilter", "ragfilter.evaluate.evaluation", "ragfilter.protocols"} <= found
    assert {"ragfilter.results.rows", "ragfilter.results.verdicts"} <= found
    assert not any(name.startswith(api_docs.LEFT_OUT) for name in found)
    documented = pdoc.doc.Module(ragfilter)
    for name in ragfilter.__all__:
        made = documented.get(name)
        assert made is not None, name
        assert made.docstring, name
    # Warns of a type that cannot be named.
    assert "User" in str(documented.get("Result.__init__").signature)
    assert "event loop" in documented.get("Filter.arun").docstring
