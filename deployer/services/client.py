"""`TableServicesClient`: table services managed from Python. Names, arguments and defaults are those of the reference.

A lake is an instance, called by its name. Every method waits for what it does, for ever unless `timeout` (seconds) is
given, looking again each `poll_interval` seconds; a TimeoutError leaves what was begun going on and says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from deployer.compute.clusters import local_cluster
from deployer.errors import DeployerError, InvalidInput, NotFound
from deployer.live.reader import live_instance
from deployer.services import management
from deployer.services.attached import find_service
from deployer.services.described import TableService, described
from deployer.services.management import RUNNABLE, Texts
from deployer.services.processes import start_local_run
from deployer.services.run import runnable
from deployer.services.runs import fail_dead_runs, runs_of
from deployer.specs.service_schema import kind_named
from deployer.specs.words import one_of
from deployer.state import open_store
from deployer.state.services import Run, ServiceKind
from deployer.state.store import StateStore
from deployer.tables.dataset import OpenTable, find_entry, open_entry

POLL = 0.5  #: seconds between two looks unless told otherwise


class TimedOut(DeployerError, TimeoutError):
    """What was waited for was not over in time, and goes on."""


class TableServicesClient:
    """The table services of one or several lakes, by the roots where they live.

    >>> client = TableServicesClient("lakes/nyc")  # doctest: +SKIP
    """

    def __init__(self, *roots: str, author: str | None = None) -> None:
        if not roots:
            raise InvalidInput(
                "no lake is given", remedy="give the roots of lakes, such as lakes/nyc or s3://bucket/nyc"
            )
        self._author = author
        self._stores: dict[str, tuple[str, StateStore]] = {}
        for root in roots:
            store = open_store(root)
            instance = live_instance(store.instance())
            self._stores[instance.name if instance else root] = (root, store)

    def create_table_service(
        self,
        *,
        lake: str,
        database: str,
        table: str,
        service: str,
        trigger_mode: str | None = None,
        options: Texts | None = None,
        unsafe_raw: bool = False,
        timeout: float | None = None,
        poll_interval: float | None = None,
    ) -> TableService:
        """Attaches a service. `options` are its options, and conditions of its trigger such as `schedule` or `commits`.

        Without a `trigger_mode` it is AUTOMATIC, with the kind's own trigger unless `options` have one. With
        `unsafe_raw` options are taken as they are.
        """
        kind, found = kind_named(service), self._table(lake, database, table)
        made = management.attach(found, kind, trigger_mode, options, unsafe_raw=unsafe_raw, author=self._author)
        return described(lake, found.refreshed(), made)

    def alter_table_service(
        self,
        *,
        lake: str,
        database: str,
        table: str,
        service: str,
        trigger_mode: str,
        options: Texts | None = None,
        unsafe_raw: bool = False,
        timeout: float | None = None,
        poll_interval: float | None = None,
    ) -> TableService:
        """Changes the trigger mode; and options or trigger, each as a whole, where `options` name any of them."""
        kind, found = kind_named(service), self._table(lake, database, table)
        now = management.alter(found, kind, trigger_mode, options, unsafe_raw=unsafe_raw, author=self._author)
        return described(lake, found.refreshed(), now)

    def alter_services_cluster_in_table(
        self,
        table: str,
        *,
        lake: str,
        database: str,
        services_cluster: str,
        unsafe_raw: bool = False,
        timeout: float | None = None,
        poll_interval: float | None = None,
    ) -> tuple[TableService, ...]:
        """Moves all services of the table to another of the instance's clusters."""
        found = self._table(lake, database, table)
        for kind in found.state.services:
            management.alter(found, kind, cluster=services_cluster, author=self._author)
        return self.show_table_services(lake=lake, database=database, table=table)

    def run_service_in_table(
        self,
        table: str,
        *,
        lake: str,
        database: str,
        service: str,
        unsafe_raw: bool = False,
        timeout: float | None = None,
        poll_interval: float | None = None,
    ) -> Run:
        """Runs a service, attached or not, in a process of its own, and gives the run when it is over.

        A run that fails is given too: `status` and `reason` tell. Raises TimedOut, a TimeoutError, when it is not over
        in time: it goes on.
        """
        kind, found = runnable(service), self._table(lake, database, table)
        _require_local(found, kind)
        fail_dead_runs(found.store, found.entry.table_id)
        run = management.queue(found.refreshed(), kind, author=self._author)
        process = start_local_run(found.store, found.root, found.entry, run)
        return self._ended(found, run, timeout, poll_interval, process.settle)

    def pause_table_service(
        self,
        *,
        lake: str,
        database: str,
        table: str,
        service: str,
        unsafe_raw: bool = False,
        timeout: float | None = None,
        poll_interval: float | None = None,
    ) -> TableService:
        """No run of it starts from now on; one that is running waits, and goes on when it is resumed."""
        found = self._table(lake, database, table)
        return described(lake, found, management.pause(found, kind_named(service), author=self._author))

    def resume_table_service(
        self,
        *,
        lake: str,
        database: str,
        table: str,
        service: str,
        unsafe_raw: bool = False,
        timeout: float | None = None,
        poll_interval: float | None = None,
    ) -> TableService:
        """Undoes a pause."""
        found = self._table(lake, database, table)
        return described(lake, found, management.resume(found, kind_named(service), author=self._author))

    def cancel_table_service(
        self,
        *,
        lake: str,
        database: str,
        table: str,
        service: str,
        unsafe_raw: bool = False,
        timeout: float | None = None,
        poll_interval: float | None = None,
    ) -> Run:
        """Cancels the run of it that is queued or running, and gives it when it has ended. What it committed stands."""
        found = self._table(lake, database, table)
        run = management.cancel(found, kind_named(service, RUNNABLE), author=self._author)
        return self._ended(found, run, timeout, poll_interval)

    def describe_table_service(
        self,
        *,
        lake: str,
        database: str,
        table: str,
        service: str,
        unsafe_raw: bool = False,
        timeout: float | None = None,
        poll_interval: float | None = None,
    ) -> TableService:
        """One service, with all of its settings and its newest run."""
        found = self._table(lake, database, table)
        return described(lake, found, find_service(found.state, kind_named(service), found.address))

    def show_table_services(
        self,
        *,
        lake: str,
        database: str,
        table: str,
        unsafe_raw: bool = False,
        timeout: float | None = None,
        poll_interval: float | None = None,
    ) -> tuple[TableService, ...]:
        """All services of the table."""
        found = self._table(lake, database, table)
        return tuple(described(lake, found, each) for each in found.state.services.values())

    def show_runs_in_table_service(
        self,
        *,
        lake: str,
        database: str,
        table: str,
        service: str,
        unsafe_raw: bool = False,
        timeout: float | None = None,
        poll_interval: float | None = None,
    ) -> tuple[Run, ...]:
        """The runs of one service, the newest first; the newest hundred are kept."""
        return tuple(runs_of(self._table(lake, database, table).state, kind_named(service, RUNNABLE)))

    def close(self) -> None:
        for _, store in self._stores.values():
            store.close()

    def __enter__(self) -> TableServicesClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _table(self, lake: str, database: str, table: str) -> OpenTable:
        if lake not in self._stores:
            raise NotFound(f"no lake is called `{lake}`", remedy=one_of(lake, tuple(self._stores)))
        root, store = self._stores[lake]
        return open_entry(store, root, find_entry(store.instance().tables.values(), f"{database}.{table}"))

    def _ended(
        self,
        table: OpenTable,
        run: Run,
        timeout: float | None,
        poll_interval: float | None,
        look: Callable[[], None] = lambda: None,
    ) -> Run:
        """The run once it is over."""
        give_up = None if timeout is None else time.monotonic() + timeout
        while run.is_open:
            if give_up is not None and time.monotonic() >= give_up:
                raise TimedOut(
                    f"the run {run.run_id} of {run.service} is {run.status.lower()} after {timeout:g} s, and goes on",
                    where=table.address,
                    remedy="look at it with show_runs_in_table_service, or end it with cancel_table_service",
                )
            time.sleep(POLL if poll_interval is None else poll_interval)
            look()
            fail_dead_runs(table.store, table.entry.table_id)
            run = table.store.table(table.entry.table_id).runs[run.run_id]
        return run


def _require_local(table: OpenTable, kind: ServiceKind) -> None:
    """Raises Refused when the service is on a cluster that is not this machine."""
    service, instance = table.state.services.get(kind), live_instance(table.store.instance())
    if service is not None and service.cluster is not None and instance is not None:
        local_cluster(instance.clusters, service.cluster, table.address)
