"""Settings saved under a name: stored as files that `--config` reads, found by their name."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from ragfilter.basics.files import TextFiles
from ragfilter.cli.program import app, load_commands
from ragfilter.errors import InputError, SettingsError
from ragfilter.settings import config

STRICT = 'profile = "adaptive-gap"\n\n[cutoff]\nmax_results = 3\n'


def test_what_was_saved_is_listed_found_replaced_and_forgotten(tmp_path: Path) -> None:
    assert config.saved_names(TextFiles(tmp_path)) == []
    config.save(TextFiles(tmp_path), "strict", "")
    config.save(TextFiles(tmp_path), "strict", STRICT)
    config.save(TextFiles(tmp_path), "A 2", STRICT)
    assert config.saved_names(TextFiles(tmp_path)) == ["A 2", "strict"]
    assert config.find_saved(TextFiles(tmp_path), "strict").read_text() == STRICT
    config.forget(TextFiles(tmp_path), "strict")
    config.forget(TextFiles(tmp_path), "strict")
    assert config.saved_names(TextFiles(tmp_path)) == ["A 2"]
    with pytest.raises(SettingsError, match=r"No settings are saved under 'strict'.* A 2\."):
        config.find_saved(TextFiles(tmp_path), "strict")


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a\\b", "-x", "x.", "é", "a" * 65])
def test_no_name_leads_out_of_the_workspace(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="is not a valid name for saved settings"):
        config.save(TextFiles(tmp_path / "workspace"), name, STRICT)
    assert list(tmp_path.rglob("*")) == []


def test_the_command_line_takes_a_name_wherever_the_workspace_stands(tmp_path: Path) -> None:
    config.save(TextFiles(tmp_path), "strict", STRICT + "gap_threshold = 9\n")
    for order in (
        ["--config", "strict", "--data-dir", str(tmp_path)],
        ["--data-dir", str(tmp_path), "--config", "strict"],
    ):
        load_commands()
        done = CliRunner().invoke(app, ["query", "owl", *order], catch_exceptions=True)
        # The saved file is read, so that its error is reported.
        assert "strict.toml" in f"{done.output}{done.exception}"
