"""The direction of imports: values do not import stores, and the core does not import pages."""

from __future__ import annotations

import ast
import functools
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "ragfilter"

# Each part may import itself and the parts named here. Third-party imports are not restricted.
GROUND = {"basics", "errors", "judge.prompts", "model", "protocols", "settings", "text"}
CORE = GROUND | {"models", "rules", "answer", "judge", "layers"}
WIRING = CORE | {"engine", "stores", "ingest"}
ALL = WIRING | {"results", "evaluate", "publish", "workbench", "indexing"}
ALLOWED = {
    "errors": set(),
    "text": set(),
    "basics": {"errors", "text"},
    # A judge prompt is a file, and one of its names is a setting.
    "judge.prompts": {"basics", "errors"},
    "settings": {"basics", "errors", "judge.prompts", "text"},
    "model": {"errors", "settings", "text"},
    "protocols": {"model"},
    "testing": {"errors", "model", "protocols"},
    "models": GROUND,
    "answer": GROUND | {"models"},
    "rules": GROUND | {"answer", "models"},
    "judge": GROUND | {"answer", "models"},
    "layers": GROUND | {"rules", "answer", "judge"},
    "engine": CORE,
    "ingest": GROUND | {"rules"},
    "stores": GROUND | {"ingest", "rules"},
    "results": CORE | {"engine"},
    "evaluate": WIRING | {"results"},
    "publish": WIRING | {"results", "evaluate"},
    "library": CORE | {"engine", "ingest", "results", "workbench"},
    "service": CORE | {"library", "results"},
    "workbench": WIRING,
    "indexing": WIRING | {"workbench"},
    "cli": ALL | {"library", "service"},
    "ui": ALL,
    "streamlit_app": {"errors", "ui", "workbench"},
    "__main__": {"errors", "cli"},
    "__init__": ALL,
}
APART = {"judge.prompts"}
"""Parts that are lower than the rest of their floor."""


def part(path: Path) -> str:
    return room(".".join(path.relative_to(PACKAGE).with_suffix("").parts))


def room(module: str) -> str:
    """The part to which a module belongs, both named relative to the package."""
    apart = ".".join(module.split(".")[:2])
    return apart if apart in APART else module.partition(".")[0]


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> set[str]:
    """The parts of ragfilter that a file imports at run time, and `streamlit` if it does."""
    tree = parsed(path)
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    names: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    inside = (name.removeprefix("ragfilter.") for name in names if name.startswith("ragfilter."))
    found = {room(name) for name in inside}
    return found | ({"streamlit"} if any(n.split(".")[0] == "streamlit" for n in names) else set())


FILES = sorted(PACKAGE.rglob("*.py"))


def test_imports_point_one_way() -> None:
    wrong = {}
    for path in FILES:
        own = part(path)
        allowed = ALLOWED[own] | {own} | ({"streamlit"} if own in ("ui", "streamlit_app") else set())
        wrong[path] = imported(path) - allowed - {"__version__"}
    assert {path: names for path, names in wrong.items() if names} == {}


SHARED = {"kit", "look", "session"}
"""The folders of `ui` that pages share."""


def test_a_page_imports_only_itself_and_what_pages_share() -> None:
    wrong = {}
    for path in (PACKAGE / "ui").glob("*/**/*.py"):
        modules = {
            f"{node.module}.{alias.name}"
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ragfilter.ui")
            for alias in node.names
        }
        parts = {module.split(".")[2] for module in modules if module.count(".") > 2}
        folders = {part for part in parts if (PACKAGE / "ui" / part).is_dir()}
        wrong[path] = folders - {path.relative_to(PACKAGE / "ui").parts[0], *SHARED}
    assert {path: names for path, names in wrong.items() if names} == {}


def test_no_two_parts_may_import_each_other() -> None:
    TopologicalSorter({own: allowed - {own} for own, allowed in ALLOWED.items()}).prepare()


def test_no_module_imports_another_in_a_circle() -> None:
    """Imports for types and in functions count too."""
    modules = {".".join(p.relative_to(PACKAGE.parent).with_suffix("").parts): p for p in FILES}
    graph = {}
    for name, path in modules.items():
        tree = parsed(path)
        named = {
            f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        targets = {one if one in modules else one.rpartition(".")[0] for one in named}
        graph[name] = targets & modules.keys() - {name}
    TopologicalSorter(graph).prepare()
