"""Counts the requests of a whole append on S3, compares them with peers, and lists the state store's DynamoDB requests.

    python -m benchmarks.s3_requests [--n 20] [--engines deployer lance deltalake pyiceberg]

The requests go to moto's server on a free port, through a proxy that counts them. Their number does not depend on the
machine. Each takes tens of milliseconds on S3, so that the number determines the time of an append there. deltalake
writes its log by conditional puts. pyiceberg has its catalog in SQLite, which needs no requests to S3.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import boto3

from benchmarks.peers import ENGINES, Engine, Pyiceberg, batch, present, versions
from benchmarks.report import print_figure, print_heading, print_table
from benchmarks.small_commits import TABLE, create_state, file_of
from deployer.state import open_store
from deployer.state.log.updates import FilesAdded
from tests.state.aws_server import moto_server
from tests.state.faults import Proxy, proxy

BUCKET, REGION = "deployer-bench", "us-east-1"
METHODS = ("PUT", "POST", "GET", "HEAD", "DELETE", "DynamoDB")


@contextmanager
def servers() -> Iterator[tuple[Proxy, Proxy]]:
    """Yields proxies to S3 and to DynamoDB, and sets the environment of this process to use them."""
    with moto_server() as url, proxy(url, {}) as s3, proxy(url, {}) as dynamodb:
        os.environ.pop("AWS_PROFILE", None)
        os.environ.update(
            AWS_ACCESS_KEY_ID="test",
            AWS_SECRET_ACCESS_KEY="test",  # noqa: S106 (moto takes any)
            AWS_DEFAULT_REGION=REGION,
            AWS_REGION=REGION,
            AWS_REQUEST_CHECKSUM_CALCULATION="when_required",  # the proxy does not support chunked bodies
            AWS_ENDPOINT_URL_S3=s3.url,
            AWS_ENDPOINT_URL_DYNAMODB=dynamodb.url,
        )
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        yield s3, dynamodb


def appends(engine: Engine, count: int, s3: Proxy, dynamodb: Proxy) -> Counter[str]:
    """Returns the number of requests of `count` appends to an open table, by request."""
    engine.create()
    engine.append(batch(0))
    s3.requests.clear()
    dynamodb.requests.clear()
    for number in range(count):
        engine.append(batch(1 + number))
    return Counter(s3.requests) + Counter({"DynamoDB": len(dynamodb.requests)})


def state(root: str, s3: Proxy, dynamodb: Proxy) -> Sequence[tuple[str, list[str]]]:
    """Returns the requests of the state store, by operation."""
    found: list[tuple[str, list[str]]] = []

    def asked(name: str) -> None:
        found.append((name, [*s3.requests, *dynamodb.requests]))
        s3.requests.clear()
        dynamodb.requests.clear()

    create_state(root)
    store = open_store(root)
    store.table(TABLE)
    s3.requests.clear()
    dynamodb.requests.clear()
    store.commit(TABLE, [FilesAdded((file_of(0),), 2)])
    asked("a process's first commit, which looks at the table's record")
    store.commit(TABLE, [FilesAdded((file_of(1),), 3)])
    asked("a commit of one file")
    store.commit(TABLE, [FilesAdded(tuple(map(file_of, range(2, 302))), 4)])
    asked("a commit of 300 files")
    store.snapshot(TABLE)
    store.commit(TABLE, [FilesAdded((file_of(302),), 5)])
    store.close()
    s3.requests.clear()
    dynamodb.requests.clear()
    open_store(root).table(TABLE)
    asked("a cold open, snapshot and log")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=20, help="appends that are counted")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=[name for name in ENGINES if "," not in name])
    given = parser.parse_args()
    names, absent = present(given.engines)
    print_heading(f"Requests to S3 and DynamoDB, of {given.n} appends", *versions(names))
    with tempfile.TemporaryDirectory(prefix="deployer-bench-") as folder, servers() as (s3, dynamodb):
        counted = {}
        for name in names:
            where = f"s3://{BUCKET}/{name}"
            engine = Pyiceberg(where, Path(folder)) if name == "pyiceberg" else ENGINES[name](where)
            counted[name] = appends(engine, given.n, s3, dynamodb)
        asked = state(f"s3://{BUCKET}/state", s3, dynamodb)
    rows = [
        [name, *(f"{found[method] / given.n:.1f}" for method in METHODS), f"{found.total() / given.n:.1f}"]
        for name, found in counted.items()
    ]
    print_table(("an append", *METHODS, "requests"), rows)
    told = [(what, str(len(requests)), _told(requests)) for what, requests in asked]
    print_table(("the state store alone", "requests", "which"), told)
    if "deployer" in counted:
        print_figure("a whole append", counted["deployer"].total() / given.n, "requests", 6)
    for (what, requests), aim in zip(asked, (3, 1, 1, 3), strict=True):
        print_figure(what, len(requests), "requests", aim)
    print("\n".join(absent))


def _told(requests: Sequence[str]) -> str:
    return ", ".join(f"{times} {name}" for name, times in Counter(requests).items())


if __name__ == "__main__":
    main()
