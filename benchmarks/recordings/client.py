"""The part of `benchmarks.recordings` that runs in the environment of Rerun's client: it prints JSON, a line a call."""

# mypy: ignore-errors
from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import rerun as rr
from datafusion import col
from rerun.catalog import CatalogClient
from rerun.server import Server

RNG = np.random.default_rng(1)
BATCH = 250  #: recordings that one process writes


def small(rec: rr.RecordingStream) -> None:
    for entity in ("joint/a", "joint/b", "gripper"):
        time_column = rr.TimeColumn("tick", sequence=np.arange(20))
        rec.send_columns(entity, [time_column], rr.Scalars.columns(scalars=RNG.random(20)))


def blobs(rec: rr.RecordingStream) -> None:
    for tick in range(200):
        rec.set_time("tick", sequence=tick)
        blob = RNG.integers(0, 255, 65536, dtype=np.uint8).tobytes()
        rec.log("cam", rr.EncodedImage(contents=blob, media_type="image/jpeg"))


def scalars(rec: rr.RecordingStream) -> None:
    for entity in range(4):
        time_column = rr.TimeColumn("tick", sequence=np.arange(20000))
        rec.send_columns(f"j/{entity}", [time_column], rr.Scalars.columns(scalars=RNG.random(20000)))


def long(rec: rr.RecordingStream) -> None:
    for chunk in range(1500):
        ticks = np.arange(chunk * 20, chunk * 20 + 20)
        listed = [each.tobytes() for each in RNG.integers(0, 255, (20, 2500), dtype=np.uint8)]
        rec.send_columns("cam", [rr.TimeColumn("tick", sequence=ticks)], rr.EncodedImage.columns(blob=listed))


def made(folder: Path, kind, count: int) -> str:
    """Writes recordings; returns the prefix that has them."""
    (folder / kind.__name__).mkdir()
    for first in range(0, count, BATCH):  # a process keeps threads for each recording that it has written
        numbers = [str(first), str(min(first + BATCH, count))]
        subprocess.run([sys.executable, __file__, "write", str(folder), kind.__name__, *numbers], check=True)
    return (folder / kind.__name__).as_uri()


def write(folder: Path, kind, first: int, end: int) -> None:
    for number in range(first, end):
        name = f"{kind.__name__}_{number:06}"
        with rr.RecordingStream("bench", recording_id=name) as rec:
            rec.save(str(folder / kind.__name__ / f"{name}.rrd"))
            rec.send_property("episode", rr.AnyValues(number=number, good=bool(number % 2)))
            kind(rec)


def timed(call) -> float:
    start = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - start)


def show(name: str, calls, repeat: int) -> None:
    """Prints the best time of each of two calls, made in turns."""
    best = [float("inf")] * 2
    for _ in range(repeat):
        for at, call in enumerate(calls):
            best[at] = min(best[at], timed(call))
    line = {"name": name, "ours": best[0], "theirs": best[1], "ratio": best[0] / best[1]}
    print(json.dumps(line), flush=True)


def main() -> None:
    url, folder, segments, repeat = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    counts = {blobs: 20, scalars: 20, long: 4, small: segments}
    with Server() as server:
        clients = CatalogClient(url), server.client()
        sets = {}
        for kind, count in counts.items():
            prefix = made(folder, kind, count)
            sets[kind] = [each.create_dataset(kind.__name__) for each in clients]
            registers = [lambda each=each, prefix=prefix: each.register_prefix(prefix).wait() for each in sets[kind]]
            show(f"register {count:,} recordings ({kind.__name__})", registers, 1)
        rows = {
            "all rows of 250 MB of blobs": (blobs, lambda each: each.reader(index="tick").collect()),
            "all rows of 400,000 scalars": (scalars, lambda each: each.reader(index="tick").collect()),
            "20 of 30,000 ticks": (
                long,
                lambda each: each.reader(index="tick").filter((col("tick") >= 9000) & (col("tick") < 9020)).collect(),
            ),
            f"segment_ids of {segments:,}": (small, lambda each: each.segment_ids()),
            f"segment_table of {segments:,}": (small, lambda each: each.segment_table().collect()),
            f"manifest of {segments:,}": (small, lambda each: each.manifest().collect()),
            f"one segment of {segments:,}": (
                small,
                lambda each: each.filter_segments("small_000007").reader(index="tick").collect(),
            ),
            f"all rows of {segments:,} segments": (small, lambda each: each.reader(index="tick").collect()),
        }
        for name, (kind, read) in rows.items():
            show(name, [lambda each=each, read=read: read(each) for each in sets[kind]], repeat)


if __name__ == "__main__" and sys.argv[1] == "write":
    write(Path(sys.argv[2]), globals()[sys.argv[3]], int(sys.argv[4]), int(sys.argv[5]))
elif __name__ == "__main__":
    main()
