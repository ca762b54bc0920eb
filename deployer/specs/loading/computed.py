"""The rules of a table's computed columns.

Functions are never imported, and SQL is planned without rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from deployer.errors import Position
from deployer.platform.isolation.trusted_functions import is_function_name
from deployer.platform.sql.one_expression import NotOneExpression
from deployer.specs.declarations.columns import DeclaredColumn
from deployer.specs.rules import Rule
from deployer.specs.sources.modules import VersionOf
from deployer.specs.types.computed import ComputedBySql, ComputedByUdf, computation_order
from deployer.specs.types.types import Column, children, holds_blob
from deployer.specs.yaml.nodes import Node
from deployer.specs.yaml.suggestions import nearest

LONGEST_EXPRESSION = 10_000  #: characters of the SQL of a column
_OF_UDF = ("inputs", "version", "function", "output")
Report = Callable[[Position, Rule, str, str], None]


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The known columns of a table, and the keys that order its rows.

    `lacks` is true for names that the table certainly does not have; `complete`: all of its columns are known.
    """

    declared: Sequence[DeclaredColumn]
    keys: Mapping[str, str]  #: by name, `row key` or `sort key`
    lacks: Callable[[str], bool]
    complete: bool

    @property
    def names(self) -> list[str]:
        return [each.column.name for each in self.declared]


def check_computed(table: TableColumns, versions: VersionOf, report: Report) -> tuple[Column, ...]:
    """Returns the table's columns, with the inputs of SQL and the versions of functions; reports columns that cannot be
    computed."""
    found = [_checked(each, table, versions, report) for each in table.declared]
    for each in found:
        _refuse_in_fields(each, each, report)
    inputs = {each.name: each.computed.inputs for each in found if each.computed is not None}
    if inputs:
        _refuse_later_inputs(table, found, report)
        ordered = computation_order(inputs)
        for declared in table.declared:
            if declared.column.name in inputs and declared.column.name not in ordered:
                path = _cycle(inputs, declared.column.name)
                if path is not None:
                    what = f"computed columns read each other: {' → '.join(path)}"
                    report(declared.place_of("computed"), Rule.COMPUTED_CYCLE, what, "compute one of them from others")
                    break
    return tuple(found)


def _checked(declared: DeclaredColumn, table: TableColumns, versions: VersionOf, report: Report) -> Column:
    column = declared.column
    node = declared.node_of("computed")
    if node is None or not isinstance(node.value, dict):
        return column
    for what, remedy in _misfits(declared, node.value, table.keys):
        report(node.at, Rule.COMPUTED, what, remedy)
    match column.computed:
        case ComputedBySql():
            return replace(column, computed=_checked_sql(column, column.computed, node.value["sql"].at, table, report))
        case ComputedByUdf():
            return replace(column, computed=_checked_udf(column, column.computed, node, table, versions, report))
        case None:
            return column


def _misfits(declared: DeclaredColumn, form: Mapping[str, Node], keys: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields the properties that a computed column cannot have, and what to do."""
    column = declared.column
    name = f"computed column `{column.name}`"
    if ("sql" in form) == ("udf" in form):
        yield f"{name} has {'both `sql` and' if 'sql' in form else 'neither `sql` nor'} `udf`", "write one of them"
    elif "sql" in form and (other := next((each for each in _OF_UDF if each in form), None)):
        yield f"{name} has `{other}` beside `sql`, which needs none", f"remove `{other}`"
    elif "udf" in form and "inputs" not in form:
        yield f"{name} has no `inputs`, the columns that its function gets", "add `inputs: [column, …]`"
    if column.name in keys:
        yield f"{name} is a {keys[column.name]}, and a load has to know it", f"remove it from the {keys[column.name]}s"
    if not column.nullable:
        yield f"{name} may not be null, and it is until it is computed", "remove `nullable: false`"
    if holds_blob(column.type) and not (column.computed and column.computed.on_load):
        yield f"{name} holds blobs, which no backfill computes", "use `binary`; or `on_load: true`, so that loads do it"
    if column.default:
        yield f"{name} has a `default` too", "remove `default`; `on_load: true` computes the rows of loads"
    if column.source is not None:
        yield f"{name} has a `source`, and loads do not bring its values", "remove `source`"


def _checked_sql(
    column: Column, computed: ComputedBySql, at: Position, table: TableColumns, report: Report
) -> ComputedBySql:
    from deployer.platform.sql.planning import NotComputable, plan_expression
    from deployer.specs.types.arrow import arrow_schema  # loads pyarrow; most specs do not need it

    if len(computed.sql) > LONGEST_EXPRESSION:
        what = f"`sql` of column `{column.name}` has more than {LONGEST_EXPRESSION:,} characters"
        report(at, Rule.SQL_EXPRESSION, what, "shorten it, or compute it by a function (`udf`)")
        return computed
    try:
        planned = plan_expression(computed.sql, arrow_schema([each.column for each in table.declared]))
    except NotOneExpression as wrong:
        what = f"`sql` of column `{column.name}` is not one SQL expression: it has {wrong}"
        report(at, Rule.SQL_EXPRESSION, what, "write one value, such as distance * 1.609344")
    except NotComputable as wrong:
        if table.complete:
            others = [name for name in table.names if name != column.name]
            what = f"`sql` of column `{column.name}` cannot be computed: {wrong}"
            remedy = f"use columns of the table: {_listed(others)}"
            report(at, Rule.COMPUTED_INPUT, what, remedy)
    else:
        return replace(computed, inputs=planned.columns)
    return computed


def _checked_udf(
    column: Column, computed: ComputedByUdf, node: Node, table: TableColumns, versions: VersionOf, report: Report
) -> ComputedByUdf:
    assert isinstance(node.value, dict)  # noqa: S101
    form = node.value
    for name in computed.inputs:
        if table.lacks(name):
            near = nearest(name, tuple(table.names))
            what = f"no column `{name}`, which computed column `{column.name}` reads"
            remedy = f"did you mean {near}?" if near else f"use columns of the table: {_listed(table.names)}"
            report(form["inputs"].at, Rule.COMPUTED_INPUT, what, remedy)
    if not computed.function and not is_function_name(computed.udf):
        what = f"`{computed.udf}` of computed column `{column.name}` is not the name of a function"
        report(form["udf"].at, Rule.COMPUTED, what, "write package.module:function")
    elif not computed.version:
        version = computed.function[:12] or versions(computed.udf)
        if version is None:
            what = f"the project has no file of module `{computed.udf.partition(':')[0]}`, so its version is unknown"
            report(form["udf"].at, Rule.COMPUTED_VERSION, what, 'add `version: "1"`, and change it with the function')
        return replace(computed, version=version or "unknown")
    return computed


def _refuse_later_inputs(table: TableColumns, columns: Sequence[Column], report: Report) -> None:
    """Reports columns that a load computes from columns that it does not compute."""
    computed = {each.name: each.computed for each in columns if each.computed is not None}
    for declared in table.declared:
        own = computed.get(declared.column.name)
        later = [name for name in own.inputs if name in computed and not computed[name].on_load] if own else []
        if own and own.on_load and later:
            name = declared.column.name
            what = f"computed column `{name}` is computed on load and reads `{later[0]}`, which is not"
            report(declared.place_of("computed"), Rule.COMPUTED, what, f"add `on_load: true` to `{later[0]}` too")


def _cycle(inputs: Mapping[str, Sequence[str]], start: str) -> list[str] | None:
    """Returns the cycle of computed columns from `start` back to it; None where `start` is not in a cycle."""
    pending = [[start]]
    seen: set[str] = set()
    while pending:
        path = pending.pop()
        for name in inputs.get(path[-1], ()):
            if name == start:
                return [*path, start]
            if name not in seen:
                seen.add(name)
                pending.append([*path, name])
    return None


def _refuse_in_fields(column: Column, inside: Column, report: Report) -> None:
    for field in children(inside.type):
        if field.computed is not None and field.at is not None:
            what = f"`computed` of a field inside column `{column.name}`, which only columns can have"
            report(field.at, Rule.COMPUTED, what, f"compute the whole value of `{column.name}`")
        _refuse_in_fields(column, field, report)


def _listed(names: Sequence[str]) -> str:
    most = 10
    return ", ".join(names[:most]) + (f" and {len(names) - most} others" if len(names) > most else "")
