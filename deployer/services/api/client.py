"""`TableServicesClient`: table services managed from Python. Names, arguments and defaults are those of the reference.
`detach_table_service` and `reset_services_cluster_in_table`, which the reference does not have, follow them.

A lake is an instance, called by its name. Every method waits for its result, without a limit unless `timeout` (seconds)
is given, and polls every `poll_interval` seconds. After a TimeoutError the work continues. Arguments are checked first:
InvalidInput names the wrong one.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from types import TracebackType

from deployer.errors import InvalidInput, NotFound
from deployer.live.reader import live_instance
from deployer.runs.records import runs_of
from deployer.runs.wait import TimedOut, wait_for
from deployer.services.api import management
from deployer.services.api.arguments import checked
from deployer.services.api.attachments import find_service
from deployer.services.api.management import RECORDED
from deployer.services.api.start import start_on_demand
from deployer.services.api.views import TableService, described
from deployer.services.registry import runnable
from deployer.specs.schema.services import kind_named
from deployer.specs.yaml.suggestions import one_of
from deployer.state import open_store
from deployer.state.model.services import Run, Service
from deployer.state.store import StateStore
from deployer.tables.open_table import OpenTable, find_entry, open_entry

__all__ = ["TableServicesClient", "TimedOut"]


class TableServicesClient:
    """The table services of one or several lakes, by the roots where they live. It holds their state stores open until
    `close`, the end of a `with` block, or until nothing refers to it.
    """

    def __init__(self, *roots: str, author: str | None = None) -> None:
        _check_roots(roots, author)
        self._author = author
        self._stores: dict[str, tuple[str, StateStore]] = {}
        self._release = weakref.finalize(self, _close, self._stores)
        try:
            for root in roots:
                self._open(root)
        except BaseException:
            self.close()
            raise

    @checked
    def create_table_service(
        self,
        *,
        lake: str,
        database: str,
        table: str,
        service: str,
        trigger_mode: str | None = None,
        options: Mapping[str, str] | None = None,
        unsafe_raw: bool = False,
        timeout: float | None = None,
        poll_interval: float | None = None,
    ) -> TableService:
        """Attaches a service. `options` are its options, and conditions of its trigger such as `schedule` or `commits`.

        The default `trigger_mode` is AUTOMATIC, with the kind's own trigger unless `options` have one. With
        `unsafe_raw`, options are not checked.
        """
        kind, found = kind_named(service), self._table(lake, database, table)
        made = management.attach(found, kind, trigger_mode, options, unsafe_raw=unsafe_raw, author=self._author)
        return _described(lake, found.refreshed(), made)

    @checked
    def alter_table_service(
        self,
        *,
        lake: str,
        database: str,
        table: str,
        service: str,
        trigger_mode: str,
        options: Mapping[str, str] | None = None,
        unsafe_raw: bool = False,
        timeout: float | None = None,
        poll_interval: float | None = None,
    ) -> TableService:
        """Changes the trigger mode; and options or trigger, each as a whole, where `options` name any of them."""
        kind, found = kind_named(service), self._table(lake, database, table)
        now = management.alter(found, kind, trigger_mode, options, unsafe_raw=unsafe_raw, author=self._author)
        return _described(lake, found.refreshed(), now)

    @checked
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
        """Moves all services of the table to another of the instance's clusters, and those attached later: all or none.

        Raises InvalidInput for a cluster that the instance does not declare, Conflict while one of the services runs.
        """
        found = self._table(lake, database, table)
        management.move(found, services_cluster, author=self._author)
        return _all_described(lake, found.refreshed())

    @checked
    def reset_services_cluster_in_table(
        self,
        table: str,
        *,
        lake: str,
        database: str,
        unsafe_raw: bool = False,
        timeout: float | None = None,
        poll_interval: float | None = None,
    ) -> tuple[TableService, ...]:
        """Undoes `alter_services_cluster_in_table`: services that were moved, and those attached later, run on the
        default cluster. The next `deployer up` moves those that specs declare to the clusters that the specs name.

        Raises Conflict while one of the services runs; then none is changed.
        """
        found = self._table(lake, database, table)
        management.reset(found, author=self._author)
        return _all_described(lake, found.refreshed())

    @checked
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
        """Runs a service, attached or not, in a process of its own or on the service's cluster; returns the ended run.

        A failed run is returned too, with its `status` and `reason`. Raises TimedOut, a TimeoutError, when the run does
        not end in time: it continues, even after this process ends. Ctrl-C, and any other error, ends the run.
        """
        kind, found = runnable(service), self._table(lake, database, table)
        run, working = start_on_demand(found, kind, author=self._author)
        return wait_for(found, run, timeout, poll_interval, working)

    @checked
    def detach_table_service(
        self,
        *,
        lake: str,
        database: str,
        table: str,
        service: str,
        unsafe_raw: bool = False,
        timeout: float | None = None,
        poll_interval: float | None = None,
    ) -> None:
        """Detaches a service; its runs stay listed. Raises NotFound, and Conflict while a run of it is open."""
        management.detach(self._table(lake, database, table), kind_named(service), author=self._author)

    @checked
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
        """Pauses a service: no run of it starts, and a running one waits until it is resumed."""
        found = self._table(lake, database, table)
        now = management.pause(found, kind_named(service), author=self._author)
        return _described(lake, found.refreshed(), now)

    @checked
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
        """Undoes a pause: runs may start, and a waiting one continues."""
        found = self._table(lake, database, table)
        now = management.resume(found, kind_named(service), author=self._author)
        return _described(lake, found.refreshed(), now)

    @checked
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
        """Cancels the service's queued or running run, and returns the run when it has ended. Its commits are kept."""
        found = self._table(lake, database, table)
        run = management.cancel(found, kind_named(service, RECORDED), author=self._author)
        return wait_for(found, run, timeout, poll_interval)

    @checked
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
        """Returns one service with all of its settings and its newest run."""
        found = self._table(lake, database, table)
        return _described(lake, found, find_service(found.state, kind_named(service), found.address))

    @checked
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
        """Returns all services of the table."""
        return _all_described(lake, self._table(lake, database, table))

    @checked
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
        """Returns the runs of one service, the newest first; the newest hundred are kept."""
        return tuple(runs_of(self._table(lake, database, table).state, kind_named(service, RECORDED)))

    def close(self) -> None:
        """Closes the state stores. Runs that were left after a TimeoutError continue."""
        self._release()

    def __enter__(self) -> TableServicesClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _open(self, root: str) -> None:
        store = open_store(root)
        try:
            instance = live_instance(store.instance())
            name = instance.name if instance else root
            if name in self._stores:
                known = self._stores[name][0]
                raise InvalidInput(
                    f"the lakes at {known} and {root} are both called `{name}`", remedy="use a client for each of them"
                )
        except BaseException:
            store.close()
            raise
        self._stores[name] = (root, store)

    def _table(self, lake: str, database: str, table: str) -> OpenTable:
        if not self._release.alive:
            raise InvalidInput("the client is closed", remedy="make another one")
        if lake not in self._stores:
            raise NotFound(f"no lake is called `{lake}`", remedy=one_of(lake, tuple(self._stores)))
        root, store = self._stores[lake]
        return open_entry(store, root, find_entry(store.instance().tables.values(), f"{database}.{table}"))


def _described(lake: str, table: OpenTable, service: Service) -> TableService:
    [found] = described(lake, table, [service])
    return found


def _all_described(lake: str, table: OpenTable) -> tuple[TableService, ...]:
    return described(lake, table, table.state.services.values())


def _check_roots(roots: tuple[object, ...], author: object) -> None:
    if not roots:
        raise InvalidInput("no lake is given", remedy="give the roots of lakes, such as lakes/nyc or s3://bucket/nyc")
    for number, root in enumerate(roots, 1):
        if not isinstance(root, str):
            raise InvalidInput(f"root number {number} is of type {type(root).__name__}", remedy="give a string")
    if author is not None and not isinstance(author, str):
        raise InvalidInput(f"`author` is of type {type(author).__name__}", remedy="give a string")


def _close(stores: dict[str, tuple[str, StateStore]]) -> None:
    for _, store in stores.values():
        store.close()
