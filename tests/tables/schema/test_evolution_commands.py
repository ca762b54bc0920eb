"""Changes as a user makes them: edit the specs, preview, up, and preview again."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from deployer.state import open_store
from deployer.state.model.entities import TableState
from deployer.tables.inspect.versions import history
from deployer.tables.read.table import open_table
from tests import forks
from tests.cli.conftest import TWO_TABLES, Deployer, deployer, project
from tests.projects import applied_project, table

__all__ = ["deployer", "project"]

ROOT = "lakes/demo"
ROWS = [{"id": 1, "delay": 5}, {"id": 2, "delay": None}, {"id": 3, "delay": 70_000}]


def state(project: Path, name: str = "air.flights") -> TableState:
    with closing(open_store(project / ROOT)) as store:
        entry = store.instance().by_name(name)
        assert entry is not None
        return store.table(entry.table_id)


def dataset(project: Path) -> lance.LanceDataset:
    [location] = (project / ROOT).glob("air/flights-*.lance")
    return lance.dataset(str(location))


def spec(project: Path, text: str, file: str = "flights.yaml") -> None:
    (project / "specs" / file).write_text(text, encoding="utf-8")


def changes(deployer: Deployer) -> list[dict[str, object]]:
    """Every change of the plan."""
    return [change for resource in deployer("preview", "--json").json["resources"] for change in resource["changes"]]


def add_rows() -> None:
    found = dataset(Path.cwd())
    lance.write_dataset(pa.Table.from_pylist(ROWS, schema=found.schema), found.uri, mode="append")


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, applied, with three rows in air.flights (id, delay: int32); the current folder."""
    folder = applied_project(tmp_path / "project", TWO_TABLES, add_rows)
    monkeypatch.chdir(folder)
    return folder


def rows(project: Path) -> list[dict[str, object]]:
    return sorted(dataset(project).to_table().to_pylist(), key=lambda row: str(next(iter(row.values()))))


def test_a_narrower_type_is_counted_before_it_is_applied(filled: Path, deployer: Deployer) -> None:
    narrow = table("flights", "delay: int16")
    spec(filled, narrow)
    refused = deployer("up", "--yes")
    assert (refused.code, "declare with `using:`, a SQL expression" in " ".join(refused.out.split())) == (3, True)
    spec(filled, narrow.replace("type: 'int16'", "type: 'int16', using: delay"))
    counted = changes(deployer)[0]
    assert counted["why"] == "1 of 3 rows fail or become null, such as 70000"
    assert deployer("up", "--yes").code == 3
    spec(
        filled,
        narrow.replace("type: 'int16'", "type: 'int16', using: 'nullif(least(coalesce(delay, -1), 32767), -1)'"),
    )
    assert changes(deployer)[0]["refused"] is None
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    assert [row["delay"] for row in rows(filled)] == [5, None, 32767]


def test_an_expression_that_is_wrong_is_said_in_words(filled: Path, deployer: Deployer) -> None:
    spec(filled, table("flights", "delay: int16").replace("type: 'int16'", "type: 'int16', using: nosuch + 1"))
    for command in (("preview",), ("up", "--yes")):
        wrong = deployer(*command)
        assert wrong.code == 1
        assert (
            "error: specs/flights.yaml:6:19: the expression 'nosuch + 1' cannot be computed: No field named nosuch"
            in wrong.err
        )


def test_an_expression_names_columns_as_they_are_called_by_then(filled: Path, deployer: Deployer) -> None:
    late = "type: 'int16', renamed_from: delay, using: '{}'"
    text = table("flights", "late: int16")
    spec(filled, text.replace("type: 'int16'", late.format("least(delay, 32767)")))
    wrong = deployer("preview")
    assert wrong.code == 1
    assert "use the names that columns have after `renamed_from`: delay is late by then" in wrong.err
    spec(filled, text.replace("type: 'int16'", late.format("least(late, 32767)")))
    assert deployer("up", "--yes").code == 0
    assert [row["late"] for row in rows(filled)] == [5, 32767, 32767]


HOSTILE = "\x1b[2J\u202eover\nall" + "x" * 100


@pytest.mark.parametrize(
    ("column", "said"),
    [
        pytest.param(
            "{name: text, type: int32, using: 'CAST(text AS INT)'}",
            "2 of 3 rows fail or become null, such as 'later' and '\\x1b[2J\\u202eover\\nallxxxxxxxxxxxxxxxx…; fix",
            id="converted",
        ),
        pytest.param(
            "{name: text, type: string}\n  - {name: size, type: int32, default: 'CAST(text AS INT) * id'}",
            "2 of 3 rows fail or become null, such as id 2, text 'later' and id 3, text '\\x1b[2J\\u202eover\\nall",
            id="default",
        ),
    ],
)
def test_rows_that_fail_are_shown(column: str, said: str, project: Path, deployer: Deployer) -> None:
    text = table("flights", "text: string")
    spec(project, text)
    assert deployer("up", "--yes").code == 0
    values = [{"id": 1, "text": "7"}, {"id": 2, "text": "later"}, {"id": 3, "text": HOSTILE}]
    lance.write_dataset(
        pa.Table.from_pylist(values, schema=dataset(project).schema), dataset(project).uri, mode="append"
    )
    spec(project, text.replace("{name: text, type: 'string'}", column))
    ran = deployer("preview")
    assert said in " ".join(ran.out.split())
    assert "\x1b" not in ran.out
    assert deployer("up", "--yes").code == 3


def test_nulls_are_counted_before_they_are_forbidden(filled: Path, deployer: Deployer) -> None:
    text = table("flights", "delay: int32").replace("type: 'int32'", "type: 'int32', nullable: false")
    spec(filled, text)
    [change] = changes(deployer)
    assert change["why"] == "1 of 3 rows hold null"
    assert deployer("up", "--yes").code == 3
    dataset(filled).update({"delay": "0"}, where="delay IS NULL")
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    assert not dataset(filled).schema.field("delay").nullable


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize(
    ("database", "name"), [("air", "departures"), ("archive", "flights"), ("archive", "departures")]
)
def test_a_table_is_renamed_and_moved_without_moving_data(
    database: str, name: str, filled: Path, deployer: Deployer
) -> None:
    before, table_id = dataset(filled), state(filled).table_id
    spec(filled, table(name, "delay: int32", database=database, more="renamed_from: air.flights\n"))
    [change] = changes(deployer)
    assert (change["kind"], change["risk"]) == ("RenameTable", "safe")
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    assert state(filled, f"{database}.{name}").table_id == table_id
    assert (dataset(filled).uri, dataset(filled).version, len(rows(filled))) == (before.uri, before.version, 3)
    spec(filled, table(name, "delay: int32", database=database))  # the note may stay or go
    assert deployer("preview", "--exit-code").code == 0
    assert deployer("up", "--yes").code == 0
    assert deployer("destroy", "--yes", "--allow-destroy", f"table/{database}.{name}").code == 0


RENAMED_KEY = (
    table("flights", "delay: int32")
    .replace("name: id, type: int64", "name: number, renamed_from: id, type: int64")
    .replace("row_keys: [id]", "row_keys: [number]")
)


def test_a_renamed_row_key_stays_the_key(filled: Path, deployer: Deployer) -> None:
    spec(filled, RENAMED_KEY)
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    assert state(filled).properties.row_keys == ("number",)
    assert open_table(str(filled / ROOT), "air.flights").keys([3]).to_table().to_pylist() == [
        {"number": 3, "delay": 70_000}
    ]


def test_a_row_key_renamed_by_plain_lance_stays_the_key(filled: Path, deployer: Deployer) -> None:
    dataset(filled).alter_columns({"path": "id", "name": "number"})
    assert open_table(str(filled / ROOT), "air.flights").row_keys == ("number",)
    spec(filled, RENAMED_KEY)
    assert deployer("preview", "--exit-code").code == 0


@pytest.mark.parametrize("point", ["before-lance", "after-lance", "after-state"])
@pytest.mark.parametrize("name", ["add", "widen", "rename a key"])
def test_a_change_that_is_killed_is_gone_on_with(point: str, name: str, filled: Path, deployer: Deployer) -> None:
    match name:
        case "add":
            spec(filled, table("flights", "delay: int32", "remark: string"))
        case "widen":
            spec(filled, table("flights", "delay: int64"))
        case _:
            spec(filled, RENAMED_KEY)
    command = [sys.executable, "-m", "deployer", "up", "--yes"]
    ended = forks.run(
        command,
        env={**os.environ, "DEPLOYER_FAILPOINT": f"tables.schema.{point}"},
        text=True,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stdout + ended.stderr
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    assert len(rows(filled)) == 3
    told = [each for each in history(open_table(str(filled / ROOT), "air.flights").opened) if each.version > 2]
    assert len(told) == 1  # it was done once
    assert told[0].author
    assert told[0].kind == {"add": "add column remark", "widen": "widen column delay"}.get(
        name, "rename column id → number"
    )
