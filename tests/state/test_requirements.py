"""Each requirement holds, and fails in words."""

from __future__ import annotations

from typing import Any

import pytest

from deployer.state.log.entries import LogEntry
from deployer.state.log.reducer import empty_state, fold
from deployer.state.log.requirements import (
    DatasetIs,
    FilesPresent,
    GenerationIs,
    JobNotDone,
    LanceVersionIs,
    LogEmpty,
    NameFree,
    NoLoadUnderWay,
    PartitionIsLeaf,
    PropertiesAre,
    SchemaIs,
    TableHasStatus,
    schema_fingerprint,
)
from deployer.state.log.service_requirements import (
    LeaseEndsAt,
    NoneRunning,
    NoRunOpen,
    RunHasStatus,
    RunHeldBy,
    SavepointNameFree,
    SavepointThere,
    ServiceIs,
    ServiceMissing,
    ServiceNotPaused,
    ServiceThere,
)
from deployer.state.log.service_updates import PutService, RunQueued, RunStarted, SavepointTaken
from deployer.state.log.updates import CommitStarted, PartitionSplit, RegisterTable, SetInstanceProperties, Update
from deployer.state.model.entities import INSTANCE_LOG, InstanceState, State, TableState
from deployer.state.model.services import Service

from .samples import TABLE, added, creation, entry


def _folded(log: str, *updates: Update) -> State:
    return fold(empty_state(log), [LogEntry(log, 1, "txn", 1, "ann", updates)])


INSTANCE = _folded(INSTANCE_LOG, SetInstanceProperties({"name": "nyc", "tags": ["a"]}), RegisterTable(entry()))
TABLE_STATE = _folded(TABLE, creation(), added(1, "nightly"), PartitionSplit("root", b"m", "left", "right"))
SERVED = _folded(
    TABLE,
    creation(),
    PutService(Service("COMPACT")),
    PutService(Service("CLUSTER", paused=True)),
    RunQueued("going", "COMPACT", "schedule"),
    RunStarted("going", "me", 1000),
    RunQueued("waiting", "CLEAN", "by hand"),
    SavepointTaken("one"),
)
LOADED = _folded(
    TABLE,
    creation(),
    CommitStarted("daily", "ingest", 1),
    CommitStarted("again", "append", 1),
    CommitStarted("smaller", "compact", 1),
    CommitStarted("back", "restore", 1),
)
SCHEMA = schema_fingerprint(b"arrow schema")

CATALOGUED = InstanceState(
    1,
    {
        "catalog/nyc.outside": {"status": "active"},
        "catalog/nyc.new": {"status": "creating"},
        "recordings-name/drives": "0" * 32,
    },
)

HOLD: list[tuple[Any, State]] = [
    (LogEmpty(), InstanceState()),
    (LogEmpty(), TableState()),
    (NameFree("nyc", "planes"), INSTANCE),
    (NameFree("nyc", "new"), CATALOGUED),
    (TableHasStatus(TABLE, "active"), INSTANCE),
    (PropertiesAre({"name": "nyc", "tags": ("a",), "other": None}), INSTANCE),
    (PropertiesAre({"row_keys": ["carrier", "flight"], "online": True}), TABLE_STATE),
    (GenerationIs(1), TABLE_STATE),
    (SchemaIs(SCHEMA), TABLE_STATE),
    (JobNotDone("weekly"), TABLE_STATE),
    (FilesPresent((1,)), TABLE_STATE),
    (PartitionIsLeaf("left"), TABLE_STATE),
    (LanceVersionIs(3), TABLE_STATE),
    (NoLoadUnderWay(), TABLE_STATE),
    (NoLoadUnderWay(("daily", "again")), LOADED),
    (DatasetIs(1), TABLE_STATE),
    (ServiceThere("COMPACT"), SERVED),
    (ServiceMissing("CLEAN"), SERVED),
    (ServiceIs(Service("COMPACT")), SERVED),
    (ServiceNotPaused("COMPACT"), SERVED),
    (ServiceNotPaused("CLEAN"), SERVED),
    (NoRunOpen("CLUSTER"), SERVED),
    (NoneRunning(("CLUSTER", "CLEAN")), SERVED),
    (RunHasStatus("waiting", "QUEUED"), SERVED),
    (RunHeldBy("going", "me"), SERVED),
    (LeaseEndsAt("going", 1001), SERVED),
    (SavepointNameFree("two"), SERVED),
    (SavepointThere("one"), SERVED),
]

FAIL: list[tuple[Any, State, str]] = [
    (LogEmpty(), INSTANCE, "it exists already, at version 1"),
    (NameFree("nyc", "flights"), INSTANCE, f"the name nyc.flights belongs to table {TABLE}"),
    (NameFree("nyc", "outside"), CATALOGUED, "the name nyc.outside belongs to an entry of the catalog"),
    (NameFree("default", "drives"), CATALOGUED, "the name default.drives belongs to a dataset of recordings"),
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
    (NoLoadUnderWay(("daily",)), LOADED, "job again (append) began to commit at 1970-01-01 00:00:00 UTC"),
    (ServiceThere("CLEAN"), SERVED, "the table has no CLEAN service"),
    (ServiceMissing("COMPACT"), SERVED, "the table has a COMPACT service already"),
    (ServiceIs(Service("CLEAN")), SERVED, "the table has no CLEAN service"),
    (ServiceIs(Service("COMPACT", cluster="emr")), SERVED, "the COMPACT service was changed meanwhile"),
    (ServiceNotPaused("CLUSTER"), SERVED, "the CLUSTER service is paused"),
    (NoRunOpen("CLEAN"), SERVED, "run waiting of CLEAN is QUEUED"),
    (NoneRunning(("CLEAN", "COMPACT")), SERVED, "run going of COMPACT is RUNNING"),
    (RunHasStatus("none", "QUEUED"), SERVED, "there is no run none"),
    (RunHasStatus("going", "QUEUED"), SERVED, "run going is RUNNING, not QUEUED"),
    (RunHeldBy("waiting", "me"), SERVED, "run waiting is QUEUED, not RUNNING"),
    (RunHeldBy("going", "you"), SERVED, "run going is held by me, not you"),
    (LeaseEndsAt("waiting", 1), SERVED, "run waiting is QUEUED, not RUNNING"),
    (LeaseEndsAt("going", 1000), SERVED, "the lease of run going was renewed"),
    (SavepointNameFree("one"), SERVED, "the table has a savepoint one already"),
    (SavepointThere("two"), SERVED, "the table has no savepoint two"),
]


@pytest.mark.parametrize(("requirement", "state"), HOLD, ids=[repr(requirement) for requirement, _ in HOLD])
def test_it_holds(requirement: Any, state: State) -> None:
    assert requirement.failure(state) is None


@pytest.mark.parametrize(("requirement", "state", "words"), FAIL, ids=[repr(requirement) for requirement, *_ in FAIL])
def test_it_fails_in_words(requirement: Any, state: State, words: str) -> None:
    assert requirement.failure(state) == words
