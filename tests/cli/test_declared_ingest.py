"""A table's `ingest` as specs declare it: planned, applied, run, listed, paused, overdue, drifted and written back."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from deployer.cli.main import run
from deployer.platform.system.clock import Clock
from deployer.services.triggers.status import ServiceStatus, service_statuses
from deployer.state import open_store
from tests.projects import INSTANCE, applied_project

TABLE = """kind: Table
database: air
name: trips
columns:
  - { name: id, type: int64, nullable: false }
  - { name: note, type: string }
row_keys: [id]
"""

Run = Callable[..., tuple[int, str, str]]


def ingest(more: str = "") -> str:
    return f"ingest:\n  files: {Path.cwd()}/landing/*.csv\n  mode: upsert\n{more}"


def fill() -> None:
    Path("landing").mkdir()
    Path("landing/a.csv").write_text("id,note\n1,a\n2,b\n", encoding="utf-8")
    Path("landing/b.csv").write_text("id,note\nx,c\n", encoding="utf-8")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in an applied project with a table, beside which is a place with two files."""
    monkeypatch.chdir(applied_project(tmp_path / "project", {"demo.yaml": INSTANCE, "trips.yaml": TABLE}, fill))

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(arguments)
        return code, *capsys.readouterr()

    return call


def declared(more: str) -> None:
    Path("specs/trips.yaml").write_text(TABLE + more, encoding="utf-8")


def applied(command: Run, more: str = "") -> None:
    declared(ingest(more))
    code, _, err = command("up", "--yes")
    assert code == 0, err


def rows(command: Run) -> Sequence[Any]:
    found: Sequence[Any] = json.loads(command("query", "trips", "--json")[1])["rows"]
    return found


def test_it_is_previewed_applied_run_and_removed(command: Run) -> None:
    declared(ingest())
    code, out, _ = command("preview")
    assert code == 0 and "create service ingest" in out and "trips.yaml:8" in out
    assert command("up", "--yes")[0] == 0
    assert command("preview", "--exit-code")[0] == 0
    code, out, _ = command("service", "list")
    assert "INGEST" in out and "*/15 * * * *" in out
    code, out, _ = command("service", "describe", "trips", "INGEST")
    assert "upsert" in out and "landing/*.csv" in out
    code, out, err = command("service", "files", "trips")
    assert "0 files loaded" in out and "the next run loads 2 files" in err
    code, out, err = command("service", "run", "trips", "INGEST")
    assert code == 0 and "1 file loaded, 2 rows" in out and "b.csv: 1 of 1 rows cannot be loaded" in err
    assert len(rows(command)) == 2
    declared("")
    assert "delete service ingest" in command("preview")[1]
    assert command("up", "--yes")[0] == 0
    assert "INGEST" not in command("service", "list")[1]


def test_a_change_of_options_leads_to_its_line(command: Run) -> None:
    applied(command)
    declared(ingest("  on_change: reload\n  trigger: {schedule: '0 * * * *'}\n"))
    _, out, _ = command("preview")
    assert "trips.yaml:11" in out and "trips.yaml:12" in out and "on_change" in out
    assert command("up", "--yes")[0] == 0 and command("preview", "--exit-code")[0] == 0


def test_files_are_listed_and_tried_again(command: Run) -> None:
    applied(command)
    assert command("service", "run", "trips", "INGEST")[0] == 0
    listed = json.loads(command("service", "files", "trips", "--json")[1])
    assert (listed["loaded"], listed["set_aside"], listed["changed"]) == (1, 1, 0)
    assert [each["status"] for each in listed["files"]] == ["SET ASIDE", "LOADED"]
    aside = listed["files"][0]["path"]
    assert aside.endswith("landing/b.csv") and "'x'" in listed["files"][0]["reason"]
    [loaded] = json.loads(command("service", "files", "trips", "--status", "loaded", "--json")[1])["files"]
    assert loaded["path"].endswith("landing/a.csv")
    code, out, err = command("service", "files", "trips", "--limit", "1")
    assert "1 file loaded, 1 set aside, 0 changed" in out and "1 more: --limit 0" in err
    code, _, err = command("service", "retry-files", "trips", "landing/no.csv")
    assert code == 1 and "not set aside" in err
    assert "tries 1 file again" in command("service", "retry-files", "trips", aside)[1]
    assert "no file is set aside" in command("service", "retry-files", "trips")[2]
    assert "1 file is set aside" in command("service", "run", "trips", "INGEST")[1]
    assert "the next run does nothing: no new file is at" in command("service", "files", "trips")[2]


def status(later: int = 0) -> ServiceStatus:
    """What the table's service is, that many milliseconds from now."""
    with closing(open_store("lakes/demo")) as store:
        [table_id] = store.instance().tables
        [found] = service_statuses(store.table(table_id), Clock().now() + later, dict)
    return found


def test_an_ingest_that_no_agent_runs_is_overdue(command: Run) -> None:
    applied(command, "  trigger: {schedule: '* * * * *'}\n")
    assert status().label != "OVERDUE"
    found = status(later=3 * 3_600_000)
    assert found.label == "OVERDUE" and "required a run" in found.overdue
    assert command("service", "run", "trips", "INGEST")[0] == 0
    assert status().label != "OVERDUE"


def test_a_paused_ingest_loads_nothing_until_it_is_resumed(command: Run) -> None:
    applied(command, "  trigger: {schedule: '* * * * *'}\n")
    assert command("service", "pause", "trips", "INGEST")[0] == 0
    assert status(later=3 * 3_600_000).label == "PAUSED"
    code, _, err = command("service", "run", "trips", "INGEST")
    assert code == 1 and "table/air.trips: the INGEST service is paused; run `deployer service resume air.trips" in err
    assert "air.trips INGEST is left out: it is paused" in command("service", "run", "--all", "INGEST")[2]
    assert command("agent", "--once")[0] == 0
    assert rows(command) == []
    assert command("service", "resume", "trips", "INGEST")[0] == 0
    assert command("service", "run", "--all", "INGEST")[0] == 0
    assert len(rows(command)) == 2


def test_files_that_are_set_aside_are_in_the_report(command: Run) -> None:
    applied(command)
    assert command("service", "run", "trips", "INGEST")[0] == 0
    assert command("report", "--html", "report.html")[0] == 0
    page = Path("report.html").read_text(encoding="utf-8")
    assert "INGEST" in page and "1 file is set aside" in page
    assert "1 file is set aside" in json.loads(command("service", "runs", "trips", "--json")[1])["runs"][0]["reason"]


def test_a_change_by_hand_is_drift_and_can_be_written_back(command: Run) -> None:
    applied(command)
    assert command("service", "alter", "trips", "INGEST", "-o", f"files={Path.cwd()}/other/*.csv")[0] == 0
    code, out, _ = command("drift", "--json")
    assert code == 2 and "ingest" in out
    assert command("drift", "--write-spec")[0] in (0, 2)
    document = yaml.safe_load(Path("specs/trips.yaml").read_text(encoding="utf-8"))
    assert document["ingest"]["files"] == f"{Path.cwd()}/other/*.csv" and "services" not in document
    assert command("drift")[0] == 0
    assert command("service", "delete", "trips", "INGEST")[0] == 0
    assert command("drift", "--write-spec")[0] in (0, 2)
    assert "ingest" not in yaml.safe_load(Path("specs/trips.yaml").read_text(encoding="utf-8"))
    assert command("drift")[0] == 0


def test_a_service_made_by_hand_is_written_as_ingest(command: Run) -> None:
    place = f"files={Path.cwd()}/landing/*.csv"
    assert command("service", "create", "trips", "INGEST", "-o", place, "--write-spec")[0] == 0
    document = yaml.safe_load(Path("specs/trips.yaml").read_text(encoding="utf-8"))
    assert document["ingest"] == {"files": f"{Path.cwd()}/landing/*.csv"}
    assert command("drift")[0] == 0


def test_a_place_in_the_lake_is_refused(command: Run) -> None:
    code, _, err = command("service", "run", "trips", "INGEST", "-o", f"files={Path.cwd()}/lakes/demo/air")
    assert code == 3 and "within the lake's own root" in err
