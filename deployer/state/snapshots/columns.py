"""Conversion of states to Arrow tables and back. The tables are the parts of a snapshot (see docs/state-format.md)."""

from __future__ import annotations

import json
from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from deployer.state.log.codec import decode, decode_object, encode
from deployer.state.model.entities import (
    Dataset,
    Files,
    InstanceState,
    Intent,
    Job,
    Partition,
    RestoreTarget,
    RowCounts,
    Run,
    Savepoint,
    Service,
    State,
    TableEntry,
    TableProperties,
    TableState,
)
from deployer.state.model.persistent_map import LayeredMap
from deployer.state.model.table_locations import fault_between, fault_of_datasets, fault_of_entry

Parts = Mapping[str, pa.Table]


def _schema(**types: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, type_) for name, type_ in types.items()])


INSTANCE = _schema(properties=pa.string())
TABLES = _schema(
    table_id=pa.string(),
    database=pa.string(),
    name=pa.string(),
    location=pa.string(),
    status=pa.string(),
    created_at=pa.int64(),
    dataset=pa.int64(),
)
TABLE = _schema(
    table_id=pa.string(),
    lance_version=pa.int64(),
    schema=pa.binary(),
    properties=pa.string(),
    datasets=pa.string(),
)
PARTITIONS = _schema(
    partition_id=pa.string(),
    parent=pa.string(),
    lower=pa.binary(),
    upper=pa.binary(),
    children=pa.list_(pa.string()),
    split_point=pa.binary(),
)
JOBS = _schema(
    job_id=pa.string(),
    kind=pa.string(),
    rows=pa.int64(),
    lance_version=pa.int64(),
    at=pa.int64(),
    sources=pa.string(),
    counts=pa.string(),  # JSON
)
INTENTS = _schema(
    job_id=pa.string(),
    kind=pa.string(),
    started_at=pa.int64(),
    base_lance_version=pa.int64(),
    restore=pa.string(),  # JSON
)

# In the next three schemas, maps are stored as JSON.
SERVICES = _schema(
    kind=pa.string(),
    trigger_mode=pa.string(),
    trigger=pa.string(),
    options=pa.string(),
    cluster=pa.string(),
    paused=pa.bool_(),
    unsafe_raw=pa.bool_(),
    declared=pa.bool_(),
    since=pa.int64(),
)
RUNS = _schema(
    run_id=pa.string(),
    service=pa.string(),
    status=pa.string(),
    cause=pa.string(),
    author=pa.string(),
    cluster=pa.string(),
    queued_at=pa.int64(),
    started_at=pa.int64(),
    ended_at=pa.int64(),
    holder=pa.string(),
    lease_until=pa.int64(),
    wish=pa.string(),
    progress=pa.string(),
    figures=pa.string(),
    reason=pa.string(),
    log=pa.string(),
    target=pa.list_(pa.string()),
    job=pa.string(),
    claims=pa.list_(pa.int64()),
)
SAVEPOINTS = _schema(
    name=pa.string(),
    lance_version=pa.int64(),
    dataset=pa.int64(),
    state_version=pa.int64(),
    at=pa.int64(),
    expires_at=pa.int64(),
    author=pa.string(),
    note=pa.string(),
)

_SINCE_FORMAT_2 = frozenset({"services", "runs", "savepoints"})

_WRITES = ("target", "job", "claims")  #: fields of runs that write columns; a run may have only some of them

_MAPS = frozenset({"trigger", "options", "progress", "figures"})


def format_of(parts: Parts) -> int:
    """Returns the format of a snapshot with these parts: the lowest format whose readers read all of the parts.

    Format 2 adds services, runs and savepoints. Format 3 adds the columns of files that CLUSTER wrote. Format 4 adds
    the files of loads. Format 5 adds the targets of unfinished restores and the cluster of a table's services. Format 6
    adds the columns that runs write, the numbers of rows that changes touched, and the definitions of computed columns.
    """
    if "runs" in parts and "target" in parts["runs"].column_names:
        return 6
    if "jobs" in parts and "counts" in parts["jobs"].column_names:
        return 6
    if "files" in parts and "computed" in parts["files"].column_names:
        return 6
    if "intents" in parts and "restore" in parts["intents"].column_names:
        return 5
    if "table" in parts and "services_cluster" in json.loads(parts["table"]["properties"][0].as_py()):
        return 5
    if "jobs" in parts and "sources" in parts["jobs"].column_names:
        return 4
    if "files" in parts and "clustering" in parts["files"].column_names:
        return 3
    return 2 if parts.keys() & _SINCE_FORMAT_2 else 1


def to_parts(state: State) -> Parts:
    """Returns the state as Arrow tables by name. A table without rows is left out."""
    if isinstance(state, InstanceState):
        parts = {
            "instance": pa.table({"properties": [_text(state.properties)]}, schema=INSTANCE),
            "tables": _table(state.tables.values(), TABLES),
        }
    else:
        row = {
            "table_id": [state.table_id],
            "lance_version": [state.lance_version],
            "schema": [state.schema],
            "properties": [_text(encode(state.properties))],
            "datasets": [_text([encode(each) for each in state.datasets])],
        }
        parts = {
            "table": pa.table(row, schema=TABLE),
            "partitions": _table(state.partitions.values(), PARTITIONS),
            "files": state.files.to_arrow(),
            "jobs": _jobs(state.jobs.values()),
            "intents": _intents(state.intents.values()),
            "services": _encoded(state.services.values(), SERVICES),
            "runs": _runs(state.runs.values()),
            "savepoints": _encoded(state.savepoints.values(), SAVEPOINTS),
        }
    return {name: table for name, table in parts.items() if table.num_rows}


def from_parts(parts: Parts, version: int, at: int) -> State:
    """Returns the state that the parts hold, with the same checks as for entries of a log.

    Raises KeyError, TypeError, ValueError, RecursionError or an Arrow error for parts of another shape or content.
    """
    if "instance" in parts:
        (row,) = _rows(parts, "instance", INSTANCE)
        entries = [decode(TableEntry, each) for each in _rows(parts, "tables", TABLES)]
        _require(fault_between(entries), *map(fault_of_entry, entries))
        tables = {entry.table_id: entry for entry in entries}
        if len(tables) != len(entries):
            raise ValueError("a table is in it twice")
        return InstanceState(version, decode_object(json.loads(row["properties"])), LayeredMap(tables), at)
    (row,) = _rows(parts, "table", TABLE)
    partitions = {
        r["partition_id"]: Partition(**{**r, "children": tuple(r["children"])})
        for r in _rows(parts, "partitions", PARTITIONS)
    }
    intents = {row["job_id"]: _intent(row) for row in _rows(parts, "intents", INTENTS)}
    # snapshots of releases without rewrites do not have this column
    datasets = tuple(decode(Dataset, each) for each in json.loads(row.get("datasets") or "[]"))
    _require(fault_of_datasets(row["table_id"], datasets))
    return TableState(
        version=version,
        table_id=row["table_id"],
        properties=decode(TableProperties, json.loads(row["properties"])),
        schema=row["schema"],
        lance_version=row["lance_version"],
        partitions=LayeredMap(partitions),
        files=Files.from_arrow(parts["files"], in_order=True) if "files" in parts else Files(),
        jobs=LayeredMap(_ArrowJobs(_typed(parts["jobs"], JOBS))) if "jobs" in parts else LayeredMap(),
        intents=LayeredMap(intents),
        at=at,
        datasets=datasets,
        services={each.kind: each for each in _decoded(parts, "services", SERVICES, Service)},
        runs=LayeredMap({each.run_id: each for each in _decoded(parts, "runs", RUNS, Run)}),
        savepoints={each.name: each for each in _decoded(parts, "savepoints", SAVEPOINTS, Savepoint)},
    )


def _require(*faults: str | None) -> None:
    if wrong := next(filter(None, faults), None):
        raise ValueError(wrong)


def _typed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Returns a part with the column types of `schema`; columns that newer releases added may be missing.

    Raises ValueError for unknown columns, and an Arrow error for values of another type.
    """
    if unknown := set(table.column_names) - set(schema.names):
        raise ValueError(f"it has columns that are unknown: {', '.join(sorted(unknown)[:5])}")
    known = pa.schema([field for field in schema if field.name in table.column_names])
    chosen = table.select(known.names)
    return chosen if chosen.schema == known else chosen.cast(known)  # a cast imports pyarrow.compute: 25 ms


class _ArrowJobs(Mapping[str, Job]):
    """Jobs of a snapshot, by id. Few readers need a job, so the `Job` objects are made at the first access."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    @cached_property
    def _jobs(self) -> dict[str, Job]:
        names = [name for name in self._table.column_names if name != "counts"]
        columns = [self._table[name].to_pylist() for name in names]  # the last field, `sources`, may be missing
        jobs = {row[0]: Job(*row) for row in zip(*columns, strict=True)}
        if "counts" in self._table.column_names:
            for job_id, text in zip(columns[0], self._table["counts"].to_pylist(), strict=True):
                if text is not None:
                    jobs[job_id] = replace(jobs[job_id], counts=decode(RowCounts, json.loads(text)))
        return jobs

    def __getitem__(self, job_id: str) -> Job:
        return self._jobs[job_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._jobs)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def items(self) -> ItemsView[str, Job]:
        return self._jobs.items()

    def values(self) -> ValuesView[Job]:
        return self._jobs.values()


def _text(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _table(rows: Iterable[object], schema: pa.Schema) -> pa.Table:
    listed = list(rows)
    columns = [pa.array([getattr(row, field.name) for row in listed], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _jobs(jobs: Iterable[Job]) -> pa.Table:
    """Returns the jobs as a table. `sources` and `counts` are left out if no job has any, for older readers."""
    listed = list(jobs)
    plain = JOBS.remove(JOBS.get_field_index("counts"))
    table = _table(
        listed, plain if any(each.sources for each in listed) else plain.remove(plain.get_field_index("sources"))
    )
    if not any(each.counts for each in listed):
        return table
    counts = [None if each.counts is None else _text(encode(each.counts)) for each in listed]
    return table.append_column(JOBS.field("counts"), pa.array(counts, pa.string()))


def _intents(intents: Iterable[Intent]) -> pa.Table:
    """Returns the intents as a table. `restore` is left out if no intent has one, for older readers."""
    rows = [{**encode(each), "restore": _text(encode(each.restore)) if each.restore else None} for each in intents]
    known = any(row["restore"] for row in rows)
    schema = INTENTS if known else INTENTS.remove(INTENTS.get_field_index("restore"))
    return pa.Table.from_pylist(rows, schema=schema)


def _intent(row: Mapping[str, Any]) -> Intent:
    restore = row.get("restore")
    return Intent(**{**row, "restore": decode(RestoreTarget, json.loads(restore)) if restore else None})


def _runs(runs: Iterable[Run]) -> pa.Table:
    """Returns the runs as a table. The columns `_WRITES` are left out if no run has any, for older readers."""
    table = _encoded(runs, RUNS)
    known = any(table[name].null_count < table.num_rows for name in _WRITES)
    return table if known else table.drop_columns(list(_WRITES))


def _encoded(rows: Iterable[object], schema: pa.Schema) -> pa.Table:
    listed = [
        {name: _text(value) if isinstance(value, Mapping) else value for name, value in encode(row).items()}
        for row in rows
    ]
    return pa.Table.from_pylist(listed, schema=schema)


def _decoded(parts: Parts, name: str, schema: pa.Schema, cls: type[Any]) -> list[Any]:
    maps = {each.name for each in fields(cls)} & _MAPS
    sparse = {each.name for each in fields(cls) if each.metadata.get("sparse")}
    return [
        decode(
            cls,
            {
                field: json.loads(value) if field in maps else value
                for field, value in row.items()
                if value is not None or field not in sparse
            },
        )
        for row in _rows(parts, name, schema)
    ]


def _rows(parts: Parts, name: str, schema: pa.Schema) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _typed(parts[name], schema).to_pylist() if name in parts else []
    return found
