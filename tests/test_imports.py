"""The direction of imports: values know nothing of stores, the core nothing of pages."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "ragfilter"

# Each part may import itself and the parts named here; the rest of the world is not restricted.
GROUND = {
    "types", "errors", "setting", "settings", "ports", "tokens", "figures", "deadline", "disk",
    "judge_prompts", "usage", "characters", "reply", "urls",
}  # fmt: skip
CORE = GROUND | {
    "rules", "layers", "entities", "context", "judging", "judgements", "verdicts", "expansion",
    "source_pattern", "confidence", "pipeline", "search",
}  # fmt: skip
WIRING = CORE | {
    "sources", "fulfil", "gather", "adapters", "corpora", "workspace", "index", "deployment",
    "profiles",
}  # fmt: skip
ALL = WIRING | {"config", "report", "prompts", "answer", "bench", "evaluate", "preview"}
ALLOWED = {
    "types": {"settings"},
    "errors": set(),
    "characters": set(),
    "reply": {"errors", "ports", "characters"},
    "judge_prompts": {"errors"},
    "setting": set(),
    "settings": {"setting", "judge_prompts"},
    "ports": {"types"},
    "tokens": set(),
    "usage": {"errors", "ports", "tokens"},
    "figures": set(),
    "deadline": set(),
    "urls": set(),
    "disk": set(),
    "confidence": GROUND,
    "rules": GROUND | {"context"},
    "entities": GROUND,
    "context": GROUND,
    "verdicts": GROUND,
    "judgements": GROUND,
    "expansion": GROUND,
    "source_pattern": set(),
    "judging": GROUND | {"context", "verdicts", "judgements"},
    "layers": GROUND | {"rules", "entities", "context", "judging", "expansion"},
    "pipeline": GROUND | {"rules", "layers", "source_pattern"},
    "search": GROUND | {"layers"},
    "sources": GROUND | {"judgements"},
    "fulfil": CORE | {"sources"},
    "gather": CORE | {"sources", "fulfil"},
    "adapters": GROUND,
    "deployment": {"errors"},
    "profiles": {"errors"},
    "config": {"errors", "characters", "settings", "profiles", "deployment"},
    "prompts": GROUND | {"context"},
    "answer": GROUND | {"context", "prompts", "adapters", "usage"},
    "preview": CORE | {"answer"},
    "report": CORE | {"prompts", "answer"},
    "local_llm": {"errors"},
    "corpora": GROUND | {"rules"},
    "workspace": {"errors", "adapters"},
    "index": GROUND | {"rules", "corpora", "adapters", "workspace"},
    "evaluate": CORE | {"sources", "gather", "corpora", "report", "config", "profiles"},
    "bench": WIRING,
    "cli": ALL,
    "ui": ALL | {"local_llm"},
    "__main__": {"cli"},
    "__init__": ALL,
}


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Parts of ragfilter that a file imports at run time, and `streamlit` where it does."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
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
    found = {name.split(".")[1] for name in names if name.startswith("ragfilter.")}
    return found | ({"streamlit"} if any(n.split(".")[0] == "streamlit" for n in names) else set())


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    own = part(path)
    allowed = ALLOWED[own] | {own} | ({"streamlit"} if own == "ui" else set())
    assert imported(path) - allowed - {"__version__"} == set()


def test_no_two_parts_may_import_each_other() -> None:
    TopologicalSorter({own: allowed - {own} for own, allowed in ALLOWED.items()}).prepare()
