"""Maintenance is recorded as runs with leases, and runs the services of the instance's tables."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from deployer.catalog.datasets.maintenance import EVERYTHING
from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.datasets.reads.index import Indexes
from deployer.catalog.datasets.search.searches import Searches
from deployer.catalog.datasets.upkeep import log_of_runs, maintain_all, maintain_as_runs, maintenance_runs
from deployer.cli.main import run
from deployer.platform.system.clock import Clock
from deployer.runs.records import begin_runs, runs_of
from deployer.services.savepoints.savepoints import delete_savepoint, make_savepoint
from deployer.state import open_store
from deployer.state.log.service_updates import PutService
from deployer.state.model.services import Service
from deployer.state.store import StateStore
from deployer.tables.maintenance.verify.verify import verify
from tests.catalog.clients import Client, refused
from tests.catalog.datasets.catalog import Catalog, catalog_at
from tests.catalog.datasets.recordings import scalars
from tests.catalog.datasets.test_maintenance import do_maintenance
from tests.tables.lakes import Lake, flights


def test_maintenance_is_listed_as_runs(catalog: Catalog, root: str, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = catalog.create()
    catalog.register(dataset, catalog.recording("one", scalars("/a", [1])))
    catalog.register(dataset, catalog.recording("two", scalars("/a", [2])))
    do_maintenance(catalog, dataset, compact_fragments=True)
    do_maintenance(catalog, dataset, compact_fragments=True)
    do_maintenance(catalog, dataset, cleanup_before={"seconds": 1})
    assert run(["catalog", "runs", "drives", "--root", root, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["runs"]
    assert [(each["dataset"], each["service"], each["status"]) for each in listed] == [
        ("drives", "CLEAN", "SUCCEEDED"),
        ("drives", "COMPACT", "SKIPPED"),
        ("drives", "COMPACT", "SUCCEEDED"),
    ]
    assert listed[0]["figures"]["after"] == {"layers": 2, "chunks": 2, "tasks": 2}
    assert run(["catalog", "runs", "--root", root]) == 0 and "COMPACT" in capsys.readouterr().out


def test_progress_counts_datasets_with_nothing_to_do(catalog: Catalog, root: str) -> None:
    for name in ("a", "b", "c"):
        dataset = catalog.create(name)
        catalog.register(dataset, catalog.recording(f"{name}1", scalars("/a", [1])))
    reported = list[tuple[int, int | None]]()
    with closing(open_store(root)) as store:
        datasets = Datasets(store, root)
        every = len(list(datasets.all()))
        maintained = maintain_all(
            datasets,
            Searches(datasets, Indexes(root)),
            EVERYTHING,
            lambda each: reported.append((each.done, each.total)),
        )
        assert not list(maintained) and every >= 3
    assert reported == [(done, every) for done in range(every + 1)]


def test_one_run_of_a_kind_is_running_and_a_dead_one_is_taken_over(catalog: Catalog, root: str) -> None:
    dataset = catalog.create()
    catalog.register(dataset, catalog.recording("one", scalars("/a", [1])))
    catalog.register(dataset, catalog.recording("two", scalars("/a", [2])))
    with closing(open_store(root)) as store:
        datasets = Datasets(store, root)
        searches = Searches(datasets, Indexes(root))
        log = log_of_runs(datasets, datasets.by_id(dataset))
        begin_runs(store, [log], "COMPACT", cause="of another process", lease=600)
        with refused("ABORTED", "COMPACT"):
            do_maintenance(catalog, dataset, compact_fragments=True)
        assert list(maintain_all(datasets, searches)) == []  # the others are not kept off by it
        assert "removed" in do_maintenance(catalog, dataset, cleanup_before={"seconds": 1})
    other = catalog.create("other")
    for name in ("three", "four"):
        catalog.register(other, catalog.recording(name, scalars("/a", [1])))
    with closing(open_store(root)) as store:
        begin_runs(
            store, [log_of_runs(datasets, datasets.by_id(other))], "COMPACT", cause="of a process that died", lease=-1
        )
        assert "Compacted" in do_maintenance(catalog, other, compact_fragments=True)
        assert [each.status for each in maintenance_runs(store, datasets.by_id(other))] == ["SUCCEEDED", "FAILED"]


def test_logs_of_runs_are_verified_snapshotted_and_go_with_their_dataset(catalog: Catalog, root: str) -> None:
    dataset = catalog.create()
    catalog.register(dataset, catalog.recording("one", scalars("/a", [1])))
    with closing(open_store(root)) as store:
        datasets = Datasets(store, root)
        searches = Searches(datasets, Indexes(root))
        record = datasets.by_id(dataset)
        assert maintain_as_runs(datasets, searches, dataset, EVERYTHING, "on demand") == []
        store.snapshot(record.log)
    with closing(open_store(root)) as store:
        datasets = Datasets(store, root)
        [one] = maintenance_runs(store, record)
        assert one.status == "SKIPPED" and not _faults(store, root)
        make_savepoint(store, root, [], "then", catalog=True)
        catalog.client.delete(catalog.client.entry("drives"))
        assert record.log in store.logs() and not _faults(store, root)
        later = Datasets(store, root, Clock(now=lambda: store._clock.now() + 2 * 3_600_000))
        assert [name for name, _ in maintain_all(later, Searches(later, Indexes(root)))] == []
        delete_savepoint(store, root, [], "then", catalog=True)
        assert len(list(maintain_all(later, Searches(later, Indexes(root))))) == 3 and not _faults(store, root)
        assert record.log not in store.logs()


def _faults(store: StateStore, root: str) -> list[str]:
    return [str(each) for found in verify(store, root, [], full=True) for each in found.more]


@pytest.mark.full
def test_global_maintenance_runs_the_services_that_tables_have(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    lake.table()
    lake.table(name="others")
    for start in range(3):
        lake.ingest(lake.file(flights(40, 40 * start)))
        lake.ingest(lake.file(flights(40, 40 * start)), table="others")
    ids = {entry.name: entry.table_id for entry in lake.store.instance().tables.values()}
    lake.store.commit(ids["flights"], [PutService(Service("COMPACT", options={"min_files": 2}))])
    lake.store.commit(ids["flights"], [PutService(Service("CLEAN", paused=True))])
    with catalog_at(lake.root, tmp_path) as catalog:
        _maintain(catalog.client)
    with closing(open_store(lake.root)) as store:
        runs = {name: runs_of(store.table(table_id)) for name, table_id in ids.items()}
        assert [(each.service, each.status) for each in runs["flights"]] == [("COMPACT", "SUCCEEDED")]
        assert store.table(ids["flights"]).files.rows == 120 and runs["others"] == []


def _maintain(client: Client) -> None:
    client("DoGlobalMaintenance")
