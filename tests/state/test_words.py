"""Every update can be told in words."""

from __future__ import annotations

import pytest
from hypothesis import given

from deployer.state.log.describe import describe_update
from deployer.state.log.service_updates import (
    LeaseRenewed,
    MoveServices,
    PutService,
    RunEnded,
    RunQueued,
    RunStarted,
    SavepointsExpired,
    SavepointTaken,
)
from deployer.state.log.updates import (
    CommitAbandoned,
    CommitStarted,
    FilesAdded,
    FilesRemoved,
    FilesReplaced,
    PartitionSplit,
    RenameTable,
    RowsChanged,
    RowsLeft,
    SetTableProperties,
    SetTableStatus,
    TableRebuilt,
    TableRestored,
    TableRewritten,
    Update,
)
from deployer.state.model.entities import RowCounts, TableProperties
from deployer.state.model.services import Service

from .samples import creation, file, place
from .strategies import members

WORDS: list[tuple[Update, str]] = [
    (creation(), "create the table: row keys carrier, flight, 1 leaf (dataset version 1)"),
    (CommitStarted("j", "ingest", 3), "begin ingest (job j, on dataset version 3)"),
    (FilesAdded((file(1), file(2)), 4, "j", 1234), "add 2 files with 1,234 rows (job j, dataset version 4)"),
    (FilesAdded((file(1),), 4), "add 1 file with 10 rows (dataset version 4)"),
    (FilesAdded((), 4, "j"), "done (job j, dataset version 4)"),
    (
        FilesReplaced((1, 2), (file(3),), 5, "c", "compact"),
        "compact: replace 2 files by 1 file with 10 rows (job c, dataset version 5)",
    ),
    (
        RowsChanged((RowsLeft(1, 3),), (2,), (file(3),), 6, "m", "merge", RowCounts(1, 4, 1234)),
        "merge: insert 1 row, update 4 rows, delete 1,234 rows: 1 file changed, 1 removed, 1 added "
        "(job m, dataset version 6)",
    ),
    (
        RowsChanged((), (), (), 6, "m"),
        "delete: change no row: 0 files changed, 0 removed, 0 added (job m, dataset version 6)",
    ),
    (FilesRemoved((1,), 6), "remove 1 file (dataset version 6)"),
    (CommitAbandoned("j"), "give up the commit of job j"),
    (PartitionSplit("p", b"m", "l", "r"), "split partition p into l and r"),
    (SetTableProperties({"online": False, "tags": {"a": 1}}), "set online = false, tags = {a}"),
    (SetTableProperties({"description": "a\n b"}), "set description = a b"),
    (SetTableProperties({"description": "x" * 50}), "set description = …"),
    (RenameTable("a1b2c3d4e5f6", "air", "planes"), "rename table a1b2c3d4 to air.planes"),
    (SetTableStatus("a1b2c3d4e5f6", "deleting"), "table a1b2c3d4 is deleting"),
    (
        TableRewritten(2, place(), b"s", 3, (), (file(1),)),
        "swap in dataset 2: 1 file with 10 rows, 1 leaf (dataset version 3)",
    ),
    (
        TableRestored("7f", "then", 1, "", 9, b"s", TableProperties(), (), (file(1),), (), ()),
        "restore to then: 1 file with 10 rows (job 7f, dataset version 9)",
    ),
    (
        TableRebuilt(9, b"s", TableProperties(row_keys=("id",)), (), (file(1),), (), (), ()),
        "rebuild the table from its dataset: row keys id, 1 file with 10 rows (dataset version 9)",
    ),
    (
        PutService(Service("COMPACT", "AUTOMATIC", {"schedule": "0 3 * * *", "rows": 9}, cluster="emr", paused=True)),
        "set service COMPACT: AUTOMATIC, schedule = 0 3 * * *, rows = 9, on emr, paused",
    ),
    (
        PutService(Service("CLUSTER", options={"columns": ["delay"], "curve": "hilbert"}, cluster="emr")),
        'set service CLUSTER: ON_DEMAND, on emr; options: columns = ["delay"], curve = hilbert',
    ),
    (
        PutService(Service("CLEAN", options={"a": "b" * 300}, unsafe_raw=True)),
        f"set service CLEAN: ON_DEMAND; options (unchecked): a = {'b' * 300}",
    ),
    (MoveServices("nightly"), "move all services to cluster nightly"),
    (MoveServices(None), "move all services to the default cluster"),
    (RunQueued("7f", "CLEAN", "schedule", "local"), "queue run 7f of CLEAN (schedule, local)"),
    (RunStarted("7f", "host-1", 60_000), "start run 7f (held by host-1 for 60 s)"),
    (LeaseRenewed("7f", 1500, {"files": 3}), "renew the lease of run 7f for 1.5 s: files = 3"),
    (RunEnded("7f", "SUCCEEDED"), "run 7f is SUCCEEDED"),
    (RunEnded("7f", "SKIPPED", reason="nothing\n to do"), "run 7f is SKIPPED: nothing to do"),
    (SavepointTaken("a", 1_800_000_000_000), "take savepoint a until 2027-01-15T08:00:00+00:00"),
    (SavepointsExpired(0), "remove savepoints that were kept until 1970-01-01T00:00:00+00:00 or before"),
]


@pytest.mark.parametrize(("update", "words"), WORDS, ids=[words for _, words in WORDS])
def test_words(update: Update, words: str) -> None:
    assert describe_update(update) == words


@given(members(Update))
def test_all_can_be_told(update: Update) -> None:
    assert describe_update(update)
