"""A process of its own that commits appends: `worker.py ROOT WRITER COUNT [ENTRIES]`; prints each version won.

With ENTRIES a snapshot is due after so many entries and only the newest is kept. On S3, every body is an object when
the environment has LARGE_BODIES.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from deployer.platform.storage.objects import LocalObjects
from deployer.state.backends.sqlite.backend import SqliteBackend
from deployer.state.log.requirements import JobNotDone
from deployer.state.log.updates import CommitStarted, FilesAdded
from deployer.state.model.entities import File
from deployer.state.snapshots.retention import SnapshotPolicy
from deployer.state.store import StateStore

#: Seconds in which a commit may lose races: what is tested is who wins, however slow the machine is.
TIMEOUT = 900.0
TABLE = "a1b2c3d4e5f60718293a4b5c6d7e8f90"


def store_at(root: str, policy: SnapshotPolicy) -> StateStore:
    if root.startswith("s3://"):
        from deployer.state.backends.dynamodb import backend as dynamodb
        from deployer.state.open_s3 import open_on_s3

        dynamodb.INLINE = 0 if "LARGE_BODIES" in os.environ else dynamodb.INLINE
        return open_on_s3(root, policy=policy)
    folder = Path(root) / "_state"
    return StateStore(SqliteBackend(folder / "state.db"), LocalObjects(folder / "snapshots"), policy=policy)


def main(root: str, writer: int, count: int, entries: int = 1_000_000) -> None:
    store = store_at(root, SnapshotPolicy(entries=entries, keep=1, keep_for=0))
    for number in range(count):
        job, fragment = f"{writer}-{number}", writer * 1000 + number
        store.commit(TABLE, [CommitStarted(job, "ingest", 1)], timeout=TIMEOUT)
        file = File(fragment, "root", 1, 1)
        state = store.commit(TABLE, [FilesAdded((file,), fragment, job, 1)], [JobNotDone(job)], timeout=TIMEOUT)
        print(job, state.version, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
