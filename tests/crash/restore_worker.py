"""A process that restores tables to their savepoint `then`: `restore_worker.py ROOT [TABLE …]`, `flights` by default.

`restore_worker.py ROOT --late` opens every table at a time when the leases of dead processes are over.
"""

from __future__ import annotations

import sys
from contextlib import closing

from deployer.datasets.recovery import restored_together
from deployer.platform.system.clock import Clock
from deployer.services.restore import restore_tables
from deployer.services.restore.planning import preview_restore
from deployer.state import open_store
from deployer.tables.open_table import find_entry, open_entry

if __name__ == "__main__":
    root, *names = sys.argv[1:]
    with closing(open_store(root)) as store:
        if names == ["--late"]:
            later = Clock().now() + 120_000
            restored_together.Clock = lambda: Clock(now=lambda: later)  # type: ignore[misc,assignment,attr-defined]
            for entry in store.instance().tables.values():
                open_entry(store, root, entry)
        else:
            entries = [find_entry(store.instance().tables.values(), name) for name in names or ["flights"]]
            _, done = restore_tables(store, root, preview_restore(store, root, entries, "then"))
            print(*sorted({each.status for each in done}))
