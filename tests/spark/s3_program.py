"""A program that reads a table on S3 by Spark: `python -m tests.spark.s3_program ROOT TABLE` prints the rows' number.

It starts the session itself, since Spark's Python workers have the environment in which Java was started.
"""

from __future__ import annotations

import sys

from deployer.compute.spark.local import LocalCluster, local_session, stop_session
from deployer.spark import register


def main(root: str, table: str) -> None:
    session = local_session(LocalCluster(cores=2))
    register(session)
    frame = session.read.format("deployer").option("root", root).option("keys", "UA").load(table)
    print(frame.count())
    stop_session()


if __name__ == "__main__":
    main(*sys.argv[1:])
