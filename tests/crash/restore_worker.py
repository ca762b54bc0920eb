"""A process that restores a table to its savepoint `then`: `restore_worker.py ROOT`."""

from __future__ import annotations

import sys
from contextlib import closing

from deployer.services.restore import restore_tables
from deployer.services.restore.planning import preview_restore
from deployer.state import open_store
from deployer.tables.dataset import find_entry

if __name__ == "__main__":
    with closing(open_store(sys.argv[1])) as store:
        entry = find_entry(store.instance().tables.values(), "flights")
        _, [done] = restore_tables(store, sys.argv[1], preview_restore(store, sys.argv[1], [entry], "then"))
        print(done.status)
