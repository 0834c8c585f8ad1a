"""Evaluation runs, saved as they progress: their plan, and a record of every finished query. A stopped run continues
where it stopped if collection, labels and settings are the same. Source: docs/design.md#evaluate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from ragfilter.basics import database
from ragfilter.basics.database import TEXT, TIME, WHOLE
from ragfilter.errors import InputError, extra
from ragfilter.model import User

with extra("chroma"):
    import sqlalchemy as sa


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that the figures of a run depend on."""

    collection: str
    query_set: str
    profile: str
    changes: Mapping[str, Any]
    viewer: User
    collection_version: str
    labels_version: str
    model: str
    space: str
    queries: int


_PLAN = {each.name: WHOLE if each.name == "queries" else TEXT for each in fields(Plan)}
_runs = database.table("runs", at=TIME, who=TEXT, name=TEXT, **_PLAN)
_records = database.table("run_records", sa.UniqueConstraint("run", "query_id"), run=WHOLE, query_id=TEXT, body=TEXT)
ORPHANS = _records.delete().where(_records.c.run.not_in(sa.select(_runs.c.id)))
"""Deletes the records of deleted runs."""


@dataclass(frozen=True, slots=True)
class Run:
    """A saved run. `at` is in UTC; `who` is empty if nobody asked for it; `done` is the number of measured queries."""

    id: int
    at: datetime
    who: str
    name: str
    plan: Plan
    done: int

    @property
    def complete(self) -> bool:
        return self.done >= self.plan.queries


class Runs(database.Book):
    """The runs in the database at `url`."""

    called = "Saving runs"
    tables = (_runs, _records)

    def begin(self, plan: Plan, *, who: str, name: str = "") -> Run:
        """Continue the unfinished run of exactly this plan, or begin a new run."""
        with self.transaction(), self.writing() as connection:
            unfinished = self.unfinished(plan)
            if unfinished is not None:
                who = unfinished.who or who
                connection.execute(_runs.update().filter_by(id=unfinished.id).values(who=who))
                return replace(unfinished, who=who)
            # A new run may get the number of one that was deleted while it was being measured.
            connection.execute(ORPHANS)
            values = {"at": datetime.now(UTC), "who": who, "name": name, **_row(plan)}
            return self.get(connection.execute(_runs.insert().values(values).returning(_runs.c.id)).scalar_one())

    def rename(self, run_id: int, name: str) -> None:
        """Give the run this name, and take it from the collection's other runs of the same query set."""
        plan = self.get(run_id).plan
        same = _runs.update().filter_by(name=name, collection=plan.collection, query_set=plan.query_set)
        self._write(same.values(name=""), _runs.update().filter_by(id=run_id).values(name=name))

    def retitle(self, collection: str, titles: Mapping[str, str]) -> None:
        """Change the titles of the query sets of a collection's runs."""
        title = _runs.c.query_set
        renamed = _runs.update().filter_by(collection=collection).where(title.in_(titles))
        self._write(renamed.values(query_set=sa.case(titles, value=title)))

    def unfinished(self, plan: Plan) -> Run | None:
        """The run that `begin` would continue."""
        same = self._read(_list().filter_by(**_row(plan)).order_by(_runs.c.id.desc()))
        return next((run for run in map(_run, same) if not run.complete), None)

    def keep(self, run_id: int, query_id: str, record: Mapping[str, Any]) -> None:
        """Store the record of a query, replacing any earlier one."""
        key = {"run": run_id, "query_id": query_id}
        self._write(_records.delete().filter_by(**key), _records.insert().values(**key, body=json.dumps(record)))

    def saved(self, collection: str | None = None) -> tuple[Run, ...]:
        """The runs of a collection, or all, newest first."""
        mine = {} if collection is None else {"collection": collection}
        return tuple(map(_run, self._read(_list().filter_by(**mine).order_by(_runs.c.id.desc()))))

    def get(self, run_id: int) -> Run:
        """The run with this number. Raises InputError if there is none."""
        rows = self._read(_list().filter_by(id=run_id))
        if not rows:
            raise InputError(f"There is no run {run_id}.", action="runs")
        return _run(rows[0])

    def records(self, run_id: int) -> tuple[dict[str, Any], ...]:
        """The records of a run, in the order of measurement."""
        rows = self._read(sa.select(_records).filter_by(run=run_id).order_by(_records.c.id))
        return tuple(json.loads(row.body) for row in rows)

    def done(self, run_id: int) -> frozenset[str]:
        """The ids of the measured queries."""
        rows = self._read(sa.select(_records.c.query_id).filter_by(run=run_id))
        return frozenset(row.query_id for row in rows)

    def remove(self, run_id: int) -> None:
        """Delete the run with this number. Raises InputError if there is none."""
        self.get(run_id)
        self._write(_records.delete().filter_by(run=run_id), _runs.delete().filter_by(id=run_id))


def _list() -> sa.Select[Any]:
    done = sa.select(sa.func.count()).where(_records.c.run == _runs.c.id).scalar_subquery().label("done")
    return sa.select(_runs, done)


def _row(plan: Plan) -> dict[str, Any]:
    user = plan.viewer
    return asdict(plan) | {
        "changes": json.dumps(dict(plan.changes), sort_keys=True),
        "viewer": json.dumps([user.level, sorted(user.departments), user.unrestricted]),
    }


def _run(row: sa.Row[Any]) -> Run:
    values = dict(row._mapping)
    level, departments, unrestricted = json.loads(values.pop("viewer"))
    of_run = {name: values.pop(name) for name in ("id", "who", "name", "done")}
    at = database.in_utc(values.pop("at"))
    changes = json.loads(values.pop("changes"))
    user = User(level, tuple(departments), unrestricted)
    plan = Plan(**values, changes=changes, viewer=user)
    return Run(plan=plan, at=at, **of_run)
