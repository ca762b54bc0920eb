"""References to tables: what another process opens by one, and what is recorded beside the table."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys

import pytest

from deployer.errors import FunctionFailed, InvalidInput, NotFound
from deployer.table import Table, TableReference, udf
from deployer.tables.admin.naming import rename_table
from tests.columns.backfill.functions import picky
from tests.columns.rows import values
from tests.tables.lakes import Lake


@pytest.fixture
def reference(table: Table) -> TableReference:
    copied: TableReference = pickle.loads(pickle.dumps(TableReference.of(table)))  # noqa: S301 (made here)
    assert copied == TableReference.of(table)
    return copied


def test_another_process_reads_the_table(reference: TableReference) -> None:
    code = (
        "import pickle, sys; reference = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
        "with reference.open_table() as table: print(table.name, table.count_rows())"
    )
    command = [sys.executable, "-c", code, pickle.dumps(reference).hex()]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == ["air.flights", "30"]


def test_what_was_trusted_is_trusted_there(reference: TableReference) -> None:
    with reference.open_table() as opened:
        opened.backfill("score")
        assert values(opened, "score")[3] == 7.0


def test_a_renamed_table_is_found_and_a_deleted_one_is_not(reference: TableReference, lake: Lake) -> None:
    rename_table(lake.store, lake.open().opened.entry, "air", "trips")
    with reference.open_table() as opened:
        assert opened.name == "air.trips"
    with (
        pytest.raises(NotFound, match="the table of the reference is gone"),
        reference.__class__(reference.root, "no-table").open_table(),
    ):
        pass


def test_connections(reference: TableReference) -> None:
    with reference.open_db() as connection:
        assert connection.table_names() == ["air.flights"]
    for opening in (reference.open_db_async, reference.open_system_db_async):
        with asyncio.run(opening()) as connection:
            assert connection.open_table("flights").count_rows() == 30


def test_jobs_and_errors_are_read_as_tables(reference: TableReference, table: Table) -> None:
    jobs, errors = reference.as_system_table("jobs"), reference.as_system_table("errors")
    assert (jobs.to_arrow().num_rows, errors.to_arrow().num_rows) == (0, 0)
    assert "error_type" in errors.to_arrow().column_names
    table.backfill("score", udf=picky, job_id="monday")
    [job] = jobs.to_arrow().to_pylist()
    assert (job["job_id"], job["status"], job["columns"]) == ("monday", "DONE", ["score"])
    found = errors.to_arrow().to_pylist()
    assert [each["row_key"] for each in found] == [f'{{"id": {i}}}' for i in (3, 10, 17, 24)]
    assert reference.to_arrow().num_rows == 30
    with pytest.raises(InvalidInput, match="'views' is not recorded beside a table; use jobs or errors"):
        reference.as_system_table("views")
    with pytest.raises(InvalidInput, match="errors of a table is read only"), errors.open_table():
        pass


def test_checkpoints_of_a_job_that_was_cut_off(reference: TableReference, table: Table) -> None:
    @udf(version="1")
    def fails_late(id: int) -> float:
        if id == 25:
            raise ValueError("late")
        return float(id)

    with pytest.raises(FunctionFailed):
        table.backfill("score", udf=fails_late, job_id="monday", concurrency=1, task_size=4)
    saved = reference.open_checkpoint_store()
    assert saved.jobs() == ["monday"]
    assert saved.fragments("monday") or saved.rows("monday")
    table.backfill("score", udf=picky, job_id="tuesday")
    assert saved.jobs() == ["monday"] and saved.fragments("tuesday") == {}
    assert reference.storage_options is None and reference.namespace_client_pushdown_operations == ()
    assert reference.namespace_client_properties == {"root": reference.root}
