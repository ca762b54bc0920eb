"""The state stores that a provider has open, and what it may do to them."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from deployer.errors import NotFound
from deployer.live.model import LiveLake, LiveTable
from deployer.live.reader import (
    active_tables,
    instance_owner,
    live_instance,
    read_table,
    read_tables,
    unfinished_tables,
)
from deployer.provider.deletions import Deletions
from deployer.specs.root import resolve_root
from deployer.state import open_store
from deployer.state.model import TableEntry, TableState
from deployer.state.store import StateStore

if TYPE_CHECKING:
    from deployer.provider.declared import Declared

Tables = Mapping[str, tuple[TableEntry, TableState]]

#: Addresses whose data may be destroyed, parted by commas: how `--allow-destroy` reaches a provider that the Pulumi CLI
#: starts as a process of its own.
ALLOW_DESTROY_VARIABLE = "DEPLOYER_ALLOW_DESTROY"


class Stores:
    """Opens the state store of each root once, and closes them together.

    `project_dir` is what relative roots start from. `allow_destroy` holds the addresses whose data may be destroyed,
    `deletions` what may be deleted at all: None where no plan says. `declared` is what the plan of the run was made
    from, if there is one: the program may register nothing else.
    """

    def __init__(
        self,
        project_dir: Path,
        allow_destroy: Collection[str] = (),
        declared: Declared | None = None,
        deletions: Deletions | None = None,
    ) -> None:
        self.project_dir = project_dir
        self.declared = declared
        self.allow_destroy = frozenset(allow_destroy)
        self.deletions = deletions
        self._paths: dict[str, str] = {}
        self._open: dict[str, StateStore] = {}
        self._at_start: dict[str, Tables] = {}
        self._live: dict[tuple[str, str], LiveTable] = {}
        self._runs = 0
        self._lock = threading.Lock()

    def path(self, root: str) -> str:
        """The root as an absolute path or URI."""
        if root not in self._paths:
            self._paths[root] = resolve_root(self.project_dir, root)
        return self._paths[root]

    def store(self, root: str) -> StateStore:
        """The store at this root; NotFound when there is none."""
        path = self.path(root)
        with self._lock:
            if path not in self._open:
                self._open[path] = open_store(path)
            return self._open[path]

    def live_lake(self, root: str) -> LiveLake:
        """The lake as this run found it, rolled forward to what Lance has; an empty one where there is none yet."""
        try:
            store = self.store(root)
        except NotFound:
            return LiveLake(None)
        path, found = self.path(root), self._found(root)
        unread = {table_id: each for table_id, each in found.items() if (path, table_id) not in self._live}
        self._live.update({(path, table_id): table for table_id, table in read_tables(store, path, unread).items()})
        instance = store.instance()
        by_address = {table.spec.address: table for table_id in found if (table := self.live_table(root, table_id))}
        owner = instance_owner(instance)
        return LiveLake(live_instance(instance), by_address, owner, read=True, unfinished=unfinished_tables(store))

    def live_table(self, root: str, table_id: str) -> LiveTable | None:
        """One active table as this run found it; None when it had none of that id. Each is read once a run."""
        key = (self.path(root), table_id)
        if key not in self._live:
            found = self._found(root).get(table_id)
            if found is None:
                return None
            self._live[key] = read_table(self.store(root), self.path(root), *found)
        return self._live[key]

    def found_before(self, root: str, live: LiveLake) -> None:
        """Takes a lake that somebody else has just read as what this run found."""
        self._live.update({(self.path(root), table.table_id): table for table in live.tables.values()})

    def _found(self, root: str) -> Tables:
        """The active tables of a root, read at once for a refresh that asks for each."""
        path, store = self.path(root), self.store(root)
        with self._lock:
            if path not in self._at_start:
                self._at_start[path] = active_tables(store)
            return self._at_start[path]

    def start_run(self) -> None:
        """Forget what an earlier run found. What was read before the first run is part of that run."""
        with self._lock:
            if self._runs:
                self._at_start.clear()
                self._live.clear()
            self._runs += 1

    def forget(self, root: str) -> None:
        """Close the store of a root that is about to be removed."""
        with self._lock:
            store = self._open.pop(self.path(root), None)
        if store is not None:
            store.close()

    def close(self) -> None:
        """Close every store."""
        with self._lock:
            stores, self._open = list(self._open.values()), {}
        for store in stores:
            store.close()
