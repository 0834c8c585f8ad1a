"""One change to many rules: the effect of each kind on each rule."""

from __future__ import annotations

from ragfilter.model import Chunk
from ragfilter.rules import bulk
from ragfilter.rules.rule import texts_of

ROW = '{"contain_one_of":[["cleric","AC 6"],["hit"]],"contain_none_of":["undead"]}'
BROKEN = '{"contains":1}'


def test_each_change() -> None:
    for change, before, after in [
        (bulk.set_rule('{"contain": "x"}'), ROW, '{"contain":"x"}'),
        (bulk.set_rule('{"contain": "x"}'), BROKEN, '{"contain":"x"}'),
        (bulk.remove(), ROW, None),
        (bulk.remove(), BROKEN, None),
        (bulk.add_group(["a", " b ", ""]), None, '{"contain_one_of":[["a","b"]]}'),
        (bulk.add_group(["a"]), '{"contain":"x"}', '{"contain_one_of":[["a"]],"contain":"x"}'),
        (
            bulk.add_spellings("ac 6", ["armor class 6", "CLERIC"]),
            ROW,
            '{"contain_one_of":[["cleric","AC 6","armor class 6"],["hit"]],"contain_none_of":["undead"]}',
        ),
        (
            bulk.replace_term("Undead", "ghost"),
            ROW,
            '{"contain_one_of":[["cleric","AC 6"],["hit"]],"contain_none_of":["ghost"]}',
        ),
        (
            bulk.replace_term("ac 6", "cleric"),
            ROW,
            '{"contain_one_of":[["cleric"],["hit"]],"contain_none_of":["undead"]}',
        ),
    ]:
        plan = bulk.plan(change, [Chunk("c", rule=before)])
        assert texts_of(plan.after) == {"c": after}
        assert plan.before == {"c": before}


def test_what_stays_is_no_change() -> None:
    for change, rule in [
        (bulk.remove(), None),
        (bulk.set_rule(ROW), ROW),
        (bulk.add_group(["HIT"]), ROW),
        (bulk.add_spellings("wizard", ["mage"]), ROW),
        (bulk.replace_term("druid", "monk"), '{"contain_one_of":[["cleric","cleric"]]}'),
        (bulk.replace_term("wizard", "mage"), '{ "contain": "spaced" }'),
    ]:
        plan = bulk.plan(change, [Chunk("c", rule=rule)])
        assert (plan.after, plan.unchanged) == ({}, ("c",)), change


def test_a_rule_that_cannot_be_read_is_refused_and_the_others_are_changed() -> None:
    plan = bulk.plan(bulk.add_group(["a"]), [Chunk("c", rule=BROKEN), Chunk("d")])
    assert texts_of(plan.after) == {"d": '{"contain_one_of":[["a"]]}'}
    assert plan.refused == {"c": "contains: unknown key. Did you mean contain?"}
