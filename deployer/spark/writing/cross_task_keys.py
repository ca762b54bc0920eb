"""Unique keys of rows that different tasks wrote: each task has compared its own rows with the table's alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

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
from deployer.tables.ingest.rows.bad_rows import BadRows, Problem
from deployer.tables.ingest.rows.kept_rows import fields_of


def without_repeated(plan: WritePlan, messages: Sequence[TaskMessage]) -> list[TaskMessage]:
    """The messages without rows whose key a task before has, which are among the duplicates of their task.

    Files that have such rows are written again, unless the duplicates refuse the write. Nothing is read of files whose
    ranges of keys meet no other's.
    """
    ordered = sorted(messages, key=lambda each: each.number)
    if plan.unique is None:
        return ordered
    of_task = {each.path: message.number for message in ordered for each in message.written}
    replaced: dict[str, Sequence[WrittenFragment]] = {}
    found: dict[int, Duplicates] = {}
    for group in meeting([each for message in ordered for each in message.written]):
        if len({of_task[each.path] for each in group}) > 1:
            _compare(plan, sorted(group, key=lambda each: of_task[each.path]), of_task, replaced, found)
    return [
        replace(
            message,
            written=tuple(made for each in message.written for made in replaced.get(each.path, (each,))),
            duplicates=message.duplicates.joined(found.get(message.number, Duplicates())),
        )
        for message in ordered
    ]


def refuse_repeated(plan: WritePlan, written: Sequence[WrittenFragment]) -> None:
    """Raises Refused, with examples, where two rows of the files have one row key. Holds the keys of files whose ranges
    meet, and of one group of such files at a time."""
    names = list(plan.layout.row_keys)
    for group in meeting(written):
        keys = pa.concat_tables(
            pa.Table.from_batches([*read_written(plan.layout, each, names, READ_ROWS)]) for each in group if each.rows
        )
        found = KeySet(keys.columns)
        repeats = np.flatnonzero(found.repeats())
        if len(repeats):
            distinct = np.unique(found.codes[repeats])
            examples = ", ".join(describe_keys(keys.take(pa.array(found.first_rows()[distinct[:SHOWN]]))))
            raise Refused(
                f"{count(len(distinct), 'key is', 'keys are')} in more than one of the rows (first: {examples}), so "
                "nothing was written",
                where=plan.address,
                remedy="leave one row for each key",
            )


def _compare(
    plan: WritePlan,
    group: Sequence[WrittenFragment],
    of_task: Mapping[str, int],
    replaced: dict[str, Sequence[WrittenFragment]],
    found: dict[int, Duplicates],
) -> None:
    names = list(plan.layout.row_keys)
    keys = [pa.Table.from_batches([*read_written(plan.layout, each, names, READ_ROWS)]) for each in group if each.rows]
    repeats = KeySet(pa.concat_tables(keys).columns).repeats()
    start = 0
    for each, own in zip(group, keys, strict=True):
        places = np.flatnonzero(repeats[start : start + own.num_rows])
        start += own.num_rows
        if len(places):
            number = of_task[each.path]
            duplicates = _duplicates(plan, each, own, places, number)
            found[number] = found.get(number, Duplicates()).joined(duplicates)
            if plan.unique is not None and plan.unique.on_duplicate != "reject":
                replaced[each.path] = _written_again(plan, each, places)


def _duplicates(plan: WritePlan, file: WrittenFragment, keys: pa.Table, places: np.ndarray, number: int) -> Duplicates:
    """Rows of a file count from 1 here: the numbers that they had in their task are not in the file."""
    shown = describe_keys(keys.take(pa.array(places[:SHOWN])))
    examples = tuple(Example(number, int(p) + 1, key) for p, key in zip(places[:SHOWN], shown, strict=True))
    bad: dict[int, BadRows] = {}
    if plan.unique is not None and plan.unique.on_duplicate == "set-aside":
        taken = _rows_of(plan, file).take(pa.array(places)).combine_chunks()
        kept = fields_of(taken.to_batches()[0], plan.layout.arrow_schema)
        columns = ", ".join(plan.layout.row_keys)
        texts = describe_keys(keys.take(pa.array(places)))
        # Numbers below 0 are of no row of the task: they keep these apart from other bad rows of it.
        numbers = [-1 - int(place) for place in places]
        problems = [Problem(n, columns, IN_LOAD, text) for n, text in zip(numbers, texts, strict=True)]
        bad[number] = BadRows.of(problems, kept=dict(zip(numbers, kept, strict=True)))
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
    """The files in groups: those of different groups have no key in common."""
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
