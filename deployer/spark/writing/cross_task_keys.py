"""Unique keys of rows that different tasks wrote: each task has compared its rows only with the table's rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from deployer.datasets.files.writer import WrittenFragment, read_written, write_sorted
from deployer.datasets.ordering.key_ranges import KeyRange
from deployer.errors import Refused
from deployer.platform.text.formatting import count
from deployer.spark.writing.file_notes import AttemptNotes
from deployer.spark.writing.plan import WritePlan
from deployer.spark.writing.task import TaskMessage
from deployer.tables.ingest.keys.sets import KeySet
from deployer.tables.ingest.keys.unique import (
    IN_LOAD,
    READ_ROWS,
    SHOWN,
    Duplicates,
    Example,
    describe_keys,
)
from deployer.tables.ingest.readers.splits import SplitReport
from deployer.tables.ingest.rows.bad_rows import BadRows, Problem
from deployer.tables.ingest.rows.kept_rows import fields_of

BETWEEN = -1  #: the number of the report about rows of several tasks


def without_repeated(plan: WritePlan, messages: Sequence[TaskMessage]) -> list[TaskMessage]:
    """Returns the messages without rows whose key an earlier task has; one more message has these duplicates.

    Files with such rows are rewritten, unless duplicates refuse the write. Files whose key ranges do not overlap others
    are not read.
    """
    ordered = sorted(messages, key=lambda each: each.number)
    if plan.unique is None:
        return ordered
    work = _Comparison(plan, {each.path: message.number for message in ordered for each in message.written})
    for group in meeting([each for message in ordered for each in message.written]):
        if len({work.of_task[each.path] for each in group}) > 1:
            work.compare(sorted(group, key=lambda each: work.of_task[each.path]))
    kept = [
        replace(
            message, written=tuple(made for each in message.written for made in work.replaced.get(each.path, (each,)))
        )
        for message in ordered
    ]
    between = TaskMessage(BETWEEN, SplitReport(BETWEEN), duplicates=work.found)
    return [*kept, between] if work.found.rows else kept


def refuse_repeated(plan: WritePlan, written: Sequence[WrittenFragment]) -> None:
    """Raises Refused, with examples, where two rows of the files have the same row key. Only keys of one group of
    overlapping files are in memory at a time."""
    names = list(plan.layout.row_keys)
    repeated, examples = 0, list[str]()
    for group in meeting(written):
        keys = pa.concat_tables(
            pa.Table.from_batches([*read_written(plan.layout, each, names, READ_ROWS)]) for each in group
        )
        found = KeySet(keys.columns)
        distinct = np.unique(found.codes[np.flatnonzero(found.repeats())])
        repeated += len(distinct)
        if len(distinct) and len(examples) < SHOWN:
            examples += describe_keys(keys.take(pa.array(found.first_rows()[distinct[:SHOWN]])))
    if repeated:
        raise Refused(
            f"{count(repeated, 'key is', 'keys are')} in more than one of the rows "
            f"(first: {', '.join(examples[:SHOWN])}), so nothing was written",
            where=plan.address,
            remedy="leave one row for each key",
        )


@dataclass(slots=True)
class _Comparison:
    """The duplicates found so far, and the files that replace others; `of_task` has the number of each file's task."""

    plan: WritePlan
    of_task: Mapping[str, int]
    found: Duplicates = field(default_factory=Duplicates)
    replaced: dict[str, Sequence[WrittenFragment]] = field(default_factory=dict)

    def compare(self, group: Sequence[WrittenFragment]) -> None:
        """Compares the keys of files; for rows with the same key, the row in the first file counts."""
        layout = self.plan.layout
        keys = [pa.Table.from_batches([*read_written(layout, each, layout.row_keys, READ_ROWS)]) for each in group]
        repeats = KeySet(pa.concat_tables(keys).columns).repeats()
        start = 0
        for each, own in zip(group, keys, strict=True):
            places = np.flatnonzero(repeats[start : start + own.num_rows])
            start += own.num_rows
            if len(places):
                self.found = self.found.joined(self._duplicates(each, own.take(pa.array(places)), places))
                if self.plan.unique is not None and self.plan.unique.on_duplicate != "reject":
                    self.replaced[each.path] = _written_again(self.plan, each, places)

    def _duplicates(self, file: WrittenFragment, keys: pa.Table, places: np.ndarray) -> Duplicates:
        """Returns the duplicates. Rows are numbered in the order found, because files do not contain the numbers of
        their task."""
        first, texts = self.found.rows + 1, describe_keys(keys)
        numbers = range(first, first + len(texts))
        examples = tuple(Example(BETWEEN, n, text) for n, text in zip(numbers[:SHOWN], texts[:SHOWN], strict=True))
        bad: dict[int, BadRows] = {}
        if self.plan.unique is not None and self.plan.unique.on_duplicate == "set-aside":
            taken = _rows_of(self.plan, file).take(pa.array(places)).combine_chunks()
            kept = fields_of(taken.to_batches()[0], self.plan.layout.arrow_schema)
            columns = ", ".join(self.plan.layout.row_keys)
            problems = [Problem(n, columns, IN_LOAD, text) for n, text in zip(numbers, texts, strict=True)]
            bad[BETWEEN] = BadRows.of(problems, kept=dict(zip(numbers, kept, strict=True)))
        return Duplicates(len(places), examples, bad)


def _written_again(plan: WritePlan, file: WrittenFragment, places: np.ndarray) -> Sequence[WrittenFragment]:
    stays = np.ones(file.rows, np.bool_)
    stays[places] = False
    rows = _rows_of(plan, file).filter(pa.array(stays))
    made = write_sorted(plan.layout, rows, file.partition)
    notes = AttemptNotes(plan.location, plan.scope)
    for each in made:
        notes.add(f"data/{each.path}")
    return made


def _rows_of(plan: WritePlan, file: WrittenFragment) -> pa.Table:
    schema = plan.layout.arrow_schema
    batches = [*read_written(plan.layout, file, schema.names, READ_ROWS)]
    return pa.Table.from_batches(batches).cast(schema)


def meeting(written: Sequence[WrittenFragment]) -> Iterator[list[WrittenFragment]]:
    """Yields the files in groups; files of different groups have no common key."""
    group = list[WrittenFragment]()
    highest = b""
    for each in sorted((each for each in written if each.keys is not None), key=lambda each: _span(each).min_key):
        if group and _span(each).min_key > highest:
            yield group
            group = []
        highest = max(highest, _span(each).max_key) if group else _span(each).max_key
        group.append(each)
    if group:
        yield group


def _span(written: WrittenFragment) -> KeyRange:
    assert written.keys is not None  # noqa: S101 (files without a range are not asked for)
    return written.keys
