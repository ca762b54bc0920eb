"""Updates: new values, rows that move to another leaf, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import lance
import pytest

from deployer.errors import InvalidInput, Refused
from deployer.specs.model import Storage
from deployer.state.model.entities import RowCounts
from deployer.tables.rows.update import update_rows
from tests.tables.lakes import FLIGHTS, Lake, flights, sorted_rows
from tests.tables.rows.test_delete import differences, filled, opened

AA = "carrier = 'AA' AND flight < 500"


def rows_of(lake: Lake) -> list[dict[str, Any]]:
    return sorted_rows(lake.open().scan().to_table())


def changed(rows: int, **values: Any) -> list[dict[str, Any]]:
    """The rows, those of `AA` with other values; a function gets the row."""
    found = flights(rows).to_pylist()
    for row in found:
        if row["carrier"] == "AA" and row["flight"] < 500:
            before = dict(row)
            row |= {name: value(before) if callable(value) else value for name, value in values.items()}
    return sorted(found, key=repr)


@pytest.mark.parametrize(
    "options",
    [{}, {"row_keys": ()}, {"sort_keys": ("delay",)}, {"storage": Storage(stable_row_ids=True)}, {"unique": True}],
    ids=["keyed", "keyless", "sort keys", "stable row ids", "unique keys"],
)
def test_rows_get_other_values(lake: Lake, options: dict[str, Any]) -> None:
    table = filled(lake, **options)
    foreseen = update_rows(table, AA, {"delay": 5}, dry_run=True)
    change = update_rows(table, AA, {"delay": 5, "at": None}, values_sql={"price": "price + flight"}, job_id="j")
    assert rows_of(lake) == changed(300, delay=5, at=None, price=lambda row: row["price"] + row["flight"])
    assert change.counts == foreseen.counts and change.leaves == foreseen.leaves and change.counts.updated
    assert lake.open().opened.state.files.rows == 300 and differences(lake) == []
    assert all(file.partition is not None for file in lake.open().opened.state.files)
    assert update_rows(opened(lake), None, {"delay": 9}, job_id="j").already_done


def test_rows_whose_key_changes_move_to_its_leaf(lake: Lake) -> None:
    table = filled(lake)
    change = update_rows(table, AA, values_sql={"carrier": "'ZZ'", "flight": "flight + 1"})
    assert rows_of(lake) == changed(300, carrier="ZZ", flight=lambda row: row["flight"] + 1)
    reader = lake.open()
    found = reader.keys(("ZZ",))
    assert found.opened == 1 and found.to_table().num_rows == change.rows
    newest = max(reader.opened.state.files, key=lambda file: file.fragment_id)
    assert newest.partition == reader.opened.state.leaves()[-1].partition_id and newest.sorted


def test_stable_row_ids_stay_with_their_rows(lake: Lake) -> None:
    table = filled(lake, storage=Storage(stable_row_ids=True))

    def ids() -> dict[tuple[str, int], int]:
        rows = lance.dataset(table.location).to_table(columns=["carrier", "flight"], with_row_id=True).to_pylist()
        return {(row["carrier"], row["flight"]): row["_rowid"] for row in rows}

    before = ids()
    update_rows(table, AA, {"delay": 5})
    assert ids() == before


def test_every_row_is_updated_without_a_condition(lake: Lake) -> None:
    table = filled(lake, 50)
    change = update_rows(table, values={"price": Decimal("1.50")})
    assert change.counts == RowCounts(updated=50) and change.fragments.removed == len(table.state.files)
    assert {row["price"] for row in rows_of(lake)} == {Decimal("1.50")}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, InvalidInput, "no column is given a value"),
        ({"values": {"dela": 1}}, InvalidInput, "there is no column 'dela'; did you mean 'delay'"),
        ({"values": {"delay": 1}, "values_sql": {"delay": "1"}}, InvalidInput, "is in `values` and in `values_sql`"),
        ({"values": {"delay": "late"}}, InvalidInput, "column 'delay' is string, which cannot become int16"),
        ({"values": {"delay": 70_000}}, Refused, "column 'delay' '70000' does not fit"),
        ({"values": {"delay": object()}}, InvalidInput, "the value of column 'delay' is not one that Arrow has"),
        ({"values": {"carrier": None}}, Refused, "50 rows cannot be updated, so nothing was"),
        ({"values_sql": {"delay": "late + 1"}}, InvalidInput, "the expression 'late [+] 1' cannot be computed"),
        ({"values_sql": {"delay": "1; drop table x"}}, InvalidInput, "cannot be computed"),
        ({"values_sql": {"delay": "sum(delay)"}}, InvalidInput, "cannot be computed"),
        ({"values_sql": {"delay": "delay * 10000"}}, Refused, "does not fit"),
        ({"where": "carrier =", "values": {"delay": 1}}, InvalidInput, "is not one SQL expression"),
    ],
)
def test_what_cannot_be_changes_nothing(
    lake: Lake, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    table, files = filled(lake, 50), lake.data_files()
    with pytest.raises(error, match=message):
        update_rows(table, **arguments)
    assert lake.open().opened.state == table.state and lake.data_files() == files


@pytest.mark.parametrize(
    ("values_sql", "message"),
    [
        ({"flight": "1"}, "60 changed rows would have keys that another row has"),
        ({"carrier": "'UA'", "flight": "(flight + 5000) % 1000"}, None),
        ({"carrier": "'AA'"}, None),
    ],
)
def test_unique_keys_stay_unique(lake: Lake, values_sql: dict[str, str], message: str | None) -> None:
    table = filled(lake, unique=True)
    if message is None:
        update_rows(table, "carrier = 'AA'", values_sql=values_sql)
        assert lake.open().count() == 300
        return
    files = lake.data_files()
    with pytest.raises(Refused, match="changed rows would have keys that another row has"):
        update_rows(table, "carrier = 'AA'", values_sql=values_sql)
    assert lake.open().opened.state == table.state and lake.data_files() == files


def test_a_key_of_a_row_that_stays_is_taken(lake: Lake) -> None:
    table = filled(lake, unique=True)
    [one, other] = [row["flight"] for row in rows_of(lake) if row["carrier"] == "AA"][:2]
    with pytest.raises(Refused, match=r"1 changed row would have a key that another row has \(first: \(carrier=AA"):
        update_rows(table, f"carrier = 'AA' AND flight = {one}", {"flight": other})


def test_columns_that_are_nested_are_kept(lake: Lake) -> None:
    import pyarrow as pa

    schema = FLIGHTS.append(pa.field("more", pa.struct([("a", pa.list_(pa.int32())), ("b", pa.binary())])))
    lake.table(schema)
    rows = flights(20).append_column(
        "more", pa.array([{"a": [i], "b": bytes([i])} for i in range(20)], schema[-1].type)
    )
    lake.ingest(lake.file_arrow(rows))
    update_rows(opened(lake), "flight > 0", {"delay": 1})
    assert sorted(map(repr, lake.open().scan(columns=["flight", "more"]).to_table().to_pylist())) == sorted(
        map(repr, rows.select(["flight", "more"]).to_pylist())
    )


def test_a_dry_run_finds_values_that_do_not_fit(lake: Lake) -> None:
    table, files = filled(lake, 50), lake.data_files()
    with pytest.raises(Refused, match="rows cannot be updated, so nothing was"):
        update_rows(table, "flight > 0", values_sql={"delay": "'far'"}, dry_run=True)
    with pytest.raises(Refused, match="cannot be updated"):
        update_rows(table, None, {"carrier": None}, dry_run=True)
    assert lake.open().opened.state == table.state and lake.data_files() == files
