"""Connections to a lake, and what an open table shows and takes."""

from __future__ import annotations

import pytest

from deployer.errors import InvalidInput, NotFound
from deployer.table import Table, connect
from deployer.tables.append import open_appender
from tests.tables.lakes import Lake, flights, sorted_rows


def test_tables_are_opened_by_their_names(lake: Lake) -> None:
    lake.table()
    with connect(lake.root) as connection:
        assert connection.table_names() == ["air.flights"]
        assert connection.open_table("flights").name == connection.open_table("air.flights").name == "air.flights"
        with pytest.raises(NotFound, match="did you mean 'flights'"):
            connection.open_table("fligths")


def test_a_root_without_an_instance_is_not_found(lake: Lake) -> None:
    with pytest.raises(NotFound):
        connect(f"{lake.root}/elsewhere")


def test_who_is_trusted_is_checked_at_once(lake: Lake) -> None:
    with pytest.raises(InvalidInput, match="'speed' is not the name of a function"):
        connect(lake.root, trusted_functions=["speed"])
    with pytest.raises(InvalidInput, match="the trusted authors are one text"):
        connect(lake.root, trusted_authors="ana")
    connect(lake.root, trusted_functions=["0123456789abcdef" * 4], trusted_authors=["ana"], trust_udfs=True).close()


def test_rows_that_are_added_are_read(table: Table) -> None:
    assert table.add(flights(30), job_id="monday").job.rows == 30
    assert table.add(flights(30), job_id="monday").already_done
    assert table.count_rows() == 30
    assert sorted_rows(table.to_arrow()) == sorted_rows(flights(30))
    assert table.to_pandas(["flight"], "flight = 0").flight.tolist() == [0]


def test_what_others_commit_is_seen(table: Table, lake: Lake) -> None:
    before = table.version
    other = open_appender(lake.root, "flights")
    other.append(flights(10))
    other.close()
    assert (table.version, table.count_rows("flight = 0")) == (before + 1, 1)
    assert table.row_keys == ("carrier", "flight")
    assert table.schema.names == flights(1).schema.names
