"""Compares the CPU seconds of functions that compute columns with a bare loop over the same values in the same thread.

    python -m benchmarks.functions [--rows 1000000] [--repeat 3]

The bare loop only converts the columns to Python values, calls the function and converts the results. No file is read
or written.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.report import print_heading, print_ratio, print_table
from deployer.functions import UDF, Caller, udf
from deployer.specs.types.arrow import arrow_type

Bare = Callable[[pa.RecordBatch], pa.Array]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    print_heading(f"Functions over {given.rows:,} rows: least CPU seconds of {given.repeat}")
    rows, least = [], dict[str, dict[str, float]]()
    for label, function, columns in cases(given.rows):
        batch = pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])
        ours, bare = measure(function, batch, given.repeat)
        least[label] = {"ours": ours, "bare": bare}
        rows.append([label, f"{ours:.3f}", f"{bare:.3f}", f"{batch.num_rows / max(ours, 1e-9) / 1e6:.1f}"])
    print_table(["function", "s", "bare s", "M rows/s"], rows)
    for label, seconds in least.items():
        aim = 2.0 if given.rows >= 1_000_000 else None
        print_ratio(f"{label}, time of the bare loop's", seconds, "ours", "bare", most=aim)


def cases(rows: int) -> list[tuple[str, UDF, list[pa.Array]]]:
    """Returns the functions and their columns. Columns of vectors have a tenth of the rows."""
    random = np.random.default_rng(7)
    numbers, floats = pa.array(random.integers(0, 1000, rows)), pa.array(random.random(rows))
    nulls = pa.array(random.integers(0, 1000, rows), mask=random.random(rows) < 0.1)
    texts = pa.array([f"text {i % 1000}" for i in range(rows)])
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(random.random(rows // 10 * 16).astype(np.float32)), 16)
    return [
        ("int, int -> int", udf(add), [numbers, numbers]),
        ("int with nulls -> int", udf(following), [nulls]),
        ("text -> text", udf(loud), [texts]),
        ("float -> float32", udf(data_type="float32")(halved), [floats]),
        ("vector of 16 -> vector", udf(data_type="fixed_size_list<float32, 16>")(scaled), [vectors]),
        ("Arrow: int -> int", udf(data_type="int64")(added), [numbers]),
    ]


def add(a: int, b: int) -> int:
    return a * 2 + b


def following(a: int | None) -> int | None:
    return None if a is None else a + 1


def loud(a: str) -> str:
    return a.upper()


def halved(a: float) -> float:
    return a / 2


def scaled(vector: list[float]) -> Any:
    return [2 * each for each in vector]


def added(a: pa.Array) -> pa.Array:
    return pc.add(a, 1)


def measure(function: UDF, batch: pa.RecordBatch, repeat: int) -> tuple[float, float]:
    """Returns the least CPU seconds of a caller and of the bare loop, which take turns. Both must compute the same
    values."""
    with Caller(function, batch.schema.names) as caller:
        caller(batch.slice(0, 1))
        bare = bare_loop(function)
        ours, loops = [], []
        for _ in range(repeat):
            seconds, found = timed(lambda: caller(batch).values.column(0))
            ours.append(seconds)
            seconds, wanted = timed(lambda: bare(batch))
            loops.append(seconds)
            assert found.equals(wanted)
    return min(ours), min(loops)


def bare_loop(function: UDF) -> Bare:
    """Returns the loop that computes the same values without checks."""
    called, kind = function.function, arrow_type(function.outputs[0].type)
    if function.form == "arrow":
        return lambda batch: called(*batch.columns)
    return lambda batch: pa.array(
        [called(*values) for values in zip(*(column.to_pylist() for column in batch.columns), strict=True)], kind
    )


def timed(work: Callable[[], pa.Array]) -> tuple[float, pa.Array]:
    """Returns the thread's CPU seconds and the result."""
    started = time.thread_time()
    made = work()
    return time.thread_time() - started, made


if __name__ == "__main__":
    main()
