"""Options and fixtures of all tests."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the long form of slow tests too")
    for service in ("dynamodb", "s3"):
        parser.addoption(
            f"--{service}-endpoint", help=f"the {service} that tests use: a URL, or `aws`; moto's server unless set"
        )


def pytest_configure(config: pytest.Config) -> None:
    """Property tests try the same examples each time, and new ones in the long form; machines are busy."""
    settings.register_profile("short", deadline=None, derandomize=True)
    settings.register_profile("long", deadline=None)
    settings.load_profile("long" if config.getoption("--long") else "short")
    os.environ.pop("COLUMNS", None)  # workers of xdist have a width, and what commands print is not to be folded by it


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test's cases the mark `thinned(n)` leaves every n-th to the short form, from the first; with `only`, it
    thins those with that word in their name."""
    seen = Counter[str]()
    for item in items:
        for mark in item.iter_markers("thinned"):
            if mark.kwargs.get("only", "") in item.name:
                test = item.nodeid.partition("[")[0]
                if seen[test] % mark.args[0]:
                    item.add_marker(pytest.mark.slow)
                seen[test] += 1
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))  # one Java for all workers, with --dist loadgroup
        if item.get_closest_marker("slow") and not config.getoption("--long"):
            item.add_marker(pytest.mark.skip(reason="the long form; run with --long"))


@pytest.fixture
def update_golden() -> bool:
    """`UPDATE_GOLDEN=1` writes the golden files anew; read the difference before committing it."""
    return os.environ.get("UPDATE_GOLDEN") == "1"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of this worker."""
    from deployer.compute.local import LocalCluster, local_session, stop_session

    yield local_session(LocalCluster(cores=2, memory="1g"))
    stop_session()
