"""Legal holds: rows under one are neither deleted, updated nor merged over, and their table stays."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from deployer.errors import Conflict, Refused
from deployer.services.restore.planning import preview_restore_at
from deployer.tables.admin.deletion import delete_table
from deployer.tables.evolution.rewrite.truncate import reinitialise_table
from deployer.tables.open_table import OpenTable, open_to_change
from deployer.tables.rows.delete import delete_rows
from deployer.tables.rows.merging.merge import merge_rows
from deployer.tables.rows.merging.rules import MergeRules
from deployer.tables.rows.update import update_rows
from tests.tables.lakes import Lake, flights, sorted_rows

HOLD = {"name": "audit", "where": "carrier = 'AA' AND delay > 5", "reason": "case 12"}
KEYS = ["carrier", "flight"]


def held(lake: Lake, **hold: str) -> OpenTable:
    lake.table()
    lake.ingest(lake.file(flights(60)))
    opened = open_to_change(lake.root, "flights")
    lake.store.declare(opened.entry.table_id, {"holds": [hold]})
    return opened.refreshed()


REFUSED: dict[str, Callable[[OpenTable], object]] = {
    "all are deleted": lambda table: delete_rows(table, None, allow_destroy=True),
    "some are deleted": lambda table: delete_rows(table, "delay = 6"),
    "a dry run deletes some": lambda table: delete_rows(table, "delay = 6", dry_run=True),
    "all are updated": lambda table: update_rows(table, None, {"delay": 0}),
    "some are updated": lambda table: update_rows(table, "delay = 6", {"delay": 0}),
    "they are merged over": lambda table: merge_rows(table, flights(60), KEYS),
    "a dry run merges over them": lambda table: merge_rows(table, flights(60), KEYS, dry_run=True),
    "they are not in the source": lambda table: merge_rows(
        table, flights(5), KEYS, MergeRules("ignore", "insert", "delete")
    ),
    "their table is emptied": lambda table: reinitialise_table(
        table.store, table.root, table.entry.table_id, allow_destroy=True
    ),
    "their table is restored": lambda table: preview_restore_at(table.store, table.root, table.entry, "2"),
    "their table is deleted": lambda table: delete_table(
        table.store, table.root, table.entry.table_id, allow_destroy=True, delete_savepoints=True
    ),
}


@pytest.mark.parametrize("mode", ["upsert", "overwrite"])
def test_held_rows_stay_when_a_load_would_replace_them(lake: Lake, mode: str) -> None:
    held(lake, **HOLD)
    with pytest.raises(Refused, match="legal hold audit"):
        lake.ingest(lake.file(flights(60)), mode=mode)
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(60))


@pytest.mark.parametrize("name", REFUSED)
def test_held_rows_stay_when(lake: Lake, name: str) -> None:
    table = held(lake, **HOLD)
    with pytest.raises(Refused, match="legal hold audit"):
        REFUSED[name](table)
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(60))


ALLOWED: dict[str, tuple[Callable[[OpenTable], object], int]] = {
    "other rows are deleted": (lambda table: delete_rows(table, "carrier = 'UA'"), 48),
    "other rows are updated": (lambda table: update_rows(table, "carrier = 'UA'", {"delay": 0}), 60),
    "other rows are merged over": (lambda table: merge_rows(table, flights(1), KEYS), 60),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_rows_that_are_not_held_change_when(lake: Lake, name: str) -> None:
    change, rows = ALLOWED[name]
    change(held(lake, **HOLD))
    assert lake.open().count() == rows


def test_a_hold_without_a_condition_is_of_every_row(lake: Lake) -> None:
    with pytest.raises(Refused, match="12 rows to be deleted are under legal hold audit"):
        delete_rows(held(lake, name="audit"), "carrier = 'UA'")


def test_a_released_hold_holds_nothing(lake: Lake) -> None:
    table = held(lake, **HOLD)
    lake.store.declare(table.entry.table_id, {"holds": None})
    assert delete_rows(table.refreshed(), "carrier = 'AA'").rows == 12


def test_a_condition_cannot_step_out_of_its_half(lake: Lake) -> None:
    """`a) OR (b` beside the hold's condition would be one expression."""
    table = held(lake, **HOLD)
    with pytest.raises(Exception, match="is not one SQL expression"):
        delete_rows(table, "false) OR (delay = 6")
    assert lake.open().count() == 60


def test_a_hold_that_is_placed_while_rows_are_looked_for_holds(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(60)))
    table = open_to_change(lake.root, "flights")

    def place(_: object) -> None:
        if not lake.store.table(table.entry.table_id).properties.declared.get("holds"):
            lake.store.declare(table.entry.table_id, {"holds": [HOLD]})

    with pytest.raises(Conflict, match="its legal holds were changed meanwhile"):
        delete_rows(table, "delay = 6", on_progress=place)
    with pytest.raises(Refused, match="legal hold audit"):
        delete_rows(table.refreshed(), "delay = 6")
    assert lake.open().count() == 60 and not lake.store.table(table.entry.table_id).intents
