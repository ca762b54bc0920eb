"""`deployer changes`: what it shows of commits, in every format, and which questions it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, applied_project, run, table

SINCE_2 = [(2, 25, "update", 3), (3, 30, "delete", 4)]


def change() -> None:
    Path("flights.csv").write_text("id,delay\n1,10\n2,20\n3,30\n", encoding="utf-8")
    run("ingest", "flights", "flights.csv")
    run("rows", "update", "flights", "--where", "id = 2", "--set", "delay=25", "--yes")
    run("rows", "delete", "flights", "--where", "id = 3", "--yes")


@pytest.fixture
def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of which rows were inserted (version 2), updated (3) and deleted (4); the current folder."""
    folder = applied_project(
        tmp_path / "project", {"demo.yaml": INSTANCE, "flights.yaml": table("flights", "delay: int32")}, change
    )
    monkeypatch.chdir(folder)
    return folder


def rows(text: str) -> list[tuple[int, int, str, int]]:
    found = [json.loads(line) for line in text.splitlines()]
    return sorted((each["id"], each["delay"], each["_change"], each["_commit_version"]) for each in found)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("1",), [(1, 10, "insert", 2), (2, 20, "insert", 2), *SINCE_2, (3, 30, "insert", 2)]),
        (("2",), SINCE_2),
        (("2", "--until", "3"), [(2, 25, "update", 3)]),
        (("4",), []),
        (("0", "--where", "delay > 22"), [(2, 25, "insert", 3), (3, 30, "delete", 4), (3, 30, "insert", 2)]),
    ],
)  # fmt: skip
def test_rows_of_commits(
    changed: Path, deployer: Deployer, arguments: tuple[str, ...], expected: list[tuple[int, int, str, int]]
) -> None:
    shown = deployer("changes", "flights", "--since", *arguments, "--format", "json")
    assert (shown.code, rows(shown.out)) == (0, expected), shown.err


def test_what_people_see(changed: Path, deployer: Deployer) -> None:
    shown = deployer("changes", "flights", "--since", "2", "--columns", "id", "--limit", "1")
    assert shown.code == 0 and "update" in shown.out and "delay" not in shown.out
    assert "2 commits that changed rows" in shown.err and "there may be more rows" in shown.err
    assert "1 commit that changed rows" in deployer("changes", "flights", "--since", "3").err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("99",), "there is no version 99"),
        (("2000-01-01",), "the oldest version that changes can be read since is 0"),
        (("yesterday",), "--since"),
        (("3", "--until", "2"), "the changes end with version 1:2, which is before 1:3"),
        (("0", "--columns", "dely"), "delay"),
        (("0", "--where", "dely > 1"), "dely"),
    ],
)
def test_questions_without_an_answer(changed: Path, deployer: Deployer, arguments: tuple[str, ...], error: str) -> None:
    refused = deployer("changes", "flights", "--since", *arguments)
    assert refused.code == 1 and error in refused.err and not refused.out, refused.err
    assert "Traceback" not in refused.err
