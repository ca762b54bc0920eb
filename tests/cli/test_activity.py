"""Commands that can take seconds show on a terminal what they are doing; nothing of that stays, or is elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deployer.cli.activities import ACTIVITIES, activity_of
from deployer.cli.main import _command
from tests.cli.conftest import Deployer
from tests.cli.terminals import on_terminal
from tests.projects import INSTANCE, applied_project, table

#: Commands by line, and what each shows: its title, then what it is doing and how far that is.
COMMANDS: dict[str, tuple[str, ...]] = {
    "preview": ("planning", "reading the specs", "comparing the specs with live state"),
    "preview --target table/air.*": ("planning", "reading the state: 0 of 2 tables", "reading tables: 0 of 2 tables"),
    "up --yes": ("planning", "reading live state", "reading tables: 0 of 2 tables (0%)"),
    "destroy --yes": ("planning", "reading tables: 0 of 2 tables", "asking the engine what the stack has"),
    "drift": ("looking for drift", "reading tables: 0 of 2 tables", "comparing: 3 of 3 resources"),
    "cost": ("estimating the cost", "reading the specs"),
    "import table/air.new rows.parquet --row-keys id": ("importing", "reading the types of the columns"),
    "import --all lakes/demo": ("importing", "reading datasets: 0 of 1 datasets", "taking over datasets: 0 of 1"),
    "query air.flights": ("reading air.flights", "reading: 3 rows"),
    "query air.flights --format csv": ("reading air.flights", "reading: 3 rows"),
    "sql SELECT+count(*)+FROM+flights": ("running the query", "reading: 1 rows"),
    "search air.flights words": ("searching air.flights",),
    "changes air.flights --since 0": ("reading the changes of air.flights", "reading: 3 rows"),
    "tables": ("reading the lake", "reading tables: 2 of 2 tables"),
    "report --html lake.html": ("reading the lake", "reading tables: 0 of 2 tables", "comparing: 3 of 3 resources"),
    "doctor": ("checking", "waiting for "),
    "state verify": ("verifying the state", "reading logs and datasets"),
    "state repair --dry-run": ("looking for repairs", "reading logs and datasets: 2 of 2 tables"),
    "state export state.tar": ("writing state.tar", "writing: 3 of 3 logs"),
    "state rebuild --preview": ("reading the datasets",),
    "table gc --dry-run": ("collecting garbage", "looking at files"),
    "rows delete flights --where id=1 --dry-run": ("looking for the rows",),
    "rows update flights --set delay=1 --where id=1 --dry-run": ("looking for the rows",),
    "rows erase flights --where id=1 --dry-run": ("looking for the rows",),
    "table split air.flights --max-rows 2": ("splitting leaves of air.flights",),
    "service list": ("reading the services", "examining: 2 of 2 tables"),
    "service check": ("reading the services", "examining: 2 of 2 tables"),
    "job list": ("reading the jobs",),
    "column plan flights": ("planning the backfill",),
    "view plan flights": ("planning the refresh",),
    "schema infer rows.parquet": ("reading the files",),
    "render": ("reading the specs",),
    "graph": ("reading the specs",),
    "validate": ("reading the specs",),
    "describe air.flights": ("reading the table",),
    "history air.flights": ("reading the history",),
    "catalog entries": ("reading the catalog",),
}  # fmt: skip
#: Commands that end with another code than 0 here, which says what is missing.
CODES = {
    "drift": 2,
    "search air.flights words": 1,
    "column plan flights": 1,
    "view plan flights": 1,
    "state rebuild --preview": 3,
}


def fill() -> None:
    """Puts three rows, which a file has too, into air.flights, and a dataset that is no table beside the tables."""
    import lance
    import pyarrow as pa
    import pyarrow.parquet as pq

    from deployer.cli.main import run

    rows = pa.table({"id": [1, 2, 3], "delay": pa.array([1, 2, 3], "int32")})
    pq.write_table(rows, "rows.parquet")
    assert run(["ingest", "air.flights", "rows.parquet"]) == 0
    lance.write_dataset(rows, "lakes/demo/plain.lance", data_storage_version="2.1")


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two tables, of which one has three rows; the current folder."""
    specs = {
        "demo.yaml": INSTANCE,
        "flights.yaml": table("flights", "delay: int32", more="deletion_protection: false\n"),
        "planes.yaml": table("planes"),
    }
    folder = applied_project(tmp_path / "project", specs, fill)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.thinned(6, to="full")
@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_shows_what_it_is_doing_and_removes_that(line: str, lake: Path) -> None:
    command = [word.replace("+", " ") for word in line.split()]
    seen = on_terminal(*command)
    assert seen.code == CODES.get(line, 0), seen.stays
    for text in COMMANDS[line]:
        assert text in seen.sent
        assert text not in seen.printed and text not in "\n".join(seen.stays)


@pytest.mark.thinned(12, to="full")
@pytest.mark.parametrize("line", COMMANDS)
def test_a_short_command_shows_nothing_of_it(line: str, lake: Path) -> None:
    command = [word.replace("+", " ") for word in line.split()]
    seen = on_terminal(*command, also="progress_display.DELAY = 1000.0")
    assert "\x1b[?25" not in seen.sent and COMMANDS[line][0] not in seen.sent


@pytest.mark.parametrize("line", ["preview", "drift", "tables", "query air.flights"])
def test_machines_get_nothing_of_it(line: str, lake: Path, deployer: Deployer) -> None:
    seen = on_terminal(*line.split(), "--json")
    assert (seen.code, seen.sent) == (CODES.get(line, 0), "")
    json.loads(seen.printed)
    plain = deployer(*line.split())
    assert plain.code == seen.code and COMMANDS[line][0] not in plain.err + plain.out


def test_a_variable_of_ci_that_wants_colours_makes_no_terminal(lake: Path) -> None:
    command = [sys.executable, "-m", "deployer", "preview"]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "FORCE_COLOR": "1"})
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("line", ["tables", "query air.flights --format csv", "up --yes", "validate"])
def test_a_result_on_the_same_terminal_is_whole(line: str, lake: Path) -> None:
    alone, together = on_terminal(*line.split()), on_terminal(*line.split(), both=True)
    assert [each.rstrip() for each in alone.printed.splitlines() if each.strip()] == [
        each for each in together.stays if each not in alone.stays
    ]


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("preview", "deployer.app.planning.plan.make_plan"),
        ("drift", "deployer.app.drift_detection.find.diff"),
        ("tables", "deployer.tables.inspect.describe.summary_of"),
        ("query air.flights", "deployer.tables.read.table.open_table"),
    ],
)
def test_ctrl_c_removes_it(line: str, where: str, lake: Path) -> None:
    module, name = where.rsplit(".", 1)
    also = f"""
import os, signal, time, {module} as there
def interrupted(*_, **__):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
there.{name} = interrupted
"""
    seen = on_terminal(*line.split(), also=also)
    assert COMMANDS[line][0] in seen.sent
    assert (seen.code, seen.stays) == (130, ["error: interrupted"])


def test_an_error_removes_it(lake: Path) -> None:
    (lake / "specs" / "planes.yaml").write_text("kind: Table\n", encoding="utf-8")
    seen = on_terminal("preview")
    assert seen.code == 1 and "planning" in seen.sent and "planning" not in "\n".join(seen.stays)
    assert seen.stays[-1].startswith("error: ")


def test_a_short_preview_loads_nothing_to_draw_with(lake: Path) -> None:
    also = """
import atexit, sys
progress_display.DELAY = 1000.0
atexit.register(lambda: print(*sorted({"rich.live", "rich.spinner", "rich.progress_bar"} & sys.modules.keys())))
"""
    program = on_terminal("preview", also=also, forked=False)
    assert program.printed.splitlines() == ["demo: nothing to do, 3 resources as declared", ""]


def test_each_command_of_the_list_is_one() -> None:
    def commands(of: object, before: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
        inner = getattr(of, "commands", {})
        return {before} | {each for name, one in inner.items() for each in commands(one, (*before, name))}

    assert ACTIVITIES.keys() <= commands(_command())
    assert activity_of(["--trust-udfs", "rows", "delete", "x"]) == "looking for the rows"
    assert activity_of(["describe", "list"]) == "reading the table"
    assert activity_of(["--help"]) is None and activity_of(["state"]) is None
