"""`ragfilter rules bulk`, and undo and redo of steps."""

from __future__ import annotations

from typing import Any

from rule_runs import GOOD, OTHER, Run
from rule_runs import run as run
from rule_runs import small as small

MATRICES = ("--where", "title=Attack matrix*")
GROUP = '{"contain_one_of":[["hit","hits"]]}'


def test_a_change_of_a_selection_is_one_step(run: Run, snapshot: Any) -> None:
    change = ("bulk", *MATRICES, "--add-group", "hit", "--add-group", "hits")
    assert run(*change, "--dry-run") == snapshot
    assert run.rule("cleric-7") is None
    document = run.json(*change)
    assert document["saved"]
    assert [*document["after"]] == ["cleric-6", "cleric-7", "cleric-8"]
    assert run.rule("cleric-7") == GROUP
    assert run("history", "--edit", "2") == snapshot
    assert [edit["id"] for edit in run.json("history", "--edit", "2")] == [1, 2, 3]
    assert len(run("undo").splitlines()) == 3
    assert (run.rule("cleric-6"), run.rule("cleric-7")) == (GOOD, None)
    run("bulk", "--where", "id=troll", "--remove")
    run("redo", "--edit", "1")
    assert run.rule("cleric-7") == GROUP
    run("undo", "--edit", "1")
    run("undo")
    assert run.rule("troll") == OTHER


def test_each_change(run: Run) -> None:
    for args, rule in (
        (("--set-rule", '{"contain": "x"}'), '{"contain":"x"}'),
        (("--spellings-of", "Troll", "--spelling", "giant"), '{"contain_one_of":[["troll","trolls","giant"]]}'),
        (("--replace", "trolls", "ogres"), '{"contain_one_of":[["troll","ogres"]]}'),
        (("--remove",), None),
    ):
        plan = run.json("bulk", "--where", "id=troll", *args, "--dry-run")
        assert (plan["before"], plan["after"]) == ({"troll": OTHER}, {"troll": rule})


def test_bad_input_changes_nothing(run: Run) -> None:
    for args, says in (
        (("bulk",), "Exactly one"),
        (("bulk", "--spellings-of", "a"), "together"),
        (("bulk", "--set-rule", "{"), "not valid JSON"),
        (("bulk", "--where", "id=nope", "--remove"), "No chunk matches"),
        (("history", "--edit", "7"), "no edit 7"),
        (("undo", "boat", "--edit", "7"), "were both given"),
    ):
        run(*args, code=2)
        assert says in run.err
    assert run.rule("troll") == OTHER


def test_check_fixes_what_it_can_as_one_step(run: Run) -> None:
    run("bulk", "--where", "id=troll", "--set-rule", '{"contain_one_of": [["the", "troll"]]}')
    run("bulk", "--where", "id=cleric-*", "--set-rule", '{"contain": "cleric"}')
    document = run.json("check", "--apply", "--dry-run")
    # Siblings may share a rule on purpose, so it is only fixed if its kind is named.
    assert [*document["fixed"]] == ["troll"]
    assert not document["saved"]
    # The siblings need not be selected.
    (shared,) = run.json("check", "--where", "id=cleric-7")["findings"]
    assert (shared["chunk_ids"], shared["kind"]) == (["cleric-7"], "shared")
    chosen = ("--where", "id=cleric-7", "--kind", "shared", "--apply", "--dry-run")
    assert [*run.json("check", *chosen)["fixed"]] == ["cleric-7"]
    document = run.json("check", "--apply", "--kind", "everywhere")
    assert [*document["fixed"].values()] == ['{"contain_one_of":[["troll"]]}']
    assert run.rule("troll") == '{"contain_one_of":[["troll"]]}'
    assert "3 rules fixed" in run("check", "--apply", "--kind", "shared")
    assert '"ac 7"' in (run.rule("cleric-7") or "")
    assert run.json("check")["findings"] == []
    run("undo")
    assert run.rule("cleric-7") == '{"contain":"cleric"}'
