"""Views that call functions of Python: what they compute, for which rows they are called, and whose code runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deployer.errors import DeployerError, InvalidInput
from deployer.functions import skip
from deployer.functions.model import UDF
from deployer.services.api.attachments import create_service
from deployer.services.registry import run_service
from deployer.state.model.services import Service
from deployer.table import Table, connect, udf
from deployer.tables.rows.delete import delete_rows
from deployer.tables.rows.update import update_rows
from deployer.views.refresh.results import RefreshJobResult
from tests.tables.lakes import Lake
from tests.views.refresh.conftest import Views

DOCS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("body", pa.string())])
CHUNKS = (
    "SELECT d.id, c.place, c.word FROM air.docs AS d "
    "CROSS JOIN UNNEST(words(d.body)) WITH ORDINALITY AS c(word, place) "
    "WHERE d.body IS NOT NULL"
)


def words_noting(notes: Path) -> UDF:
    """A function that takes a text apart and notes each text that it is called with."""
    file = str(notes)

    def words(body: str) -> list[str]:
        with open(file, "a", encoding="utf-8") as found:  # noqa: PTH123 (packaged by value, with no import of ours)
            found.write(f"{body}\n")
        return body.split()

    return udf(data_type=pa.list_(pa.string()))(words)


def docs(*rows: tuple[int, str | None]) -> pa.Table:
    return pa.Table.from_pylist([{"id": number, "body": body} for number, body in rows], DOCS)


@pytest.fixture
def lake(tmp_path: Path) -> Views:
    found = Lake(tmp_path)
    found.table(DOCS, ("id",), splits=(), name="docs", unique=True)
    views = Views(found)
    views.add(docs((1, "a b"), (2, "c"), (3, None), (4, "d e f")), "docs")
    return views


def shown(view: Table) -> list[dict[str, Any]]:
    found = view.to_arrow(["id", "place", "word"]).to_pylist()
    return sorted(found, key=lambda row: (row["id"], row["place"]))


def test_a_chunker_makes_rows_with_the_key_and_the_position_and_is_called_for_what_changed(
    lake: Views, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    with connect(lake.lake.root) as connection:
        view = connection.create_materialized_view("air.chunks", CHUNKS, {"words": words_noting(notes)})
        assert view.refresh().rows_inserted == 6
        assert shown(view)[:3] == [
            {"id": 1, "place": 1, "word": "a"},
            {"id": 1, "place": 2, "word": "b"},
            {"id": 2, "place": 1, "word": "c"},
        ]
        assert sorted(notes.read_text().split("\n")) == ["", "a b", "c", "d e f"]
        notes.write_text("")
        update_rows(lake.open("docs"), "id = 4", values_sql={"body": "'x y'"})
        delete_rows(lake.open("docs"), "id = 1")
        lake.add(docs((5, "new")), "docs")
        done = view.refresh()
        assert (done.mode, done.rows_read) == ("incremental", 4)
        assert sorted(notes.read_text().split("\n")) == ["", "new", "x y"]
        assert [(row["id"], row["word"]) for row in shown(view)] == [(2, "c"), (4, "x"), (4, "y"), (5, "new")]
        again = connection.create_materialized_view("air.chunks", CHUNKS, {"words": words_noting(notes)})
        assert again.name == "air.chunks"  # the same query and function


def test_a_function_that_fails_leaves_the_view_as_it_was(lake: Views, tmp_path: Path) -> None:
    def inverse(body: str) -> int:
        return 12 // len(body)

    with connect(lake.lake.root) as connection:
        query = "SELECT id, inverse(body) AS i FROM air.docs WHERE body IS NOT NULL"
        view = connection.create_materialized_view(
            "air.inverses", query, {"inverse": udf(data_type=pa.int64())(inverse)}
        )
        view.refresh()
        then = view.to_arrow().to_pylist()
        lake.add(docs((6, "")), "docs")
        with pytest.raises(DeployerError, match="inverse"):
            view.refresh()
        assert view.to_arrow().to_pylist() == then and view.plan_refresh().mode == "incremental"
        delete_rows(lake.open("docs"), "id = 6")
        lake.add(docs((7, "abc")), "docs")
        assert view.refresh().rows_inserted == 1
        assert {row["id"]: row["i"] for row in view.to_arrow().to_pylist()} == {1: 4, 2: 12, 4: 2, 7: 4}


def test_a_function_of_somebody_else_is_not_run(lake: Views, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from deployer.functions.packages import stored

    with connect(lake.lake.root) as connection:
        view = connection.create_materialized_view("air.chunks", CHUNKS, {"words": words_noting(tmp_path / "notes")})
        monkeypatch.setattr(stored, "_saved_here", set())
        with pytest.raises(DeployerError, match="trust"):
            view.refresh()
        assert view.count_rows() == 0 and not (tmp_path / "notes").exists()
    with connect(lake.lake.root, trust_udfs=True) as trusting:
        assert trusting.open_table("air.chunks").refresh().rows_inserted == 6


def cautious(body: str) -> int:
    return 12 // len(body)


INVERSES = "SELECT id, inverse(body) AS i FROM air.docs WHERE body IS NOT NULL"


def inverse(**policy: Any) -> dict[str, UDF]:
    return {"inverse": udf(data_type=pa.int64(), on_error=skip(ZeroDivisionError), **policy)(cautious)}


def test_rows_that_a_function_skips_are_null_counted_and_listed_as_errors(lake: Views) -> None:
    lake.add(docs((6, ""), (7, "")), "docs")
    with connect(lake.lake.root) as connection:
        view = connection.create_materialized_view("air.inverses", INVERSES, inverse())
        done = view.refresh(job_id="monday")
        assert (done.mode, done.errors, done.rows_inserted) == ("full", 2, 5)
        assert {row["id"]: row["i"] for row in view.to_arrow().to_pylist()} == {1: 4, 2: 12, 4: 2, 6: None, 7: None}
        found = view.get_errors("monday")
        assert [(each.row_key, each.column_name, each.error_type) for each in found] == [
            ({"id": 6}, "inverse", "ZeroDivisionError"),
            ({"id": 7}, "inverse", "ZeroDivisionError"),
        ]
        assert found[0].row_address is None and "12 // len(body)" in found[0].traceback
        assert view.get_job("monday").errors == 2
        lake.add(docs((8, ""), (9, "a")), "docs")
        again = view.refresh()
        assert (again.mode, again.errors) == ("incremental", 1)
        assert [each.row_key for each in view.get_errors(again.job_id)] == [{"id": 8}]
        assert len(view.get_errors(column_name="inverse")) == 3 and view.get_errors(error_type="KeyError") == []
        with pytest.raises(InvalidInput, match="view"):
            view.get_failed_row_addresses("monday", "inverse")


def test_a_group_view_counts_a_row_of_its_source_once(lake: Views) -> None:
    lake.add(docs((6, ""), (7, "")), "docs")
    query = "SELECT inverse(body) AS i, count(*) AS n FROM air.docs WHERE body IS NOT NULL GROUP BY inverse(body)"
    with connect(lake.lake.root) as connection:
        view = connection.create_materialized_view("air.groups", query, inverse())
        assert view.refresh().errors == 2
        update_rows(lake.open("docs"), "id = 6", values_sql={"body": "'x'"})
        assert {row["i"]: row["n"] for row in (view.refresh(), view.to_arrow().to_pylist())[1]} == {
            4: 1,
            12: 2,
            2: 1,
            None: 1,
        }


def test_the_service_counts_skipped_rows_under_the_id_of_its_job(lake: Views) -> None:
    lake.add(docs((6, "")), "docs")
    with connect(lake.lake.root, trust_udfs=True) as connection:
        view = connection.create_materialized_view("air.inverses", INVERSES, inverse())
        opened = lake.open("inverses")
        create_service(opened.store, opened.entry.table_id, Service("REFRESH", "ON_DEMAND", {}, {}))
        done = run_service(lake.lake.root, "air.inverses", "REFRESH")
        assert isinstance(done, RefreshJobResult) and done.errors == 1
        (job,) = view.list_jobs()
        assert job.errors == 1 and [each.row_key for each in view.get_errors(job.job_id)] == [{"id": 6}]


def test_a_refresh_that_no_row_fails_in_leaves_no_errors_of_its_job(lake: Views) -> None:
    with connect(lake.lake.root) as connection:
        view = connection.create_materialized_view("air.inverses", INVERSES, inverse())
        assert view.refresh(job_id="monday").errors == 0 and view.get_errors() == []
        assert not (Path(lake.lake.root) / "_errors").exists()
