"""The state stores that a provider has open, and what it may do to them."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from pathlib import Path

from deployer.specs.root import resolve_root
from deployer.state import open_store
from deployer.state.model import TableEntry, TableState
from deployer.state.store import StateStore

Tables = Mapping[str, tuple[TableEntry, TableState]]

#: Addresses whose data may be destroyed, parted by commas: how `--allow-destroy` reaches a provider that the Pulumi CLI
#: starts as a process of its own.
ALLOW_DESTROY_VARIABLE = "DEPLOYER_ALLOW_DESTROY"


class Stores:
    """Opens the state store of each root once, and closes them together.

    `project_dir` is what relative roots start from. `allow_destroy` holds the addresses whose data may be destroyed.
    """

    def __init__(self, project_dir: Path, allow_destroy: Collection[str] = ()) -> None:
        self.project_dir = project_dir
        self.allow_destroy = frozenset(allow_destroy)
        self._open: dict[str, StateStore] = {}
        self._at_start: dict[str, Tables] = {}
        self._lock = threading.Lock()

    def path(self, root: str) -> str:
        """The root as an absolute path or URI."""
        return resolve_root(self.project_dir, root)

    def store(self, root: str) -> StateStore:
        """The store at this root; NotFound when there is none."""
        path = self.path(root)
        with self._lock:
            if path not in self._open:
                self._open[path] = open_store(path)
            return self._open[path]

    def at_start(self, root: str) -> Tables:
        """The active tables of a root as this run found them, read at once for a refresh that asks for each."""
        path, store = self.path(root), self.store(root)
        with self._lock:
            if path not in self._at_start:
                entries = store.instance().tables
                active = [table_id for table_id, entry in entries.items() if entry.status == "active"]
                states = store.tables(active)
                self._at_start[path] = {table_id: (entries[table_id], states[table_id]) for table_id in active}
            return self._at_start[path]

    def start_run(self) -> None:
        """Forget what an earlier run found."""
        with self._lock:
            self._at_start.clear()

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
