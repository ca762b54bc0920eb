"""The observation of an instance by an agent: the status of each service, due services, and dead runs.

A check reads the state of all tables at once and applies only new entries. A table is examined again only when its
state, its dataset or the time requires it: states are values, so an unchanged state is the same object. Datasets are
opened only for commits since a service ran.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from deployer.compute.jobs.code import REMOTE_KINDS
from deployer.compute.schedules.schedules import default_cluster
from deployer.datasets.dataset import dataset_location, latest_version
from deployer.datasets.errors import as_deployer_error
from deployer.errors import DeployerError
from deployer.live.freshness import Freshness, freshness_of
from deployer.live.reader import READERS, live_instance, live_table, read_table
from deployer.platform.system.progress import OnProgress, counted, no_progress
from deployer.runs.records import dead_runs
from deployer.services.kinds.compact.planning import small_files
from deployer.services.triggers.due import Due, by_messages, deleted_rows, due_in, retry_at, watched
from deployer.services.triggers.status import GRACE, ServiceStatus, may_start, service_statuses
from deployer.services.triggers.upstream import source_ids, upstream_in
from deployer.specs.model import Cluster, Trigger
from deployer.specs.schema.services import KINDS
from deployer.state.model.entities import InstanceState, TableEntry, TableState
from deployer.state.model.services import Run, Service, ServiceKind
from deployer.state.reader import StateReader
from deployer.state.snapshots.history import Time
from deployer.tables.open_table import ReadTable, read_entry

PICK_UP = 60_000  #: ms after which a queued run without a process is started again
EXAMINE_AGAIN = 30_000  #: ms after which a table with a due or running service is examined again
REMOTE_LOOK = 300_000  #: ms between two checks of a dataset in a bucket, where each costs a request
LOOK_AGAIN = 300_000  #: ms after which the files on a disk of a table without services are checked again
QUEUE = "queue"  #: the option of INGEST that names its queue
QUEUE_LOOK = 15_000  #: ms between two checks of a queue
_SETTLED = 2.0  #: seconds after which each later change alters a folder's time

NEVER = 2**62


@dataclass(frozen=True, slots=True)
class WatchedTable:
    """A table as it was last examined. `due` and `forgotten` have runs for this machine."""

    entry: TableEntry
    state: TableState
    service_statuses: tuple[ServiceStatus, ...] = ()
    due: tuple[Due, ...] = ()
    forgotten: tuple[Run, ...] = ()  #: queued runs whose process has ended
    dead: tuple[Run, ...] = ()
    counts_data: bool = False  #: whether a trigger has a condition on written data
    small_files: int = 0
    again_at: int = NEVER  #: ms
    sources: Mapping[str, int] = field(
        default_factory=dict
    )  #: of a view: the versions of its sources' logs, by their ids
    trouble: str = ""  #: why the table cannot be examined
    freshness: Freshness | None = None  #: of a view


@dataclass(frozen=True, slots=True)
class Look:
    """One check: its time (ms), its duration (s), and the tables by id. `examined` is the number of examined tables."""

    at: int = 0
    seconds: float = 0.0
    tables: Mapping[str, WatchedTable] = field(default_factory=dict)
    examined: int = 0


class Watch:
    """Observes one instance: all tables, or those of some ids. Not safe for threads; its results are."""

    def __init__(
        self,
        store: StateReader,
        root: str,
        grace: float = GRACE,
        only: Collection[str] | None = None,
        opened: Callable[[TableEntry], ReadTable] | None = None,
    ) -> None:
        """`opened` opens a table to which others committed; by default, it is read and nothing is recorded."""
        self._store, self._root, self._grace, self._only = store, root, grace, only
        self._opened = opened or (lambda entry: read_entry(store, root, entry))
        self._is_local = "://" not in root
        self._instance: InstanceState | None = None
        self._entries: dict[str, TableEntry] = {}
        self._folders: dict[str, Path] = {}  # the folder of each dataset's versions, where it is on a disk
        self._clusters: tuple[Cluster, ...] = ()
        self._seen: dict[str, WatchedTable] = {}
        self._states: Mapping[str, TableState] = {}  # as last read
        self._upstream = upstream_in(store)
        #: time of the last check of a dataset (ms); for a local one its folder's time, 0 where that may miss a change
        self._looked_at: dict[str, int] = {}
        self._deleted: dict[str, tuple[tuple[int, int], dict[int, int]]] = {}  # rows by table, and their version

    def look(self, now: int, on_progress: OnProgress = no_progress) -> Look:
        """Checks all tables at `now` (ms). Raises DeployerError when the state cannot be read."""
        begun = time.monotonic()
        instance = self._store.instance()
        if instance is not self._instance:
            self._instance = instance
            self._entries = {
                key: each
                for key, each in instance.tables.items()
                if each.status == "active" and (self._only is None or key in self._only)
            }
            self._folders = {
                key: Path(dataset_location(self._root, each), "_versions") for key, each in self._entries.items()
            }
            spec = live_instance(instance)
            self._clusters = spec.clusters if spec else ()
            for known in (self._seen, self._looked_at, self._deleted):
                for gone in known.keys() - self._entries.keys():
                    del known[gone]
        states, broken = self._store.each_table(self._entries, on_progress)
        self._states = states
        for table_id, why in broken.items():
            self._seen[table_id] = WatchedTable(
                self._entries[table_id], TableState(table_id=table_id), trouble=str(why)
            )
        same = {table_id for table_id, state in states.items() if self._is_same(table_id, state, now, states)}
        moved = self._moved(
            [
                table_id
                for table_id, state in states.items()
                if (self._seen[table_id].counts_data if table_id in same else _counts_data(state))
            ],
            states,
            now,
        )
        examined = [table_id for table_id in states if table_id not in same or table_id in moved]
        for table_id in counted(examined, len(examined), "examining", "tables", on_progress):
            self._seen[table_id] = self._examine(
                self._entries[table_id], states[table_id], now, moved=table_id in moved
            )
        return Look(now, time.monotonic() - begun, dict(self._seen), len(examined))

    def _is_same(self, table_id: str, state: TableState, now: int, states: Mapping[str, TableState]) -> bool:
        """Returns whether a table needs no new examination, by its state, the states of its sources and the time."""
        seen = self._seen.get(table_id)
        return (
            seen is not None
            and seen.state is state
            and seen.entry is self._entries[table_id]
            and now < seen.again_at
            and all(states[each].version == version for each, version in seen.sources.items() if each in states)
        )

    def _moved(self, asked: Sequence[str], states: Mapping[str, TableState], now: int) -> set[str]:
        """Returns the tables with commits of other programs to their datasets. Lists the names of versions, and opens
        nothing."""
        if self._is_local:
            return {table_id for table_id in asked if self._moved_here(table_id, states[table_id])}
        late = [table_id for table_id in asked if self._looked_at.get(table_id, 0) + REMOTE_LOOK <= now]
        if not late:
            return set()
        self._looked_at.update((table_id, now) for table_id in late)
        with ThreadPoolExecutor(min(READERS, len(late)), thread_name_prefix="look") as pool:
            found = pool.map(lambda table_id: self._is_behind(table_id, states[table_id]), late)
            return {table_id for table_id, behind in zip(late, found, strict=True) if behind}

    def _moved_here(self, table_id: str, state: TableState) -> bool:
        try:
            stamp = self._folders[table_id].stat().st_mtime_ns
        except OSError:
            return True  # the examination reports the fault
        if stamp == self._looked_at.get(table_id):
            return False
        behind = self._is_behind(table_id, state)
        # a change within the same tick of the file system's clock would be missed
        is_settled = not behind and time.time() - stamp / 1e9 > _SETTLED
        self._looked_at[table_id] = stamp if is_settled else 0
        return behind

    def _is_behind(self, table_id: str, state: TableState) -> bool:
        try:
            newest = latest_version(dataset_location(self._root, self._entries[table_id]))
        except Exception:  # the examination reports the fault
            return True
        return newest != state.lance_version

    def _examine(self, entry: TableEntry, state: TableState, now: int, *, moved: bool) -> WatchedTable:
        again_at = now + LOOK_AGAIN if self._is_local else NEVER
        try:
            if moved:
                opened = self._opened(entry)
                entry, state = opened.entry, opened.state
            if self._is_local:
                read_table(self._store, self._root, entry, state)
            else:  # whose files cost a request each
                live_table(entry, state)
            freshness = freshness_of(self._store, state)
            if freshness is not None:  # an unchanged view ages, and its sources change
                again_at = min(again_at, now + EXAMINE_AGAIN)
            if not state.services and not state.runs:
                return WatchedTable(entry, state, again_at=again_at, freshness=freshness)
            found = self._examined_services(entry, state, now)
            return replace(found, freshness=freshness, again_at=min(again_at, found.again_at)) if freshness else found
        except Exception as error:  # a fault of one table, such as an unreadable file, does not affect others
            trouble = str(as_deployer_error(error, dataset_location(self._root, entry)))
            return WatchedTable(entry, state, trouble=trouble, again_at=now + EXAMINE_AGAIN)

    def _examined_services(self, entry: TableEntry, state: TableState, now: int) -> WatchedTable:
        def deleted() -> dict[int, int]:
            return self._deleted_rows(entry, state)

        found = tuple(
            service_statuses(state, now, deleted, lambda: self._before(state, now), self._grace, self._upstream)
        )
        ours = {kind for kind, service in state.services.items() if self._is_ours(service)}
        due = tuple(each for each in due_in(state, deleted, now, self._upstream) if each.service in ours)
        due += tuple(self._named_by_queues(state, ours - {each.service for each in due}, now))
        queued = [run for run in state.runs.values() if run.status == "QUEUED" and run.service in KINDS]
        forgotten = tuple(
            run
            for run in queued
            if run.queued_at + PICK_UP <= now and is_here(run.cluster, self._clusters) and _may_go_on(state, run)
        )
        dead = tuple(dead_runs(state, now))
        again_at = self._again_at(state, found, due, now)
        sources = {each: self._states[each].version for each in source_ids(state) if each in self._states}
        return WatchedTable(
            entry=entry,
            state=state,
            service_statuses=found,
            due=due,
            forgotten=forgotten,
            dead=dead,
            counts_data=_counts_data(state),
            small_files=small_files(state),
            again_at=again_at,
            sources=sources,
        )

    def _named_by_queues(self, state: TableState, ours: Collection[ServiceKind], now: int) -> Iterator[Due]:
        """Yields the services of this machine that have messages in their queues. The scheduled run reports a queue
        that cannot be read."""
        for service, _ in watched(state):
            queue = service.options.get(QUEUE)
            if service.kind in ours and isinstance(queue, str) and now >= retry_at(state, service.kind):
                from deployer.services.kinds.ingest.queue import waiting

                with suppress(DeployerError):
                    if messages := waiting(queue):
                        yield by_messages(state, service.kind, messages)

    def _again_at(self, state: TableState, found: tuple[ServiceStatus, ...], due: tuple[Due, ...], now: int) -> int:
        """Returns the time (ms) at which the table has to be examined again without a change."""
        times = [each.next_at for each in found if each.next_at is not None]
        times += [now + QUEUE_LOOK for service, _ in watched(state) if service.options.get(QUEUE)]
        times += [retry for each in found if (retry := retry_at(state, each.service)) > now]
        if due or any(each.due or each.overdue for each in found) or any(run.is_open for run in state.runs.values()):
            times.append(now + EXAMINE_AGAIN)
        return min(times, default=NEVER)

    def _before(self, state: TableState, now: int) -> TableState | None:
        """Returns the table's state from one grace period ago; None where it is not kept."""
        try:
            return self._store.table(state.table_id, at=Time(now - round(self._grace * 1000)))
        except DeployerError:
            return None

    def _deleted_rows(self, entry: TableEntry, state: TableState) -> dict[int, int]:
        version = (state.dataset, state.lance_version)
        known = self._deleted.get(entry.table_id)
        if known is None or known[0] != version:
            known = version, deleted_rows(ReadTable(self._store, self._root, entry, state))
            self._deleted[entry.table_id] = known
        return known[1]

    def _is_ours(self, service: Service) -> bool:
        return is_here(service.cluster, self._clusters)


def is_here(cluster: str | None, clusters: tuple[Cluster, ...]) -> bool:
    """Returns whether services of that cluster run on this machine; schedules and loads on AWS start the services
    there."""
    if cluster is None:
        return default_cluster(clusters) is None
    return not any(each.name == cluster and each.kind in REMOTE_KINDS for each in clusters)


def _may_go_on(state: TableState, run: Run) -> bool:
    service = state.services.get(run.service)
    return may_start(state, run.service) and not (service is not None and service.paused)


def _counts_data(state: TableState) -> bool:
    return any(trigger != Trigger(trigger.schedule, trigger.timezone) for _, trigger in watched(state))
