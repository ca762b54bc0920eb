"""Small lakes for tests of tables: created as `up` creates them, opened as commands open them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from deployer.specs.model import KeyValue, Storage, TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.state import create_store, open_store
from deployer.tables.admin.tables import create_table
from deployer.tables.ingest.request import IngestRequest, IngestResult
from deployer.tables.read.table import Table, open_table
from spark_jobs.ingest import run
from tests.projects import copy_once_made

FLIGHTS = pa.schema(
    [
        pa.field("carrier", pa.string(), nullable=False),
        pa.field("flight", pa.int32(), nullable=False),
        pa.field("delay", pa.int16()),
        pa.field("at", pa.timestamp("us", "America/New_York")),
        pa.field("price", pa.decimal128(8, 2)),
    ]
)
SPLITS = (("B6",), ("DL", 500), ("UA",))


class Lake:
    """An instance in a folder; `root` is what commands are given."""

    def __init__(self, folder: Path, root: str | None = None) -> None:
        """Its root is in `folder`, which has the files of loads, too, unless another one is given."""
        self.folder, self.root = folder, root or str(folder / "lake")
        self.store = create_store(self.root, instance="tests" if root else "")

    @classmethod
    def at(cls, folder: Path) -> Self:
        """The lake that is in the folder already."""
        lake = cls.__new__(cls)
        lake.folder, lake.root = folder, str(folder / "lake")
        lake.store = open_store(lake.root)
        return lake

    def table(
        self,
        schema: pa.Schema = FLIGHTS,
        row_keys: Sequence[str] = ("carrier", "flight"),
        sort_keys: Sequence[str] = (),
        splits: Sequence[tuple[KeyValue, ...]] = SPLITS,
        name: str = "flights",
        storage: Storage | None = None,
        *,
        unique: bool = False,
    ) -> Table:
        spec = TableSpec(
            "air",
            name,
            columns_of(schema),
            tuple(row_keys),
            tuple(sort_keys),
            tuple(splits) if row_keys else (),
            storage=storage or Storage(),
            unique=unique,
        )
        create_table(self.store, self.root, spec, "tests/dev")
        return self.open(name)

    def open(self, name: str = "flights") -> Table:
        return open_table(self.root, name)

    def ingest(self, *paths: Path | str, table: str = "flights", **request: Any) -> IngestResult:
        """Loads files, in this process unless another engine is asked for."""
        request.setdefault("engine", "driver")
        on_note = request.pop("on_note", print)
        return run(self.root, table, IngestRequest(tuple(map(str, paths)), **request), on_note=on_note)

    def file(self, rows: pa.Table, name: str = "") -> Path:
        """The rows as a Parquet file."""
        path = self.folder / (name or f"{uuid.uuid4().hex}.parquet")
        pq.write_table(rows, path)
        return path

    def file_arrow(self, rows: pa.Table) -> Path:
        """The rows as an Arrow file, which has every type."""
        path = self.folder / f"{uuid.uuid4().hex}.arrow"
        with pa.ipc.new_file(str(path), rows.schema) as writer:
            writer.write_table(rows)
        return path

    def text(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def data_files(self, name: str = "flights") -> set[str]:
        folder = Path(self.open(name).opened.location) / "data"
        return {path.name for path in folder.iterdir()} if folder.exists() else set()


def flights(rows: int, start: int = 0) -> pa.Table:
    """Rows in no order, over all leaves of SPLITS."""
    carriers = ("UA", "AA", "DL", "B6", "9E")
    places = range(start, start + rows)
    columns = [
        pa.array([carriers[i % 5] for i in places], pa.string()),
        pa.array([(i * 7919) % 1000 for i in places], pa.int32()),
        pa.array([None if i % 7 == 0 else i % 300 for i in places], pa.int16()),
        pa.array([1_367_409_600_000_000 + i for i in places], FLIGHTS.field("at").type),
        pa.array([f"{i % 1000}.{i % 100:02}" for i in places]).cast(pa.decimal128(8, 2)),
    ]
    return pa.table(columns, schema=FLIGHTS)


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows for comparing, whatever their order."""
    return sorted(table.to_pylist(), key=repr)


def filled_lake(folder: Path, fill: Callable[..., object], *arguments: Any) -> Lake:
    """A lake below `folder` on which `fill` was called with these arguments, once in each process: this is a copy."""

    def make(place: Path) -> None:
        made = Lake(place)
        fill(made, *arguments)
        made.store.close()

    return Lake.at(copy_once_made(folder / "filled", (fill, arguments), make))
