"""The requirements that the state must meet so that a transaction is committed: a closed union of values.

Each requirement has its own check: `failure(state)` returns None when the requirement holds, and otherwise a text that
describes the state that was found.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from deployer.platform.system.clock import utc
from deployer.state.log.service_requirements import ServiceRequirement
from deployer.state.model.declared_properties import CATALOG_ENTRY, CREATING, DATASET_NAME, DEFAULT_DATABASE
from deployer.state.model.entities import (
    JSON,
    REARRANGES,
    InstanceState,
    Intent,
    Name,
    State,
    TableId,
    TableProperties,
    TableState,
    TableStatus,
)


def schema_fingerprint(schema: bytes) -> str:
    """Returns the hash of a schema (Arrow IPC bytes) as 32 hex digits."""
    return hashlib.blake2b(schema, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class LogEmpty:
    """The requirement that no entry was ever committed to the log."""

    TAG = "log-empty"

    def failure(self, state: State) -> str | None:
        return f"it exists already, at version {state.version}" if state.version else None


@dataclass(frozen=True, slots=True)
class NameFree:
    """The requirement that no table, dataset of recordings or catalog entry has the name.

    A catalog entry that is being created may have the name.
    """

    TAG = "name-free"
    database: Name
    name: Name

    def failure(self, state: InstanceState) -> str | None:
        full_name = f"{self.database}.{self.name}"
        if taken := state.by_name(full_name):
            return f"the name {taken.full_name} belongs to table {taken.table_id}"
        entry = state.properties.get(f"{CATALOG_ENTRY}{full_name}")
        names = {full_name, full_name.removeprefix(f"{DEFAULT_DATABASE}.")}
        if isinstance(entry, Mapping) and entry.get("status") != CREATING:
            return f"the name {full_name} belongs to an entry of the catalog"
        if any(f"{DATASET_NAME}{each}" in state.properties for each in names):
            return f"the name {full_name} belongs to a dataset of recordings"
        return None


@dataclass(frozen=True, slots=True)
class TableHasStatus:
    TAG = "table-has-status"
    table_id: TableId
    status: TableStatus

    def failure(self, state: InstanceState) -> str | None:
        entry = state.tables.get(self.table_id)
        if entry is None:
            return f"table {self.table_id} does not exist"
        return None if entry.status == self.status else f"table {entry.full_name} is {entry.status}, not {self.status}"


@dataclass(frozen=True, slots=True)
class GenerationIs:
    """The requirement that neither the properties nor the schema changed since `generation` was read."""

    TAG = "generation-is"

    generation: int

    def failure(self, state: TableState) -> str | None:
        now = state.properties.generation
        return None if now == self.generation else f"the table is at generation {now}, not {self.generation}"


@dataclass(frozen=True, slots=True)
class SchemaIs:
    """The requirement that `schema_fingerprint` of the table's schema is `fingerprint`."""

    TAG = "schema-is"

    fingerprint: str

    def failure(self, state: TableState) -> str | None:
        now = schema_fingerprint(state.schema)
        return None if now == self.fingerprint else f"the schema is {now}, not {self.fingerprint}"


@dataclass(frozen=True, slots=True)
class JobNotDone:
    TAG = "job-not-done"
    job_id: str

    def failure(self, state: TableState) -> str | None:
        job = state.jobs.get(self.job_id)
        return f"job {job.job_id} is done already, as version {job.lance_version} of the dataset" if job else None


@dataclass(frozen=True, slots=True)
class FilesPresent:
    TAG = "files-present"
    fragment_ids: tuple[int, ...]

    def failure(self, state: TableState) -> str | None:
        missing = state.files.missing(self.fragment_ids)
        return (
            f"{_fragments(missing)} {'is' if len(missing) == 1 else 'are'} no longer in the table" if missing else None
        )


@dataclass(frozen=True, slots=True)
class PartitionIsLeaf:
    TAG = "partition-is-leaf"
    partition_id: str

    def failure(self, state: TableState) -> str | None:
        partition = state.partitions.get(self.partition_id)
        if partition is None:
            return f"partition {self.partition_id} does not exist"
        if partition.is_leaf:
            return None
        return f"partition {self.partition_id} was split into {' and '.join(partition.children)}"


@dataclass(frozen=True, slots=True)
class LanceVersionIs:
    TAG = "lance-version-is"
    lance_version: int

    def failure(self, state: TableState) -> str | None:
        now = state.lance_version
        return None if now == self.lance_version else f"the dataset is at version {now}, not {self.lance_version}"


@dataclass(frozen=True, slots=True)
class NoLoadUnderWay:
    """The requirement that no job that adds rows, except those in `besides`, has an unfinished commit to Lance."""

    TAG = "no-load-under-way"

    besides: tuple[str, ...] = ()

    def failure(self, state: TableState) -> str | None:
        job = next((each for each in loads_under_way(state) if each.job_id not in self.besides), None)
        return f"job {job.job_id} ({job.kind}) began to commit at {utc(job.started_at)} UTC" if job else None


def loads_under_way(state: TableState) -> tuple[Intent, ...]:
    """Returns the unfinished commits that add new rows to the table."""
    return tuple(each for each in state.intents.values() if each.kind not in REARRANGES and each.kind != "restore")


@dataclass(frozen=True, slots=True)
class DatasetIs:
    """The requirement that the current dataset of the table has this number: no rewrite replaced it."""

    TAG = "dataset-is"

    number: int

    def failure(self, state: TableState) -> str | None:
        now = state.dataset
        if now == self.number:
            return None
        return f"the table was rewritten: its dataset is number {now}, not {self.number}"


@dataclass(frozen=True, slots=True)
class PropertiesAre:
    """The requirement that each of these properties has its value. None means that a property of the instance is not
    set."""

    TAG = "properties-are"

    properties: Mapping[str, JSON]

    def failure(self, state: State) -> str | None:
        now = _properties(state)
        wrong = [
            f"{name} is {_plain(now.get(name))!r}, not {_plain(value)!r}"
            for name, value in self.properties.items()
            if _plain(now.get(name)) != _plain(value)
        ]
        return ", ".join(wrong) or None


InstanceRequirement = LogEmpty | NameFree | TableHasStatus | PropertiesAre
TableRequirement = (
    LogEmpty
    | GenerationIs
    | SchemaIs
    | JobNotDone
    | FilesPresent
    | PartitionIsLeaf
    | LanceVersionIs
    | NoLoadUnderWay
    | DatasetIs
    | PropertiesAre
    | ServiceRequirement
)
Requirement = InstanceRequirement | TableRequirement


def _properties(state: State) -> Mapping[str, JSON]:
    if isinstance(state, InstanceState):
        return state.properties
    return {field.name: getattr(state.properties, field.name) for field in fields(TableProperties)}


def _plain(value: JSON) -> JSON:
    """Returns the value with lists in place of tuples, so that a value from JSON equals one that code has built."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def _fragments(ids: Sequence[int]) -> str:
    shown = ", ".join(map(str, ids[:5])) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
    return f"fragment{'' if len(ids) == 1 else 's'} {shown}"
