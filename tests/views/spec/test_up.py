"""Views from specs to rows: planned, applied, refreshed, late, built again, drifted and destroyed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from deployer.cli.main import run
from deployer.live.freshness import Freshness
from deployer.state import open_reader, open_store
from deployer.state.model.declared_properties import VIEW
from deployer.tables.open_table import find_entry, read_entry
from tests.projects import INSTANCE, make_project, table

LATE = """kind: View
database: air
name: late
query: SELECT id, delay FROM air.flights WHERE delay > 10
columns: [{ name: delay, description: Minutes. }]
row_keys: [id]
indexes: [{ kind: btree, columns: [delay] }]
max_staleness: 1ms
"""
TOP = "kind: View\ndatabase: air\nname: atop\nquery: SELECT id, delay AS minutes FROM air.late\n"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in an applied project with a table of three rows, a view of it and a view of that view."""
    specs = {
        "demo.yaml": INSTANCE,
        "flights.yaml": table("flights", "delay: int32"),
        "late.yaml": LATE,
        "top.yaml": TOP,
    }
    monkeypatch.chdir(make_project(tmp_path / "project", specs))

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(arguments)
        return code, *capsys.readouterr()

    assert call("up", "--yes")[0] == 0
    load(call, "1,5\n2,20\n3,30\n")
    return call


def load(command: Run, rows: str) -> None:
    Path("rows.csv").write_text(f"id,delay\n{rows}", encoding="utf-8")
    assert command("ingest", "flights", "rows.csv")[0] == 0


def rows(command: Run, name: str = "late") -> list[dict[str, Any]]:
    found = json.loads(command("query", name, "--json")[1])["rows"]
    return sorted(found, key=lambda row: int(row["id"]))


def hidden_columns(name: str) -> list[str]:
    with closing(open_reader("lakes/demo")) as store:
        table = read_entry(store, "lakes/demo", find_entry(store.instance().tables.values(), name))
        return [each for each in table.schema.names if each not in table.visible_columns]


def refreshed(command: Run) -> None:
    for name in ("late", "atop"):
        assert command("view", "refresh", name)[0] == 0


def test_a_view_is_as_declared_until_its_query_changes_and_is_built_beside_its_rows(command: Run) -> None:
    refreshed(command)
    assert [row["id"] for row in rows(command)] == [2, 3]
    assert json.loads(command("preview", "--json")[1])["resources"] == []

    Path("specs/late.yaml").write_text(LATE.replace("id, delay", "id, delay, delay * 2 AS twice").replace("10", "25"))
    plan = json.loads(command("preview", "--json")[1])
    [change] = plan["resources"][0]["changes"]
    assert (change["kind"], change["risk"], change["rows"]) == ("ChangeViewQuery", "rewrites", 2)
    assert {each["address"]: each["mode"] for each in plan["refreshes"]} == {
        "table/air.late": "full",
        "table/air.atop": "none",
    }
    assert command("up", "--yes")[0] == 0
    assert rows(command) == [{"id": 3, "delay": 30, "twice": 60}]
    assert json.loads(command("preview", "--json")[1])["resources"] == []
    about = json.loads(command("describe", "late", "--json")[1])
    assert about["view"]["behind"] == {}
    assert [index["status"] for index in about["indexes"]] == ["ready"]
    assert {each["column"]: (each["sources"], each["indexes"]) for each in about["view"]["lineage"]} == {
        "id": (["air.flights.id"], []),
        "delay": (["air.flights.delay"], ["delay_btree"]),
        "twice": (["air.flights.delay"], []),
    }

    refreshed(command)  # the view of the view follows, and the next load is incremental
    assert rows(command, "atop") == [{"id": 3, "minutes": 30}]
    load(command, "4,40\n")
    refreshed(command)
    assert [row["id"] for row in rows(command, "atop")] == [3, 4]


def test_pulumi_has_a_view_as_a_table_that_depends_on_what_it_reads(command: Run) -> None:
    assert command("stack", "export", "dev.json")[0] == 0
    resources = json.loads(Path("dev.json").read_text(encoding="utf-8"))["deployment"]["resources"]
    found = {each["urn"].rpartition("::")[2]: each for each in resources}
    late = found["air.late"]
    assert late["type"] == "lake:index:Table"
    assert late["inputs"]["view"] == {
        "query": "SELECT id, delay FROM air.flights WHERE delay > 10",
        "max_staleness": "1ms",
    }
    assert [urn.rpartition("::")[2] for urn in found["air.atop"]["dependencies"]] == ["demo", "air.late"]


def test_a_saved_plan_applies_a_view_with_another_query(command: Run) -> None:
    refreshed(command)
    Path("specs/late.yaml").write_text(LATE.replace("10", "25"), encoding="utf-8")
    assert command("preview", "--out", "plan.json")[0] == 0
    assert command("up", "plan.json", "--yes")[0] == 0
    assert [row["id"] for row in rows(command)] == [3]


def test_rows_and_columns_of_a_view_are_changed_by_its_query_alone(command: Run) -> None:
    for arguments in (
        ("ingest", "late", "rows.csv"),
        ("column", "add", "late", "twice", "--sql", "delay * 2"),
        ("rows", "delete", "late", "--where", "id = 2"),
    ):
        code, _, err = command(*arguments)
        assert code != 0 and "view" in err


POINTS = (
    "tables.reinitialise.started",
    "views.rebuild.written",
    "views.rebuild.committed",
    "tables.reinitialise.created",
    "tables.reinitialise.swapped",
)


@pytest.mark.thinned(5, to="full")
@pytest.mark.parametrize("point", POINTS)
def test_a_view_whose_build_is_killed_has_its_former_rows_or_the_new_ones(command: Run, point: str) -> None:
    refreshed(command)
    Path("specs/late.yaml").write_text(LATE.replace("10", "25"), encoding="utf-8")
    killed = subprocess.run(
        [sys.executable, "-m", "deployer", "up", "--yes"],
        env={**os.environ, "DEPLOYER_FAILPOINT": point},
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert [row["id"] for row in rows(command)] == ([3] if point == "tables.reinitialise.swapped" else [2, 3])
    assert command("up", "--yes")[0] == 0
    assert [row["id"] for row in rows(command)] == [3]
    assert json.loads(command("preview", "--json")[1])["resources"] == []


def test_a_view_that_cannot_be_built_keeps_its_rows(command: Run) -> None:
    refreshed(command)
    for query in (
        "SELECT DISTINCT id, delay FROM air.flights",
        "SELECT id, delay / (delay - 20) AS delay FROM air.flights",
    ):
        Path("specs/late.yaml").write_text(LATE.replace("SELECT id, delay FROM air.flights WHERE delay > 10", query))
        assert command("up", "--yes")[0] != 0
        assert [row["id"] for row in rows(command)] == [2, 3]
    Path("specs/late.yaml").write_text(LATE)
    assert json.loads(command("preview", "--json")[1])["resources"] == []


def test_a_query_that_cannot_be_maintained_is_refused_by_preview_with_its_place(command: Run) -> None:
    Path("specs/late.yaml").write_text(
        LATE.replace("SELECT id, delay", "SELECT DISTINCT id, delay")
        + "---\n"
        + TOP.replace("atop", "sorted")
        + "  ORDER BY 1\n"
    )
    for verb in (("preview",), ("up", "--yes")):
        code, out, _ = command(*verb, "--json")
        problems = json.loads(out)["error"]["problems"]
        assert code == 1 and [(each["file"], each["line"], each["rule"]) for each in problems] == [
            ("specs/late.yaml", 4, "view-query"),
            ("specs/late.yaml", 13, "view-query"),
        ]
        assert "SELECT DISTINCT" in problems[0]["what"] and "ORDER BY" in problems[1]["what"]
        assert "UNION ALL" in problems[0]["remedy"]


def test_hidden_columns_are_shown_where_they_are_named(command: Run) -> None:
    Path("specs/counts.yaml").write_text(
        "kind: View\ndatabase: air\nname: counts\nquery: SELECT delay, sum(id) AS n FROM air.flights GROUP BY delay\n"
    )
    assert command("up", "--yes")[0] == 0 and command("view", "refresh", "counts")[0] == 0
    assert set(json.loads(command("query", "counts", "--json")[1])["rows"][0]) == {"delay", "n"}
    [name, *_] = hidden_columns("air.counts")
    assert set(json.loads(command("query", "counts", "--columns", name, "--json")[1])["rows"][0]) == {name}


def test_a_late_view_is_named_until_it_is_refreshed(command: Run) -> None:
    code, out, _ = command("service", "check", "--json")
    [problem] = json.loads(out)["problems"]
    assert (code, problem["table"], problem["status"]) == (2, "air.late", "LATE")
    assert "rows of air.flights changed" in problem["why"] and "never refreshed" in problem["why"]
    assert command("report", "--html", "report.html")[0] == 0
    page = Path("report.html").read_text(encoding="utf-8")
    assert "1 late" in page and "late by" in page and "<code>air.flights.delay</code>" in page
    refreshed(command)
    assert command("service", "check")[0] == 0


def test_a_query_that_was_changed_by_hand_is_drift(command: Run) -> None:
    with closing(open_store("lakes/demo")) as store:
        entry = store.instance().by_name("air.late")
        assert entry is not None
        stored = dict(store.table(entry.table_id).properties.declared[VIEW])  # type: ignore[arg-type]
        stored |= {"query": "SELECT id, delay FROM air.flights WHERE delay > 15", "max_staleness": 60_000}
        store.declare(entry.table_id, {VIEW: stored})
    code, out, _ = command("drift")
    assert code == 2 and "delay > 15" in out and "late after 1ms → 1m" in out
    assert command("drift", "--write-spec")[0] == 0
    text = Path("specs/late.yaml").read_text(encoding="utf-8")
    assert "delay > 15" in text and "max_staleness: 1m" in text
    assert command("drift")[0] == 0


def test_views_go_before_what_they_read(command: Run) -> None:
    refreshed(command)
    Path("specs/late.yaml").unlink()
    code, _, err = command("validate")
    assert code != 0 and "`air.late`, which is not declared" in err
    Path("specs/top.yaml").unlink()
    allowed = ("--allow-destroy", "table/air.late", "--allow-destroy", "table/air.atop")
    assert command("up", "--yes", *allowed)[0] == 0
    assert command("destroy", "--yes", "--allow-destroy", "table/air.flights")[0] == 0


LATENESS = {
    "fresh": (Freshness(1000, 5, {}), 0, ""),
    "behind and in time": (Freshness(1000, 5, {"a.b": 9_500}), 0, ""),
    "late": (
        Freshness(1000, 5, {"a.b": 7_000, "a.c": 8_000}),
        2_000,
        "late by 2 s: rows of a.b, a.c changed 3 s ago, and its last refresh was before that (max_staleness 1s)",
    ),
    "without a limit": (Freshness(None, 5, {"a.b": 1}), 0, ""),
}


@pytest.mark.parametrize(("freshness", "by", "why"), LATENESS.values(), ids=LATENESS)
def test_how_late_a_view_is(freshness: Freshness, by: int, why: str) -> None:
    assert (freshness.late_by(10_000), freshness.why_late(10_000)) == (by, why)
