"""Savepoints of the catalog's records, and what a restore makes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deployer.errors import Corrupt
from deployer.state.log.catalog_updates import CatalogRestored, CatalogSavepointTaken
from deployer.state.log.inapplicable import Inapplicable
from deployer.state.log.instance_reducer import apply_to_instance
from deployer.state.log.updates import RegisterTable
from deployer.state.model.catalog_savepoints import catalog_savepoints, logs_of_datasets
from deployer.state.model.entities import InstanceState, TableEntry
from deployer.state.model.location import Location

DATASET, BLUEPRINTS = "a" * 32, "b" * 32
RECORDS: dict[str, Any] = {
    f"recordings/{DATASET}": {
        "dataset_id": DATASET, "name": "air.drives", "created_at": 1, "blueprints": BLUEPRINTS, "sources": 3,
    },
    f"recordings/{BLUEPRINTS}": {
        "dataset_id": BLUEPRINTS, "name": f"__bp_{DATASET}", "created_at": 1, "blueprints": "", "sources": 0,
    },
    "recordings-name/air.drives": DATASET,
    f"recordings-name/__bp_{DATASET}": BLUEPRINTS,
    "catalog/default.notes": {"name": "notes", "status": "active"},
}  # fmt: skip
OTHER: dict[str, Any] = {"spec": {"name": "air"}, "catalog/default.new": {"name": "new", "status": "creating"}}
STATE = InstanceState(version=1, properties={**RECORDS, **OTHER})


def after(state: InstanceState, *updates: Any) -> InstanceState:
    for version, update in enumerate(updates, state.version + 1):
        state = replace(apply_to_instance(state, update, version, 1000 + version, "ann"), version=version)
    return state


def test_a_savepoint_has_the_records_and_a_restore_puts_them_back() -> None:
    saved = after(STATE, CatalogSavepointTaken("then", 5000, "a note"))
    [savepoint] = catalog_savepoints(saved).values()
    assert (savepoint.name, savepoint.at, savepoint.author, savepoint.records) == ("then", 1002, "ann", RECORDS)
    changed = {**saved.properties, "catalog/default.later": {"name": "later", "status": "active"}}
    changed[f"recordings/{DATASET}"] = {**RECORDS[f"recordings/{DATASET}"], "sources": 8}
    del changed["catalog/default.notes"]
    restored = after(replace(saved, properties=changed), CatalogRestored("then")).properties
    dataset = {**RECORDS[f"recordings/{DATASET}"], "sources": 8, "restored": 3}  # numbers of sources are not used again
    blueprints = {**RECORDS[f"recordings/{BLUEPRINTS}"], "restored": 3}
    expected = {**RECORDS, f"recordings/{DATASET}": dataset, f"recordings/{BLUEPRINTS}": blueprints, **OTHER}
    assert {name: each for name, each in restored.items() if not name.startswith("catalog-savepoint/")} == expected
    assert logs_of_datasets(saved) == {f"{DATASET}-1", f"{BLUEPRINTS}-1"}


def test_a_dataset_whose_name_a_table_has_is_left_out() -> None:
    saved = after(STATE, CatalogSavepointTaken("then"))
    entry = TableEntry("t" * 8, "air", "drives", Location("air/drives-0a1b2c3d.lance"), "active", 1)
    state = after(replace(saved, properties={**OTHER, **_savepoints(saved)}), RegisterTable(entry))
    restored = after(state, CatalogRestored("then")).properties
    assert {*restored} - {*_savepoints(saved)} == {*OTHER, "catalog/default.notes"}


def _savepoints(state: InstanceState) -> dict[str, Any]:
    return {name: each for name, each in state.properties.items() if name.startswith("catalog-savepoint/")}


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        ([CatalogSavepointTaken("then"), CatalogSavepointTaken("then")], "has a savepoint then already"),
        ([CatalogSavepointTaken("../then")], "cannot be called"),
        ([CatalogRestored("then")], "has no savepoint then"),
    ],
    ids=["taken", "name", "none"],
)
def test_what_makes_no_sense_is_refused(updates: list[Any], message: str) -> None:
    with pytest.raises(Inapplicable, match=message):
        after(STATE, *updates)


@pytest.mark.parametrize(
    "form", [1, {}, {"at": 1, "expires_at": None, "author": "", "note": "", "records": {"spec": 1}}]
)
def test_forged_savepoints_are_corrupt(form: Any) -> None:
    with pytest.raises(Corrupt, match="is not valid"):
        catalog_savepoints(replace(STATE, properties={"catalog-savepoint/then": form}))
