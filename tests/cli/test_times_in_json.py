"""One time format in all JSON of commands: every time that any of them prints is looked at."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from deployer.cli.commands.agent.log import AgentLog
from deployer.cli.main import app
from deployer.state.model.times import iso_utc
from tests.tables.test_commands import Run, command, loaded  # noqa: F401 (fixtures)

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")
LIKE_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d[\d:.]*( ?UTC|Z|[+-]\d\d:\d\d)?")
NAMES = re.compile(r"at|.*_at|since|until|.*_until|next|last_write|expires")  #: of fields that hold a time

#: Commands whose JSON has times, with how often a document of each has one at least.
PRINTED = [
    (("describe", "flights"), 1),
    (("history", "flights"), 2),
    (("changes", "flights", "--since", "0", "--columns", "carrier"), 2),
    (("tables",), 1),
    (("catalog", "entries"), 2),
    (("savepoint", "list"), 2),
    (("service", "list"), 3),
    (("service", "describe", "flights", "COMPACT"), 2),
    (("service", "runs", "flights"), 3),
    (("service", "files", "flights"), 1),
    (("service", "check"), 1),
    (("state", "log", "flights", "--limit", "0"), 8),
    (("state", "log", "--instance"), 2),
    (("state", "show", "flights"), 8),
    (("state", "show", "--instance"), 2),
    (("drift",), 1),
    (("restore", "first", "--preview"), 2),
    (("savepoint", "create", "second", "--expires", "7d"), 2),
    (("ingest", "flights", "in.csv", "--null-value", "NA", "--job-id", "again"), 1),
    (("service", "run", "flights", "AUTOSAVEPOINT"), 2),
    (("restore", "first", "--yes"), 2),
    (("table", "reinitialise", "flights", "--force"), 1),
]
#: Commands whose JSON has a time only on AWS or for a run there, and those of jobs (see test_column_backfill.py).
ELSEWHERE = {"doctor", "follow", "service cancel", "agent", "column errors", "job list", "job show"}
#: And those of datasets of recordings, of which this lake has none (see tests/catalog/datasets/test_commands.py).
ELSEWHERE |= {"catalog datasets", "catalog layers", "catalog manifest", "catalog runs", "catalog segments"}
#: Commands whose JSON has none of deployer's own times.
WITHOUT = {
    "catalog inspect", "catalog maintain", "catalog register", "catalog search", "catalog tables", "explain",
    "column add", "column backfill", "column list", "column load", "column plan", "cost", "destroy", "import",
    "job cancel", "package", "plugin install", "plugin list", "plugin remove", "preview", "query", "render",
    "rows delete", "rows erase", "rows merge", "rows update", "savepoint delete", "schema infer", "search",
    "service alter", "service create", "service delete", "service move", "service pause", "service resume",
    "service retry-files", "sql", "stack change-secrets-provider", "stack export", "stack import", "state export",
    "state import", "state rebuild", "state repair", "state verify", "table add", "table delete", "table files",
    "table gc", "table offline", "table online", "table partitions", "table rename", "table split",
    "table split-points estimate", "up", "validate", "view list",
    "view plan", "view refresh",
}  # fmt: skip


def test_every_time_in_json_has_the_one_format(loaded: Run) -> None:  # noqa: F811
    assert loaded("service", "create", "flights", "COMPACT", "-o", "schedule=0 3 * * *")[0] == 0
    place = f"files={Path.cwd()}/in*.csv"
    assert loaded("service", "run", "flights", "INGEST", "-o", place, "-o", "null_values=NA")[0] == 0
    assert loaded("service", "run", "flights", "COMPACT", "-o", "min_files=2")[0] == 0
    assert loaded("savepoint", "create", "first", "--expires", "30d")[0] == 0
    for arguments, least in PRINTED:
        code, out, err = loaded(*arguments, "--json")
        assert code in (0, 2), (arguments, out, err)
        found = [*times(json.loads(out))]
        assert len(found) >= least, (arguments, found)
        assert all(isinstance(value, str) and TIME.fullmatch(value) for _, value in found), (arguments, found)


def test_every_command_with_json_is_looked_at() -> None:
    looked_at = {" ".join(words) for arguments, _ in PRINTED for words in (arguments[:1], arguments[:2])}
    unknown = commands_with_json() - looked_at - ELSEWHERE - WITHOUT
    assert not unknown, f"add {unknown} to PRINTED if its JSON has times, else to WITHOUT"


def test_a_line_of_the_agents_log(capsys: pytest.CaptureFixture[str]) -> None:
    AgentLog(as_json=True).report("watching", root="lakes/demo")
    [(_, value)] = times(json.loads(capsys.readouterr().err))
    assert TIME.fullmatch(value)


def test_times_sort_as_text_and_beyond_the_calendar_are_its_end() -> None:
    moments = [0, 1, 999, 1000, 1_767_225_600_123, 253_402_300_799_999]
    assert [iso_utc(each) for each in moments] == sorted(iso_utc(each) for each in moments)
    assert iso_utc(2**62) == iso_utc(moments[-1])


def times(document: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Names and values of what is a time, or looks like one."""
    match document:
        case dict():
            for key, value in document.items():
                yield from times(value, key)
        case list():
            for value in document:
                yield from times(value, name)
        case int() | float() if not isinstance(document, bool) and NAMES.fullmatch(name):
            yield name, document
        case str() if LIKE_TIME.fullmatch(document):
            yield name, document


def commands_with_json() -> set[str]:
    """Paths of the commands that have `--json`."""

    def below(group: TyperGroup, path: str) -> Iterator[str]:
        for name, each in group.commands.items():
            if isinstance(each, TyperGroup):
                yield from below(each, f"{path}{name} ")
            elif not each.hidden and any("--json" in parameter.opts for parameter in each.params):
                yield f"{path}{name}"

    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return {*below(group, "")}
