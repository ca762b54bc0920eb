"""Calls for datasets of a server, as Rerun's client makes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from deployer.catalog.protocol.dataframes import part, rows_in, schema_in
from deployer.catalog.protocol.messages import cloud
from deployer.catalog.serving.server import served
from deployer.state import open_store
from tests.catalog.clients import Client, hex_of
from tests.catalog.datasets.recordings import Chunk, properties, scalars, write_recording


@dataclass(frozen=True)
class Catalog:
    """Calls for one dataset of a server."""

    client: Client
    folder: Path

    def create(self, name: str = "drives") -> str:
        return hex_of(self.client("CreateDatasetEntry", cloud.CreateDatasetEntryRequest(name=name)).dataset.details.id)

    def recording(self, segment: str, *chunks: Chunk, name: str = "", **options: Any) -> str:
        """Writes a recording and returns its URL."""
        chunks = chunks or (scalars("/a", [1, 2, 3]), properties("info", robot=segment))
        return write_recording(self.folder / f"{name or segment}.rrd", segment, chunks, **options).as_uri()

    def register(
        self, dataset: str, *urls: str, layer: str = "base", prefix: bool = False, on_duplicate: int = 3
    ) -> list[dict[str, Any]]:
        sources = [{"storage_url": url, "layer": layer, "typ": 1, "prefix": prefix} for url in urls]
        request = cloud.RegisterWithDatasetRequest(data_sources=sources, on_duplicate=on_duplicate)
        found: list[dict[str, Any]] = rows(self.client("RegisterWithDataset", request, of(dataset)).data).to_pylist()
        return found

    def tasks(self, *ids: str) -> list[dict[str, Any]]:
        request = cloud.QueryTasksOnCompletionRequest(ids=[{"id": each} for each in ids])
        [answer] = self.client("QueryTasksOnCompletion", request)
        found: list[dict[str, Any]] = rows(answer.data).to_pylist()
        return found

    def segments(self, dataset: str, *columns: str) -> list[dict[str, Any]]:
        request = cloud.ScanSegmentTableRequest(columns=columns)
        answers = self.client("ScanSegmentTable", request, of(dataset))
        return [row for each in answers for row in rows(each.data).to_pylist()]

    def manifest(self, dataset: str, version: str = "rerun-py/0.28.2") -> pa.Table:
        headers = [*of(dataset), ("x-rerun-client-version", version)]
        return pa.concat_tables([rows(each.data) for each in self.client("ScanDatasetManifest", None, headers)])

    def schema(self, dataset: str) -> pa.Schema:
        return schema_in(self.client("GetDatasetSchema", None, of(dataset)).schema)

    def query(self, dataset: str, **request: Any) -> pa.Table:
        answers = self.client("QueryDataset", cloud.QueryDatasetRequest(**request), of(dataset))
        return pa.concat_tables([rows(each.data) for each in answers])

    def fetch(self, found: pa.Table) -> list[Any]:
        """The messages of chunks that a query found."""
        request = cloud.FetchChunksRequest(chunk_infos=[part(each) for each in found.combine_chunks().to_batches()])
        return [message for answer in self.client("FetchChunks", request) for message in answer.chunks]


def of(dataset: str) -> list[tuple[str, str | bytes]]:
    return [("x-rerun-entry-id", dataset)]


def rows(message: Any) -> pa.Table:
    return pa.Table.from_batches(rows_in(message))


class catalog_at:  # noqa: N801 -- it is used as a function
    """A server of its own at the root, as after a restart."""

    def __init__(self, root: str, folder: Path) -> None:
        self._root, self._folder = root, folder

    def __enter__(self) -> Catalog:
        self._store = open_store(self._root)
        self._served = served(self._store, self._root)
        self._client = Client(self._served.__enter__())
        return Catalog(self._client, self._folder)

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._served.__exit__(None, None, None)
        self._store.close()
