"""Processes that Spark uses again leave what they have imported out of their collections of garbage."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from deployer.compute.spark.reused_workers import DAEMON, freeze_modules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_A_WORKER = """
import gc, importlib.machinery, sys
sys.modules["__main__"].__spec__ = importlib.machinery.ModuleSpec("pyspark.daemon", None)
from deployer.compute.spark.reused_workers import freezes_modules
@freezes_modules
def fails():
    import deployer.spark.source
    raise KeyError
for _ in range(2):
    try:
        fails()
    except KeyError:
        print(gc.get_freeze_count())
"""


def test_modules_are_frozen_once_in_a_worker() -> None:
    done = subprocess.run([sys.executable, "-c", IN_A_WORKER], check=True, capture_output=True, text=True)
    first, second = map(int, done.stdout.split())
    assert first > 50_000
    assert second <= first  # some of them went


def test_nothing_is_frozen_in_other_processes() -> None:
    before = gc.get_freeze_count()
    freeze_modules()
    assert gc.get_freeze_count() <= before


@pytest.mark.spark
def test_a_worker_is_known(spark: SparkSession) -> None:
    names = spark.sparkContext.parallelize([0]).map(lambda _: str(sys.modules["__main__"].__spec__))
    [found] = names.collect()
    assert f"'{DAEMON}'" in found
