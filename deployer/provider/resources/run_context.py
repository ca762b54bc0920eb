"""The open state stores of a provider, and the provider's permissions on them."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deployer.errors import NotFound
from deployer.live.model import LiveDataset, LiveLake, LiveTable, Unreadable
from deployer.live.reader import (
    ActiveTables,
    active_tables,
    lake_of,
    live_instance,
    read_or_why,
    read_tables,
    unfinished_tables,
)
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.provider.resources.deletions import Deletions
from deployer.provider.resources.live_datasets import with_datasets
from deployer.specs.model import TableSpec
from deployer.specs.values.root import resolve_root
from deployer.state import open_reader, open_store
from deployer.state.reader import StateReader
from deployer.state.store import StateStore

if TYPE_CHECKING:
    from deployer.provider.resources.declared import DeclaredResources

# : Addresses whose data may be destroyed, separated by commas: the value of `--allow-destroy` for a provider that the
# Pulumi : CLI starts as a separate process.
ALLOW_DESTROY_VARIABLE = "DEPLOYER_ALLOW_DESTROY"
#: the stack's exports about its clusters, as JSON, where a table may be rewritten there
OUTPUTS_VARIABLE = "DEPLOYER_CLUSTERS"
#: Set to 1 where tables may be deleted with their savepoints: the value of `--delete-savepoints` for such a provider
DELETE_SAVEPOINTS_VARIABLE = "DEPLOYER_DELETE_SAVEPOINTS"
#: Set to 1 where a lost state store may be replaced: the value of `--new-state` for such a provider
NEW_STATE_VARIABLE = "DEPLOYER_NEW_STATE"


class Stores:
    """Opens the state store of each root once, and closes them together.

    Reads never write, so previews need no write permission; a store is opened for writing when the first resource is
    changed.

    Live state is read once, for the plan and for the run that applies it. Relative roots start from `project_dir`.
    `allow_destroy` has the addresses whose data may be destroyed, `deletions` the resources that may be deleted (None
    without a plan). `declared` are the specs of the run's plan, if there is one; the program may register nothing else.
    """

    def __init__(
        self,
        project_dir: Path,
        allow_destroy: Collection[str] = (),
        declared: DeclaredResources | None = None,
        deletions: Deletions | None = None,
    ) -> None:
        self.project_dir = project_dir
        self.declared = declared
        self.allow_destroy = frozenset(allow_destroy)
        self.deletions = deletions
        self.new_state = False  #: whether an instance may be created beside the datasets of one whose state was lost
        self.outputs: Mapping[str, Any] = {}  #: outputs of the stack that determine where jobs run
        self.delete_savepoints = False  #: whether tables may be deleted with their savepoints
        self._paths: dict[str, str] = {}
        self._moved: dict[str, bool] = {}
        self._readers: dict[str, StateReader] = {}
        self._stores: dict[str, StateStore] = {}
        self._at_start: dict[str, ActiveTables] = {}
        self._some: dict[str, ActiveTables] = {}  #: the targets of a run with targets
        self._live: dict[tuple[str, str], LiveTable | Unreadable] = {}
        self._lock = threading.Lock()

    def path(self, root: str) -> str:
        """Returns the root as an absolute path or URI."""
        if root not in self._paths:
            self._paths[root] = resolve_root(self.project_dir, root)
        return self._paths[root]

    def current_root(self, root: str) -> str:
        """Returns the declared root if the lake was moved there from `root`, otherwise `root`.

        A lake was moved when `root` is empty and the lake at the declared root still records `root`.
        """
        if self.declared is None or self.path(self.declared.root) == self.path(root):
            return root
        if root not in self._moved:
            self._moved[root] = self._was_moved(root, self.declared.root)
        return self.declared.root if self._moved[root] else root

    def _was_moved(self, root: str, to: str) -> bool:
        try:
            self.reader(root)
        except NotFound:
            pass
        else:
            return False
        try:
            live = live_instance(self.reader(to).instance())
        except NotFound:
            return False
        return live is not None and self.path(live.root) == self.path(root)

    def reader(self, root: str) -> StateReader:
        """Returns the state at this root for reading. Raises NotFound when there is none."""
        path = self.path(root)
        with self._lock:
            if path not in self._readers:
                self._readers[path] = open_reader(path)
            return self._readers[path]

    def store(self, root: str) -> StateStore:
        """Returns the store at this root for writing. Raises NotFound when there is none."""
        path = self.path(root)
        with self._lock:
            if path not in self._stores:
                self._stores[path] = open_store(path)
            return self._stores[path]

    def addresses(self, root: str) -> dict[str, str]:
        """Returns the addresses of the tables and datasets in the state store, by id; empty if there is none yet."""
        try:
            tables = self.reader(root).instance().tables
        except NotFound:
            return {}
        found = {table_id: entry.address for table_id, entry in tables.items()}
        return found | {each.dataset_id: each.spec.address for each in self.datasets(root).values()}

    def live_lake(
        self, root: str, only: Collection[str] | None = None, on_progress: OnProgress = no_progress
    ) -> LiveLake:
        """Returns the lake as this run found it, with everything that Lance has; an empty lake where there is none yet.

        `only` reads only the tables at these addresses.
        """
        try:
            reader = self.reader(root)
        except NotFound:
            return LiveLake(None)
        path = self.path(root)
        at_start = self._found(root, on_progress) if only is None else active_tables(reader, only, on_progress)
        if only is not None:
            self._some[path] = at_start
        unread = {table_id: each for table_id, each in at_start.found.items() if (path, table_id) not in self._live}
        tables = read_tables(reader, path, unread, on_progress)
        self._live.update({(path, table_id): table for table_id, table in tables.items()})
        read = [self._live[path, table_id] for table_id in at_start.found if (path, table_id) in self._live]
        live = lake_of(reader.instance(), [*read, *at_start.unreadable.values(), *unfinished_tables(reader, only)])
        return with_datasets(live, reader.instance(), only)

    def datasets(self, root: str) -> Mapping[str, LiveDataset]:
        """Returns the datasets of recordings by address. Raises NotFound where there is no lake."""
        return with_datasets(LiveLake(None), self.reader(root).instance()).datasets

    def live_table(self, root: str, table_id: str) -> LiveTable | Unreadable | None:
        """Returns one active table as this run found it; None when no table had that id. Each table is read once in a
        run."""
        key, at_start = (self.path(root), table_id), self._found_of(root, table_id)
        if table_id in at_start.unreadable:
            return at_start.unreadable[table_id]
        if key not in self._live and table_id in at_start.found:
            read = read_or_why(self.reader(root), self.path(root), *at_start.found[table_id])
            if read is not None:
                self._live[key] = read
        return self._live.get(key)

    def planned_with(self, root: str, table_id: str) -> TableSpec | None:
        """Returns the table that this run's plan was made from; None when the run has not read it."""
        found = self._live.get((self.path(root), table_id))
        return found.spec if isinstance(found, LiveTable) else None

    def forget_table(self, root: str, table_id: str) -> None:
        """Drops the read state of a table that this run has changed."""
        path = self.path(root)
        with self._lock:
            self._live.pop((path, table_id), None)
            self._at_start.pop(path, None)
            self._some.pop(path, None)

    def found_before(self, root: str, live: LiveLake) -> None:
        """Uses a lake that the caller has just read as the lake of this run."""
        self._live.update({(self.path(root), table.table_id): table for table in live.tables.values()})

    def _found_of(self, root: str, table_id: str) -> ActiveTables:
        """Returns the active tables of a root; for a table among the targets, those of the targeted run suffice."""
        some = self._some.get(self.path(root), ActiveTables())
        return some if table_id in some.found or table_id in some.unreadable else self._found(root)

    def _found(self, root: str, on_progress: OnProgress = no_progress) -> ActiveTables:
        """Returns the active tables of a root, which are read together for a refresh."""
        path, reader = self.path(root), self.reader(root)
        with self._lock:
            if path not in self._at_start:
                self._at_start[path] = active_tables(reader, on_progress=on_progress)
            return self._at_start[path]

    def forget(self, root: str) -> None:
        """Closes the store of a root that is about to be removed."""
        with self._lock:
            closed = [opened.pop(self.path(root), None) for opened in (self._readers, self._stores)]
        for each in closed:
            if each is not None:
                each.close()

    def close(self) -> None:
        """Closes every store."""
        with self._lock:
            opened = [*self._readers.values(), *self._stores.values()]
            self._readers.clear()
            self._stores.clear()
        for each in opened:
            each.close()
