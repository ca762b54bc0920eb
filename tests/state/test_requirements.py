"""Each requirement holds, and fails in words."""

from __future__ import annotations

from typing import Any

import pytest

from deployer.state.entries import LogEntry
from deployer.state.model import INSTANCE_LOG, InstanceState, State, TableState
from deployer.state.reducer import empty_state, fold
from deployer.state.requirements import (
    DatasetIs,
    FilesPresent,
    GenerationIs,
    JobNotDone,
    LanceVersionIs,
    LogEmpty,
    NameFree,
    PartitionIsLeaf,
    PropertiesAre,
    SchemaIs,
    TableHasStatus,
    schema_fingerprint,
)
from deployer.state.updates import PartitionSplit, RegisterTable, SetInstanceProperties, Update

from .samples import TABLE, added, creation, entry


def _folded(log: str, *updates: Update) -> State:
    return fold(empty_state(log), [LogEntry(log, 1, "txn", 1, "ann", updates)])


INSTANCE = _folded(INSTANCE_LOG, SetInstanceProperties({"name": "nyc", "tags": ["a"]}), RegisterTable(entry()))
TABLE_STATE = _folded(TABLE, creation(), added(1, "nightly"), PartitionSplit("root", b"m", "left", "right"))
SCHEMA = schema_fingerprint(b"arrow schema")

HOLD: list[tuple[Any, State]] = [
    (LogEmpty(), InstanceState()),
    (LogEmpty(), TableState()),
    (NameFree("nyc", "planes"), INSTANCE),
    (TableHasStatus(TABLE, "active"), INSTANCE),
    (PropertiesAre({"name": "nyc", "tags": ("a",), "other": None}), INSTANCE),
    (PropertiesAre({"row_keys": ["carrier", "flight"], "online": True}), TABLE_STATE),
    (GenerationIs(1), TABLE_STATE),
    (SchemaIs(SCHEMA), TABLE_STATE),
    (JobNotDone("weekly"), TABLE_STATE),
    (FilesPresent((1,)), TABLE_STATE),
    (PartitionIsLeaf("left"), TABLE_STATE),
    (LanceVersionIs(3), TABLE_STATE),
    (DatasetIs(1), TABLE_STATE),
]

FAIL: list[tuple[Any, State, str]] = [
    (LogEmpty(), INSTANCE, "it exists already, at version 1"),
    (NameFree("nyc", "flights"), INSTANCE, f"the name nyc.flights belongs to table {TABLE}"),
    (TableHasStatus(TABLE, "deleting"), INSTANCE, "table nyc.flights is active, not deleting"),
    (TableHasStatus("none", "active"), INSTANCE, "table none does not exist"),
    (PropertiesAre({"name": "x", "other": 1}), INSTANCE, "name is 'nyc', not 'x', other is None, not 1"),
    (PropertiesAre({"online": False}), TABLE_STATE, "online is True, not False"),
    (GenerationIs(2), TABLE_STATE, "the table is at generation 1, not 2"),
    (DatasetIs(2), TABLE_STATE, "the table was rewritten: its dataset is number 1, not 2"),
    (SchemaIs("0" * 32), TABLE_STATE, f"the schema is {SCHEMA}, not {'0' * 32}"),
    (JobNotDone("nightly"), TABLE_STATE, "job nightly is done already, as version 3 of the dataset"),
    (FilesPresent((1, 2)), TABLE_STATE, "fragment 2 is no longer in the table"),
    (
        FilesPresent(tuple(range(2, 10))),
        TABLE_STATE,
        "fragments 2, 3, 4, 5, 6 and 3 more are no longer in the table",
    ),
    (PartitionIsLeaf("root"), TABLE_STATE, "partition root was split into left and right"),
    (PartitionIsLeaf("none"), TABLE_STATE, "partition none does not exist"),
    (LanceVersionIs(2), TABLE_STATE, "the dataset is at version 3, not 2"),
]


@pytest.mark.parametrize(("requirement", "state"), HOLD, ids=[repr(requirement) for requirement, _ in HOLD])
def test_it_holds(requirement: Any, state: State) -> None:
    assert requirement.failure(state) is None


@pytest.mark.parametrize(("requirement", "state", "words"), FAIL, ids=[repr(requirement) for requirement, *_ in FAIL])
def test_it_fails_in_words(requirement: Any, state: State, words: str) -> None:
    assert requirement.failure(state) == words
