"""Rules as SQL. Each file `policies/*.sql` is one SELECT over the plan's rows; every row of its result is a violation.

    -- name: money-is-decimal          (else the file's name)
    -- enforcement: advisory
    -- Money is never a float.
    SELECT address, column, 'use decimal128' AS message FROM columns WHERE …

DataFusion runs the SELECT over the tables `changes`, `resources` and `columns`. It refuses statements that are not
queries, and files cannot be used as tables. DataFusion runs in a separate process (`platform.sql.process`), which may
use 1 GiB of memory and 20 seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from deployer.errors import Position, Problem
from deployer.plan.verdict import Enforcement
from deployer.policy.model import NAME, Check, Policy, RuleFailed
from deployer.policy.rows import ChangeRow, ColumnRow, Finding, PlanView, ResourceRow
from deployer.specs.yaml.suggestions import nearest, one_of

if TYPE_CHECKING:
    import pyarrow as pa

_KEYS = ("name", "enforcement", "stacks", "addresses")
_RESULT = ("address", "message", "column")
_FIELD = re.compile(r"--\s*([A-Za-z_]+)\s*:\s*(.*?)\s*$")


def read_sql_rule(data: bytes, file: str, problems: list[Problem]) -> Policy | None:
    """Returns the rule of a SQL file. Adds faults of its comment to `problems`, and returns None then. Its SQL is
    checked when the rule runs."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        problems.append(Problem(Position(file, line), "the file is not UTF-8 text", "save it as UTF-8", "rule-syntax"))
        return None
    before = len(problems)
    given, description = _header(text, file, problems)
    name = given.get("name", re.sub(r"[^a-z0-9]+", "-", PurePath(file).stem.lower()).strip("-"))
    if not re.fullmatch(NAME, name):
        remedy = "use small letters and digits with - between words: -- name: no-floats"
        problems.append(Problem(Position(file), f"{name!r} is not a valid name of a rule", remedy, "rule-syntax"))
    enforcement = given.get("enforcement", Enforcement.MANDATORY.value)
    known = tuple(each.value for each in Enforcement)
    if enforcement not in known:
        what = f"`enforcement` cannot be `{enforcement}`"
        problems.append(Problem(Position(file), what, one_of(enforcement, known), "unknown-value"))
    if len(problems) > before:
        return None
    return Policy(
        name,
        _check(name, text, file),
        Position(file),
        Enforcement(enforcement),
        " ".join(description),
        _globs(given.get("stacks")),
        _globs(given.get("addresses")),
    )


def _header(text: str, file: str, problems: list[Problem]) -> tuple[dict[str, str], list[str]]:
    """Returns the fields of the comment before the SELECT, and the other lines of the comment."""
    given: dict[str, str] = {}
    description = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if not line.startswith("--"):
            break
        found = _FIELD.match(line)
        key = found[1].lower() if found else ""
        if found and key in _KEYS:
            given[key] = found[2]
        elif found and (near := nearest(key, _KEYS)):
            what = f"unknown field `{found[1]}` of a rule"
            problems.append(Problem(Position(file, number, 4), what, f"did you mean {near}?", "unknown-field"))
        else:
            description.append(line.lstrip("- ").strip())
    return given, description


def _globs(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


class _Wrong(Exception):
    """An error in a rule's SQL. `what` completes a message that begins with "the rule NAME"."""

    def __init__(self, what: str, remedy: str) -> None:
        self.what, self.remedy = what, remedy
        super().__init__(what)


def _check(name: str, query: str, file: str) -> Check:
    def check(plan: PlanView) -> Iterator[Finding]:
        try:
            found = _rows(plan, query)
        except _Wrong as wrong:
            problem = Problem(Position(file), f"the rule {name} {wrong.what}", wrong.remedy, "rule-failed")
            raise RuleFailed(problem) from None
        places: dict[tuple[str, str], Position | None] = {(row.address, ""): row.at for row in plan.resources}
        places |= {(row.address, row.column): row.at for row in plan.columns}
        places |= {(row.address, row.column): row.at for row in plan.changes if row.column}
        for each in found:
            address, column = str(each["address"]), str(each.get("column") or "")
            at = places.get((address, column)) or places.get((address, ""))
            yield Finding(address, str(each["message"]), column, at)

    return check


def _rows(plan: PlanView, query: str) -> list[dict[str, Any]]:
    """Returns the rows of the query, which runs in a process with limits. Raises _Wrong for a statement that is not a
    query, that fails, or whose result is not a list of violations."""
    from deployer.platform.sql import process

    tables = plan_tables(plan)
    try:
        found = process.query(query, tables)
    except process.OverLimit as over:
        raise _Wrong(str(over), "write a query that takes less") from None
    except process.SqlFailed as error:
        raise _explained(error, tables) from None
    names = found.column_names
    if missing := [each for each in ("address", "message") if each not in names]:
        remedy = "SELECT address, '…' AS message FROM changes, resources or columns"
        raise _Wrong(f"gives no {' and no '.join(missing)}", remedy)
    if other := [each for each in names if each not in _RESULT]:
        raise _Wrong(f"gives {other[0]}, which is not read", f"select {', '.join(_RESULT)}")
    rows: list[dict[str, Any]] = found.to_pylist()
    if any(row["address"] is None or row["message"] is None for row in rows):
        raise _Wrong("gives a row whose address or message is null", "use coalesce(…, '')")
    return rows


def _explained(failure: Exception, tables: Mapping[str, pa.Table]) -> _Wrong:
    text = " ".join(str(failure).replace("DataFusion error: ", "").split())
    if re.search(r"(DDL|DML|Statement) not supported|Unsupported SQL statement", text):
        return _Wrong("is not read-only", "give one SELECT")
    if "single SQL statement" in text or "No SQL statements" in text:
        return _Wrong("is not one SELECT", "write one in each file")
    if missing := re.search(r"table '([^']+)' not found", text):
        name = missing[1].removeprefix("datafusion.").removeprefix("public.")
        return _Wrong(f"reads {name}, which does not exist", one_of(name, tuple(tables)))
    if missing := re.search(r"No field named ([^ ]+?)\.? ", text + " "):
        name = missing[1].replace('"', "").rsplit(".", 1)[-1]
        near = nearest(name, sorted({column for table in tables.values() for column in table.column_names}))
        remedy = f"did you mean {near}?" if near else "docs/policy.md lists the columns"
        return _Wrong(f"reads the column {name}, which does not exist", remedy)
    return _Wrong(f"cannot be run: {text:.200}", "fix its SQL")


def plan_tables(plan: PlanView) -> dict[str, pa.Table]:
    """Returns the tables for SQL rules. Their columns are the fields of the rows; `file` and `line` replace `at`."""
    rows = {"changes": plan.changes, "resources": plan.resources, "columns": plan.columns}
    return {name: _table(kind, rows[name]) for name, kind in _ROWS.items()}


def _table(kind: type, rows: Any) -> pa.Table:
    import pyarrow as pa

    texts, tags = pa.list_(pa.string()), pa.map_(pa.string(), pa.string())
    types: dict[str, Any] = {
        "str": pa.string(),
        "str | None": pa.string(),
        "int": pa.int64(),
        "bool": pa.bool_(),
        "tuple[str, ...]": texts,
        "Mapping[str, str]": tags,
        "dt.datetime | None": pa.timestamp("us", "UTC"),
    }
    columns: dict[str, Any] = {}
    for item in fields(kind):
        if item.name == "at":
            columns["file"] = pa.array([row.at.file if row.at else None for row in rows], pa.string())
            columns["line"] = pa.array([row.at.line if row.at else None for row in rows], pa.int64())
            continue
        values = [getattr(row, item.name) for row in rows]
        if item.type == "Mapping[str, str]":
            values = [sorted(value.items()) for value in values]
        columns[item.name] = pa.array(values, types[str(item.type)])
    return pa.table(columns)


_ROWS: Mapping[str, type] = MappingProxyType({"changes": ChangeRow, "resources": ResourceRow, "columns": ColumnRow})
