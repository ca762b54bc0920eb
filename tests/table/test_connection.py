"""Connections to a lake, and what an open table shows and takes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

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


def test_a_table_on_this_machine_is_opened_without_a_client_of_aws(lake: Lake) -> None:
    """A worker of a backfill has each import in its memory."""
    lake.table()
    program = (
        f"import sys; from deployer.table import connect; connect({lake.root!r}).open_table('flights'); "
        "print([name for name in ('boto3', 'botocore', 'jsonschema_rs', 'datafusion') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_root_without_an_instance_is_not_found(lake: Lake) -> None:
    with pytest.raises(NotFound):
        connect(f"{lake.root}/elsewhere")


def test_who_is_trusted_is_checked_at_once(lake: Lake) -> None:
    with pytest.raises(InvalidInput, match="'speed' is not the name of a function"):
        connect(lake.root, trusted_functions=["speed"])
    with pytest.raises(InvalidInput, match="the trusted authors are one string"):
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


WRONG_TYPES: dict[str, tuple[Callable[[Any], object], str]] = {
    "a condition of a deletion": (lambda table: table.delete(5), "the condition is of type int"),
    "a condition of an update": (lambda table: table.update(5, {"delay": 1}), "the condition is of type int"),
    "a condition of a merge": (lambda table: table.merge([], where=5), "the condition is of type int"),
    "no condition of an erasure": (lambda table: table.erase(None), "the condition is of type NoneType"),
    "keys of a merge": (lambda table: table.merge([], on=5), "`on` is 5"),
    "values": (lambda table: table.update(None, 5), "`values` is 5"),
    "names of values": (lambda table: table.update(None, {5: 5}), r"`values` is \{5: 5\}"),
    "an expression": (lambda table: table.update(values_sql={"delay": 5}), "in `values_sql` is 5"),
    "a source of columns": (lambda table: table.load_columns(5, "delay", ["x"]), "there is no source"),
}


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_arguments_of_another_type_are_refused(table: Table, name: str) -> None:
    call, message = WRONG_TYPES[name]
    table.add(flights(3))
    version = table.version
    with pytest.raises(InvalidInput, match=message) as caught:
        call(table)
    assert caught.value.remedy and table.version == version
