"""Deletions against the same on plain Arrow tables, and what the state has of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deployer.errors import Conflict, InvalidInput, Refused
from deployer.state.log.updates import SetTableProperties
from deployer.state.model.entities import RowCounts, TableState
from deployer.tables.layout.indexes.apply import settle_indexes
from deployer.tables.maintenance.verify.verify import verify
from deployer.tables.open_table import OpenTable, open_to_change
from deployer.tables.rows.change import RowChange
from deployer.tables.rows.delete import delete_rows
from tests.tables.lakes import Lake, flights, sorted_rows

Keeps = Callable[[dict[str, Any]], bool]
#: Conditions, and in Python which rows they are not true for.
CONDITIONS: dict[str, tuple[str, Keeps]] = {
    "a range within a leaf": ("carrier = 'AA' AND flight < 500", lambda r: r["carrier"] != "AA" or r["flight"] >= 500),
    "a whole leaf": ("carrier = 'AA'", lambda r: r["carrier"] != "AA"),
    "rows of all leaves": ("delay > 100", lambda r: r["delay"] is None or r["delay"] <= 100),
    "no row": ("carrier = 'XX'", lambda r: True),
    "null is not true": ("delay <> 100", lambda r: r["delay"] in (None, 100)),
    "an instant": ("at < TIMESTAMP '2013-05-01T12:00:00.000100Z'", lambda r: r["at"].microsecond >= 100),
    "not a key": ("CAST(price AS DOUBLE) > 150", lambda r: r["price"] <= 150),
}


def opened(lake: Lake) -> OpenTable:
    return open_to_change(lake.root, "air.flights")


def filled(lake: Lake, rows: int = 300, **table: Any) -> OpenTable:
    lake.table(**table)
    lake.ingest(lake.file(flights(rows)))
    return opened(lake)


def differences(lake: Lake) -> list[str]:
    return [str(one) for each in verify(lake.store, lake.root, full=True) for one in each.differences]


def left_by(rows: pa.Table, keeps: Keeps) -> pa.Table:
    """The rows that a deletion leaves."""
    return rows.filter(pa.array([keeps(row) for row in rows.to_pylist()]))


@pytest.mark.parametrize("row_keys", [("carrier", "flight"), ()], ids=["keyed", "keyless"])
@pytest.mark.parametrize("case", CONDITIONS)
def test_rows_are_those_that_the_condition_is_not_true_for(lake: Lake, case: str, row_keys: tuple[str, ...]) -> None:
    table = filled(lake, row_keys=row_keys)
    where, keeps = CONDITIONS[case]
    left = left_by(flights(300), keeps)
    foreseen = delete_rows(table, where, dry_run=True)
    assert lake.open().count() == 300 and foreseen.dry_run and foreseen.job is None
    change = delete_rows(table, where)
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(left)
    assert lake.open().count() == left.num_rows
    assert change.counts == RowCounts(deleted=300 - left.num_rows) == foreseen.counts
    assert (change.leaves, change.fragments) == (foreseen.leaves, foreseen.fragments)
    assert sum(each.counts.deleted for each in change.leaves) == change.rows
    assert differences(lake) == []


def test_the_state_keeps_ranges_and_order_of_what_is_left(lake: Lake) -> None:
    before = {file.fragment_id: file for file in filled(lake).state.files}
    change = delete_rows(opened(lake), "carrier = 'AA' AND flight < 500", job_id="j")
    state = lake.open().opened.state
    [touched] = [file for file in state.files if file != before[file.fragment_id]]
    assert touched == replace(before[touched.fragment_id], rows=before[touched.fragment_id].rows - change.rows)
    assert state.jobs["j"] == change.job and change.version == state.lance_version
    assert change.job is not None and (change.job.kind, change.job.rows) == ("delete", change.rows)
    assert not state.intents
    newest = lake.open().history()[0]
    assert (newest.kind, newest.job_id, newest.rows, newest.foreign) == ("delete", "j", -change.rows, False)


def test_a_job_is_done_once(lake: Lake) -> None:
    table = filled(lake)
    first = delete_rows(table, "delay = 1", job_id="j")
    again = delete_rows(table, "delay = 2", job_id="j")
    assert again.already_done and again.job == first.job and again.counts == first.counts
    assert lake.open().count() == 300 - first.rows


def test_a_job_that_deletes_nothing_is_done_too(lake: Lake) -> None:
    table = filled(lake)
    version = table.state.lance_version
    assert delete_rows(table, "delay = 9999", job_id="j").rows == 0
    lake.ingest(lake.file(flights(10, 300)))
    assert delete_rows(table, "true", job_id="j").already_done
    assert lake.open().count() == 310 and lake.open().opened.state.lance_version == version + 1


@pytest.mark.parametrize("where", [None, "true", "flight >= 0"])
def test_a_protected_table_is_not_emptied(lake: Lake, where: str | None) -> None:
    table = filled(lake)
    with pytest.raises(Refused, match="would remove all 300 rows of the table, which is protected from deletion"):
        delete_rows(table, where)
    state = lake.open().opened.state
    assert state.files.rows == 300 and not state.intents
    lake.store.commit(table.entry.table_id, [SetTableProperties({"deletion_protection": False})])
    assert delete_rows(table, where).rows == 300
    assert lake.open().count() == 0 and lake.open().opened.state.files.count == 0
    assert differences(lake) == []
    lake.ingest(lake.file(flights(10)))
    assert lake.open().count() == 10


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("carrie = 'AA'", "there is no column 'carrie'; did you mean 'carrier'"),
        ("carrier = ", "is not one SQL expression"),
        ("true; drop table x", "is not one SQL expression"),
        ("\"carrier\" = 'AA'", "in double quotes"),
        ("flight", "cannot be used"),
    ],
)
def test_a_wrong_condition_changes_nothing(lake: Lake, where: str, message: str) -> None:
    table = filled(lake, 20)
    with pytest.raises(InvalidInput, match=message):
        delete_rows(table, where)
    assert lake.open().opened.state == table.state


def test_earlier_versions_keep_the_rows(lake: Lake) -> None:
    table = filled(lake)
    delete_rows(table, "carrier = 'AA'")
    reader = lake.open()
    assert reader.scan(at=table.state.lance_version).to_table().num_rows == 300
    assert reader.scan("carrier = 'AA'").to_table().num_rows == 0
    assert reader.keys(("AA",)).to_table().num_rows == 0


@pytest.mark.parametrize("by", ["an append", "plain Lance", "a deletion"])
def test_what_others_commit_first_is_looked_at_too(lake: Lake, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others commit between the look and the commit."""
    from deployer.tables.rows import commit

    table = filled(lake)
    others = {
        "an append": lambda: lake.ingest(lake.file(flights(50, 300))),
        "plain Lance": lambda: lance.dataset(table.location).delete("carrier = 'AA' AND flight < 300"),
        "a deletion": lambda: delete_rows(opened(lake), "carrier = 'UA' AND flight < 300"),
    }
    pending: list[Callable[[], object]] = [others[by]]
    begun = commit.RowJob._begun

    def late(self: Any, *arguments: Any) -> Any:
        if pending:
            pending.pop()()
        return begun(self, *arguments)

    monkeypatch.setattr(commit.RowJob, "_begun", late)
    delete_rows(table, "flight < 500")
    rows = pa.concat_tables([flights(300), *([flights(50, 300)] if by == "an append" else [])])
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(rows.filter(pc.field("flight") >= 500))
    assert differences(lake) == []


def test_the_second_of_two_changes_at_once_starts_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are prepared on one version, of different fragments; Lance takes one of them."""
    table = filled(lake)
    send, plans = lance.LanceDataset.commit, list[int]()

    def racing(dataset: Any, transaction: Any, **named: Any) -> Any:
        plans.append(transaction.read_version)
        if len(plans) == 1:
            delete_rows(opened(lake), "carrier = 'UA'")
        return send(dataset, transaction, **named)

    monkeypatch.setattr(lance.LanceDataset, "commit", staticmethod(racing))
    delete_rows(table, "carrier = 'AA'")
    assert plans == [2, 2, 3]
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(
        left_by(flights(300), lambda r: r["carrier"] not in ("AA", "UA"))
    )
    assert differences(lake) == []
    folder = lake.folder / "lake" / table.entry.location / "_deletions"
    held = {fragment.deletion_file() for fragment in lance.dataset(table.location).get_fragments()} - {None}
    assert {path.name for path in folder.iterdir()} >= {str(path).rpartition("/")[2] for path in held}


def test_a_table_that_is_rewritten_meanwhile_is_left_alone(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    from deployer.tables.evolution.rewrite.truncate import reinitialise_table
    from deployer.tables.rows import commit

    table = filled(lake)
    begun = commit.RowJob._begun

    def late(self: Any, *arguments: Any) -> Any:
        intent = begun(self, *arguments)
        reinitialise_table(lake.store, lake.root, table.entry.table_id, allow_destroy=True)
        return intent

    monkeypatch.setattr(commit.RowJob, "_begun", late)
    with pytest.raises(Conflict, match="the rows were not changed: the table was rewritten meanwhile"):
        delete_rows(table, "delay = 1")
    assert not lake.open().opened.state.intents and differences(lake) == []


def test_declared_indexes_stay(lake: Lake) -> None:
    from deployer.live.reader import live_table
    from deployer.specs.model import IndexSpec

    table = filled(lake)
    spec = replace(live_table(table.entry, table.state).spec, indexes=(IndexSpec("by_delay", ("delay",), "btree"),))
    settle_indexes(lake.store, lake.root, table.entry.table_id, spec, lambda _: None)
    before = lance.dataset(table.location).stats.index_stats("by_delay")["num_indexed_rows"]
    change = delete_rows(opened(lake), "carrier = 'AA' AND flight < 500")
    statistics = lance.dataset(table.location).stats.index_stats("by_delay")
    assert (statistics["num_indexed_rows"], statistics["num_unindexed_rows"]) == (before - change.rows, 0)
    state = lake.open().opened.state
    assert [index.name for index in live_table(opened(lake).entry, state).spec.indexes] == ["by_delay"]


def recorded(lake: Lake) -> Any:
    """What the state has of the table, but for its moment and ids of partitions."""
    state: TableState = lake.open().opened.state
    return list(state.files), {job: replace(each, at=0) for job, each in state.jobs.items()}, state.lance_version


def test_a_lost_record_is_made_again_as_the_job_would_have(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    from deployer.datasets.commit import protocol

    table = filled(lake)
    copy = lake.folder / "copy"
    shutil.copytree(lake.root, copy)
    other = Lake.__new__(Lake)
    other.folder, other.root = lake.folder, str(copy)
    for each, is_lost in ((lake, False), (other, True)):
        with monkeypatch.context() as patch:
            if is_lost:
                patch.setattr(protocol, "recorded_at_once", lambda *_, **__: None)
            for job, where in (("j1", "carrier = 'AA'"), ("j2", "delay > 100")):
                change: RowChange = delete_rows(open_to_change(each.root, "air.flights"), where, job_id=job)
                assert change.job is not None
    assert recorded(lake) == recorded(other)
    assert table.entry == open_to_change(other.root, "air.flights").entry


def test_a_deletion_is_a_write(lake: Lake) -> None:
    from deployer.tables.inspect.describe import summaries

    change = delete_rows(filled(lake), "delay = 1")
    [found], _ = summaries(lake.store, lake.root)
    assert change.job is not None and found.last_write is not None
    assert round(found.last_write.timestamp() * 1000) == change.job.at
