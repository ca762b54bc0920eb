"""CSV that people open in a spreadsheet: `--safe-csv` leaves no cell that one would run."""

from __future__ import annotations

import csv
import datetime as dt
import io
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.tables.read.export import write_csv
from tests.cli.conftest import Deployer, project  # noqa: F401


def written(batch: pa.RecordBatch, *, safe: bool) -> list[list[str]]:
    sink = io.StringIO(newline="")
    write_csv(batch.schema, iter([batch]), sink, safe=safe)
    return list(csv.reader(io.StringIO(sink.getvalue(), newline="")))


@pytest.mark.parametrize(
    "text",
    [
        "=cmd|' /C calc'!A0",
        "+1+cmd",
        "-2+3",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "\x00=1",
        " =1",
        "\ufeff=1",
        "\u200b=1",
        "\xa0@x",
        "＝1+1",
        "＋1",
        "－1",
        "＠x",
        "﹦1",
        "\u202e=1",
    ],
)
def test_text_that_begins_a_formula_is_quoted(text: str) -> None:
    """F32: `query -f csv` wrote `=cmd|' /C calc'!A0` as it is; headers come from a table too."""
    batch = pa.record_batch([pa.array([text]), pa.array([text], pa.large_string())], names=[text, "b"])
    assert written(batch, safe=True) == [["'" + text, "b"], ["'" + text, "'" + text]]
    assert written(batch, safe=False) == [[text, "b"], [text, text]]


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n", ";", ","])
def test_what_parts_cells_is_quoted(end: str) -> None:
    """F32: a lone carriage return was not quoted, and begins a row in a spreadsheet; a semicolon begins a cell."""
    batch = pa.record_batch({"a": [f"x{end}=1"], "b": [1]})
    sink = io.StringIO(newline="")
    write_csv(batch.schema, iter([batch]), sink, safe=True)
    assert sink.getvalue() == f'"a","b"\n"x{end}=1",1\n'
    assert written(batch, safe=False)[1] == [f"x{end}=1", "1"]


def test_encoded_and_dictionary_text_is_text() -> None:
    """F32: base64 may begin with a plus; a column of few values is text all the same."""
    batch = pa.record_batch({"b": [b"\xfb\xef\xbe"], "d": pa.array(["=1"]).dictionary_encode()})
    assert written(batch, safe=True)[1] == ["'++++", "'=1"]


def test_what_is_no_text_stays_as_it_is() -> None:
    """F32: a negative number stays a number, and harmless text stays the same."""
    batch = pa.record_batch(
        {
            "i": [-1],
            "f": [-0.5],
            "n": pa.array([Decimal("-1.50")], pa.decimal128(8, 2)),
            "t": [dt.datetime(2013, 1, 1)],  # noqa: DTZ001
            "l": [["=1"]],
            "e": [""],
            "z": pa.array([None], pa.string()),
            "s": ["a=1, 'b' -c"],
        }
    )
    assert written(batch, safe=True) == written(batch, safe=False)
    assert written(batch, safe=True)[1][:3] == ["-1", "-0.5", "-1.50"]


def test_the_option_of_query_and_sql(project: Path, deployer: Deployer) -> None:  # noqa: F811
    """F32: the option is for CSV, and refused where it would do nothing."""
    assert deployer("up", "--yes").code == 0
    (project / "rows.csv").write_text("id,delay\n1,-5\n", encoding="utf-8")
    assert deployer("ingest", "flights", "rows.csv").code == 0
    assert deployer("query", "flights", "-f", "csv", "--safe-csv").out == '"id","delay"\n1,-5\n'
    found = deployer("sql", "SELECT '=1' AS \"@x\", delay FROM flights", "-f", "csv", "--safe-csv")
    assert found.out == '"\'@x","delay"\n"\'=1",-5\n'
    for command in (["query", "flights"], ["sql", "SELECT 1", "-f", "json"]):
        ran = deployer(*command, "--safe-csv")
        assert ran.code == 1
        assert "--safe-csv changes CSV only" in ran.err
