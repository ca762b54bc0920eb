"""Functions that tests run in processes: a module of its own, since each process imports it."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pyarrow as pa

from deployer.functions import Retry, Skip, skip, udf


class Recorded:
    """Writes a line for what happens to it, to a file that processes share."""

    def __init__(self, file: str, *, breaks: bool = False) -> None:
        self.file = file
        self.note("made")
        if breaks:
            raise LookupError("no model")

    def note(self, text: str) -> None:
        with Path(self.file).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    def setup(self) -> None:
        self.note("setup")

    def teardown(self) -> None:
        self.note("teardown")

    def __call__(self, i: int) -> int:
        return i


@udf(timeout=2.0, on_error=[Retry(KeyError, attempts=2, first_pause=0), Skip()])
def troubled(i: int, file: str) -> int:
    with Path(file).open("a", encoding="utf-8") as notes:
        notes.write(f"{i} ")
    if i == 1:
        while True:  # no thread and no alarm would end this
            pass
    if i == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if i == 5:
        raise KeyError(i)
    if i == 6:
        raise Unpicklable(threading.Lock())
    return i


class Unpicklable(ValueError):
    def __init__(self, lock: object) -> None:
        super().__init__("six")
        self.lock = lock


@udf(data_type="int64", timeout=2.0, batch_size=2, on_error=skip(TimeoutError))
def hanging_array(i: pa.Array) -> pa.Array:
    while 5 in i.to_pylist():
        time.sleep(0.1)
    return i


@udf(data_type="int64", timeout=0.5, on_error=skip(TimeoutError))
def endless_array(i: pa.Array) -> pa.Array:
    while True:
        time.sleep(0.1)


@udf(timeout=60)
def process_of(i: int) -> int:
    return os.getpid()


@udf(timeout=3600)
def endless(i: int) -> int:
    Path(os.environ["NOTED"]).write_text(str(os.getpid()), encoding="utf-8")
    while True:
        pass
