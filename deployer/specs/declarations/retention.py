"""Retention and legal holds of a table, and how long its changes are kept, from their nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from deployer.errors import Position
from deployer.platform.sql.one_expression import NotOneExpression
from deployer.platform.sql.parsing import check_expression
from deployer.platform.text.units import SPEC_DURATION, canonical_duration
from deployer.specs.model import Hold, Retention, ServiceSpec
from deployer.specs.rules import Rule
from deployer.specs.types.types import Column, Scalar, format_type
from deployer.specs.yaml.nodes import Node
from deployer.specs.yaml.suggestions import nearest

Report = Callable[[Position, Rule, str, str], None]

AGE_TYPES = ("date32", "date64", "timestamp")  #: types of columns that give the age of a row
LONGEST_CONDITION = 10_000  #: characters of the SQL of a hold


def is_age_column(column: Column) -> bool:
    """Returns whether the values of the column are dates or timestamps."""
    return isinstance(column.type, Scalar) and column.type.name in AGE_TYPES


def read_retention(
    node: Node | None, columns: Mapping[str, Column], lacks: Callable[[str], bool], report: Report
) -> Retention | None:
    """Returns the retention of a table with these columns; None without one, and for an invalid one.

    `lacks` returns whether the table has no column of a name.
    """
    parts = _properties(node)
    named, kept = parts.get("column"), parts.get("keep")
    if named is None or kept is None:
        return None
    name, column = str(named.value), columns.get(str(named.value))
    if column is None:
        if lacks(name):
            near = nearest(name, [each.name for each in columns.values() if is_age_column(each)] or tuple(columns))
            remedy = f"did you mean {near}?" if near else "name a date or timestamp of the table"
            report(named.at, Rule.RETENTION_COLUMN, f"no column `{name}`, which `retention` names", remedy)
    elif not is_age_column(column):
        what = f"column `{name}` of type {format_type(column.type)} does not give the age of a row"
        ages = [each.name for each in columns.values() if is_age_column(each)]
        remedy = f"name a date or timestamp, such as {ages[0]}" if ages else "name a date or timestamp"
        report(named.at, Rule.RETENTION_TYPE, what, remedy)
    if not re.fullmatch(SPEC_DURATION, str(kept.value)):
        return None  # the JSON Schema reports it
    keep = canonical_duration(str(kept.value))
    if keep == "0d":
        report(kept.at, Rule.RETENTION_KEEP, "`keep` is zero", "write a time such as 400d, or remove it")
        return None
    return Retention(name, keep)


def read_holds(node: Node | None, columns: Sequence[Column], complete: bool, report: Report) -> tuple[Hold, ...]:
    """Returns the legal holds of a table with these columns, by name. `complete`: these are all columns.

    Conditions are one SQL expression each, on its columns.
    """
    found: dict[str, Hold] = {}
    for item in node.value if node is not None and isinstance(node.value, list) else ():
        parts = _properties(item)
        if (named := parts.get("name")) is None:
            continue
        name = str(named.value)
        if name in found:
            report(named.at, Rule.DUPLICATE_HOLD, f"two holds are called `{name}`", "give one of them another name")
        condition = parts.get("where")
        if condition is not None:
            _check_condition(name, condition, columns if complete else (), report)
        found[name] = Hold(name, _text(condition), _text(parts.get("reason")))
    return tuple(found[name] for name in sorted(found))


def read_retained_changes(node: Node | None, report: Report) -> str | None:
    """Returns how long a table's changes can be read; None where it is not declared, and for an invalid value."""
    if node is None or not re.fullmatch(SPEC_DURATION, str(node.value)):
        return None  # the JSON Schema reports it
    kept = canonical_duration(str(node.value))
    if kept == "0d":
        what = "`retain_changes` is not longer than zero"
        report(node.at, Rule.RETENTION_KEEP, what, "write a time such as 7d, or remove it")
        return None
    return kept


def hold_places(node: Node | None) -> Iterator[tuple[str, Position]]:
    """Yields the places of holds, by name."""
    for item in node.value if node is not None and isinstance(node.value, list) else ():
        if (named := _properties(item).get("name")) is not None:
            yield str(named.value), item.at


def check_expire(
    services: Sequence[ServiceSpec],
    retention: Node | None,
    declared: Node | None,
    report: Report,
) -> tuple[ServiceSpec, ...]:
    """Returns the services without EXPIRE where the table has no retention; reports one that the table itself
    `declared`."""
    if retention is not None:
        return tuple(services)
    own = _properties(declared).get("expire")
    if own is not None and any(each.kind == "EXPIRE" for each in services):
        what = "EXPIRE removes what is older than `retention`, which the table does not declare"
        report(own.key_at, Rule.SERVICE_OPTION, what, "add `retention: {column: …, keep: …}`, or remove `expire`")
    return tuple(each for each in services if each.kind != "EXPIRE")


def _check_condition(name: str, node: Node, columns: Sequence[Column], report: Report) -> None:
    if not str(node.value).strip():
        what = f"`where` of hold `{name}` is empty"
        report(node.at, Rule.HOLD_CONDITION, what, "remove it to hold every row, or write a condition")
        return
    try:
        check_expression(str(node.value), LONGEST_CONDITION)
    except NotOneExpression as wrong:
        what = f"`where` of hold `{name}` is not one SQL expression: it has {wrong}"
        report(node.at, Rule.HOLD_CONDITION, what, "write one condition, such as account = 'A-17'")
        return
    if not columns:
        return
    from deployer.platform.sql.planning import condition_fault
    from deployer.specs.types.arrow import arrow_schema  # loads pyarrow; most specs do not need it

    if fault := condition_fault(str(node.value), arrow_schema(columns)):
        what = f"`where` of hold `{name}` has {fault}"
        remedy = f"write a condition on columns of the table: {', '.join(each.name for each in columns[:10])}"
        report(node.at, Rule.HOLD_CONDITION, what, remedy)


def _text(node: Node | None) -> str:
    return str(node.value).strip() if node is not None else ""


def _properties(node: Node | None) -> Mapping[str, Node]:
    return node.value if node is not None and isinstance(node.value, dict) else {}
