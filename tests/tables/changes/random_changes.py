"""Random changes of a table with unique keys, by every way that changes one, for comparing its feed with it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import lance
import pyarrow as pa

from deployer.datasets.storage.options import storage_options
from deployer.live.reader import read_table
from deployer.services.kinds.clean import clean_table
from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table
from deployer.services.restore import restore_tables
from deployer.services.restore.planning import preview_restore_at
from deployer.table import connect
from deployer.tables.admin.tables import update_table
from deployer.tables.changes.reading import DELETE, INSERT, UPDATE
from deployer.tables.evolution.rewrite.truncate import reinitialise_table
from deployer.tables.rows.merging.rules import WhenMatched
from tests.tables.lakes import Lake

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        ("part", pa.int8()),
        ("note", pa.string()),
        ("tags", pa.list_(pa.int8())),
    ]
)
IDS = 60
Row = Mapping[str, Any]
State = dict[int, Row]  #: rows by their keys


class RandomChanges:
    """A table `air.rows`, and one change of it after the other."""

    def __init__(self, lake: Lake, seed: int, *, rewrites: bool = True) -> None:
        self.lake = lake
        self.random = random.Random(seed)  # noqa: S311 (the same steps each time)
        self.steps: list[Callable[[], object]] = [
            self.add,
            self.upsert,
            self.delete,
            self.update,
            self.merge,
            self.load,
            self.compact,
            self.cluster,
            self.foreign_append,
            self.foreign_delete,
            self.foreign_update,
            self.restore,
        ]
        if rewrites:
            self.steps += [self.empty, self.rewrite, self.foreign_overwrite]

    def step(self) -> str:
        chosen = self.random.choice(self.steps)
        chosen()
        return chosen.__name__

    def rows(self, ids: Iterable[int]) -> pa.Table:
        choose = self.random
        found = [
            {
                "id": each,
                "part": choose.choice([None, *range(4)]),
                "note": choose.choice(["a", "b", "", None]),
                "tags": choose.choice([None, [], [1], [2, None]]),
            }
            for each in ids
        ]
        return pa.Table.from_pylist(found, SCHEMA)

    def there(self) -> State:
        return by_key(self.lake.open("rows").scan().to_table().to_pylist())

    def free(self) -> list[int]:
        free = sorted(set(range(IDS)) - self.there().keys())
        return self.random.sample(free, min(len(free), self.random.randrange(1, 15)))

    def some(self) -> list[int]:
        return self.random.sample(range(IDS), self.random.randrange(1, 12))

    def add(self) -> None:
        self.lake.ingest(self.lake.file(self.rows(self.free())), table="rows")

    def upsert(self) -> None:
        self.lake.ingest(self.lake.file(self.rows(self.some())), table="rows", mode="upsert", on=("id",))

    def delete(self) -> None:
        low = self.random.randrange(IDS)
        with connect(self.lake.root) as connection:
            connection.open_table("air.rows").delete(f"id >= {low} AND id < {low + 10}", allow_destroy=True)

    def update(self) -> None:
        part = self.random.randrange(4)
        with connect(self.lake.root) as connection:
            connection.open_table("air.rows").update(f"part = {part}", {"note": self.random.choice(["u", None])})

    def merge(self) -> None:
        with connect(self.lake.root) as connection:
            kinds: list[WhenMatched] = ["update", "delete"]
            matched = self.random.choice(kinds)
            connection.open_table("air.rows").merge(
                self.rows(self.some()), "id", when_matched=matched, allow_destroy=True
            )

    def load(self) -> None:
        notes = {each: self.random.choice([f"n{each}", "a", None]) for each in self.some()}
        source = pa.table({"id": pa.array(notes, pa.int32()), "note": pa.array(notes.values(), pa.string())})
        with connect(self.lake.root) as connection:
            connection.open_table("air.rows").load_columns(
                str(self.lake.file(source)), "id", ["note"], on_missing=self.random.choice(["carry", "null"])
            )

    def compact(self) -> None:
        compact_table(self.lake.root, "air.rows", {"target_rows": 30, "portion_bytes": 500})

    def cluster(self) -> None:
        cluster_table(self.lake.root, "air.rows", {"columns": ["part", "note"], "curve": "zorder"})

    def clean(self) -> None:
        clean_table(self.lake.root, "air.rows", {"older_than": "0d"})

    def dataset(self) -> lance.LanceDataset:
        location = self.lake.open("rows").opened.location
        return lance.dataset(location, storage_options=storage_options(location))

    def foreign_append(self) -> None:
        lance.write_dataset(self.rows(self.free()), self.dataset(), mode="append")

    def foreign_delete(self) -> None:
        self.dataset().delete(f"id = {self.random.randrange(IDS)}")

    def foreign_update(self) -> None:
        self.dataset().update({"note": "'f'"}, where=f"part = {self.random.randrange(4)}")

    def foreign_overwrite(self) -> None:
        location = self.dataset().uri
        lance.write_dataset(
            self.rows(self.some()), location, mode="overwrite", storage_options=storage_options(location)
        )

    def restore(self) -> None:
        table = self.lake.open("rows")
        chosen = self.random.choice(table.history()[:8])
        entry = table.opened.entry
        planned = preview_restore_at(self.lake.store, self.lake.root, entry, f"{chosen.dataset}:{chosen.version}")
        restore_tables(self.lake.store, self.lake.root, [planned], save_first=False)

    def empty(self) -> None:
        table_id = self.lake.open("rows").opened.entry.table_id
        reinitialise_table(self.lake.store, self.lake.root, table_id, allow_destroy=True)

    def rewrite(self) -> None:
        entry = self.lake.open("rows").opened.entry
        spec = read_table(self.lake.store, self.lake.root, entry).spec
        sort_keys = () if spec.sort_keys else ("part",)
        update_table(self.lake.store, self.lake.root, entry.table_id, replace(spec, sort_keys=sort_keys))


def by_key(rows: Iterable[Row]) -> State:
    return {row["id"]: {name: row[name] for name in SCHEMA.names} for row in rows}


def applied(state: State, changes: Iterable[Row]) -> State:
    """Applies changes strictly: what is inserted must not be there, and what is updated or deleted must be."""
    found = dict(state)
    for each in changes:
        key, row = each["id"], {name: each[name] for name in SCHEMA.names}
        match each["_change"]:
            case kind if kind == INSERT:
                assert key not in found
                found[key] = row
            case kind if kind == UPDATE:
                assert key in found
                found[key] = row
            case kind if kind == DELETE:
                assert found[key] == row
                del found[key]
    return found
