"""Dockerfile, compose.yaml and the workflow that builds them, as far as tests can check them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import typer.main
import yaml

from ragfilter.cli.program import app, load_commands
from ragfilter.settings.config import reads
from ragfilter.settings.deployment import PREFIX, Deployment

ROOT = Path(__file__).resolve().parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
OURS = {name: each for name, each in COMPOSE["services"].items() if each.get("build")}


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    pairs = (line.split(maxsplit=1) for line in lines if line.strip())
    return [(name, rest) for name, rest in pairs]


def test_the_image_is_built_of_files_that_are_there_and_sent() -> None:
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line[0] == "!"}
    copied = [source for name, rest in instructions() if name == "COPY" for source in shlex.split(rest)[:-1]]
    assert copied
    assert set(copied) <= sent
    assert all((ROOT / source).exists() for source in copied)


def test_the_image_is_pinned_and_runs_as_nobody_special() -> None:
    named = dict(instructions())
    assert instructions()[0][0] == "FROM"
    assert re.search(r":\d", named["FROM"])
    assert named["USER"] not in ("root", "0")
    assert {"ENTRYPOINT", "WORKDIR", "RUN", "COPY", "VOLUME"} <= named.keys()


def test_the_services_use_commands_options_and_variables_that_exist() -> None:
    for name in OURS:
        load_commands()
        first, *words = OURS[name]["command"]
        command = typer.main.get_command(app).commands[first]  # type: ignore[attr-defined]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, name
        ours = {v.removeprefix(PREFIX).lower() for v in OURS[name]["environment"] if reads(v)}
        assert ours <= Deployment.model_fields.keys(), name


def test_what_the_services_name_is_declared() -> None:
    volumes = {v.partition(":")[0] for s in COMPOSE["services"].values() for v in s["volumes"]}
    assert volumes == COMPOSE["volumes"].keys()
    for service in COMPOSE["services"].values():
        assert set(service.get("secrets", ())) <= COMPOSE["secrets"].keys()
        assert set(service.get("depends_on", ())) <= COMPOSE["services"].keys()
        image = service["image"]
        assert "build" in service or re.search(r":\d[\w.-]+$", image), image
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), port


def test_the_workflow_builds_the_image_and_reads_the_services() -> None:
    steps = [step.get("run", "") for step in WORKFLOW["jobs"]["image"]["steps"]]
    assert {"docker compose build", "docker compose config --quiet"} <= {*steps}
    assert steps[-1].endswith("/readyz")
