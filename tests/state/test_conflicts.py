"""Every cell of the table of conflicts: two transactions decided on one state, the second committed after the first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deployer.errors import Conflict, DeployerError, NotFound
from deployer.state import conflicts as c
from deployer.state import service_conflicts as s
from deployer.state.commits import Part
from deployer.state.model import INSTANCE_LOG, Partition, TableProperties
from deployer.state.requirements import InstanceRequirement, TableRequirement
from deployer.state.service_updates import (
    CancelWished,
    LeaseRenewed,
    MoveServices,
    PauseService,
    PutService,
    RemoveService,
    RunEnded,
    RunQueued,
    RunStarted,
    SavepointRemoved,
    SavepointTaken,
)
from deployer.state.services import EXCLUDES, Service, ServiceKind
from deployer.state.store import StateStore
from deployer.state.updates import (
    CommitAbandoned,
    CommitStarted,
    FilesAdded,
    FilesReplaced,
    InstanceUpdate,
    PartitionSplit,
    RegisterTable,
    RemoveTable,
    RenameTable,
    RewriteStarted,
    SetSchema,
    SetTableProperties,
    SetTableStatus,
    TableRestored,
    TableRewritten,
    TableUpdate,
)

from .conflict_table import (
    INSTANCE_OPERATIONS,
    RULES,
    SERVICE_OPERATIONS,
    TABLE_OPERATIONS,
    as_markdown,
    exclusions_as_markdown,
)
from .samples import TABLE, creation, entry, file, place, store_at

SCHEMA = b"arrow schema"
IDS = {1: "1" * 32, 2: "2" * 32}
IDLE: tuple[ServiceKind, ServiceKind] = ("CLUSTER", "RESTORE")
QUEUED: tuple[ServiceKind, ServiceKind] = ("COMPACT", "CLEAN")
RUNNING: tuple[ServiceKind, ServiceKind] = ("METASYNC", "AUTOSAVEPOINT")  # their services are not attached
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "state-format.md"

TREE = (
    Partition("root", None, children=("leaf-1", "leaf-2"), split_point=b"m"),
    Partition("leaf-1", "root", b"", b"m"),
    Partition("leaf-2", "root", b"m", None),
)
FILES = tuple(file(i, partition=f"leaf-{i // 2 + 1}", low=None) for i in range(4))

TableSample = tuple[list[TableUpdate], list[TableRequirement]]
InstanceSample = tuple[list[InstanceUpdate], list[InstanceRequirement]]


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[StateStore, StateStore]]:
    """Two processes' stores that have read the same.

    There are four files, two leaves, two commits and two rewrites under way; four services, two queued and two running
    runs, and two savepoints.
    """
    one = store_at(tmp_path)
    one.commit(TABLE, [creation(TREE), FilesAdded(FILES, 5)])
    one.commit(TABLE, [CommitStarted("open-1", "ingest", 5), CommitStarted("open-2", "ingest", 5)])
    one.commit(TABLE, [RewriteStarted(2, place(2), ""), RewriteStarted(3, place(3), "")])
    one.commit(TABLE, [PutService(Service(kind)) for kind in (*IDLE, *QUEUED)])
    one.commit(TABLE, [RunQueued(f"queued-{n}", QUEUED[n - 1], "by hand") for n in (1, 2)])
    one.commit(TABLE, [RunQueued(f"running-{n}", RUNNING[n - 1], "by hand") for n in (1, 2)])
    one.commit(TABLE, [RunStarted(f"running-{n}", "me", 1_000_000) for n in (1, 2)])
    one.commit(TABLE, [SavepointTaken(f"old-{n}") for n in (1, 2)])
    one.commit(INSTANCE_LOG, [RegisterTable(entry(IDS[n], f"table_{n}")) for n in (1, 2)])
    other = store_at(tmp_path)
    for store in (one, other):
        assert store.table(TABLE).version == 8 and store.instance().version == 1
    yield one, other
    one.close()
    other.close()


def table_sample(name: str, number: int) -> TableSample:
    """The transaction of that kind on the state above, on its own job, files and leaf for each number."""
    job = f"job-{number}"
    match name:
        case "append":
            started, done = CommitStarted(job, "ingest", 5), FilesAdded((file(100 + number),), 6, job, 10)
            return [started, done], c.to_add_files(job, SCHEMA, 1)
        case "append-unique":
            started, done = CommitStarted(job, "ingest", 5), FilesAdded((file(100 + number),), 6, job, 10)
            return [started, done], c.to_add_unique_files(job, SCHEMA, 1, 5, ["open-1", "open-2"])
        case "make-unique":
            declared = SetTableProperties({"declared": {"unique": True}})
            return [declared], c.to_make_unique(1, 5, 1, ["open-1", "open-2"])
        case "compact":
            ids = (2 * number - 2, 2 * number - 1)
            job = f"compact-{number}-{'again' if number == 1 else ''}"
            return [FilesReplaced(ids, (file(200 + number),), 6, job)], c.to_replace_files(f"{job}-x", ids, 1)
        case "split":
            leaf = f"leaf-{number}"
            point = b"c" if number == 1 else b"t"
            fragments = (2 * number - 2, 2 * number - 1)
            moved = tuple(file(i, None, partition=f"{leaf}-a") for i in fragments)
            split = PartitionSplit(leaf, point, f"{leaf}-a", f"{leaf}-b")
            return [split, FilesReplaced(fragments, moved, 5)], c.to_split(leaf, fragments, 5, 1)
        case "schema":
            return [SetSchema(f"another {number}".encode(), 6)], c.to_change_schema(5, 1)
        case "online":
            return [SetTableProperties({"online": number == 1})], []
        case "declare":
            return [SetTableProperties({"tags": {"n": number}})], c.to_redeclare(1)
        case "rewrite":
            swap = TableRewritten(number + 1, place(), SCHEMA, 6, (), (file(0),))
            return [swap, SetTableProperties({"sort_keys": []})], c.to_swap(1, 1, 5)
        case "restore":
            back = TableRestored(
                f"run-{number}",
                f"old-{number}",
                1,
                "",
                6,
                SCHEMA,
                TableProperties(row_keys=("carrier", "flight")),
                TREE,
                FILES,
                (),
                tuple(Service(kind) for kind in (*IDLE, *QUEUED)),
            )
            return [back], c.to_restore(1, 1, 5)
        case "record":
            return [FilesAdded((file(300 + number),), 6)], c.to_record(5, 1)
        case "give-up":
            return [CommitAbandoned(f"open-{number}")], []
        case _:
            raise AssertionError(f"{name} has no sample")


def service_sample(name: str, number: int, lease_until: int, *, of_queued: bool = False) -> TableSample:
    """The same for services, runs and savepoints. `of_queued`: on the service of a queued run."""
    idle = (QUEUED if of_queued else IDLE)[number - 1]
    queued, running = f"queued-{number}", f"running-{number}"
    match name:
        case "create-service":
            kind = RUNNING[number - 1]
            return [PutService(Service(kind))], s.to_attach_service(kind, None)
        case "alter-service":
            return [PutService(Service(idle, "AUTOMATIC"))], s.to_alter_service(Service(idle))
        case "move-services":
            return [MoveServices(f"emr-{number}")], []
        case "pause-service":
            return [PauseService(idle)], s.to_pause_service(idle)
        case "remove-service":
            return [RemoveService(idle)], s.to_remove_service(idle)
        case "queue-run":
            return [RunQueued(f"new-{number}", idle, "by hand")], s.to_queue_run(idle)
        case "start-run":
            return [RunStarted(queued, "me", 1000)], s.to_start_run(queued, QUEUED[number - 1])
        case "end-queued":
            return [RunEnded(queued, "CANCELLED")], s.to_end_queued_run(queued)
        case "renew-lease":
            return [LeaseRenewed(running, 2_000_000, {"done": 1})], s.to_go_on(running, "me")
        case "ask-to-end":
            return [CancelWished(running)], s.to_ask_to_end(running)
        case "end-run":
            return [RunEnded(running, "SUCCEEDED")], s.to_go_on(running, "me")
        case "fail-dead":
            return [RunEnded(running, "FAILED")], s.to_fail_dead_run(running, lease_until)
        case "take-savepoint":
            return [SavepointTaken(f"new-{number}")], s.to_take_savepoint(f"new-{number}")
        case "remove-savepoint":
            return [SavepointRemoved(f"old-{number}")], s.to_remove_savepoint(f"old-{number}")
        case _:
            raise AssertionError(f"{name} has no sample")


def instance_sample(name: str, table: int, shared: int) -> InstanceSample:
    """The transaction of that kind on table number `table`, to the name number `shared` where it gives one."""
    table_id, new_name = IDS[table], f"shared_{shared}"
    match name:
        case "register":
            return [RegisterTable(entry(str(table + 6) * 32, new_name))], c.to_register("nyc", new_name)
        case "rename":
            return [RenameTable(table_id, "nyc", new_name)], c.to_rename(table_id, "nyc", new_name)
        case "deleting":
            return [SetTableStatus(table_id, "deleting")], []
        case "forget":
            return [RemoveTable(table_id)], []
        case _:
            raise AssertionError(f"{name} has no sample")


def commit(store: StateStore, part: Part | None) -> None:
    if part is None:
        store.remove_table_log(TABLE)
    else:
        store.commit_all([part])


def table_part(name: str, number: int) -> Part | None:
    return None if name == "delete" else Part(TABLE, *table_sample(name, number))


def refused(store: StateStore, part: Part | None, words: str) -> None:
    before = store.log(INSTANCE_LOG), store.log(TABLE)
    with pytest.raises((Conflict, NotFound)) as caught:
        commit(store, part)
    assert isinstance(caught.value, DeployerError) and words in caught.value.what, str(caught.value)
    assert (store.log(INSTANCE_LOG), store.log(TABLE)) == before


TABLE_CELLS = [(first, second) for first in TABLE_OPERATIONS for second in TABLE_OPERATIONS]
SERVICE_CELLS = [(first, second) for first in SERVICE_OPERATIONS for second in SERVICE_OPERATIONS]
CROSS_CELLS = [
    pair for data in TABLE_OPERATIONS for other in SERVICE_OPERATIONS for pair in ((data, other), (other, data))
]
INSTANCE_CELLS = [(first, second) for first in INSTANCE_OPERATIONS for second in INSTANCE_OPERATIONS]


@pytest.mark.parametrize(("first", "second"), TABLE_CELLS, ids=["-then-".join(cell) for cell in TABLE_CELLS])
def test_two_transactions_on_a_table(first: str, second: str, both: tuple[StateStore, StateStore]) -> None:
    one, other = both
    commit(one, table_part(first, 1))
    rule = RULES.get((first, second))
    if rule is not None:
        refused(other, table_part(second, 1 if rule.only else 2), rule.words)
    if rule is None or rule.only:
        commit(other, table_part(second, 2))
        if "delete" not in (first, second):
            assert one.table(TABLE) == other.table(TABLE) and one.table(TABLE).version == 10
            assert one.audit(TABLE).state == one.table(TABLE)


@pytest.mark.parametrize(("first", "second"), INSTANCE_CELLS, ids=["-then-".join(cell) for cell in INSTANCE_CELLS])
def test_two_transactions_on_the_instance(first: str, second: str, both: tuple[StateStore, StateStore]) -> None:
    one, other = both
    commit(one, Part(INSTANCE_LOG, *instance_sample(first, 1, 1)))
    rule = RULES.get((first, second))
    if rule is not None:
        same = instance_sample(second, 1 if rule.only == "table" else 2, 1 if rule.only == "name" else 2)
        refused(other, Part(INSTANCE_LOG, *same), rule.words)
    if rule is None or rule.only:
        commit(other, Part(INSTANCE_LOG, *instance_sample(second, 2, 2)))
        assert one.instance() == other.instance() and one.instance().version == 3


@pytest.mark.parametrize(("first", "second"), SERVICE_CELLS, ids=["-then-".join(cell) for cell in SERVICE_CELLS])
def test_two_transactions_on_services_runs_and_savepoints(
    first: str, second: str, both: tuple[StateStore, StateStore]
) -> None:
    one, other = both
    lease = one.table(TABLE).runs["running-1"].lease_until or 0
    of_queued = {first, second} == {"pause-service", "start-run"}
    commit(one, Part(TABLE, *service_sample(first, 1, lease, of_queued=of_queued)))
    same, another = (Part(TABLE, *service_sample(second, n, lease, of_queued=of_queued)) for n in (1, 2))
    rule = RULES.get((first, second))
    for each, is_refused in ((same, rule is not None), (another, rule is not None and not rule.only)):
        if is_refused:
            refused(other, each, rule.words if rule else "")
        else:
            commit(other, each)
    done = 2 if rule is None else 1 if rule.only else 0
    assert one.table(TABLE) == other.table(TABLE) and one.table(TABLE).version == 9 + done
    assert one.audit(TABLE).state == one.table(TABLE)


@pytest.mark.parametrize(("first", "second"), CROSS_CELLS, ids=["-then-".join(cell) for cell in CROSS_CELLS])
def test_data_and_services_never_meet(first: str, second: str, both: tuple[StateStore, StateStore]) -> None:
    """Whichever comes first, both are committed; but nothing is to a log that was deleted."""
    one, other = both
    lease = one.table(TABLE).runs["running-1"].lease_until or 0

    def part(name: str) -> Part | None:
        if name in TABLE_OPERATIONS:
            return table_part(name, 1)
        return Part(TABLE, *service_sample(name, 1, lease))

    commit(one, part(first))
    if first == "delete":
        refused(other, part(second), "it was removed")
        return
    commit(other, part(second))
    if second != "delete":
        assert one.table(TABLE) == other.table(TABLE) and one.table(TABLE).version == 10


EXCLUSIONS = [(first, second) for first in EXCLUDES for second in EXCLUDES if first != second]


@pytest.mark.parametrize(("first", "second"), EXCLUSIONS, ids=["-then-".join(pair) for pair in EXCLUSIONS])
def test_runs_of_services_that_exclude_each_other(first: ServiceKind, second: ServiceKind, tmp_path: Path) -> None:
    one, other = store_at(tmp_path), store_at(tmp_path)
    one.commit(TABLE, [creation(), RunQueued("a", first, ""), RunQueued("b", second, "")])
    assert other.table(TABLE).version == 1
    commit(one, Part(TABLE, [RunStarted("a", "me", 1)], s.to_start_run("a", first)))
    start = Part(TABLE, [RunStarted("b", "me", 1)], s.to_start_run("b", second))
    assert (second in EXCLUDES[first]) == (first in EXCLUDES[second])
    if second in EXCLUDES[first]:
        refused(other, start, f"run a of {first} is RUNNING")
        commit(one, Part(TABLE, [RunEnded("a", "SUCCEEDED")], s.to_go_on("a", "me")))
    commit(other, start)
    one.close()
    other.close()


def test_what_is_done_to_the_instance_leaves_tables_alone_and_the_other_way_round(
    both: tuple[StateStore, StateStore],
) -> None:
    one, other = both
    commit(one, Part(INSTANCE_LOG, *instance_sample("rename", 1, 1)))
    for name in TABLE_OPERATIONS:
        if name in ("append", "compact", "online", "give-up"):
            commit(other, table_part(name, 1))
    commit(one, Part(INSTANCE_LOG, *instance_sample("forget", 1, 1)))


def test_every_rule_is_of_a_cell_and_every_cell_in_the_document() -> None:
    assert set(RULES) <= {*TABLE_CELLS, *INSTANCE_CELLS, *SERVICE_CELLS}
    document = DOCUMENT.read_text(encoding="utf-8")
    assert as_markdown() in document and exclusions_as_markdown() in document
