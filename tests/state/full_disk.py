"""Commits to a state store on a small disk of its own until the disk is full; prints what happened as JSON.

Run as `unshare --mount … python -m tests.state.full_disk FOLDER`: the disk is mounted at FOLDER for this process only.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from deployer.errors import DeployerError

from .samples import TABLE, added, creation, store_at


def main(folder: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", folder], check=True)
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(200 << 10))
    with closing(store_at(folder / "lake")) as store:
        store.commit(TABLE, [creation()])
        commits, error = 0, None
        while error is None:
            try:
                store.commit(TABLE, [added(commits + 1)])
                commits += 1
            except DeployerError as full:
                error = full
        ballast.unlink()
        version = store.commit(TABLE, [added(commits + 1)]).version
    with closing(store_at(folder / "lake")) as store:
        files = store.table(TABLE).files.count
    print(
        json.dumps({"commits": commits, "kind": error.kind, "message": str(error), "version": version, "files": files})
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
