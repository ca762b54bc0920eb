"""The lineage of a SELECT: the source columns of each of its columns, by DataFusion's plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Origin = tuple[str, str]  #: a table's full name and a column of it


@dataclass(frozen=True, slots=True)
class _Output:
    """A column that a step of the plan outputs: its qualifier, its name and its origins."""

    relation: str
    name: str
    origins: frozenset[Origin]


def lineage_of(
    plan: Any, columns: Sequence[str], tables: Mapping[str, str]
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[Origin, ...]]]:
    """Returns the columns that the plan reads by table, and the origins of each of its `columns`, in order.

    `tables` are the full names of tables by the names that the plan scans.
    """
    walk = _Walk(tables)
    outputs = walk.outputs(plan)
    reads: dict[str, list[str]] = {name: [] for name in walk.scanned}
    for table, column in sorted(walk.read):
        reads[table].append(column)
    lineage = {name: tuple(sorted(output.origins)) for name, output in zip(columns, outputs, strict=False)}
    return {table: tuple(names) for table, names in sorted(reads.items())}, lineage


class _Walk:
    """A walk through a plan, from the scans of tables upwards."""

    def __init__(self, tables: Mapping[str, str]) -> None:
        self._tables = tables
        self.scanned: dict[str, None] = {}
        self.read: set[Origin] = set()

    def outputs(self, plan: Any) -> list[_Output]:
        """Returns the columns that a step outputs, and notes the columns that it reads."""
        try:
            step = plan.to_variant()
            kind = type(step).__name__
        except Exception:  # DataFusion does not show this step: its outputs depend on all inputs
            kind, step = "", None
        if kind == "TableScan":
            return self._scan(step)
        inputs = [self.outputs(each) for each in plan.inputs()]
        below = [output for each in inputs for output in each]
        match kind:
            case "Projection":
                return self._expressions(step.projections(), below)
            case "Aggregate":
                return self._expressions([*step.group_by_exprs(), *step.aggregate_exprs()], below)
            case "Union":
                return _united(inputs)
            case "SubqueryAlias":
                return [_Output(str(step.alias()), each.name, each.origins) for each in below]
            case "Filter":
                self._note([step.predicate()], below)
            case "Join":
                self._note([each for pair in step.on() for each in pair], below)
                if step.filter() is not None:
                    self._note([step.filter()], below)
            case "":
                everything = frozenset(origin for each in below for origin in each.origins)
                self.read |= everything
                return [_Output(each.relation, each.name, everything) for each in below]
            case _:
                pass
        return below

    def _scan(self, step: Any) -> list[_Output]:
        table = self._tables.get(str(step.table_name()), str(step.table_name()))
        self.scanned[table] = None
        names = [str(name) for _, name in step.projection()] or _names_of(step)
        return [_Output("", name, frozenset([(table, name)])) for name in names]

    def _expressions(self, expressions: Iterable[Any], below: Sequence[_Output]) -> list[_Output]:
        found = []
        for each in expressions:
            origins = _origins(each, below)
            self.read |= origins
            if each.variant_name() == "Column":
                column = each.to_variant()
                found.append(_Output(str(column.relation() or ""), str(column.name()), origins))
            else:
                found.append(_Output("", str(each.schema_name()), origins))
        return found

    def _note(self, expressions: Iterable[Any], below: Sequence[_Output]) -> None:
        for each in expressions:
            self.read |= _origins(each, below)


def _names_of(step: Any) -> list[str]:
    schema = step.schema()
    names: Callable[[], Iterable[str]] = schema.field_names
    return [str(name).rpartition(".")[2] for name in names()]


def _united(inputs: Sequence[Sequence[_Output]]) -> list[_Output]:
    first, *others = inputs
    return [
        _Output("", output.name, output.origins.union(*(other[place].origins for other in others)))
        for place, output in enumerate(first)
    ]


def _origins(expression: Any, below: Sequence[_Output]) -> frozenset[Origin]:
    """Returns the origins of an expression: all inputs, where DataFusion does not show its parts."""
    kind = str(expression.variant_name())
    if kind == "Literal":
        return frozenset()
    if kind == "Column":
        column = expression.to_variant()
        name, relation = str(column.name()), str(column.relation() or "")
        named = [each for each in below if each.name == name]
        exact = [each for each in named if each.relation == relation]
        return frozenset().union(*(each.origins for each in exact or named))
    try:
        parts = expression.rex_call_operands()
    except Exception:  # a kind whose parts DataFusion does not show
        text = str(expression.canonical_name())
        return frozenset().union(*(each.origins for each in below if each.name in text))
    return frozenset().union(*(_origins(each, below) for each in parts))
