"""Options and fixtures of all tests."""

from __future__ import annotations

import gc
import os
import signal
import sys
import uuid
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.state.faults import Interpose, Proxy

REGION = "eu-central-1"
MEMORY = Path("/dev/shm")  # noqa: S108 -- pytest makes a folder there that is this user's alone
MEMORY_NEEDED = 4 << 30  #: bytes, of which the gate takes about 1 GB
#: Folders of short tests. They come last, so that the workers end at the same time.
SHORT = {Path(__file__).parent / name for name in ("plan", "policy", "specs")}
#: The tests that each choice of `--tier` runs: those of `make test`, the others, and both.
TIERS = {"gate": {"gate"}, "rest": {"full"}, "all": {"gate", "full"}}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=tuple(TIERS), default="gate", help="the tests to run (default: gate)")
    parser.addoption(
        "--shrink", action="store_true", help="make a failing example of a property test small, for up to five minutes"
    )
    parser.addoption("--long", action="store_true", help="run the long form of slow tests too")
    for service in ("dynamodb", "s3"):
        parser.addoption(
            f"--{service}-endpoint", help=f"the {service} that tests use: a URL, or `aws`; moto's server unless set"
        )


def pytest_configure(config: pytest.Config) -> None:
    """Property tests try the same examples each time, and new ones in the long form; machines are busy.

    A failing example is printed as it is found, since Hypothesis takes up to five minutes to make it small; the long
    form does so, as does `--shrink`.

    Bytecode is written even where the environment says otherwise: hundreds of processes import the same modules. The
    folders of tests are in memory where it has room for them, since each commit waits for the disk.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background, and so in each process of a test
        signal.signal(signal.SIGINT, signal.default_int_handler)
    phases = [each for each in Phase if config.getoption("--shrink") or each not in (Phase.shrink, Phase.explain)]
    settings.register_profile("short", deadline=None, derandomize=True, max_examples=50, phases=phases)
    settings.register_profile("long", deadline=None)
    settings.load_profile("long" if config.getoption("--long") else "short")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if has_room(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    if not hasattr(config, "workerinput"):  # the process that prints
        config.pluginmanager.register(FailuresAtOnce(config))
    os.environ.pop("COLUMNS", None)  # workers of xdist have a width, and what commands print is not to be folded by it


def has_room(folder: Path) -> bool:
    """Whether tests can keep their files, and programs that they start, in the folder."""
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(folder)
    return not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize >= MEMORY_NEEDED


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Looks for no cycles in what is collected, a million objects that live to the end, and seldom in the rest."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Selects the cases of the chosen tier.

    The mark `thinned(n)` leaves every n-th of a test's cases, from the first, where they are, and makes the others
    `slow`, or `full` with `to="full"`. With `only`, it thins the cases with that word in their name. Cases with Spark
    are in the full tier, as are those that are marked `full`; the mark `gate` is stronger.

    The order is that of `_in_order`.
    """
    wanted, long = TIERS[config.getoption("--tier")], config.getoption("--long")
    seen = Counter[tuple[str, str, int]]()
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        for mark in item.iter_markers("thinned"):
            if (only := mark.kwargs.get("only", "")) in item.name:
                test = (item.nodeid.partition("[")[0], only, mark.args[0])
                if seen[test] % mark.args[0]:
                    item.add_marker(mark.kwargs.get("to", "slow"))
                seen[test] += 1
        is_full = any(map(item.get_closest_marker, ("full", "spark"))) and not item.get_closest_marker("gate")
        is_slow = item.get_closest_marker("slow") is not None
        is_wanted = long if is_slow else ("full" if is_full else "gate") in wanted
        (kept if is_wanted else left_out).append(item)
    is_gate = config.getoption("--tier") == "gate"
    workers = 1 if is_gate else getattr(config, "workerinput", {}).get("workercount", 1)
    items[:] = _in_order(kept, workers)
    config.hook.pytest_deselected(items=left_out)


def _in_order(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """The cases in an order in which what takes a worker long is begun early, and made by few workers.

    Cases that share a session of Spark, downloaded files or an account of AWS, and those that start Spark themselves,
    come first in the parts of different workers: `--dist worksteal` gives each worker a part of the list and moves
    cases from its end, so that one worker has all that share something, unless they are all that is left to do.
    """
    groups: list[list[pytest.Item]] = [[], [], [], []]
    for item in items:
        groups[_group(item)].append(item)
    *first, others = groups
    others.sort(key=lambda item: item.path.parent in SHORT)
    parts: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for number, group in enumerate(first):
        parts[number % workers] += group
    ordered: list[pytest.Item] = []
    for number, part in enumerate(parts):
        size = (len(items) - len(ordered)) // (workers - number)  # as xdist computes it
        taken = max(0, size - len(part))
        ordered += part + others[:taken]
        others = others[taken:]
    return ordered + others


def _group(item: pytest.Item) -> int:
    """What a case is begun early for: 0 the worker's Java, 1 Spark of its own, 2 downloaded files or AWS, 3 nothing."""
    fixtures = getattr(item, "fixturenames", ())
    if item.get_closest_marker("own_session"):
        return 1
    if item.get_closest_marker("spark") or "spark" in fixtures:
        return 0
    return 2 if {"packages", "aws"}.intersection(fixtures) else 3


class FailuresAtOnce:
    """Prints a test that fails at once, with its error, since a run that is stopped prints no summary."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            terminal.ensure_newline()
            terminal.write_line(f"FAILED {report.nodeid} ({report.when})")
            errors = [line for line in report.longreprtext.splitlines() if line.startswith("E ")]
            for line in errors[:20]:  # the summary has the others
                terminal.write_line(line[:1000])


@pytest.fixture
def update_golden() -> bool:
    """`UPDATE_GOLDEN=1` writes the golden files again; read the difference before committing it."""
    return os.environ.get("UPDATE_GOLDEN") == "1"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of this worker, of the default memory: others start and compile with twice the CPU time."""
    from deployer.compute.spark.local import LocalCluster, local_session, stop_session

    yield local_session(LocalCluster(cores=2))
    stop_session()


@pytest.fixture(scope="session")
def aws_places(pytestconfig: pytest.Config) -> Iterator[dict[str, str]]:
    """The environment that leads to an S3 and a DynamoDB.

    Both are moto's server, unless `--dynamodb-endpoint` and `--s3-endpoint` name others; `aws` is AWS itself.
    """
    from tests.state.aws_server import moto_server

    chosen = {name: pytestconfig.getoption(f"--{name}-endpoint") for name in ("dynamodb", "s3")}
    with moto_server() as moto:
        found = {
            f"AWS_ENDPOINT_URL_{name.upper()}": endpoint or moto
            for name, endpoint in chosen.items()
            if endpoint != "aws"
        }
        if "aws" not in chosen.values():
            found |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}
        yield found


@pytest.fixture
def aws_environment(aws_places: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """That of this process and of its children, for one test: other tests have servers of their own."""
    for name, value in aws_places.items():
        monkeypatch.setenv(name, value)
    if "AWS_ACCESS_KEY_ID" in aws_places:
        monkeypatch.delenv("AWS_PROFILE", raising=False)


@pytest.fixture(scope="session")
def bucket_for_all(aws_places: dict[str, str], pytestconfig: pytest.Config) -> Iterator[str]:
    import boto3

    with pytest.MonkeyPatch.context() as environment:
        for name, value in aws_places.items():
            environment.setenv(name, value)
        client = boto3.client("s3")
    name = f"deployer-test-{uuid.uuid4().hex[:16]}"
    where = {"LocationConstraint": client.meta.region_name}
    client.create_bucket(
        Bucket=name, **({} if client.meta.region_name == "us-east-1" else {"CreateBucketConfiguration": where})
    )
    yield name
    if not pytestconfig.getoption("--s3-endpoint"):  # moto forgets all by itself
        return
    for listed in client.get_paginator("list_objects_v2").paginate(Bucket=name):
        for each in listed.get("Contents", ()):
            client.delete_object(Bucket=name, Key=each["Key"])
    client.delete_bucket(Bucket=name)


@pytest.fixture
def bucket(bucket_for_all: str, aws_environment: None) -> str:
    """A bucket, and a DynamoDB beside it, to which the environment leads."""
    return bucket_for_all


@pytest.fixture
def on_s3(bucket: str, pytestconfig: pytest.Config) -> Iterator[str]:
    """A root on S3 where nothing is yet."""
    from deployer.state import remove_store

    root = f"s3://{bucket}/{uuid.uuid4().hex[:12]}/lake"
    yield root
    if pytestconfig.getoption("--dynamodb-endpoint"):  # moto forgets all by itself
        remove_store(root)


@pytest.fixture(params=["sqlite", pytest.param("dynamodb", marks=pytest.mark.full)])
def root(request: pytest.FixtureRequest) -> str:
    """A root of either kind, where nothing is yet.

    Both kinds share all code but the backend's. Tests of the backend have the mark `gate`, so that the gate tries both.
    """
    if request.param == "sqlite":
        return str(request.getfixturevalue("tmp_path"))
    found: str = request.getfixturevalue("on_s3")
    return found


@pytest.fixture
def interpose(on_s3: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Interpose]:
    """Puts proxies between this process and the servers, DynamoDB's and S3's."""
    from tests.state.faults import proxy

    with ExitStack() as stack:

        def begin(*arguments: object, **settings: float) -> tuple[Proxy, Proxy]:
            proxies = []
            for service in ("DYNAMODB", "S3"):
                target = os.environ.get(f"AWS_ENDPOINT_URL_{service}", "https://")
                if target.startswith("https"):
                    pytest.skip("needs servers without TLS")
                proxies.append(stack.enter_context(proxy(target, *arguments, **settings)))  # type: ignore[arg-type]
                monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", proxies[-1].url)
            return proxies[0], proxies[1]

        yield begin
