"""A process that loads a table in several commits, changes its columns between, and prints what was acknowledged.

`append_worker.py ROOT FILE…`: each file is a job of its own name, so that it is done once however often this runs.
A snapshot is due after five entries and only the newest is kept, so that all of a commit's points are passed.
"""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import deployer.state.store
from deployer.live.reader import read_table
from deployer.specs.types.parser import parse_type
from deployer.specs.types.types import Column
from deployer.state import open_store
from deployer.state.snapshots.retention import SnapshotPolicy
from deployer.tables.admin.tables import update_table
from deployer.tables.ingest.request import IngestRequest
from spark_jobs.ingest import run


def main(root: str, files: list[str]) -> None:
    often = SnapshotPolicy(entries=5, keep=1, keep_for=0)
    deployer.state.store.SnapshotPolicy = lambda: often  # type: ignore[attr-defined, assignment, misc]
    for number, file in enumerate(files):
        if number == len(files) // 2:
            add_column(root)
            print("column", flush=True)
        run(root, "flights", IngestRequest((file,), engine="driver", job_id=Path(file).stem, missing_as_null=True))
        print(Path(file).stem, flush=True)


def add_column(root: str) -> None:
    with closing(open_store(root)) as store:
        [entry] = store.instance().tables.values()
        spec = read_table(store, root, entry).spec
        if not any(column.name == "note" for column in spec.columns):
            note = Column("note", parse_type("string"))
            update_table(store, root, entry.table_id, replace(spec, columns=(*spec.columns, note)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
