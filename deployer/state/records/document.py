"""The record of a table: two documents in the folder of the table's dataset with the data that otherwise only the state
store has.

`state rebuild` makes a lost state store again from these documents, from the dataset, and from the metadata of its
commits. The documents are untrusted: the codec checks names, ids and locations as it does for a log. They do not
contain credentials.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from deployer.errors import Corrupt, Refused
from deployer.platform.files.json_documents import NotADocument, format_of, read_document
from deployer.state.log.codec import Mismatch, decode, encode
from deployer.state.log.entries import LATEST
from deployer.state.model.entities import (
    Dataset,
    File,
    InstanceState,
    Job,
    Partition,
    Savepoint,
    Service,
    TableEntry,
    TableProperties,
    TableState,
)
from deployer.state.model.services import REFRESH_LEASE

FOLDER = "_deployer"  #: a folder in the dataset's folder, which Lance does not touch
TABLE, JOBS = "table.json", "jobs.json"
FORMAT = 1  #: raised when an older reader would read a record wrongly
LARGEST = 256 * 2**20  #: bytes; a larger document is not read

_KIND = "deployer-table"
_KIND_OF_JOBS = "deployer-jobs"
_REMEDY = "remove the file: the table is then rebuilt from its declaration in the specs"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TableRecord:
    """The record of a table at one version of its log. `at` (ms since 1970) is the time at which the record was
    written; it orders the records of one table.

    `lance_version` is a version of the dataset in which the columns of the keys have the names in `properties`.
    `instance` is the name of the instance; it is empty if the state does not have the name.
    """

    instance: str
    at: int
    state_version: int
    lance_version: int
    entry: TableEntry
    properties: TableProperties
    partitions: tuple[Partition, ...]
    datasets: tuple[Dataset, ...]
    services: tuple[Service, ...]
    savepoints: tuple[Savepoint, ...]

    def says_what(self, other: TableRecord) -> bool:
        """Returns whether both records have the same content. Their times and versions may differ."""
        unlike = replace(other, at=self.at, state_version=self.state_version, lance_version=self.lance_version)
        return unlike == self or encode(unlike) == encode(self)


@dataclass(frozen=True, slots=True)
class JobsRecord:
    """The finished jobs and the files of a table when its dataset was at `lance_version`. It is needed because older
    commit metadata may have been removed."""

    lance_version: int
    jobs: tuple[Job, ...]
    files: tuple[File, ...]


def record_of(instance: InstanceState, entry: TableEntry, state: TableState, at: int) -> TableRecord:
    """Returns the record of a table whose entry and state belong together. `at` is the current time in ms.

    The record does not have the leases of refreshes: a refresh commits only to the state in which it took its lease,
    and never to a rebuilt one.
    """
    spec = instance.properties.get("spec")
    name = spec.get("name") if isinstance(spec, Mapping) else ""
    savepoints = [each for each in state.savepoints.values() if is_recorded(each.name)]
    return TableRecord(
        instance=name if isinstance(name, str) else "",
        at=max(at, state.at),
        state_version=state.version,
        lance_version=state.lance_version,
        entry=entry,
        properties=state.properties,
        partitions=tuple(sorted(state.partitions.values(), key=lambda each: each.partition_id)),
        datasets=state.datasets,
        services=tuple(sorted(state.services.values(), key=lambda each: each.kind)),
        savepoints=tuple(sorted(savepoints, key=lambda each: each.name)),
    )


def is_recorded(savepoint: str) -> bool:
    """Returns whether records include a savepoint with this name."""
    return not savepoint.startswith(REFRESH_LEASE)


def jobs_of(state: TableState) -> JobsRecord:
    """Returns the record of the table's jobs and files."""
    return JobsRecord(state.lance_version, tuple(state.jobs.values()), tuple(state.files))


def to_bytes(record: TableRecord | JobsRecord) -> bytes:
    """Returns the document of a record, as JSON."""
    kind = _KIND if isinstance(record, TableRecord) else _KIND_OF_JOBS
    document = {"kind": kind, "format": FORMAT, **encode(record)}
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False).encode()


def table_from_bytes(data: bytes, where: str) -> TableRecord:
    """Returns the record in a document (the inverse of `to_bytes`). Raises Corrupt for an invalid document, and Refused
    for a newer format."""
    record = _decoded(TableRecord, _KIND, data, where)
    if not 0 <= record.at <= LATEST:
        raise Corrupt(f"the record of the table cannot be read: {record.at} is not a time", where=where, remedy=_REMEDY)
    return record


def jobs_from_bytes(data: bytes, where: str) -> JobsRecord:
    """Returns the record of jobs in a document (the inverse of `to_bytes`). Raises as `table_from_bytes` does."""
    return _decoded(JobsRecord, _KIND_OF_JOBS, data, where)


def _decoded(cls: type[T], kind: str, data: bytes, where: str) -> T:
    try:
        document: Any = read_document(data)
        number = format_of(document)
        if number is None or document.get("kind") != kind:
            raise Mismatch(f"it is not a document of the kind {kind}")
        if number > FORMAT:
            raise Refused(
                f"the record of the table was written by a newer deployer (format {number}), this one reads up to "
                f"{FORMAT}",
                where=where,
                remedy="upgrade",
            )
        found: T = decode(cls, {name: each for name, each in document.items() if name not in ("kind", "format")})
        return found
    except (NotADocument, Mismatch, ValueError) as error:
        raise Corrupt(f"the record of the table cannot be read: {error}", where=where, remedy=_REMEDY) from None
