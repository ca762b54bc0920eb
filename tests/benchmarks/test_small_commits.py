"""The benchmarks of small commits, in their smallest form: they print every figure, and lose no row."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest

from tests.benchmarks.test_scripts import benchmark, help_of, tables

pytestmark = pytest.mark.full

PEERS = {"deltalake": find_spec("deltalake"), "pyiceberg": find_spec("pyiceberg")}
MEASURED = [name for name, found in PEERS.items() if found]


def assert_figures(printed: str, *figures: str) -> None:
    for figure in figures:
        assert re.search(rf"^{re.escape(figure)}: [\d.e+-]+ \S+", printed, re.MULTILINE), printed


def assert_absent_peers_are_named(printed: str) -> None:
    for name, found in PEERS.items():
        assert (f"{name} was not measured: it is not installed here" in printed) == (found is None)


def test_appends() -> None:
    printed = benchmark("appends", "--n", "3")
    [table] = tables(printed)
    assert [line[0] for line in table[1:]] == ["deployer", "deployer, no keys", "lance", *MEASURED]
    assert all(line[table[0].index("rows after")] == "30" for line in table[1:])
    assert_figures(printed, "a whole append, of plain Lance's")
    assert_absent_peers_are_named(printed)


def test_state_commits() -> None:
    printed = benchmark("state_commits", "--n", "3", "--long", "150")
    beside, ages = tables(printed)
    assert [line[0] for line in beside[1:]] == ["state", "row", "lance", *MEASURED]
    assert [line[0] for line in ages[1:]] == ["after 100", "after 150"]
    assert_figures(
        printed,
        "a state commit, of plain Lance's append",
        "a state commit after 150 commits, of one after 100",
        "bytes written after 150 commits, of those after 100",
    )
    assert_absent_peers_are_named(printed)


def test_state_open() -> None:
    printed = benchmark("state_open", "--files", "2000", "--log", "5", "--tables", "3")
    assert_figures(
        printed,
        "open 2,000 files",
        "memory of that above the imports, peak",
        "files of a key range, median",
        "open 3 small tables at once",
    )


def test_racing() -> None:
    printed = benchmark("racing", "--procs", "2", "--each", "2", "--repeat", "1", "--engines", "deployer", "lance")
    [table] = tables(printed)
    assert [line[0] for line in table[1:]] == ["state commits", "deployer", "lance"]
    lost, doubled, errors = (table[0].index(name) for name in ("lost", "doubled", "errors"))
    assert all((line[lost], line[doubled]) == ("0", "0") for line in table[1:])
    assert [line[errors] for line in table[1:3]] == ["0", "0"]
    assert_figures(
        printed,
        "whole appends a second, of plain Lance's",
        "state commits a second, of plain Lance's appends",
    )


def test_s3_requests() -> None:
    printed = benchmark("s3_requests", "--n", "1", "--engines", "deployer", "lance")
    appends, state = tables(printed)
    assert [(line[0], line[-1]) for line in appends[1:]] == [("deployer", "6.0"), ("lance", "4.0")]
    assert [line[:2] for line in state[1:]] == [
        ["a process's first commit, which looks at the table's record", "3"],
        ["a commit of one file", "1"],
        ["a commit of 300 files", "1"],
        ["a cold open, snapshot and log", "2"],
    ]


@pytest.mark.parametrize("name", ["appends", "racing", "s3_requests", "state_commits", "state_open"])
def test_help_says_how_it_is_run(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"python -m benchmarks.{name} " in help_of(name, monkeypatch, capsys)
