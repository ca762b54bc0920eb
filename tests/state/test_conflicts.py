"""Every cell of the table of conflicts: two transactions decided on one state, the second committed after the first.

Each cell is tried on values. The diagonal, and whatever deletes a log, is tried with two real stores too.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from deployer.errors import Conflict, DeployerError, NotFound
from deployer.state.commits import Part
from deployer.state.log.entries import REQUIREMENTS, UPDATES, LogEntry
from deployer.state.log.inapplicable import Inapplicable
from deployer.state.log.reducer import apply, empty_state
from deployer.state.log.requirements import InstanceRequirement, TableRequirement
from deployer.state.log.service_updates import (
    CancelRequested,
    FragmentsClaimed,
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
from deployer.state.log.updates import (
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
    RowsChanged,
    RowsLeft,
    SetSchema,
    SetTableProperties,
    SetTableStatus,
    TableRestored,
    TableRewritten,
    TableUpdate,
)
from deployer.state.model.entities import INSTANCE_LOG, Partition, State, TableProperties, TableState
from deployer.state.model.services import EXCLUDES, Service, ServiceKind
from deployer.state.store import StateStore
from deployer.state.transactions import services as s
from deployer.state.transactions import tables as c

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


def loading() -> list[TableUpdate]:
    """Two running runs that write a column each."""
    runs = [(f"loading-{n}", f"column_{n}") for n in (1, 2)]
    queued = [RunQueued(run, "LOAD_COLUMNS", "by hand", target=(column,)) for run, column in runs]
    return [*queued, *(RunStarted(run, "me", 1_000_000) for run, _ in runs)]


@cache
def starts() -> list[Part]:
    """What is committed before: four files, two leaves, two commits and two rewrites under way; four services, two
    queued and two running runs, and two savepoints; and two tables."""
    on_table: list[list[TableUpdate]] = [
        [creation(TREE), FilesAdded(FILES, 5)],
        [CommitStarted("open-1", "ingest", 5), CommitStarted("open-2", "ingest", 5)],
        [RewriteStarted(2, place(2), ""), RewriteStarted(3, place(3), "")],
        [PutService(Service(kind)) for kind in (*IDLE, *QUEUED)],
        [RunQueued(f"queued-{n}", QUEUED[n - 1], "by hand") for n in (1, 2)],
        [RunQueued(f"running-{n}", RUNNING[n - 1], "by hand") for n in (1, 2)],
        [RunStarted(f"running-{n}", "me", 1_000_000) for n in (1, 2)] + loading(),
        [SavepointTaken(f"old-{n}") for n in (1, 2)],
    ]
    on_instance = [RegisterTable(entry(IDS[n], f"table_{n}")) for n in (1, 2)]
    return [*(Part(TABLE, updates) for updates in on_table), Part(INSTANCE_LOG, on_instance)]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with that state; tests copy it."""
    root = tmp_path_factory.mktemp("started")
    store = store_at(root)
    for part in starts():
        store.commit_all([part])
    store.close()
    return root


@pytest.fixture
def both(started: Path, tmp_path: Path) -> Iterator[tuple[StateStore, StateStore]]:
    """Two processes' stores that have read the same."""
    shutil.copytree(started, tmp_path, dirs_exist_ok=True)
    one, other = store_at(tmp_path), store_at(tmp_path)
    for store in (one, other):
        assert store.table(TABLE).version == 8 and store.instance().version == 1
    yield one, other
    one.close()
    other.close()


def then(state: State, part: Part) -> State:
    """The state after a transaction, which is read back from what its record has. Raises Inapplicable when refused."""
    for each in part.requirements:
        if words := REQUIREMENTS.decode(REQUIREMENTS.encode(each)).failure(state):
            raise Inapplicable(words)
    updates = tuple(UPDATES.decode(UPDATES.encode(update)) for update in part.updates)
    return apply(state, LogEntry(part.log, state.version + 1, "id", state.at + 1, "me", updates))


@cache
def decided_on(log: str) -> State:
    state = empty_state(log)
    for part in starts():
        if part.log == log:
            state = then(state, part)
    return state


def lease() -> int:
    state = decided_on(TABLE)
    assert isinstance(state, TableState)
    return state.runs["running-1"].lease_until or 0


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
        case "change-rows":
            lost = RowsChanged((RowsLeft(number, 3),), (), (), 6, job)
            return [CommitStarted(job, "delete", 5), lost], c.to_change_rows(job, SCHEMA, 1)
        case "change-unique":
            merged = RowsChanged((), (), (file(400 + number),), 6, job, "merge")
            return [CommitStarted(job, "merge", 5), merged], c.to_change_unique_rows(
                job, SCHEMA, 1, ["open-1", "open-2"]
            )
        case "make-unique":
            declared = SetTableProperties({"declared": {"unique": True}})
            return [declared], c.to_make_unique(1, 5, 1, ["open-1", "open-2"])
        case "compact":
            ids = (2 * number - 2, 2 * number - 1)
            job = f"compact-{number}-{'again' if number == 1 else ''}"
            return [FilesReplaced(ids, (file(200 + number),), 6, job)], c.to_replace_files(f"{job}-x", ids, 1)
        case "claim":
            run, ids = f"loading-{number}", (2 * number - 2, 2 * number - 1)
            return [FragmentsClaimed(run, ids)], c.to_claim(run, "me", ids, 1)
        case "fill":
            run, ids = f"loading-{number}", (2 * number - 2, 2 * number - 1)
            done = FilesAdded((), 6, f"fill-{number}", 20)
            return [done], c.to_fill_columns(f"fill-{number}", run, "me", SCHEMA, 1)
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
        case "begin-load" | "begin-backfill":
            service: ServiceKind = "LOAD_COLUMNS" if name == "begin-load" else "BACKFILL"
            columns = (f"own_{number}",)
            run = f"{name.removeprefix('begin-')}-{number}"
            queue, start = RunQueued(run, service, "by hand", target=columns), RunStarted(run, "me", 1000)
            return [queue, start], s.to_begin_run(service, columns)
        case "start-run":
            return [RunStarted(queued, "me", 1000)], s.to_start_run(queued, QUEUED[number - 1])
        case "end-queued":
            return [RunEnded(queued, "CANCELLED")], s.to_end_queued_run(queued)
        case "renew-lease":
            return [LeaseRenewed(running, 2_000_000, {"done": 1})], s.to_go_on(running, "me")
        case "ask-to-end":
            return [CancelRequested(running)], s.to_ask_to_end(running)
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
ALL_CELLS = [*TABLE_CELLS, *SERVICE_CELLS, *CROSS_CELLS, *INSTANCE_CELLS]
KEPT_CELLS = [cell for cell in ALL_CELLS if "delete" not in cell]
DIAGONAL = [cell for cell in KEPT_CELLS if cell[0] == cell[1]]
OF_A_TABLE = [*TABLE_OPERATIONS, *SERVICE_OPERATIONS]


def in_words(cells: Sequence[tuple[str, str]]) -> list[str]:
    return ["-then-".join(cell) for cell in cells]


def parts_of(first: str, second: str, lease_until: int) -> tuple[Part, Part, Part]:
    """The first transaction, the second on the same file, job, name or service, and the second on another one."""
    rule = RULES.get((first, second))
    if second in INSTANCE_OPERATIONS:
        table, name = 1 if rule and rule.only == "table" else 2, 1 if rule and rule.only == "name" else 2
        of_both = (instance_sample(first, 1, 1), instance_sample(second, table, name), instance_sample(second, 2, 2))
        begun, same, another = (Part(INSTANCE_LOG, *sample) for sample in of_both)
        return begun, same, another
    of_queued = {first, second} == {"pause-service", "start-run"}

    def part(name: str, number: int) -> Part:
        if name in TABLE_OPERATIONS:
            return Part(TABLE, *table_sample(name, number))
        return Part(TABLE, *service_sample(name, number, lease_until, of_queued=of_queued))

    is_same = (rule is not None and rule.only) or not {first, second} <= {*TABLE_OPERATIONS}
    return part(first, 1), part(second, 1 if is_same else 2), part(second, 2)


@pytest.mark.parametrize(("first", "second"), KEPT_CELLS, ids=in_words(KEPT_CELLS))
def test_two_transactions(first: str, second: str) -> None:
    rule = RULES.get((first, second))
    begun, same, another = parts_of(first, second, lease())
    after = then(decided_on(begun.log), begun)
    if rule is None:
        both_on_one = then(after, same)
        assert both_on_one.version == after.version + 1
    else:
        with pytest.raises(Inapplicable) as caught:
            then(after, same)
        assert rule.words in caught.value.what
    if rule is None or rule.only:
        then(then(decided_on(begun.log), begun), another)


@pytest.mark.parametrize(("first", "second"), DIAGONAL, ids=in_words(DIAGONAL))
def test_two_transactions_of_two_stores(first: str, second: str, both: tuple[StateStore, StateStore]) -> None:
    """The second store decided on the state before, and looks at the newest when its commit is too late."""
    one, other = both
    rule = RULES.get((first, second))
    begun, same, another = parts_of(first, second, one.table(TABLE).runs["running-1"].lease_until or 0)
    commit(one, begun)
    done = 1
    if rule is not None:
        refused(other, same, rule.words)
    if rule is None or rule.only:
        commit(other, another)
        done = 2
    assert one.instance() == other.instance() and one.table(TABLE) == other.table(TABLE)
    assert one.table(TABLE).version + one.instance().version == 9 + done
    assert one.audit(begun.log).state == (one.table(TABLE) if begun.log == TABLE else one.instance())


@pytest.mark.parametrize("first", OF_A_TABLE)
def test_whatever_was_done_to_a_log_it_can_be_deleted(first: str, both: tuple[StateStore, StateStore]) -> None:
    one, other = both
    lease_until = one.table(TABLE).runs["running-1"].lease_until or 0
    commit(one, parts_of(first, first, lease_until)[0] if first != "delete" else None)
    commit(other, None)
    assert other.log(TABLE) == []


def test_nothing_is_done_to_a_log_that_was_deleted(both: tuple[StateStore, StateStore]) -> None:
    one, other = both
    commit(one, None)
    for second in OF_A_TABLE:
        if second != "delete":
            refused(other, parts_of(second, second, lease())[0], "it was removed")


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
            commit(other, Part(TABLE, *table_sample(name, 1)))
    commit(one, Part(INSTANCE_LOG, *instance_sample("forget", 1, 1)))


def test_every_rule_is_of_a_cell_and_every_cell_in_the_document() -> None:
    assert set(RULES) <= {*TABLE_CELLS, *INSTANCE_CELLS, *SERVICE_CELLS}
    document = DOCUMENT.read_text(encoding="utf-8")
    assert as_markdown() in document and exclusions_as_markdown() in document
