"""Columns change under data: what is declared is what rows then have, in every file format, and `history` says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.errors import Refused
from deployer.live.reader import read_table
from deployer.plan.changes import AddColumn
from deployer.plan.diff.lakes import diff
from deployer.specs.model import Storage, TableSpec
from deployer.specs.types.arrow import arrow_schema
from deployer.specs.types.parser import parse_type
from deployer.specs.types.types import Column, ListOf, Struct
from deployer.state import create_store, open_store
from deployer.state.store import StateStore
from deployer.tables.admin.tables import create_table, update_table
from deployer.tables.evolution.schema.apply import apply_column_change
from deployer.tables.inspect.versions import history
from deployer.tables.read.table import open_table
from tests.tables.lakes import Lake
from tests.values import array

FORMATS = [
    pytest.param(Storage(version, stable_row_ids=stable), id=f"{version}-{'stable' if stable else 'moving'}-row-ids")
    for version in ("2.1", "2.2")
    for stable in (False, True)
]
ROWS: list[dict[str, Any]] = [
    {"id": 1, "delay": 5, "code": "7", "gate": {"hall": "A", "number": 1}, "stops": [{"at": "x", "wait": 3}]},
    {"id": 2, "delay": None, "code": None, "gate": None, "stops": []},
    {"id": 3, "delay": -2, "code": "12", "gate": {"hall": None, "number": None}, "stops": None},
]


def column(text: str, **more: Any) -> Column:
    """`delay: int32`, or `id: int64 not null`."""
    name, _, rest = text.partition(": ")
    kind = rest.removesuffix(" not null")
    return Column(name, parse_type(kind), nullable=kind == rest, **more)


COLUMNS = (
    column("id: int64 not null"),
    column("delay: int16"),
    column("code: string"),
    column("gate: struct<hall: string, number: int16>"),
    column("stops: list<struct<at: string, wait: int32>>"),
)


@dataclass(frozen=True)
class Case:
    """New columns and what the rows then are: a function of each row before."""

    columns: Sequence[Column]
    rows: Any
    kinds: Sequence[str]
    writes: bool = False


def having(**changed: Column) -> tuple[Column, ...]:
    return tuple(changed.get(each.name, each) for each in COLUMNS)


def stops(row: Mapping[str, Any], change: Any) -> Any:
    return None if row["stops"] is None else [change(stop) for stop in row["stops"]]


CASES: dict[str, Case] = {
    "add": Case(
        (*COLUMNS[:2], column("remark: string", description="Said."), *COLUMNS[2:]),
        lambda row: {**row, "remark": None},
        ["add column remark"],
    ),
    "add a nested column": Case(
        (column("more: struct<a: int32, b: list<string>>"), *COLUMNS),
        lambda row: {**row, "more": None},
        ["add column more"],
    ),
    "add a field": Case(
        having(gate=column("gate: struct<hall: string, floor: int32, number: int16>")),
        lambda row: {**row, "gate": row["gate"] and {**row["gate"], "floor": None}},
        ["add column gate.floor"],
    ),
    "add a field to items": Case(
        having(stops=column("stops: list<struct<at: string, wait: int32, why: string>>")),
        lambda row: {**row, "stops": stops(row, lambda stop: {**stop, "why": None})},
        ["add column stops.item.why"],
    ),
    "add with a default": Case(
        (*COLUMNS, column("late: bool not null", default="coalesce(delay, 0) > 0")),
        lambda row: {**row, "late": (row["delay"] or 0) > 0},
        ["add column late"],
        True,
    ),
    "change a default": Case(
        having(delay=column("delay: int16", default="0")), lambda row: row, ["default of column delay"]
    ),
    "change a source": Case(
        having(delay=column("delay: int16", source="Delay (min.)")), lambda row: row, ["source of column delay"]
    ),
    "change a source to the empty name": Case(
        having(delay=column("delay: int16", source="")), lambda row: row, ["source of column delay"]
    ),
    "drop": Case(
        (COLUMNS[0], *COLUMNS[2:]),
        lambda row: {name: value for name, value in row.items() if name != "delay"},
        ["drop column delay"],
    ),
    "drop a field": Case(
        having(gate=column("gate: struct<number: int16>")),
        lambda row: {**row, "gate": row["gate"] and {"number": row["gate"]["number"]}},
        ["drop column gate.hall"],
    ),
    "drop and add again": Case(
        having(delay=column("late: int16")),
        lambda row: {**{name: value for name, value in row.items() if name != "delay"}, "late": None},
        ["add column late", "drop column delay"],
    ),
    "rename": Case(
        having(delay=column("late: int16", renamed_from="delay")),
        lambda row: {**{name: value for name, value in row.items() if name != "delay"}, "late": row["delay"]},
        ["rename column delay → late"],
    ),
    "rename a field of items": Case(
        having(
            stops=Column(
                "stops",
                ListOf(Column("item", Struct((column("at: string"), column("minutes: int32", renamed_from="wait"))))),
            )
        ),
        lambda row: {**row, "stops": stops(row, lambda stop: {"at": stop["at"], "minutes": stop["wait"]})},
        ["rename column stops.item.wait → minutes"],
    ),
    "relax": Case(
        (column("id: int64"), *COLUMNS[1:]),
        lambda row: row,
        ["allow null in column id"],
    ),
    "reorder": Case(tuple(reversed(COLUMNS)), lambda row: row, ["reorder columns"]),
    "reorder fields": Case(
        having(gate=column("gate: struct<number: int16, hall: string>")), lambda row: row, ["reorder columns of gate"]
    ),
    "reorder and add": Case(
        (COLUMNS[4], column("remark: string"), COLUMNS[0], *COLUMNS[1:4]),
        lambda row: {**row, "remark": None},
        ["add column remark", "reorder columns"],
    ),
    "describe": Case(
        having(delay=column("delay: int16", description="Minutes.")), lambda row: row, ["describe column delay"]
    ),
    "widen": Case(having(delay=column("delay: int64")), lambda row: row, ["widen column delay"], True),
    "widen a field": Case(
        having(gate=column("gate: struct<hall: string, number: int32>")),
        lambda row: row,
        ["widen column gate.number"],
        True,
    ),
    "widen a field of items": Case(
        having(stops=column("stops: list<struct<at: string, wait: int64>>")),
        lambda row: row,
        ["widen column stops.item.wait"],
        True,
    ),
    "convert": Case(
        having(code=column("code: int32", using="CAST(code AS INT) + 1")),
        lambda row: {**row, "code": None if row["code"] is None else int(row["code"]) + 1},
        ["convert column code"],
        True,
    ),
    "convert a struct": Case(
        having(gate=column("gate: string", using="coalesce(gate['hall'], 'none')")),
        lambda row: {**row, "gate": (row["gate"] or {}).get("hall") or "none"},
        ["convert column gate"],
        True,
    ),
    "convert a field": Case(
        having(
            gate=column(
                "gate: struct<hall: string, number: string>",
                using="CASE WHEN gate IS NOT NULL THEN "
                "named_struct('hall', gate['hall'], 'number', CAST(gate['number'] AS VARCHAR)) END",
            )
        ),
        lambda row: {
            **row,
            "gate": row["gate"] and {**row["gate"], "number": row["gate"]["number"] and str(row["gate"]["number"])},
        },
        ["convert column gate"],
        True,
    ),
    "convert a field of items": Case(
        having(stops=column("stops: list<string>", using="make_array(CAST(cardinality(stops) AS VARCHAR))")),
        lambda row: {**row, "stops": [str(len(row["stops"])) if row["stops"] is not None else None]},
        ["convert column stops"],
        True,
    ),
    "add a field that is never null": Case(
        having(
            gate=column(
                "gate: struct<hall: string, number: int16, open: bool not null>",
                using="named_struct('hall', gate['hall'], 'number', gate['number'], 'open', id > 1)",
            )
        ),
        lambda row: {**row, "gate": {**(row["gate"] or {"hall": None, "number": None}), "open": row["id"] > 1}},
        ["convert column gate"],
        True,
    ),
}


class Evolving:
    """One table that changes."""

    def __init__(self, folder: Path, columns: Sequence[Column] = COLUMNS, **spec: Any) -> None:
        self.root = str(folder / "lake")
        self.spec = TableSpec("air", "flights", tuple(columns), **spec)
        with closing(create_store(self.root)) as store:
            self.table_id = create_table(store, self.root, self.spec, "tests/dev")

    @property
    def dataset(self) -> lance.LanceDataset:
        with closing(self.store()) as store:
            return lance.dataset(f"{self.root}/{store.instance().tables[self.table_id].location}")

    def store(self) -> StateStore:
        return open_store(self.root)

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """By plain Lance, in files of two rows."""
        dataset = self.dataset
        lance.write_dataset(
            pa.Table.from_pylist([dict(row) for row in rows], schema=dataset.schema),
            dataset.uri,
            mode="append",
            max_rows_per_file=2,
        )

    def change(self, **changes: Any) -> list[str]:
        """Apply, check that nothing is left to do, and give what `history` says of it."""
        self.spec = replace(self.spec, **changes)
        before = self.dataset.version
        with closing(self.store()) as store:
            update_table(store, self.root, self.table_id, self.spec)
        self.check_applied()
        told = history(open_table(self.root, self.spec.name).opened)
        return [each.kind for each in reversed(told) if each.version > before]

    def check_applied(self) -> None:
        with closing(self.store()) as store:
            live = read_table(store, self.root, store.instance().tables[self.table_id])
            assert not diff(live.spec, self.spec)
            assert not store.table(self.table_id).intents

    def rows(self) -> list[dict[str, Any]]:
        return sorted(self.dataset.to_table().to_pylist(), key=lambda row: -1 if row["id"] is None else row["id"])

    def data_files(self) -> set[str]:
        folder = Path(self.dataset.uri) / "data"
        return {path.name for path in folder.iterdir()} if folder.exists() else set()


@pytest.mark.thinned(3, to="full")  # every change, and every format with some
@pytest.mark.parametrize("storage", FORMATS)
@pytest.mark.parametrize("name", CASES)
def test_rows_are_kept_as_the_change_says(name: str, storage: Storage, tmp_path: Path) -> None:
    case = CASES[name]
    table = Evolving(tmp_path, storage=storage)
    table.append(ROWS)
    table.append([{**ROWS[0], "id": 9}])
    table.dataset.delete("id = 9")
    files = table.data_files()
    assert table.change(columns=tuple(case.columns)) == list(case.kinds)
    assert (table.data_files() != files) == case.writes
    expected = [case.rows(row) for row in ROWS]
    assert table.rows() == expected
    later = [{**row, "id": row["id"] + 10} for row in expected]
    table.append(later)
    assert table.rows() == expected + later
    assert table.dataset.to_table(filter="id > 2 AND id < 12").num_rows == 2
    assert table.dataset.scanner(columns=["id"]).to_table().num_rows == 6
    table.dataset.optimize.compact_files()
    assert table.rows() == expected + later


@pytest.mark.parametrize("name", CASES)
def test_an_empty_table_changes_too(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    table = Evolving(tmp_path)
    assert table.change(columns=tuple(case.columns)) == list(case.kinds)
    table.append([case.rows(row) for row in ROWS])
    assert table.rows() == [case.rows(row) for row in ROWS]


@pytest.mark.parametrize(
    "added",
    [
        (*COLUMNS, column("must: string not null")),
        having(gate=column("gate: struct<hall: string, number: int16, must: string not null>")),
    ],
    ids=["column", "field"],
)
def test_an_empty_table_gets_a_column_that_is_never_null(added: tuple[Column, ...], tmp_path: Path) -> None:
    table = Evolving(tmp_path)
    table.append(ROWS)
    with pytest.raises(Refused, match="existing rows have no value for it"):
        table.change(columns=added)
    table.dataset.delete("true")
    table.change(columns=added)
    given = [{**row, "must": "x", "gate": {"hall": "A", "number": 1, "must": "x"}} for row in ROWS]
    rows = [{c.name: row[c.name] for c in added} for row in given]
    if len(added) == len(COLUMNS) + 1:
        rows = [{**row, "gate": {"hall": "A", "number": 1}} for row in rows]
    table.append(rows)
    assert table.rows() == rows


def test_rows_that_come_before_a_never_null_column_does_refuse_it(tmp_path: Path) -> None:
    """Between the look at the table and the commit, as another process writes them."""
    table = Evolving(tmp_path)
    with closing(table.store()) as store:
        read_table(store, table.root, store.instance().tables[table.table_id])
        table.append(ROWS)
        added = AddColumn("table/air.flights", ("must",), column("must: string not null"), "id")
        with pytest.raises(Refused, match="3 of 3 rows have no value in column must"):
            apply_column_change(store, table.root, table.table_id, table.spec, added)
    assert table.rows() == ROWS


def test_a_default_fills_rows_that_come_without_the_column(lake: Lake) -> None:
    delay = column("delay: int16", default="id * 2")
    spec = TableSpec("air", "flights", (COLUMNS[0], delay, column("late: bool not null", default="delay > 5")))
    create_table(lake.store, lake.root, spec, "tests/dev")
    lake.ingest(lake.file(pa.table({"id": [1, 2], "delay": pa.array([9, 1], pa.int16())})))
    lake.ingest(lake.text("more.csv", "id\n3\n"), lake.text("more.json", '{"id": 4, "late": false}\n'))
    rows = sorted(lake.open().scan().to_table().to_pylist(), key=lambda row: int(row["id"]))
    assert rows[:2] == [{"id": 1, "delay": 9, "late": True}, {"id": 2, "delay": 1, "late": False}]
    assert [row["delay"] for row in rows[2:]] == [6, 8]
    assert rows[3]["late"] is False


def test_rows_that_a_default_fails_for_are_told(lake: Lake) -> None:
    spec = TableSpec("air", "flights", (column("code: string"), column("number: int32", default="CAST(code AS INT)")))
    create_table(lake.store, lake.root, spec, "tests/dev")
    with pytest.raises(Refused, match=r"(?s)1 row cannot be loaded.*'number'"):
        lake.ingest(lake.file(pa.table({"code": ["1", "x", "3"]})))


def test_a_default_that_fails_for_rows_is_refused_before_anything_changes(tmp_path: Path) -> None:
    table = Evolving(tmp_path)
    table.append([{**ROWS[0], "code": "seven"}])
    version = table.dataset.version
    with pytest.raises(Refused, match="1 of 1 row fail or become null in column number"):
        table.change(columns=(*COLUMNS[1:], COLUMNS[0], column("number: int32", default="CAST(code AS INT)")))
    assert table.dataset.version == version


def append_nulls(table: Evolving) -> None:
    """Two rows whose `x` is null, of whatever type it is."""
    schema = arrow_schema(table.spec.columns)
    arrays = [array(schema.field("id").type, [1, 2]), array(schema.field("x").type, [None, None])]
    lance.write_dataset(pa.Table.from_arrays(arrays, schema=schema), table.dataset.uri, mode="append")


BESIDE = {
    "json in a struct": ("struct<u: uuid, j: json>", "2.1"),
    "a blob in a struct": ("struct<photo: blob>", "2.2"),
    "a blob": ("blob", "2.2"),
    "json in maps of maps": ("map<string, map<string, json> not null>", "2.2"),
}


@pytest.mark.parametrize("name", BESIDE)
def test_a_default_and_new_keys_come_beside_columns_of_any_type(name: str, tmp_path: Path) -> None:
    kind, version = BESIDE[name]
    table = Evolving(tmp_path, (column("id: int64 not null"), column(f"x: {kind}")), storage=Storage(version))
    append_nulls(table)
    table.change(columns=(*table.spec.columns, column("more: int64 not null", default="id * 2")))
    table.change(columns=(*table.spec.columns[:2], column("more: string not null", using="CAST(id AS VARCHAR)")))
    table.change(row_keys=("id",), split_points=((2,),))
    found = open_table(table.root, "flights").scan().to_table().sort_by("id").to_pylist()
    assert found == [{"id": 1, "x": None, "more": "1"}, {"id": 2, "x": None, "more": "2"}]


def test_a_field_is_widened_beside_never_null_ones_of_null_structs(tmp_path: Path) -> None:
    kind = "struct<n: {}, inner: struct<must: list<int32> not null>>"
    table = Evolving(tmp_path, (column("id: int64 not null"), column(f"x: {kind.format('float32')}")))
    rows: list[dict[str, Any]] = [{"id": 1, "x": {"n": 1.5, "inner": None}}, {"id": 2, "x": None}]
    table.append(rows)
    table.change(columns=(table.spec.columns[0], column(f"x: {kind.format('float64')}")))
    assert table.rows() == rows


def test_null_lists_of_structs_of_extension_types_are_rewritten(tmp_path: Path) -> None:
    table = Evolving(tmp_path, (column("id: int64 not null"), column("x: list<struct<a: uuid, b: json>>")))
    append_nulls(table)
    table.change(row_keys=("id",))
    assert table.rows() == [{"id": 1, "x": None}, {"id": 2, "x": None}]


@pytest.mark.parametrize(
    ("kind", "version", "one"),
    [
        ("large_list<{}>", "2.1", lambda item: [item]),
        ("large_list<{}>", "2.2", lambda item: [item]),
        ("map<string, {}>", "2.2", lambda item: [("k", item)]),
    ],
    ids=["large list 2.1", "large list 2.2", "map"],
)
def test_fields_come_to_and_go_from_what_lance_reads_whole(kind: str, version: str, one: Any, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"id": 1, "x": one({"a": 1, "b": "y"})}, {"id": 2, "x": None}, {"id": 3, "x": []}]
    first = column("x: " + kind.format("struct<a: int32, b: string>"))
    table = Evolving(tmp_path, (COLUMNS[0], first), storage=Storage(version))
    table.append(rows)
    table.change(columns=(COLUMNS[0], column("x: " + kind.format("struct<a: int32, more: list<int32>, b: string>"))))
    assert table.rows()[0] == {"id": 1, "x": one({"a": 1, "more": None, "b": "y"})}
    assert table.rows()[1:] == rows[1:]
    table.change(columns=(COLUMNS[0], first))
    assert table.rows() == rows


def test_a_field_beside_a_blob_is_not_written_anew(tmp_path: Path) -> None:
    table = Evolving(tmp_path, (column("id: int64 not null"), column("x: struct<photo: blob, n: int16>")))
    append_nulls(table)
    version = table.dataset.version
    with pytest.raises(Refused, match="column x holds blobs, which Lance cannot rewrite"):
        table.change(columns=(COLUMNS[0], column("x: struct<photo: blob, n: int32>")))
    assert table.dataset.version == version
