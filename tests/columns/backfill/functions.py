"""Functions of every form that backfills of the tests call, and columns for what they make."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deployer.functions import fail, retry, skip, udf
from deployer.functions.model import UDF

MORTAL = "DEPLOYER_TEST_MORTAL"  #: the file that has `mortal` kill its process
CALLS = "DEPLOYER_TEST_CALLS"  #: the file that `counted` appends the ids to that it is called for


@udf(version="1")
def scalar(rating: float) -> float:
    return rating * 2 + 1


@udf(data_type=pa.float64())
def arrow(rating: pa.Array) -> pa.Array:
    return pc.add(pc.multiply(rating, 2.0), 1.0)


@udf(data_type=pa.float64())
def batch(rows: pa.RecordBatch) -> pa.Array:
    return pc.add(pc.multiply(rows.column("rating"), 2.0), 1.0)


@udf(data_type=pa.float64())
class Stateful:
    """Has what it needs from `setup`, which is called once for each worker."""

    def setup(self) -> None:
        self.factor = 2.0

    def __call__(self, rating: float) -> float:
        return rating * self.factor + 1


@udf(data_type=pa.float64())
async def asynchronous(rating: float) -> float:
    await asyncio.sleep(0)
    return rating * 2 + 1


FORMS: dict[str, Any] = {
    "scalar": scalar,
    "arrow": arrow,
    "batch": batch,
    "class": Stateful,
    "async": asynchronous,
}


def of_sevens(id: int, rating: float) -> float:
    """As `picky`, without a policy."""
    if id % 7 == 3:
        raise ValueError(f"{id} is not liked")
    return rating * 2 + 1


@udf(data_type=pa.float64(), on_error=skip(ValueError), version="1")
def picky(id: int, rating: float) -> float:
    if id % 7 == 3:
        raise ValueError(f"{id} is not liked")
    return rating * 2 + 1


@udf(data_type=pa.float64(), on_error=skip(ValueError), version="1")
def on_id(id: int) -> float:
    if id % 7 == 3:
        raise ValueError(f"{id} is not liked")
    return float(id)


@udf(data_type=pa.float64(), on_error=fail(), version="1")
def strict(id: int, rating: float) -> float:
    if id == 13:
        raise ValueError("thirteen")
    return rating


@udf(data_type=pa.float64(), version="2")
def tenfold(rating: float) -> float:
    return rating * 10


@udf(data_type=pa.float64(), version="1")
def counted(id: int, rating: float) -> float:
    """Appends the id to a file, so that a test knows what it was called for, also in a process that was killed."""
    with Path(os.environ[CALLS]).open("a") as file:
        file.write(f"{id}\n")
    return rating * 2 + 1


def mortal(timeout: float | None) -> UDF:
    """Returns `counted` as a function that kills the process that calls it, once, where the file MORTAL is there."""

    @udf(data_type=pa.float64(), version="1", timeout=timeout, on_error=retry(RuntimeError, first_pause=0.0))
    def score(id: int, rating: float) -> float:
        with Path(os.environ[CALLS]).open("a") as file:
            file.write(f"{id}\n")
        with suppress(FileNotFoundError):
            if id % 17 == 5:
                Path(os.environ[MORTAL]).unlink()
                os.kill(os.getpid(), signal.SIGKILL)
        return rating * 2 + 1

    return score


@udf(data_type=pa.float64(), version="1")
def mostly_null(id: int) -> float | None:
    return None if id % 2 else float(id)


def calls() -> list[int]:
    """The ids that `counted` was called for, in order."""
    path = Path(os.environ[CALLS])
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []
