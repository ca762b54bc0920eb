"""Every cell of the table of conflicts: two transactions decided on one state, the second committed after the first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deployer.errors import Conflict, DeployerError, NotFound
from deployer.state import conflicts as c
from deployer.state.commits import Part
from deployer.state.model import INSTANCE_LOG, Partition
from deployer.state.requirements import InstanceRequirement, TableRequirement
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
    TableRewritten,
    TableUpdate,
)

from .samples import TABLE, creation, entry, file, store_at

SCHEMA = b"arrow schema"
IDS = {1: "1" * 32, 2: "2" * 32}
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "state-format.md"

TableSample = tuple[list[TableUpdate], list[TableRequirement]]
InstanceSample = tuple[list[InstanceUpdate], list[InstanceRequirement]]


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[StateStore, StateStore]]:
    """Two processes' stores that have read the same: four files, two leaves, two commits and two rewrites under way."""
    tree = (
        Partition("root", None, children=("leaf-1", "leaf-2"), split_point=b"m"),
        Partition("leaf-1", "root", b"", b"m"),
        Partition("leaf-2", "root", b"m", None),
    )
    one = store_at(tmp_path)
    files = tuple(file(i, partition=f"leaf-{i // 2 + 1}", low=None) for i in range(4))
    one.commit(TABLE, [creation(tree), FilesAdded(files, 5)])
    one.commit(TABLE, [CommitStarted("open-1", "ingest", 5), CommitStarted("open-2", "ingest", 5)])
    one.commit(TABLE, [RewriteStarted(2, "two", ""), RewriteStarted(3, "three", "")])
    one.commit(INSTANCE_LOG, [RegisterTable(entry(IDS[n], f"table-{n}")) for n in (1, 2)])
    other = store_at(tmp_path)
    for store in (one, other):
        assert store.table(TABLE).version == 3 and store.instance().version == 1
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
            return [SetTableProperties({"online": number == 1})], c.to_set_a_flag()
        case "declare":
            return [SetTableProperties({"tags": {"n": number}})], c.to_redeclare(1)
        case "rewrite":
            swap = TableRewritten(number + 1, "one", SCHEMA, 6, (), (file(0),))
            return [swap, SetTableProperties({"sort_keys": []})], c.to_swap(1, 1, 5)
        case "record":
            return [FilesAdded((file(300 + number),), 6)], c.to_record(5, 1)
        case "give-up":
            return [CommitAbandoned(f"open-{number}")], []
        case _:
            raise AssertionError(f"{name} has no sample")


def instance_sample(name: str, table: int, shared: int) -> InstanceSample:
    """The transaction of that kind on table number `table`, to the name number `shared` where it gives one."""
    table_id, new_name = IDS[table], f"shared-{shared}"
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


TABLE_CELLS = [(first, second) for first in c.TABLE_OPERATIONS for second in c.TABLE_OPERATIONS]
INSTANCE_CELLS = [(first, second) for first in c.INSTANCE_OPERATIONS for second in c.INSTANCE_OPERATIONS]


@pytest.mark.parametrize(("first", "second"), TABLE_CELLS, ids=["-then-".join(cell) for cell in TABLE_CELLS])
def test_two_transactions_on_a_table(first: str, second: str, both: tuple[StateStore, StateStore]) -> None:
    one, other = both
    commit(one, table_part(first, 1))
    rule = c.RULES.get((first, second))
    if rule is not None:
        refused(other, table_part(second, 1 if rule.only else 2), rule.words)
    if rule is None or rule.only:
        commit(other, table_part(second, 2))
        if "delete" not in (first, second):
            assert one.table(TABLE) == other.table(TABLE) and one.table(TABLE).version == 5
            assert one.audit(TABLE).state == one.table(TABLE)


@pytest.mark.parametrize(("first", "second"), INSTANCE_CELLS, ids=["-then-".join(cell) for cell in INSTANCE_CELLS])
def test_two_transactions_on_the_instance(first: str, second: str, both: tuple[StateStore, StateStore]) -> None:
    one, other = both
    commit(one, Part(INSTANCE_LOG, *instance_sample(first, 1, 1)))
    rule = c.RULES.get((first, second))
    if rule is not None:
        same = instance_sample(second, 1 if rule.only == "table" else 2, 1 if rule.only == "name" else 2)
        refused(other, Part(INSTANCE_LOG, *same), rule.words)
    if rule is None or rule.only:
        commit(other, Part(INSTANCE_LOG, *instance_sample(second, 2, 2)))
        assert one.instance() == other.instance() and one.instance().version == 3


def test_what_is_done_to_the_instance_leaves_tables_alone_and_the_other_way_round(
    both: tuple[StateStore, StateStore],
) -> None:
    one, other = both
    commit(one, Part(INSTANCE_LOG, *instance_sample("rename", 1, 1)))
    for name in c.TABLE_OPERATIONS:
        if name not in ("delete", "rewrite", "record", "schema", "declare", "split"):
            commit(other, table_part(name, 1))
    commit(one, Part(INSTANCE_LOG, *instance_sample("forget", 1, 1)))


def test_every_rule_is_of_a_cell_and_every_cell_in_the_document() -> None:
    assert set(c.RULES) <= {*TABLE_CELLS, *INSTANCE_CELLS}
    assert c.as_markdown() in DOCUMENT.read_text(encoding="utf-8")
