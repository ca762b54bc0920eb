"""The table stores whose small appends are compared, with one interface for all, on local disk and on S3.

A table gets batches of 10 rows. In deployer, the first column is the row key: rows are sorted by it, and the state has
the key range of each file. The peers have no keys. deltalake and pyiceberg are measured where they are installed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet  # imported here, because the first snapshot would import it within an append

from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.state import create_store
from deployer.tables.admin.tables import create_table
from deployer.tables.append import Appender, open_appender
from deployer.tables.read.table import open_table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("part", pa.string()), ("value", pa.float64())])
BATCH = 10  #: rows of a batch
_TABLE = "bench.small"


def batch(number: int) -> pa.Table:
    """Returns the rows of one append, which are different from those of other appends."""
    ids = range(BATCH * number, BATCH * (number + 1))
    return pa.table([[*ids], [f"p{number % 7}"] * BATCH, [float(number)] * BATCH], schema=SCHEMA)


class Engine(Protocol):
    """One table of a store. `where` is a folder or s3://bucket/prefix. The table stays open between appends."""

    def __init__(self, where: str) -> None: ...

    def create(self) -> None: ...

    def append(self, rows: pa.Table) -> None: ...

    def reopen(self) -> None:
        """Drops the open table, as after an error; the next append opens it again."""

    def ids(self) -> list[int]:
        """Returns the first column of all rows, as a new reader finds them."""


class Deployer:
    keys: tuple[str, ...] = ("id",)

    def __init__(self, where: str) -> None:
        self.where = where
        self._appender: Appender | None = None

    def create(self) -> None:
        spec = TableSpec("bench", "small", columns_of(SCHEMA), self.keys)
        create_table(create_store(self.where, instance="bench"), self.where, spec, "benchmarks")

    def append(self, rows: pa.Table) -> None:
        if self._appender is None:
            self._appender = open_appender(self.where, _TABLE)
        self._appender.append(rows)

    def reopen(self) -> None:
        self._appender = None

    def ids(self) -> list[int]:
        found: list[int] = open_table(self.where, _TABLE).scan(columns=["id"]).to_table()["id"].to_pylist()
        return found


class DeployerWithoutKeys(Deployer):
    keys = ()


class Lance:
    def __init__(self, where: str) -> None:
        self.where = where
        self._dataset: Any = None

    def create(self) -> None:
        import lance

        lance.write_dataset(SCHEMA.empty_table(), self.where, storage_options=_lance_options(self.where))

    def append(self, rows: pa.Table) -> None:
        import lance

        self._dataset = lance.write_dataset(
            rows, self._dataset or self.where, mode="append", storage_options=_lance_options(self.where)
        )

    def reopen(self) -> None:
        self._dataset = None

    def ids(self) -> list[int]:
        import lance

        dataset = lance.dataset(self.where, storage_options=_lance_options(self.where))
        found: list[int] = dataset.to_table(columns=["id"])["id"].to_pylist()
        return found


def _lance_options(where: str) -> dict[str, str] | None:
    from deployer.datasets.storage.options import storage_options

    return storage_options(where)


class Deltalake:
    def __init__(self, where: str) -> None:
        self.where = where
        self._table: Any = None
        options = _lance_options(where) or {}
        names = {"region": "aws_region", "endpoint": "aws_endpoint_url", "allow_http": "aws_allow_http"}
        self._options = {names[name]: value for name, value in options.items()}
        if options:
            self._options["aws_conditional_put"] = "etag"

    def create(self) -> None:
        from deltalake import DeltaTable

        DeltaTable.create(self.where, schema=SCHEMA, storage_options=self._options)

    def append(self, rows: pa.Table) -> None:
        from deltalake import DeltaTable, write_deltalake

        if self._table is None:
            self._table = DeltaTable(self.where, storage_options=self._options)
        write_deltalake(self._table, rows, mode="append")

    def reopen(self) -> None:
        self._table = None

    def ids(self) -> list[int]:
        from deltalake import DeltaTable

        table = DeltaTable(self.where, storage_options=self._options)
        found: list[int] = pa.table(table.to_pyarrow_table(columns=["id"]))["id"].to_pylist()
        return found


class Pyiceberg:
    """A table of pyiceberg. Its catalog is a SQLite file, in the folder `catalog` where the table is on S3."""

    def __init__(self, where: str, catalog: Path | None = None) -> None:
        self.where = where
        self._table: Any = None
        self._file = (catalog or Path(where)) / "catalog.db"
        logging.getLogger("pyiceberg").setLevel(logging.ERROR)

    def _catalog(self) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        options = _lance_options(self.where) or {}
        s3 = {f"s3.{name}": value for name, value in options.items() if name != "allow_http"}
        warehouse = self.where if options else f"file://{self.where}"
        return SqlCatalog("bench", uri=f"sqlite:///{self._file}", warehouse=warehouse, **s3)

    def create(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        catalog = self._catalog()
        catalog.create_namespace("bench")
        catalog.create_table(_TABLE, SCHEMA)

    def append(self, rows: pa.Table) -> None:
        if self._table is None:
            self._table = self._catalog().load_table(_TABLE)
        self._table.append(rows)

    def reopen(self) -> None:
        self._table = None

    def ids(self) -> list[int]:
        found: list[int] = self._catalog().load_table(_TABLE).scan().to_arrow()["id"].to_pylist()
        return found


ENGINES: Mapping[str, Callable[[str], Engine]] = {
    "deployer": Deployer,
    "deployer, no keys": DeployerWithoutKeys,
    "lance": Lance,
    "deltalake": Deltalake,
    "pyiceberg": Pyiceberg,
}

_MODULES = {"deltalake": ("deltalake",), "pyiceberg": ("pyiceberg", "sqlalchemy")}


def present(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the engines that can be measured here, and a line for each that cannot."""
    found, absent = [], []
    for name in names:
        if all(map(find_spec, _MODULES.get(name, ()))):
            found.append(name)
        else:
            absent.append(f'{name} was not measured: it is not installed here (pip install -e ".[bench]")')
    return found, absent


def versions(names: Sequence[str]) -> list[str]:
    """Returns the versions of the peers, for a heading that already has those of pylance and deployer."""
    result = []
    for name in names:
        try:
            result += [f"{name} {version(name)}"] if name in _MODULES else []
        except PackageNotFoundError:
            result.append(name)
    return result
