"""Appends five rows in a process that tests kill or stop: ROOT JOB_ID START. It waits as long as it takes."""

from __future__ import annotations

import sys

from deployer.errors import DeployerError
from deployer.state.backends import group_commit as line
from deployer.tables.append import open_appender
from tests.tables.lakes import flights


def main(root: str, job_id: str, start: str) -> int:
    line.PATIENCE = 600
    try:
        open_appender(root, "air.flights").append(flights(5, int(start)), job_id)
    except DeployerError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
