"""`ragfilter rules bulk`, and undo and redo of steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from rule_runs import GOOD, OTHER, Run, make_workspace

MATRICES = ("--where", "title=Attack matrix*")
GROUP = '{"contain_one_of":[["hit","hits"]]}'


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    make_workspace(tmp_path / "workspace")
    return Run(tmp_path / "workspace", capsys)


def test_a_change_of_a_selection_is_one_step(run: Run) -> None:
    given = ("bulk", *MATRICES, "--add-group", "hit", "--add-group", "hits")
    assert run(*given, "--dry-run").splitlines() == [
        "cleric-6",
        f"- {GOOD}",
        '+ {"contain_one_of":[["cleric","clerics"],["hit","hits"]]}',
        "cleric-7",
        "- no rule",
        f"+ {GROUP}",
        "cleric-8",
        "- no rule",
        f"+ {GROUP}",
        "small: add the group hit, hits: 3 rules would be changed, 0 unchanged, 0 refused",
    ]
    assert run.rule("cleric-7") is None
    made = run.json(*given)
    assert made["saved"]
    assert [change["id"] for change in made["changes"]] == ["cleric-6", "cleric-7", "cleric-8"]
    assert run.rule("cleric-7") == GROUP
    assert len(run("undo").splitlines()) == 3
    assert (run.rule("cleric-6"), run.rule("cleric-7")) == (GOOD, None)
    run("bulk", "--where", "id=troll", "--remove")
    run("redo", "--edit", "1")
    assert run.rule("cleric-7") == GROUP
    run("undo", "--edit", "1")
    run("undo")
    assert run.rule("troll") == OTHER


def test_the_history_shows_what_a_step_changed(run: Run) -> None:
    run("bulk", "--where", "id=cleric-*", "--set-rule", GROUP)
    shown = run("history", "--edit", "2").splitlines()
    assert shown[:3] == ["cleric-6", f"- {GOOD}", f"+ {GROUP}"]
    assert shown[6:] == ["cleric-8", "- no rule", f"+ {GROUP}"]
    assert [edit["id"] for edit in run.json("history", "--edit", "2")] == [1, 2, 3]


@pytest.mark.parametrize(
    ("args", "rule"),
    [
        (("--set-rule", '{"contain": "x"}'), '{"contain":"x"}'),
        (("--spellings-of", "Troll", "--spelling", "giant"),
         '{"contain_one_of":[["troll","trolls","giant"]]}'),
        (("--replace", "trolls", "ogres"), '{"contain_one_of":[["troll","ogres"]]}'),
        (("--remove",), None),
    ],
)  # fmt: skip
def test_each_change(run: Run, args: tuple[str, ...], rule: str | None) -> None:
    run("bulk", "--where", "id=troll", *args)
    assert run.rule("troll") == rule


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "Exactly one change is required."),
        (("--remove", "--set-rule", "{}"), "Exactly one change is required."),
        (("--spellings-of", "a"), "--spellings-of and --spelling must be used together."),
        (("--set-rule", "{"), "this is not valid JSON"),
        (("--add-group", " "), "There is no term."),
    ],
)
def test_bad_input_changes_nothing(run: Run, args: tuple[str, ...], says: str) -> None:
    run("bulk", *args, code=2)
    assert says in run.err
    assert run.rule("troll") == OTHER


def test_a_chunk_that_the_user_may_not_see_is_left_out(run: Run) -> None:
    told = []
    for i in ("secret", "absent"):
        run(
            "bulk",
            "--where",
            f"id={i}",
            "--set-rule",
            GOOD,
            "--set",
            "clearance.enabled=true",
            code=2,
        )
        told.append(run.err)
    assert run.rule("secret") is None
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("undo", "--edit", "7"), "small has no edit 7."),
        (("history", "--edit", "7"), "small has no edit 7."),
        (("history", "boat", "--edit", "7"), "were both given"),
        (("undo", "boat", "--edit", "7"), "were both given"),
    ],
)
def test_an_edit_that_is_not_there(run: Run, args: tuple[str, ...], says: str) -> None:
    run(*args, code=2)
    assert says in run.err


def test_a_selection_that_is_empty(run: Run) -> None:
    run("bulk", "--where", "id=nope", "--remove", code=2)
    assert "No chunk matches --where." in run.err


def test_check_mends_what_it_can_as_one_step(run: Run) -> None:
    run("bulk", "--where", "id=troll", "--set-rule", '{"contain_one_of": [["the", "troll"]]}')
    run("bulk", "--where", "id=cleric-*", "--set-rule", '{"contain": "cleric"}')
    made = run.json("check", "--apply", "--dry-run")
    # Siblings may share a rule on purpose, so it is only fixed if its kind is named.
    assert [each["id"] for each in made["fixed"]] == ["troll"]
    assert not made["saved"]
    # The siblings need not be selected.
    (shared,) = run.json("check", "--where", "id=cleric-7")["findings"]
    assert (shared["chunk_ids"], shared["kind"]) == (["cleric-7"], "shared")
    chosen = ("--where", "id=cleric-7", "--kind", "shared", "--apply", "--dry-run")
    assert [each["id"] for each in run.json("check", *chosen)["fixed"]] == ["cleric-7"]
    made = run.json("check", "--apply", "--kind", "everywhere")
    assert [each["after"] for each in made["fixed"]] == ['{"contain_one_of":[["troll"]]}']
    assert run.rule("troll") == '{"contain_one_of":[["troll"]]}'
    assert "3 rules fixed" in run("check", "--apply", "--kind", "shared")
    assert '"ac 7"' in (run.rule("cleric-7") or "")
    assert run.json("check")["findings"] == []
    run("undo")
    assert run.rule("cleric-7") == '{"contain":"cleric"}'
