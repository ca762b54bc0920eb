"""Answers the calls of `rerun.cloud.v1alpha1.RerunCloudService` about search in datasets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError

from deployer.catalog.datasets.model.record import DatasetRecord, SearchIndex
from deployer.catalog.datasets.reads import tables
from deployer.catalog.datasets.search.searches import NewSearch, Searches
from deployer.catalog.protocol.dataframes import part, rows_in
from deployer.catalog.protocol.messages import cloud, enum_value
from deployer.catalog.serving.grpc_calls import Call
from deployer.catalog.serving.service import Unsupported
from deployer.datasets.indexes.instances import Metric, TextIndex, VectorIndex
from deployer.errors import Corrupt, InvalidInput

_METRICS: Mapping[int, Metric] = {
    0: "cosine",
    enum_value("VectorDistanceMetric", "VECTOR_DISTANCE_METRIC_L2"): "L2",
    enum_value("VectorDistanceMetric", "VECTOR_DISTANCE_METRIC_COSINE"): "cosine",
    enum_value("VectorDistanceMetric", "VECTOR_DISTANCE_METRIC_DOT"): "dot",
}
TOKENIZERS = frozenset({"simple", "whitespace", "raw"})

Headers = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SearchService:
    """The calls about search. `record` returns the dataset that the headers of a call name. Safe for threads."""

    searches: Searches
    record: Callable[[Headers], DatasetRecord]

    def calls(self) -> Mapping[str, Call]:
        """Returns the calls that this service answers, by their names in the protocol."""
        return {
            "CreateIndex": self.create_index,
            "ListIndexes": self.list_indexes,
            "DeleteIndexes": self.delete_indexes,
            "SearchDataset": self.search_dataset,
        }

    def create_index(self, request: Any, headers: Headers) -> Any:
        config = request.config
        column = config.column
        wanted = NewSearch(
            column.entity_path.path,
            column.component.component,
            config.time_index.timeline.name,
            _index(config.properties),
            config.SerializeToString(),
        )
        made = self.searches.create(self.record(headers).dataset_id, wanted)
        return cloud.CreateIndexResponse(index=config, statistics_json=_statistics(made))

    def list_indexes(self, request: Any, headers: Headers) -> Any:
        """Returns the indexes and statistics for each. The client shows only indexes that have statistics."""
        found = self.record(headers).searches
        return cloud.ListIndexesResponse(indexes=map(_config, found), statistics_json=map(_statistics, found))

    def delete_indexes(self, request: Any, headers: Headers) -> Any:
        column = request.column
        gone = self.searches.delete(
            self.record(headers).dataset_id, column.entity_path.path, column.component.component
        )
        return cloud.DeleteIndexesResponse(indexes=map(_config, gone))

    def search_dataset(self, request: Any, headers: Headers) -> Iterator[Any]:
        """Yields the instances that were found. A limit of 0 requests only the columns: the answer is one batch without
        rows."""
        record, column, scan = self.record(headers), request.column, request.scan_parameters
        entity, component = column.entity_path.path, column.component.component
        limit = scan.limit_len if scan.HasField("limit_len") else None
        if limit is not None and limit < 0:
            raise InvalidInput("the limit is below 0", remedy="give a limit of 0 or more")
        match request.properties.WhichOneof("props"):
            case "inverted":
                text = _text(request.query)
                found = self.searches.search_texts(
                    record, entity, component, text, limit or (1 if limit == 0 else None)
                )
            case "vector":
                count = request.properties.vector.top_k
                count = min(count, 1) if limit == 0 else count
                found = self.searches.search_vectors(record, entity, component, _vector(request.query), count)
            case other:
                raise Unsupported(f"this server does not support searches by {other or 'an unspecified index'}")
        found = tables.projected(found if limit is None else found.slice(0, limit), scan.columns)
        for batch in tables.batches(found):
            yield cloud.SearchDatasetResponse(data=part(batch))


def _index(properties: Any) -> TextIndex | VectorIndex:
    """Returns the index that a request describes. Raises InvalidInput for unknown settings, and Unsupported for another
    kind of index."""
    match properties.WhichOneof("props"):
        case "inverted":
            tokenizer = properties.inverted.base_tokenizer or "simple"
            if tokenizer not in TOKENIZERS:
                raise InvalidInput(
                    f"{tokenizer!r} is not a tokenizer", remedy=f"choose one of {', '.join(sorted(TOKENIZERS))}"
                )
            return TextIndex(tokenizer, properties.inverted.store_position)
        case "vector":
            vector = properties.vector
            if vector.distance_metrics not in _METRICS:
                raise InvalidInput("vectors are not compared by that metric", remedy="choose L2, Cosine or Dot")
            sizes = vector.num_sub_vectors or 16, vector.target_partition_num_rows or 8192
            return VectorIndex(_METRICS[vector.distance_metrics], *sizes)
        case other:
            raise Unsupported(f"this server does not support indexes of {other or 'an unspecified kind'}")


def _config(search: SearchIndex) -> Any:
    try:
        return cloud.IndexConfig.FromString(search.config)
    except DecodeError:
        raise Corrupt(
            "the log's entry of a search index is not valid", where=search.entity, remedy="delete the index"
        ) from None


def _statistics(search: SearchIndex) -> bytes:
    return json.dumps({"num_rows": search.rows.rows}).encode()


def _values(query: Any) -> pa.Array:
    """Returns the only column of a query. Raises InvalidInput for a query that is not one column with rows."""
    batches = list(rows_in(query))
    if len(batches) != 1 or batches[0].num_columns != 1 or not batches[0].num_rows:
        raise InvalidInput("the query is not one column", remedy="send one text, or one vector")
    return batches[0].column(0)


def _text(query: Any) -> str:
    values = _values(query)
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)) or values.null_count:
        raise InvalidInput("the query is not a string", remedy="send a string")
    return str(values[0].as_py())


def _vector(query: Any) -> list[float]:
    values = _values(query)
    if pa.types.is_list(values.type) or pa.types.is_fixed_size_list(values.type):
        values = values.flatten()
    if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)) or values.null_count:
        raise InvalidInput("the query is not a vector", remedy="send numbers")
    return [float(each) for each in values.to_pylist()]
