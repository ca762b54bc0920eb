"""Writes recordings for the benchmark by rerun-sdk: `written.py FOLDER KIND FIRST END`."""

# mypy: ignore-errors
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import rerun as rr

WORDS = 20_000  #: number of different words in texts, by Zipf's law
CLUSTERS, DIMENSION = 2_000, 128  #: number of clusters of vectors, and the vectors' length
ROWS = 50_000  #: rows of a recording of texts or vectors


def small(rec: rr.RecordingStream, random: np.random.Generator) -> None:
    for entity in ("joint/a", "joint/b", "gripper"):
        time_column = rr.TimeColumn("tick", sequence=np.arange(20))
        rec.send_columns(entity, [time_column], rr.Scalars.columns(scalars=random.random(20)))


def blobs(rec: rr.RecordingStream, random: np.random.Generator) -> None:
    for tick in range(200):
        rec.set_time("tick", sequence=tick)
        blob = random.integers(0, 255, 65536, dtype=np.uint8).tobytes()
        rec.log("cam", rr.EncodedImage(contents=blob, media_type="image/jpeg"))


def scalars(rec: rr.RecordingStream, random: np.random.Generator) -> None:
    for entity in range(4):
        time_column = rr.TimeColumn("tick", sequence=np.arange(20000))
        rec.send_columns(f"j/{entity}", [time_column], rr.Scalars.columns(scalars=random.random(20000)))


def long(rec: rr.RecordingStream, random: np.random.Generator) -> None:
    for chunk in range(1500):
        ticks = np.arange(chunk * 20, chunk * 20 + 20)
        listed = [each.tobytes() for each in random.integers(0, 255, (20, 2500), dtype=np.uint8)]
        rec.send_columns("cam", [rr.TimeColumn("tick", sequence=ticks)], rr.EncodedImage.columns(blob=listed))


def texts(rec: rr.RecordingStream, random: np.random.Generator) -> None:
    odds = 1 / np.arange(1, WORDS + 1)
    words = random.choice(WORDS, (ROWS, 8), p=odds / odds.sum())
    listed = [" ".join(f"w{each}" for each in row) for row in words]
    rec.send_columns("log", [rr.TimeColumn("tick", sequence=np.arange(ROWS))], rr.TextLog.columns(text=listed))


def vectors(rec: rr.RecordingStream, random: np.random.Generator) -> None:
    centers = np.random.default_rng(0).normal(size=(CLUSTERS, DIMENSION)) * 2  # the same in all recordings
    found = centers[random.integers(CLUSTERS, size=ROWS)] + random.normal(size=(ROWS, DIMENSION))
    time_column = rr.TimeColumn("tick", sequence=np.arange(ROWS))
    columns = rr.AnyValues.columns(vector=found.astype(np.float32).ravel()).partition([DIMENSION] * ROWS)
    rec.send_columns("embedding", [time_column], columns)


def main() -> None:
    folder, kind, first, end = Path(sys.argv[1]), globals()[sys.argv[2]], int(sys.argv[3]), int(sys.argv[4])
    for number in range(first, end):
        name = f"{kind.__name__}_{number:06}"
        with rr.RecordingStream("bench", recording_id=name) as rec:
            rec.save(str(folder / f"{name}.rrd"))
            rec.send_property("episode", rr.AnyValues(number=number, good=bool(number % 2)))
            kind(rec, np.random.default_rng(number + 1))


if __name__ == "__main__":
    main()
