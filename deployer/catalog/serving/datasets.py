"""Answers the calls of `rerun.cloud.v1alpha1.RerunCloudService` about datasets of recordings."""

from __future__ import annotations

import datetime as dt
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from deployer.catalog.datasets.maintenance import Maintenance
from deployer.catalog.datasets.model.record import DatasetRecord, folder_of
from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.datasets.model.rows import Task
from deployer.catalog.datasets.reading import BASE, Source, below
from deployer.catalog.datasets.reading_on_spark import read_by
from deployer.catalog.datasets.reads import fetching, tables
from deployer.catalog.datasets.reads.index import DatasetIndex, Indexes
from deployer.catalog.datasets.reads.query import ANSWER, ChunkKey, ChunkQuery, TimeRange, answer, key_in, needed
from deployer.catalog.datasets.registration import OnDuplicate, Registration
from deployer.catalog.datasets.search.searches import Searches
from deployer.catalog.datasets.upkeep import maintain_all, maintain_as_runs
from deployer.catalog.entries import entry_of_dataset
from deployer.catalog.protocol.dataframes import part, rows_in, schema_message
from deployer.catalog.protocol.messages import cloud, common
from deployer.catalog.serving.grpc_calls import Call
from deployer.catalog.serving.search import SearchService
from deployer.catalog.serving.service import ENTRY_ID, Unsupported, details_of, id_in
from deployer.catalog.table_services import run_services
from deployer.errors import InvalidInput
from deployer.state.store import StateStore

ENTRY_NAME = "x-rerun-entry-name-bin"  #: the header with the dataset's name, for calls without its id
CLIENT = "x-rerun-client-version"
_LOG = logging.getLogger("deployer.catalog")
_FIRST_STATIC = -(2**63)  #: the time of a query for only static values
_STATUS_SINCE = 30  #: the first minor release of clients that expect the status of registrations
_PIECE = 1 << 20  #: bytes from which a part of an answer is sent, while it is still in the processor's cache
_ROWS = 100_000  #: most rows of one message of an answer

_REGISTERED = pa.schema(
    [
        pa.field(f"rerun_{name}", pa.utf8(), nullable=False)
        for name in ("segment_id", "segment_layer", "segment_type", "storage_url", "task_id")
    ]
)
_TASKS = pa.schema(
    [
        pa.field("task_id", pa.utf8(), nullable=False),
        pa.field("kind", pa.utf8()),
        pa.field("data", pa.utf8()),
        pa.field("exec_status", pa.utf8(), nullable=False),
        pa.field("msgs", pa.utf8()),
        pa.field("blob_len", pa.uint64()),
        pa.field("lease_owner", pa.utf8()),
        pa.field("lease_expiration", pa.timestamp("ns")),
        pa.field("attempts", pa.uint8(), nullable=False),
        pa.field("creation_time", pa.timestamp("ns")),
        pa.field("last_update_time", pa.timestamp("ns")),
    ]
)

Headers = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DatasetService:
    """The calls about datasets. Safe for threads."""

    datasets: Datasets
    indexes: Indexes

    @staticmethod
    def of(store: StateStore, root: str) -> DatasetService:
        return DatasetService(Datasets(store, root), Indexes(root))

    def calls(self) -> Mapping[str, Call]:
        """Returns the calls that this service answers, by their names in the protocol."""
        return {
            "CreateDatasetEntry": self.create_dataset_entry,
            "ReadDatasetEntry": self.read_dataset_entry,
            "UpdateDatasetEntry": self.update_dataset_entry,
            "RegisterWithDataset": self.register,
            "QueryTasks": self.query_tasks,
            "QueryTasksOnCompletion": self.query_tasks_on_completion,
            "GetDatasetSchema": self.get_dataset_schema,
            "GetSegmentTableSchema": self.get_segment_table_schema,
            "ScanSegmentTable": self.scan_segment_table,
            "GetDatasetManifestSchema": self.get_dataset_manifest_schema,
            "ScanDatasetManifest": self.scan_dataset_manifest,
            "QueryDataset": self.query_dataset,
            "FetchChunks": self.fetch_chunks,
            "DoMaintenance": self.do_maintenance,
            "DoGlobalMaintenance": self.do_global_maintenance,
            **SearchService(self._searches, self.record).calls(),
        }

    def create_dataset_entry(self, request: Any, headers: Headers) -> Any:
        chosen = id_in(request.id).hex() if request.HasField("id") else None
        return cloud.CreateDatasetEntryResponse(dataset=self._entry(self.datasets.create(request.name, chosen)))

    def read_dataset_entry(self, request: Any, headers: Headers) -> Any:
        return cloud.ReadDatasetEntryResponse(dataset=self._entry(self.record(headers)))

    def update_dataset_entry(self, request: Any, headers: Headers) -> Any:
        details = request.dataset_details
        named = details.HasField("default_blueprint_segment")
        segment = details.default_blueprint_segment.id if named else None
        record = self.datasets.set_default_blueprint(id_in(request.id).hex(), segment)
        return cloud.UpdateDatasetEntryResponse(dataset=self._entry(record))

    def register(self, request: Any, headers: Headers) -> Any:
        record = self.record(headers)
        sources = list[Source]()
        for each in request.data_sources:
            layer = each.layer or BASE
            sources += below(each.storage_url, layer) if each.prefix else [Source(each.storage_url, layer)]
        behavior = request.on_duplicate or OnDuplicate.ERROR
        if behavior not in list(OnDuplicate):
            raise InvalidInput("on_duplicate is not a known behavior", remedy="choose overwrite, skip or error")
        registration = Registration(self.datasets, self.indexes, read_by("auto"))
        tasks = registration.register(record.dataset_id, sources, OnDuplicate(behavior))
        columns = [
            [each.segment for each in tasks],
            [each.layer for each in tasks],
            [tables.TYPE] * len(tasks),
            [each.url for each in tasks],
            [each.task for each in tasks],
        ]
        rows = pa.RecordBatch.from_arrays([pa.array(each, pa.utf8()) for each in columns], schema=_REGISTERED)
        return cloud.RegisterWithDatasetResponse(data=part(rows))

    def query_tasks(self, request: Any, headers: Headers) -> Any:
        return cloud.QueryTasksResponse(data=self._tasks(request))

    def query_tasks_on_completion(self, request: Any, headers: Headers) -> Iterator[Any]:
        """Answers at once, because a registration is complete when its call returns."""
        yield cloud.QueryTasksOnCompletionResponse(data=self._tasks(request))

    def get_dataset_schema(self, request: Any, headers: Headers) -> Any:
        return cloud.GetDatasetSchemaResponse(schema=schema_message(self._index(headers).schema))

    def get_segment_table_schema(self, request: Any, headers: Headers) -> Any:
        schema = tables.segment_table(self._index(headers)).schema
        return cloud.GetSegmentTableSchemaResponse(schema=schema_message(schema))

    def scan_segment_table(self, request: Any, headers: Headers) -> Iterator[Any]:
        table = tables.projected(tables.segment_table(self._index(headers)), request.columns)
        for batch in tables.batches(table):
            yield cloud.ScanSegmentTableResponse(data=part(batch))

    def get_dataset_manifest_schema(self, request: Any, headers: Headers) -> Any:
        return cloud.GetDatasetManifestSchemaResponse(schema=schema_message(self._manifest(headers).schema))

    def scan_dataset_manifest(self, request: Any, headers: Headers) -> Iterator[Any]:
        for batch in tables.batches(tables.projected(self._manifest(headers), request.columns)):
            yield cloud.ScanDatasetManifestResponse(data=part(batch))

    def query_dataset(self, request: Any, headers: Headers) -> Iterator[Any]:
        index, query = self._index(headers), _query(request)
        places = needed(index, query)
        fetching.require_unchanged(index, np.unique(index.chunks.sources[places]))
        found = answer(index, places)
        wanted = request.scan_parameters.columns
        found = tables.projected(found, [each for each in wanted if each in ANSWER.names])
        for start in range(0, max(1, found.num_rows), _ROWS):
            for batch in tables.batches(found.slice(start, _ROWS)):
                yield cloud.QueryDatasetResponse(data=part(batch))

    def fetch_chunks(self, request: Any, headers: Headers) -> Iterator[list[bytes | memoryview]]:
        """Yields answers made of the stored messages, which are neither decoded nor copied: each is a field of the
        answer."""
        keys = [key for info in request.chunk_infos for key in _keys(info)]
        parts, size = list[bytes | memoryview](), 0
        for messages in fetching.chunks(self.datasets, self.indexes, keys):
            for each in messages:
                parts += [b"\x0a" + _varint(len(each)), each]
                size += len(each)
            if size >= _PIECE:
                yield parts
                parts, size = [], 0
        yield parts

    def do_maintenance(self, request: Any, headers: Headers) -> Any:
        """Does the requested maintenance; the answer has a sentence for each thing that was done."""
        wanted = Maintenance(
            compact=request.compact_fragments,
            optimize_indexes=request.optimize_indexes,
            retrain_indexes=request.retrain_indexes,
            clean_before=_time(request.cleanup_before) if request.HasField("cleanup_before") else None,
            allow_recent=request.unsafe_allow_recent_cleanup,
        )
        dataset_id = self.record(headers).dataset_id
        done = maintain_as_runs(self.datasets, self._searches, dataset_id, wanted, "do_maintenance of a client")
        return cloud.DoMaintenanceResponse(report="\n".join(done))

    def do_global_maintenance(self, request: Any, headers: Headers) -> Any:
        """Compacts the tables of all datasets, updates their indexes, and removes leftovers of killed processes; then
        runs the services COMPACT and CLEAN of the instance's tables."""
        for name, done in maintain_all(self.datasets, self._searches):
            _LOG.info("%s: %s", name, done)
        for each in run_services(self.datasets.store, self.datasets.root):
            _LOG.info("%s", each)
        return cloud.DoGlobalMaintenanceResponse()

    @property
    def _searches(self) -> Searches:
        return Searches(self.datasets, self.indexes)

    def record(self, headers: Headers) -> DatasetRecord:
        """Returns the dataset that the headers of a call name. Raises InvalidInput where no header names a dataset, and
        NotFound for an unknown dataset."""
        if entry_id := headers.get(ENTRY_ID):
            if not re.fullmatch("[0-9a-fA-F]{32}", entry_id):
                raise InvalidInput(f"the header {ENTRY_ID} is not an entry id", remedy="send 32 hex digits")
            return self.datasets.by_id(entry_id.lower())
        if name := headers.get(ENTRY_NAME):
            return self.datasets.by_name(name)
        raise InvalidInput(
            f'missing mandatory ["{ENTRY_ID}", "{ENTRY_NAME}"] HTTP headers', remedy="name the dataset in one of them"
        )

    def _index(self, headers: Headers) -> DatasetIndex:
        return self.indexes.of(self.record(headers))

    def _manifest(self, headers: Headers) -> pa.Table:
        release = re.search(r"/0\.(\d+)", headers.get(CLIENT, ""))
        with_status = release is not None and int(release[1]) >= _STATUS_SINCE
        return tables.manifest(self._index(headers), with_status)

    def _tasks(self, request: Any) -> Any:
        found = Registration(self.datasets, self.indexes).tasks([each.id for each in request.ids])
        return part(_task_rows(found))

    def _entry(self, record: DatasetRecord) -> Any:
        entry = cloud.DatasetEntry(details=details_of(entry_of_dataset(record)))
        location = folder_of(self.datasets.root, record.dataset_id)
        entry.dataset_handle.entry_id.CopyFrom(entry.details.id)
        entry.dataset_handle.dataset_url = location if "://" in location else f"file://{location}"
        entry.dataset_handle.store_kind = 1 if record.kind == "dataset" else 2
        entry.dataset_details.SetInParent()
        if record.blueprints:
            entry.dataset_details.blueprint_dataset.CopyFrom(_entry_id(record.blueprints))
        if record.default_blueprint is not None:
            entry.dataset_details.default_blueprint_segment.id = record.default_blueprint
        return entry


def _query(request: Any) -> ChunkQuery:
    """Returns the query of a request. Raises InvalidInput for a contradictory request, and Unsupported for a request
    with chunk ids."""
    if request.chunk_ids:
        raise Unsupported("query_dataset: querying specific chunk ids is not implemented")
    entities = [each.path for each in request.entity_paths]
    if request.select_all_entity_paths and entities:
        raise InvalidInput(
            "cannot specify entity paths if `select_all_entity_paths` is true", remedy="leave one of them out"
        )
    query = request.query
    ranges = list[TimeRange]()
    static_alone = request.exclude_temporal_data
    if query.HasField("range"):
        wanted = query.range.index_range
        ranges.append(TimeRange(query.range.index.timeline.name, wanted.start, wanted.end))
    if query.HasField("latest_at"):
        timeline, at = query.latest_at.index.timeline.name, query.latest_at.at
        if timeline and query.latest_at.HasField("at"):
            ranges.append(TimeRange(timeline, at, at))
        elif not ranges:
            static_alone |= not timeline and at == _FIRST_STATIC
    return ChunkQuery(
        [each.id for each in request.segment_ids], entities, ranges, static_alone, request.exclude_static_data
    )


def _time(timestamp: Any) -> dt.datetime:
    """Returns the time of a timestamp. Raises InvalidInput for a timestamp outside of the range of `datetime`."""
    try:
        return dt.datetime.fromtimestamp(timestamp.seconds, dt.UTC)
    except (OverflowError, ValueError, OSError):
        raise InvalidInput("cleanup_before is not a time", remedy="give a time of the years 1970 to 9999") from None


def _keys(info: Any) -> Iterator[ChunkKey]:
    for batch in rows_in(info):
        at = batch.schema.get_field_index("chunk_key")
        if at < 0 or not pa.types.is_binary(batch.schema.field(at).type) or batch.column(at).null_count:
            raise InvalidInput("Missing chunk_key column", remedy="send the rows that QueryDataset gave")
        yield from map(key_in, batch.column(at).to_pylist())


def _task_rows(tasks: list[Task]) -> pa.RecordBatch:
    none = [None] * len(tasks)
    values: dict[str, list[Any]] = {
        "task_id": [each.task for each in tasks],
        "exec_status": ["failed" if each.error is not None else "success" for each in tasks],
        "msgs": [each.error for each in tasks],
        "attempts": [1] * len(tasks),
    }
    arrays = [pa.array(values.get(field.name, none), field.type) for field in _TASKS]
    return pa.RecordBatch.from_arrays(arrays, schema=_TASKS)


def _entry_id(dataset_id: str) -> Any:
    return common.EntryId(id=common.Tuid(time_ns=int(dataset_id[:16], 16), inc=int(dataset_id[16:], 16)))


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)
