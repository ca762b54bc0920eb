"""A lake with a table, and a place to which files come, for tests of INGEST."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deployer.services.kinds.ingest import ingest_files
from deployer.services.kinds.ingest.results import IngestFilesResult
from deployer.services.kinds.ingest.view import FileView, files_of
from tests.tables.lakes import Lake

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("value", pa.string())])


class Landing:
    """A lake in `folder/lake`, and the place `folder/landing`."""

    def __init__(self, folder: Path, row_keys: tuple[str, ...] = (), *, unique: bool = False) -> None:
        self.lake = Lake(folder)
        self.lake.table(SCHEMA, row_keys, splits=(), unique=unique)
        self.place = folder / "landing"
        self.place.mkdir(exist_ok=True)

    def land(self, name: str, ids: Iterable[int], value: str = "v") -> Path:
        """Writes a file of rows, which is there at once, as from a writer that renames it."""
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        numbers = list(ids)
        pq.write_table(pa.table([numbers, [value] * len(numbers)], schema=SCHEMA), path.with_name(f".{path.name}"))
        path.with_name(f".{path.name}").rename(path)
        return path

    def write(self, name: str, content: bytes) -> Path:
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def run(self, files: str = "*.parquet", **options: Any) -> IngestFilesResult:
        place = files if files.startswith("/") else f"{self.place}/{files}"
        return ingest_files(self.lake.root, "flights", {"files": place, **options})

    def rows(self) -> list[tuple[int, str]]:
        found = self.lake.open().scan().to_table().to_pylist()
        return sorted((row["id"], row["value"]) for row in found)

    def ids(self) -> list[int]:
        return [number for number, _ in self.rows()]

    def files(self) -> Mapping[str, FileView]:
        """What is recorded of files, by their names below the place."""
        return {os.path.relpath(each.path, self.place): each for each in files_of(self.lake.open().opened)}
