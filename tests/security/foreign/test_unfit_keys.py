"""F18: a table whose recorded keys do not fit its columns ends each command in words, and what repairs it works."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from tests.cli.conftest import Deployer
from tests.projects import table
from tests.security import forge
from tests.security.foreign.lake_damage import add_rows, location_of
from tests.security.foreign.test_unreadable_tables import in_words

Damage = Callable[[Path], object]

#: Commands that need the keys, or only may need them: none of them may end in a traceback.
COMMANDS = (
    ("describe", "flights"),
    ("history", "flights"),
    ("query", "flights"),
    ("query", "flights", "--keys", "1"),
    ("query", "flights", "--range", "id=1..2"),
    ("sql", "select * from flights"),
    ("drift",),
    ("drift", "--json"),
    ("preview",),
    ("report", "--html", "page.html"),
    ("state", "verify"),
    ("state", "repair"),
    ("table", "partitions", "flights"),
    ("table", "files", "flights"),
    ("table", "files", "flights", "--json"),
    ("table", "gc", "flights"),
    ("table", "split", "flights", "--max-rows", "1"),
    ("table", "split-points", "estimate", "flights.csv", "--table", "flights", "--leaves", "2"),
    ("table", "reinitialise", "flights"),
    ("ingest", "flights", "flights.csv", "--ignore-extra"),
    ("service", "create", "flights", "CLUSTER"),
    ("service", "run", "flights", "COMPACT"),
    ("service", "run", "flights", "CLUSTER"),
    ("service", "run", "flights", "CLEAN"),
    ("service", "run", "flights", "METASYNC", "-o", "targets=directory"),
)


def recorded(**changes: Any) -> Damage:
    """An entry of the table's log with other properties."""

    def forged(root: Path) -> None:
        table_id = forge.table(root, "flights").table_id
        forge.append(root, table_id, {"type": "set-table-properties", "changes": changes})

    return forged


def no_columns(root: Path) -> None:
    schema = base64.b64encode(pa.schema([]).serialize().to_pybytes()).decode()
    entry = {"type": "set-schema", "schema": schema, "lance_version": 2}
    forge.append(root, forge.table(root, "flights").table_id, entry)


def dropped(column: str) -> Damage:
    """A column that somebody dropped with plain Lance."""
    return lambda root: lance.dataset(location_of(root, "flights")).drop_columns([column])


DAMAGE: dict[str, tuple[Damage, str]] = {
    "a row key is no column": (recorded(row_keys=["nope"]), "row_keys"),
    "the second row key is no column": (recorded(row_keys=["id", "nope"]), "row_keys"),
    "a row key is listed twice": (recorded(row_keys=["id", "id"]), "row_keys"),
    "a sort key is no column": (recorded(sort_keys=["nope"]), "sort_keys"),
    "a sort key has no order": (recorded(sort_keys=["gates"]), "sort_keys"),
    "the schema has no columns": (no_columns, "row_keys"),
    "a row key's column was dropped": (dropped("id"), "row_keys"),
    "a sort key's column was dropped": (dropped("delay"), "sort_keys"),
}


@pytest.fixture
def keyed(root: Path, deployer: Deployer) -> Path:
    """The lake; air.flights has two leaves, a sort key, a savepoint and no protection from deletion."""
    more = "sort_keys: [delay]\npartitions: {split_points: [2]}\ndeletion_protection: false\n"
    Path("specs/flights.yaml").write_text(table("flights", "delay: int32", "gates: list<int32>", more=more))
    assert deployer("up", "--yes").code == 0
    assert deployer("savepoint", "create", "before").code == 0
    return root


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize(("damage", "setting"), DAMAGE.values(), ids=DAMAGE.keys())
def test_every_command_ends_in_words(damage: Damage, setting: str, keyed: Path, deployer: Deployer) -> None:
    """F18: `table files`, `ingest` and `drift` ended in a traceback where keys and columns disagree."""
    damage(keyed)
    refused = in_words(deployer("service", "run", "flights", "COMPACT"))
    assert refused.code == 1 and f"its recorded `{setting}` do not fit its columns" in refused.err
    for command in COMMANDS:
        assert in_words(deployer(*command)).code in (0, 1, 2, 3), command


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize(("damage", "setting"), DAMAGE.values(), ids=DAMAGE.keys())
def test_what_repairs_it_works(damage: Damage, setting: str, keyed: Path, deployer: Deployer) -> None:
    damage(keyed)
    assert in_words(deployer("history", "flights")).code == 0
    assert in_words(deployer("preview", "--exit-code")).code == 2
    assert in_words(deployer("drift")).code == 2
    assert in_words(deployer("restore", "before", "--yes")).code == 0
    assert in_words(deployer("table", "delete", "flights", "--force", "--delete-savepoints")).code == 0


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("name", [name for name in DAMAGE if "key is" in name or "sort key" in name])
def test_up_repairs_the_keys_also_after_a_commit_of_others(name: str, keyed: Path, deployer: Deployer) -> None:
    """Rows that plain Lance added meanwhile have no range of such keys, and are recorded without one."""
    damage, _ = DAMAGE[name]
    damage(keyed)
    columns: dict[str, list[Any]] = {"id": [9], "delay": [1], "gates": [[1]]}
    there = lance.dataset(location_of(keyed, "flights")).schema.names
    add_rows(keyed, "flights", {column: rows for column, rows in columns.items() if column in there})
    assert in_words(deployer("up", "--yes")).code == 0
    assert in_words(deployer("preview", "--exit-code")).code == 0
    assert len(in_words(deployer("table", "files", "flights", "--json")).json["files"]) >= 2
    assert len(in_words(deployer("query", "flights", "--json")).json["rows"]) == 4
