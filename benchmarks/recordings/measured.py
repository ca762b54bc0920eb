"""Measures datasets of recordings for the catalog's benchmark; figures have their peers and targets.

Ratios are to the time of `rerun.server.Server` of the same wheel in the same run. That server has everything in memory.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.recordings.copies import write_copies
from deployer.catalog import local
from deployer.state import create_store

PYTHON = Path(__file__).parents[2] / "build" / "rerun" / "bin" / "python"
_HERE = Path(__file__).parent
_AT_ONCE = 250  #: recordings that one process writes; the process keeps threads for each recording


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of the benchmark: the numbers of small recordings, of copies of one of them, and of recordings of texts
    and of vectors."""

    segments: int
    many: int
    searched: int
    repeat: int
    searches: int = 50


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure. `ratio` is the ratio to the peer. Targets are maxima, except `least`, which is the minimum of
    `value`."""

    name: str
    value: float
    unit: str = "ms"
    peer: float | None = None
    most: float | None = None
    most_ratio: float | None = None
    least: float | None = None
    load: float = field(default_factory=lambda: os.getloadavg()[0])  #: the machine's load after the measurement

    @property
    def cells(self) -> list[str]:
        """Returns the cells of `COLUMNS`."""
        ratio = None if self.peer is None else self.value / self.peer
        targets = [
            f"{self.most_ratio:g} ×" if self.most_ratio is not None else "",
            f"{self.most:,g} {self.unit}" if self.most is not None else "",
            f"≥ {self.least:,g} {self.unit}" if self.least is not None else "",
        ]
        missed = (
            (self.most is not None and self.value > self.most)
            or (self.most_ratio is not None and ratio is not None and ratio > self.most_ratio)
            or (self.least is not None and self.value < self.least)
        )
        wanted = ", ".join(filter(None, targets))
        return [
            self.name,
            f"{_shown(self.value)} {self.unit}",
            "" if self.peer is None else _shown(self.peer),
            "" if ratio is None else f"{ratio:.2f}",
            wanted,
            "" if not wanted else "missed" if missed else "met",
            f"{self.load:.0f}",
        ]


def _shown(number: float) -> str:
    return f"{number:,.1f}" if number >= 1 else f"{number:.3f}"


COLUMNS = ("recordings", "ours", "Rerun's", "×", "to reach", "", "load")

#: The titles and the targets of the figures that `client.compared` prints, by name.
_COMPARED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "register blobs": ("registering 20 large files", {"most_ratio": 0.2}),
    "register scalars": ("registering 20 files of scalars", {}),
    "register long": ("registering 4 files of 1,500 chunks", {}),
    "all rows of blobs": ("all rows of 250 MB of blobs", {"most_ratio": 1.2}),
    "all rows of scalars": ("all rows of 400,000 scalars", {"most_ratio": 1.2}),
    "20 ticks": ("20 of 30,000 ticks", {"most_ratio": 0.1}),
    "one segment": ("one segment of {:,}", {"most": 15}),
    "all rows of segments": ("all rows of {:,} segments", {"most_ratio": 1.1}),
    **{
        f"{name}, warm": (f"{name} of {{:,}}, warm server", {"most_ratio": 0.5})
        for name in ("segment_ids", "segment_table", "manifest")
    },
}


def write_recordings(folder: Path, sizes: Sizes, kinds: Sequence[str]) -> None:
    """Writes the recordings that the folder lacks."""
    counts = {"blobs": 20, "scalars": 20, "long": 4, "small": sizes.segments}
    counts |= dict.fromkeys(("texts", "vectors"), sizes.searched)
    for kind in kinds:
        place = folder / kind
        if place.exists():
            continue
        place.mkdir(parents=True)
        if kind == "many":
            write_copies(min((folder / "small").iterdir()), place, sizes.many)
            continue
        for first in range(0, counts[kind], _AT_ONCE):
            numbers = [str(first), str(min(first + _AT_ONCE, counts[kind]))]
            _run([str(_HERE / "written.py"), str(place), kind, *numbers])


def comparison(folder: Path, root: str, sizes: Sizes) -> Iterator[Figure]:
    """Yields the figures of registration, reads and tables beside those of Rerun's server; then the figures of cold
    servers and of memory."""
    write_recordings(folder, sizes, ("blobs", "scalars", "long", "small"))
    warm = dict[str, float]()
    with _server(root) as (url, process):
        for found in _called("compared", url, folder, {"repeat": sizes.repeat, "process": process}):
            ours, theirs = found["ours"], found["theirs"]
            warm[found["name"]] = theirs
            if found["name"] == "register small":
                rate = 1000 * sizes.segments
                yield Figure(f"registering {sizes.segments:,} files", rate / ours, "files/s", rate / theirs, least=3000)
            elif found["name"] == "processor of registering small":
                name = f"processor time for one of {sizes.segments:,} files"
                yield Figure(name, ours / sizes.segments, peer=theirs / sizes.segments)
            elif found["name"] in _COMPARED:
                name, targets = _COMPARED[found["name"]]
                yield Figure(name.format(sizes.segments), ours, peer=theirs, **targets)
    for call in ("segment_ids", "segment_table", "manifest"):
        best = _best_of_cold(call, folder, root, sizes.repeat)
        name = f"{call} of {sizes.segments:,}, cold server"
        yield Figure(name, best, peer=warm[f"{call}, warm"], most_ratio=0.5, most=500)
    yield Figure(
        f"memory after {sizes.segments:,} segments are registered and read, above an empty server",
        _memory("everything", folder, f"{root}-memory") - _memory("empty", folder, f"{root}-empty"),
        "MiB",
        most=250,
    )


def of_many(folder: Path, root: str, sizes: Sizes) -> Iterator[Figure]:
    """Yields the figures of many segments, which are copies of one recording."""
    write_recordings(folder, sizes, ("small", "many"))
    with _server(root) as (url, _):
        [found] = _called("many", url, folder, {})
        yield Figure(f"registering {sizes.many:,} files", 1000 * sizes.many / found["ours"], "files/s")
    for call in ("segment_table", "segment_ids"):
        most = 1000 if call == "segment_table" else None
        yield Figure(
            f"{call} of {sizes.many:,}, cold server", _best_of_cold(call, folder, root, sizes.repeat), most=most
        )


def of_search(folder: Path, root: str, sizes: Sizes) -> Iterator[Figure]:
    """Yields the figures of search through the client. Rerun's own server ends when it is asked to search
    texts."""
    write_recordings(folder, sizes, ("texts", "vectors"))
    rows = 50_000 * sizes.searched
    with _server(root) as (url, _):
        for found in _called("search", url, folder, {"searches": sizes.searches}):
            most = 50 if found["name"].endswith("median") else None
            yield Figure(f"{rows:,} rows: {found['name']}", found["ours"], most=most)


def _best_of_cold(call: str, folder: Path, root: str, repeat: int) -> float:
    """Returns the least milliseconds of a call. Each repeat has a new server."""
    times = []
    for _ in range(repeat):
        with _server(root) as (url, _):
            [found] = _called("cold", url, folder, {"call": call})
            times.append(float(found["ours"]))
    return min(times)


def _memory(part: str, folder: Path, root: str) -> float:
    """Returns the memory of a new server after the calls of `part`, in MiB."""
    with _server(root) as (url, process):
        list(_called(part, url, folder, {}))
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def _server(root: str) -> Iterator[tuple[str, int]]:
    """Serves a root, which is created if it does not exist; yields the URL and the process id."""
    if not Path(root).exists():
        create_store(root).close()
    before = _children()
    with local(root) as url:
        [process] = _children() - before
        yield url, process


def _children() -> set[int]:
    return {int(each) for each in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def _called(part: str, url: str, folder: Path, options: Mapping[str, object]) -> Iterator[dict[str, Any]]:
    for line in _run([str(_HERE / "client.py"), part, url, str(folder), json.dumps(options)]).splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def _run(command: Sequence[str]) -> str:
    environment = {**os.environ, "RUST_LOG": "error"}
    done = subprocess.run([str(PYTHON), *command], capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return done.stdout
