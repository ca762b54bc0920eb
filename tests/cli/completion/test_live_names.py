"""Completed names are those of the live state, whatever was kept of it before."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from deployer.cli.completion.names import table_names, table_parts
from deployer.state import open_reader, open_store
from deployer.state.known_names import _NOT_COLUMNS, _NOT_NAMES
from deployer.state.log.updates import InstanceUpdate, TableUpdate
from tests.cli.completion.conftest import Complete
from tests.cli.conftest import Deployer
from tests.projects import run, table

SPEC = Path("specs", "flights.yaml")
#: The updates that change names, by their tags.
NAMES = {"register-table", "set-table-status", "rename-table", "remove-table"}
COLUMNS = {
    *("create-table", "set-schema", "set-table-properties", "table-rewritten", "table-restored", "table-rebuilt"),
    *("put-service", "remove-service", "move-services"),
}


@pytest.fixture
def root(applied: Path) -> str:
    return str(applied / "lakes" / "demo")


def tags(union: object) -> set[str]:
    found: set[str] = set()
    for each in union.__args__:  # type: ignore[attr-defined]
        found |= {each.TAG} if hasattr(each, "TAG") else tags(each)
    return found


def test_each_update_is_known_to_change_names_or_not_to() -> None:
    assert tags(InstanceUpdate) == NAMES | _NOT_NAMES and not NAMES & _NOT_NAMES
    assert tags(TableUpdate) == COLUMNS | _NOT_COLUMNS and not COLUMNS & _NOT_COLUMNS


@contextmanager
def unread() -> Iterator[None]:
    """Fails where the state is opened: what is kept has to do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deployer.state.open_reader", lambda root: pytest.fail("the state was opened"))
        yield


def test_tables_are_followed_by_the_log_alone(root: str) -> None:
    with unread():
        assert {*table_names(root)} == {"air.flights", "air.planes"}
    Path("specs", "more.yaml").write_text(table("more"), encoding="utf-8")
    run("up", "--yes")
    with unread():
        assert {*table_names(root)} == {"air.flights", "air.more", "air.planes"}
    run("table", "rename", "air.more", "air.most")
    with unread():
        assert {*table_names(root)} == {"air.flights", "air.most", "air.planes"}
    run("table", "delete", "air.most", "--force")
    with unread():
        assert {*table_names(root)} == {"air.flights", "air.planes"}


def test_columns_and_services_are_those_of_now(root: str) -> None:
    def parts() -> tuple[tuple[str, ...], tuple[str, ...]]:
        found = table_parts(root, "air.flights")
        assert found is not None
        return found.columns, found.services

    assert parts() == (("id", "delay"), ())
    SPEC.write_text(SPEC.read_text().replace("row_keys", "  - {name: gate, type: string}\nrow_keys"), encoding="utf-8")
    run("up", "--yes")
    run("service", "create", "air.flights", "COMPACT")
    assert parts() == (("id", "delay", "gate"), ("COMPACT",))
    with unread():
        assert parts() == (("id", "delay", "gate"), ("COMPACT",))
    SPEC.write_text(
        SPEC.read_text().replace("name: gate", "name: door, renamed_from: gate").replace("- {name: delay", "# {"),
        encoding="utf-8",
    )
    run("service", "delete", "air.flights", "COMPACT")
    run("up", "--yes", "--allow-destroy", "table/air.flights")
    assert parts() == (("id", "door"), ())


def test_loads_and_runs_leave_what_is_known(root: str) -> None:
    assert table_parts(root, "flights") is not None
    Path("rows.csv").write_text("id,delay\n1,2\n", encoding="utf-8")
    run("ingest", "air.flights", "rows.csv", "--engine", "driver")
    with unread():
        found = table_parts(root, "flights")
    assert found is not None and found.columns == ("id", "delay")


def test_a_log_of_another_lake_at_the_same_place_is_not_taken_for_the_known_one(root: str) -> None:
    assert {*table_names(root)} == {"air.flights", "air.planes"}
    run("destroy", "--yes", "--allow-destroy", "table/air.flights", "--allow-destroy", "table/air.planes")
    SPEC.rename("flights.yaml")
    Path("specs", "others.yaml").write_text(table("others"), encoding="utf-8")
    run("up", "--yes")
    assert {*table_names(root)} == {"air.others", "air.planes"}


def test_names_are_read_of_the_state_where_the_log_is_cut(root: str) -> None:
    import sqlite3

    table_names(root)
    with closing(open_store(root)) as store:
        state = store.instance()
        store.snapshot("instance")
    with closing(sqlite3.connect(Path(root, "_state", "state.db"))) as connection, connection:
        connection.execute("DELETE FROM entries WHERE log = 'instance' AND version <= ?", (state.version,))
    assert {*table_names(root)} == {"air.flights", "air.planes"}


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 0}', '{"format": 1, "key": "x", "value": 3}'])
def test_damaged_files_of_the_cache_are_made_again(root: str, cache: Path, content: str) -> None:
    table_names(root)
    table_parts(root, "air.flights")
    for file in cache.iterdir():
        file.write_text(content, encoding="utf-8")
    found = table_parts(root, "air.flights")
    assert found is not None and found.columns == ("id", "delay")


def test_nothing_is_written_into_the_lake(root: str, complete: Complete) -> None:
    def contents() -> dict[Path, bytes]:
        return {file: file.read_bytes() for file in sorted(Path.cwd().rglob("*")) if file.is_file()}

    before = contents()
    assert complete("deployer describe ") == ["air.flights", "air.planes"]
    assert complete("deployer query air.flights --columns id,") == ["id,id", "id,delay"]
    assert contents() == before


def test_the_cache_is_for_its_user_alone(root: str, cache: Path) -> None:
    table_names(root)
    assert {file.stat().st_mode & 0o777 for file in cache.iterdir()} == {0o600}
    assert cache.stat().st_mode & 0o777 == 0o700


def test_the_root_is_that_of_the_specs_now(applied: Path, complete: Complete, deployer: Deployer) -> None:
    assert complete("deployer describe ") == ["air.flights", "air.planes"]
    shutil.copytree("lakes/demo", "lakes/other")
    instance = Path("specs", "demo.yaml")
    instance.write_text(instance.read_text().replace("lakes/demo", "lakes/none"), encoding="utf-8")
    assert complete("deployer describe ") == []
    instance.write_text(instance.read_text().replace("lakes/none", "lakes/other"), encoding="utf-8")
    assert complete("deployer describe ") == ["air.flights", "air.planes"]


def test_the_state_has_the_same_names(root: str) -> None:
    with closing(open_reader(root)) as store:
        entries = store.instance().tables.values()
    assert table_names(root) == {each.full_name: each.table_id for each in entries if each.status == "active"}
