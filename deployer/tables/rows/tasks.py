"""The tasks of a change of rows: each task finds rows in some fragments and writes their new values, without a commit.

A task has all data that a process needs to run it, so that it runs in the same way in Spark and in this process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from deployer.datasets.files.row_ids import ROW_ID
from deployer.datasets.files.writer import Layout, WrittenFragment, discard
from deployer.errors import DeployerError, InvalidInput
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.tables.conversion.sql_values import computed_here
from deployer.tables.ingest.rows.bad_rows import BadRows, refusal
from deployer.tables.ingest.rows.check import CheckedRows, SourceRows, check
from deployer.tables.ingest.rows.computed_values import Computing
from deployer.tables.layout.partitions.key_ranges import Ranges
from deployer.tables.open_table import OpenTable
from deployer.tables.read.scan_plan import Condition
from deployer.tables.read.table import Table as Reader
from deployer.tables.rows.change import Offsets
from deployer.tables.rows.changed_inputs import computed_again
from deployer.tables.rows.matching import ADDRESS, offsets_of, scanned
from deployer.tables.rows.new_rows import leaf_ranges, write_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset

LISTED = 10  #: maximum number of rows that an error lists
TASK_ROWS = 1_048_576  #: rows that one task scans; a task gets no further fragments once it has this many rows


@dataclass(frozen=True, slots=True)
class Assignments:
    """New values of columns: Python values, and SQL expressions over the row before the change."""

    values: Mapping[str, Any] = field(default_factory=dict)
    expressions: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> frozenset[str]:
        return frozenset((*self.values, *self.expressions))


class Done(Protocol):
    """The result of a task: the fragments that it wrote, which are not committed, or the error with which it ended.

    After an error, no written files are left.
    """

    @property
    def written(self) -> tuple[WrittenFragment, ...]: ...
    @property
    def error(self) -> DeployerError | None: ...


DoneT = TypeVar("DoneT", bound=Done)
DoneT_co = TypeVar("DoneT_co", bound=Done, covariant=True)


class RowTask(Protocol[DoneT_co]):
    """A part of a change. Any process that can read the dataset at `location` can run it."""

    @property
    def location(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def rows(self) -> int:
        """The number of rows that the task scans."""

    def done(self, dataset: LanceDataset) -> DoneT_co:
        """Runs the task and returns its result. `dataset` must be open at `version`."""


@dataclass(frozen=True, slots=True)
class RowsTask:
    """A task that finds the rows of some fragments of `version` for which the condition is true.

    With `assign`, it also computes the new values of the rows and, if `writes` is set, writes them.
    """

    address: str
    version: int
    fragment_ids: tuple[int, ...]
    condition: Condition
    layout: Layout
    ranges: Ranges
    assign: Assignments | None = None
    rows: int = 0  #: number of rows that the task scans
    writes: bool = True

    @property
    def location(self) -> str:
        return self.layout.location

    def done(self, dataset: LanceDataset) -> RowsDone:
        """Runs the task. `dataset` must be open at `version`. An error of the rows or of the condition is in the
        result."""
        addresses: list[Any] = []
        try:
            if self.assign is None:
                addresses += [batch.column(ADDRESS) for batch in self._rows(dataset, (), ids=False)]
                return RowsDone(offsets_of(addresses))
            changed = self._changed(dataset, self.assign, addresses)
            written = write_rows(self.layout, self.ranges, dataset, changed) if self.writes else []
            for _ in changed:  # computes the values if nothing was written
                pass
        except DeployerError as error:
            return RowsDone({}, error=error)
        return RowsDone(offsets_of(addresses), tuple(written))

    def _rows(self, dataset: LanceDataset, columns: Sequence[str], *, ids: bool) -> Iterator[pa.RecordBatch]:
        fragments = [dataset.get_fragment(number) for number in self.fragment_ids]
        place = (self.layout.location, self.address)
        return scanned(place, dataset, fragments, columns, self.condition.sql, self.condition, with_ids=ids)

    def _changed(self, dataset: LanceDataset, assign: Assignments, addresses: list[Any]) -> Iterator[pa.RecordBatch]:
        """Yields the rows with their new values, and adds their addresses to `addresses`."""
        schema, ids = self.layout.arrow_schema, bool(dataset.has_stable_row_ids)
        seen, bad = 0, BadRows()
        for batch in self._rows(dataset, schema.names, ids=ids):
            rows = batch.select(schema.names)
            given = dict(zip(schema.names, rows.columns, strict=True))
            given |= columns_of(assign.values, rows.num_rows, self.address)
            given |= {name: self._computed(rows, name, sql) for name, sql in assign.expressions.items()}
            numbers = np.arange(seen + 1, seen + rows.num_rows + 1)
            seen += rows.num_rows
            new = pa.RecordBatch.from_arrays(list(given.values()), names=schema.names)
            checked = self.checked(new, numbers, frozenset())
            bad = bad.joined(checked.bad)
            if not bad.rows:
                again = _Again(self, numbers)
                new = computed_again(checked.rows, rows, assign.columns, again)
                bad = bad.joined(again.bad)
            if bad.rows:
                continue
            addresses.append(batch.column(ADDRESS))
            yield new.append_column(ROW_ID, batch.column(ROW_ID)) if ids else new
        if bad.rows:
            raise refusal({"the rows that it finds": bad.first(LISTED)}, self.address, "updated")

    def checked(self, rows: pa.RecordBatch, numbers: NDArray[np.int64], changed: frozenset[str]) -> CheckedRows:
        """Returns the rows with the table's types. Columns that are computed from columns in `changed` are computed
        again."""
        computing = Computing(self.layout.root, changed)
        source = SourceRows(rows, numbers)
        return check(
            source, self.layout.arrow_schema, self.layout.row_keys, text=False, listed=LISTED, computing=computing
        )

    def _computed(self, rows: pa.RecordBatch, name: str, expression: str) -> Any:
        try:
            return computed_here(rows, expression)
        except ValueError as failure:
            raise InvalidInput(
                f"the expression {expression!r} of column {name!r} cannot be computed for all rows: {failure}",
                where=self.address,
                remedy="change the expression, or leave these rows out by the condition",
            ) from None


@dataclass(slots=True)
class _Again:
    """A function that computes columns of rows again. `numbers` are the rows' numbers, and `bad` collects the rows for
    which it fails."""

    task: RowsTask
    numbers: NDArray[np.int64]
    bad: BadRows = BadRows()

    def __call__(self, rows: pa.RecordBatch, places: NDArray[np.int64], changed: frozenset[str]) -> pa.RecordBatch:
        found = self.task.checked(rows, self.numbers[places], changed)
        self.bad = self.bad.joined(found.bad)
        return rows if found.bad.rows else found.rows


@dataclass(frozen=True, slots=True)
class RowsDone:
    """The rows that a task found and the fragments that it wrote, or the error with which it ended. After an error, no
    written files are left."""

    offsets: Offsets
    written: tuple[WrittenFragment, ...] = ()
    error: DeployerError | None = None


class RunTasks(Protocol):
    """A function that runs tasks on a dataset and returns their results in the same order."""

    def __call__(self, dataset: LanceDataset, tasks: Sequence[RowTask[DoneT]], /) -> list[DoneT]: ...


def run_here(
    dataset: LanceDataset, tasks: Sequence[RowTask[DoneT]], /, on_progress: OnProgress = no_progress
) -> list[DoneT]:
    """Runs the tasks in this process, until one ends with an error, and returns the results.

    If `on_progress` raises, the files that the tasks wrote are removed.
    """
    done: list[DoneT] = []
    try:
        for task in tasks:
            on_progress(Progress("changing rows", len(done), len(tasks), "tasks"))
            done.append(task.done(dataset))
            if done[-1].error is not None:
                break
    except BaseException:
        if done:
            discard(tasks[0].location, [each for part in done for each in part.written])
        raise
    return done


def first_error(done: Sequence[Done]) -> DeployerError | None:
    """Returns the error of the first task that has one."""
    return next((part.error for part in done if part.error is not None), None)


def tasks_of(
    table: OpenTable,
    dataset: LanceDataset,
    where: str,
    assign: Assignments | None = None,
    *,
    in_parts: bool = False,
    only: frozenset[int] | None = None,
    writes: bool = True,
) -> list[RowsTask]:
    """Returns the tasks for the fragments that can have rows for which the condition is true.

    It is one task, or with `in_parts` one for each leaf, and several for a leaf with many rows. `only` limits the
    fragments to these ids; None means all. Raises InvalidInput for a condition that is not one SQL expression.
    """
    condition, fragments = Reader(table, dataset).candidates(where)
    every = dataset.get_fragments()
    if only is not None:
        fragments, every = ([each for each in some if each.fragment_id in only] for some in (fragments, every))
    # Lance always gets the condition, because it may report a problem with it.
    fragments = fragments or every[:1]
    layout, ranges = table.layout(), leaf_ranges(table)
    groups: list[list[int]] = []
    rows: list[int] = []
    leaf = ""
    for fragment in sorted(fragments, key=lambda each: place_of(table, each.fragment_id)):
        partition, number = place_of(table, fragment.fragment_id)
        if not groups or (in_parts and (partition != leaf or rows[-1] >= TASK_ROWS)):
            groups.append([])
            rows.append(0)
        leaf = partition
        groups[-1].append(number)
        rows[-1] += file.rows if (file := table.state.files.get(number)) is not None else 0
    version = int(dataset.version)
    return [
        RowsTask(
            address=table.address,
            version=version,
            fragment_ids=tuple(sorted(group)),
            condition=condition,
            layout=layout,
            ranges=ranges,
            assign=assign,
            rows=own,
            writes=writes,
        )
        for group, own in zip(groups, rows, strict=True)
    ]


def count_rows(table: OpenTable, dataset: LanceDataset, where: str, run_tasks: RunTasks) -> int:
    """Returns the number of rows for which the condition is true. The tasks of each leaf count them."""
    done = run_tasks(dataset, tasks_of(table, dataset, where, in_parts=True))
    if error := first_error(done):
        raise error
    return sum(len(rows) for part in done for rows in part.offsets.values())


def place_of(table: OpenTable, fragment_id: int) -> tuple[str, int]:
    """Returns the recorded partition of the fragment and its id, which is the order in which fragments are scanned."""
    file = table.state.files.get(fragment_id)
    return (file.partition or "" if file is not None else "", fragment_id)


def columns_of(values: Mapping[str, Any], rows: int, address: str) -> dict[str, Any]:
    """Returns columns of `rows` rows with the same value in each row. Raises InvalidInput for a value that Arrow cannot
    represent."""
    arrays = {}
    for name, value in values.items():
        try:
            arrays[name] = pa.repeat(value if isinstance(value, pa.Scalar) else pa.scalar(value), rows)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as failure:
            raise InvalidInput(
                f"the value of column {name!r} is not one that Arrow has: {str(failure).splitlines()[0]}",
                where=address,
                remedy="give a value of the column's type",
            ) from None
    return arrays
