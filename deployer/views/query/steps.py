"""The steps in which rows are computed: SQL, calls of functions and UNNEST.

Conditions are applied as early as possible, so that functions are not called for rows that a condition excludes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from deployer.views.query.program import Call, Expression, Output, Rows, Unnest, quoted

LIST = "__list"  #: the column of the list that UNNEST turns into rows


@dataclass(frozen=True, slots=True)
class SqlStep:
    """The step that keeps the rows that match the conditions, with these columns."""

    columns: tuple[Output, ...]
    conditions: tuple[Expression, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Returns whether the step only selects columns."""
        return not self.conditions and all(each.value.sql == quoted(each.name) for each in self.columns)


@dataclass(frozen=True, slots=True)
class CallStep:
    """The step that calls a function with the columns `argument_columns`, and replaces these by its result."""

    call: Call


Step = SqlStep | CallStep | Unnest


def argument_columns(call: Call) -> list[str]:
    """Returns the names of the columns that contain the arguments of a call."""
    return [f"{call.output}.{number}" for number in range(len(call.arguments))]


def steps_of(rows: Rows, outputs: Sequence[Output]) -> list[Step]:
    """Returns the steps from the columns of all tables to the outputs. The first and the last step are SQL."""
    plan = _Plan(rows, outputs)
    found = list[Step]()
    while (call := plan.next_call()) is not None or plan.can_unnest():
        if call is not None:
            arguments = [Output(*each) for each in zip(argument_columns(call), call.arguments, strict=True)]
            plan.calls.remove(call)
            found += [plan.sql(arguments), CallStep(call)]
            plan.available.add(call.output)
        elif plan.unnest is not None:
            unnest, plan.unnest = plan.unnest, None
            found += [plan.sql([Output(LIST, unnest.value)]), unnest]
            plan.available |= {name for name, _ in unnest.fields} | ({unnest.position} - {""})
    found.append(SqlStep(tuple(outputs), plan.ready_conditions()))
    return found


class _Plan:
    """The remaining steps of a query."""

    def __init__(self, rows: Rows, outputs: Sequence[Output]) -> None:
        conditions = list(rows.conditions)
        self.outputs, self.conditions, self.unnest = outputs, conditions, rows.unnest
        self.available = {scan.flat(name) for scan in rows.scans for name in scan.columns}
        needed = {name for each in (*(e.value for e in outputs), *conditions) for name in each.columns}
        needed |= rows.unnest.value.columns if rows.unnest is not None else frozenset()
        self.calls = [each for each in rows.calls if each.output in _with_inputs(needed, rows.calls)]
        of_conditions = {name for each in conditions for name in each.columns}
        first = _with_inputs(of_conditions, rows.calls)
        self.calls.sort(key=lambda each: each.output not in first)

    def next_call(self) -> Call | None:
        """Returns a call whose arguments can be computed now; None where there is none. Calls that conditions need come
        first."""
        for call in self.calls:
            if all(value.columns <= self.available for value in call.arguments):
                return call
        return None

    def can_unnest(self) -> bool:
        return self.unnest is not None and self.unnest.value.columns <= self.available

    def ready_conditions(self) -> tuple[Expression, ...]:
        """Removes and returns the conditions whose columns are available now."""
        ready = [each for each in self.conditions if each.columns <= self.available]
        self.conditions = [each for each in self.conditions if each not in ready]
        return tuple(ready)

    def sql(self, added: Sequence[Output]) -> SqlStep:
        """Returns the step that applies the conditions whose columns are available, and keeps the columns that later
        steps need."""
        ready = self.ready_conditions()
        later = [*self.conditions, *(each.value for each in self.outputs)]
        later += [value for call in self.calls for value in call.arguments]
        later += [self.unnest.value] if self.unnest is not None else []
        kept = sorted({name for each in later for name in each.columns} & self.available)
        columns = [Output(name, Expression(quoted(name), frozenset((name,)))) for name in kept]
        return SqlStep((*columns, *added), ready)


def _with_inputs(names: Collection[str], calls: Sequence[Call]) -> set[str]:
    """Returns the names, and the columns that the calls among them need."""
    found = set(names)
    for call in reversed(calls):  # a call comes after the calls in its arguments
        if call.output in found:
            found |= {name for value in call.arguments for name in value.columns}
    return found
