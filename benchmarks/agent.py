"""Measures the cost of a round of `deployer agent` without work to do, and the growth of the agent's memory.

    python -m benchmarks.agent [--tables 1000] [--rounds 10000]

Each table has rows, three services with triggers, and earlier runs. A round is the agent's own: it reads the state of
all tables, finds commits of other processes, and decides. The first round opens the state. /metrics is requested in
every hundredth round. Memory is the process's resident set after 1, 10, 100, … rounds.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from benchmarks.report import print_figure, print_heading, print_table
from deployer.runs.records import queue_run, start_run
from deployer.services.agent.agent import Agent, Settings
from deployer.services.agent.serving import AgentMetrics
from deployer.services.api.attachments import create_service
from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.state import create_store, open_store
from deployer.state.model.services import Figures, Service
from deployer.tables.admin.tables import create_table
from deployer.tables.append import open_appender

ROUND_SECONDS = 1.0
GROWTH = 1.05  #: most growth of the resident set, as a factor from the hundredth round to the last
SERVICES = (
    Service("COMPACT", "AUTOMATIC", {"small_files": 32, "deleted_share": 0.2}),
    Service("CLEAN", "AUTOMATIC", {"schedule": "0 0 29 2 *", "timezone": "Europe/Berlin"}),
    Service("AUTOSAVEPOINT", "AUTOMATIC", {"commits": 100, "rows": 1_000_000}),
)


def make_lake(root: str, tables: int) -> None:
    """Makes a lake of tables with one load each, whose services have run after it."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("value", pa.string())])
    rows = pa.table({"id": [1, 2, 3], "value": ["a", "b", "c"]}, schema=schema)
    with closing(create_store(root)) as store:
        for number in range(tables):
            name = f"table_{number:05}"
            create_table(store, root, TableSpec("bench", name, columns_of(schema), ("id",)), "bench/dev")
            with closing(open_appender(root, f"bench.{name}")) as appender:
                appender.append(rows)
        for table_id in store.instance().tables:
            for service in SERVICES:
                create_service(store, table_id, service)
                run = queue_run(store, table_id, service.kind, cause="benchmark")
                version = store.table(table_id).lance_version
                start_run(store, table_id, run.run_id).finish(figures=Figures(lance_version_after=version))


def measure(root: str, rounds: int) -> None:
    with closing(open_store(root)) as store:
        agent = Agent(store, root, lambda *_, **__: None, Settings())
        metrics = AgentMetrics(agent)
        seconds, memory, scrape = list[float](), dict[int, float](), 0.0
        for number in range(1, rounds + 1):
            begun = time.perf_counter()
            agent.look()
            seconds.append(time.perf_counter() - begun)
            if number % 100 == 0:
                begun = time.perf_counter()
                metrics.text()
                scrape = time.perf_counter() - begun
            if number == rounds or str(number).strip("0") == "1":
                gc.collect()
                memory[number] = resident()
    assert not any(seen.due or seen.trouble for seen in agent.last.tables.values()), "there was something to do"
    print_table(("after rounds", "resident MiB"), ([f"{number:,}", f"{size:.1f}"] for number, size in memory.items()))
    warm = seconds[1:] or seconds
    print_figure("the first round, which opens the state", seconds[0], "s", None)
    print_figure("a round, median", statistics.median(warm), "s", ROUND_SECONDS)
    print_figure("a round, slowest", max(warm), "s", ROUND_SECONDS)
    if scrape:
        print_figure("/metrics", scrape, "s", None)
    if rounds >= 1000:
        print_figure(
            "memory after the last round, of that after the hundredth", memory[rounds] / memory[100], "times", GROWTH
        )


def resident() -> float:
    """Returns the resident set of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=10_000)
    given = parser.parse_args()
    print_heading(f"Rounds of the agent over {given.tables:,} tables with nothing to do")
    with tempfile.TemporaryDirectory() as folder:
        root = str(Path(folder) / "lake")
        make_lake(root, given.tables)
        measure(root, given.rounds)


if __name__ == "__main__":
    main()
