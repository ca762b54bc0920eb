"""Retention and legal holds as specs declare them: planned, applied, run, drifted and written back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from deployer.cli.main import run
from deployer.state import open_store
from tests.projects import INSTANCE, applied_project

TABLE = """kind: Table
database: air
name: days
columns:
  - { name: day, type: date32, nullable: false }
  - { name: id, type: int64, nullable: false }
  - { name: note, type: string }
row_keys: [day, id]
"""
OLD = "day,id,note\n2001-01-01,1,a\n2001-01-02,2,b\n"
NEW = "day,id,note\n2090-01-01,3,c\n2090-01-02,4,d\n"
RETENTION = "retention: { column: day, keep: 400d }\n"

Run = Callable[..., tuple[int, str, str]]


def load() -> None:
    for name, text in (("old.csv", OLD), ("new.csv", NEW)):
        Path(name).write_text(text, encoding="utf-8")
        assert run(["ingest", "days", name]) == 0


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in an applied project with a table of two loads."""
    monkeypatch.chdir(applied_project(tmp_path / "project", {"demo.yaml": INSTANCE, "days.yaml": TABLE}, load))

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(arguments)
        return code, *capsys.readouterr()

    return call


def declared(more: str) -> None:
    Path("specs/days.yaml").write_text(TABLE + more, encoding="utf-8")


def rows(command: Run) -> int:
    return len(json.loads(command("query", "days", "--json")[1])["rows"])


def test_retention_is_previewed_applied_and_run(command: Run) -> None:
    declared(RETENTION)
    code, out, _ = command("preview")
    assert "retention none → 400d by day" in out and "EXPIRE deletes 2 rows in 1 whole file now" in out
    assert "create service expire" in out and "--allow-destroy table/air.days" in out
    assert command("up", "--yes")[0] == 3
    assert command("up", "--yes", "--allow-destroy", "table/air.days")[0] == 0
    assert "nothing to do" in command("preview")[1].lower() or "0 to update" in command("preview")[1]
    code, out, _ = command("service", "run", "days", "EXPIRE")
    assert code == 0 and "2 rows before" in out and "1 file of them whole" in out
    assert rows(command) == 2
    assert "EXPIRE" in command("service", "list")[1]
    declared(RETENTION.replace("400d", "800d"))
    code, out, _ = command("preview")
    assert "safe" in out and "rows are kept longer" in out
    declared("")
    code, out, _ = command("preview")
    assert "retention 400d by day → none" in out and "rows are kept forever" in out
    assert command("up", "--yes")[0] == 0
    assert "EXPIRE" not in command("service", "list")[1]


def test_a_preview_of_a_run_says_what_would_go(command: Run) -> None:
    declared(RETENTION)
    assert command("up", "--yes", "--allow-destroy", "table/air.days")[0] == 0
    code, out, _ = command("service", "run", "days", "EXPIRE", "--dry-run")
    assert code == 0 and "dry run: would remove 2 rows before" in out and rows(command) == 4
    found = json.loads(command("service", "run", "days", "EXPIRE", "--dry-run", "--json")[1])
    assert (found["rows"], found["whole_files"], found["whole_rows"], found["dry_run"]) == (2, 1, 2, True)
    code, out, _ = command("report", "--html", "days.html")
    page = Path("days.html").read_text(encoding="utf-8")
    assert code == 0, out
    assert "drops 1 file whole: 2 rows" in page and "EXPIRE" in page


def test_expire_is_checked_paused_and_run_by_the_agent(command: Run) -> None:
    declared(RETENTION + "services:\n  expire: {trigger: {commits: 1}}\n")
    assert command("up", "--yes", "--allow-destroy", "table/air.days")[0] == 0
    assert command("ingest", "days", "old.csv", "--no-services")[0] == 0
    code, out, _ = command("service", "check", "--grace", "0s")
    assert code == 2 and out.startswith("air.days EXPIRE: OVERDUE: its condition has been true since")
    listed = json.loads(command("service", "list", "--json")[1])["services"]
    assert [(each["service"], each["status"], each["due"]) for each in listed] == [("EXPIRE", "DUE", "3 commits")]
    assert "air.days EXPIRE: 3 commits" in command("service", "run", "--all", "--dry-run")[1]
    assert command("service", "pause", "days", "EXPIRE")[0] == 0
    assert command("agent", "--once")[0] == 0 and rows(command) == 6
    assert command("service", "check", "--grace", "0s")[0] == 0
    assert command("service", "resume", "days", "EXPIRE")[0] == 0
    assert command("agent", "--once")[0] == 0 and rows(command) == 2
    [run] = json.loads(command("service", "runs", "days", "--json")[1])["runs"]
    assert (run["service"], run["status"], run["cause"]) == ("EXPIRE", "SUCCEEDED", "trigger: 3 commits")
    assert (run["figures"]["before"]["rows"], run["figures"]["after"]["rows"]) == (6, 2)
    assert command("service", "run", "--all")[1] == "nothing is due\n"


def test_a_held_table_is_kept_until_the_hold_is_released(command: Run) -> None:
    hold = "holds:\n  - { name: audit, where: id = 1, reason: case 12 }\n"
    declared(hold)
    code, out, _ = command("preview")
    assert "place legal hold audit" in out
    assert command("up", "--yes")[0] == 0
    code, _, error = command("rows", "erase", "days", "--where", "id < 3", "--yes")
    assert code == 3 and "1 row to be erased is under legal hold audit (case 12)" in error
    assert command("rows", "delete", "days", "--where", "id = 1", "--yes")[0] == 3
    Path("specs/days.yaml").unlink()
    code, out, _ = command("preview", "--allow-destroy", "table/air.days")
    assert "legal hold audit keeps the table" in out
    assert command("up", "--yes", "--allow-destroy", "table/air.days")[0] == 3
    code, _, error = command("table", "delete", "days", "--force")
    assert code == 3 and "legal hold audit keeps the table" in error
    assert rows(command) == 4
    declared("")
    assert command("up", "--yes")[0] == 0
    assert command("rows", "erase", "days", "--where", "id < 3", "--yes")[0] == 0
    assert rows(command) == 2


def test_what_others_declared_is_drift_and_written_back(command: Run) -> None:
    root = next(Path.cwd().rglob("_state")).parent
    store = open_store(str(root))
    [entry] = store.instance().tables.values()
    store.declare(
        entry.table_id,
        {"retention": {"column": "day", "keep": "30d"}, "holds": [{"name": "audit", "where": "id = 1"}]},
    )
    store.close()
    _, out, _ = command("drift")
    assert "retention none → 30d by day" in out and "place legal hold audit" in out
    command("drift", "--write-spec")
    text = Path("specs/days.yaml").read_text(encoding="utf-8")
    assert "retention:" in text and "keep: 30d" in text and "name: audit" in text
