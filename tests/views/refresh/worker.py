"""Refreshes a view in a process that tests kill: ROOT VIEW JOB_ID."""

from __future__ import annotations

import sys

from deployer.errors import DeployerError
from deployer.table import connect


def main(root: str, view: str, job_id: str) -> int:
    with connect(root) as connection:
        try:
            connection.open_table(view).refresh(job_id=job_id)
        except DeployerError as error:
            sys.stderr.write(f"{error}\n")
            return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
