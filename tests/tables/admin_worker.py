"""Works on a table in a process that tests kill or race with: ROOT TABLE_ID WHAT ARGUMENT…, as `main` has them."""

from __future__ import annotations

import datetime as dt
import sys

from deployer.errors import Conflict
from deployer.state import open_store
from deployer.tables.admin.deletion import delete_counted
from deployer.tables.evolution.rewrite.truncate import reinitialise_table
from deployer.tables.ingest.request import IngestRequest
from deployer.tables.layout.partitions.split import split_leaves
from deployer.tables.maintenance.collect.garbage import collect_garbage
from spark_jobs.ingest import run

WEEK = dt.timedelta(days=7)


def main(root: str, table_id: str, what: str, *arguments: str) -> int:
    store = open_store(root)
    match what:
        case "split":
            split_leaves(store, root, table_id, int(arguments[0]))
        case "split-often":
            for limit in arguments:
                split_leaves(store, root, table_id, int(limit))
        case "load":
            name = store.instance().tables[table_id].full_name
            for file in arguments:
                try:
                    run(root, name, IngestRequest((file,), engine="driver", indexes=False))
                except Conflict as conflict:
                    sys.stderr.write(f"{conflict}\n")
                    return 7
        case "empty":
            reinitialise_table(store, root, table_id, delete_partitions="tree" in arguments, allow_destroy=True)
        case "collect":
            collect_garbage(store, root, table_id, grace=dt.timedelta(hours=1), versions_older_than=WEEK)
        case "delete":
            delete_counted(store, root, store.instance().tables[table_id], allow_destroy=True)
        case _:
            return 9
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
