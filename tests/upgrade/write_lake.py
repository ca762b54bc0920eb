"""Writes the lake of a release, and packs it as an archive for the upgrade test.

It runs under the release's own Python, and uses only that release's commands and state store:

    git worktree add /tmp/release df93aa6
    make -C /tmp/release .venv/.ready
    /tmp/release/.venv/bin/python tests/upgrade/write_lake.py tests/upgrade/df93aa6.tar.gz

It imports modules by their names in this commit. For a release that has other names, take the script as it was then:
`git show a5def45:tests/upgrade/write_lake.py`.

The archive holds a project that `init` wrote, with its lake and Pulumi's state, a plan that `preview --out` saved, and
the files of `state export` and `stack export`. Every kind of entry is in the lake's logs, and every log has a snapshot.
No file names a folder of the machine that wrote it.
"""

from __future__ import annotations

import gzip
import io
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import lance

from deployer.state import open_store
from deployer.state.backends.protocol import Record
from deployer.state.log.entries import from_record
from deployer.state.log.service_updates import (
    CancelRequested,
    LeaseRenewed,
    RunEnded,
    RunQueued,
    RunStarted,
    SavepointsExpired,
)
from deployer.state.log.updates import (
    CommitAbandoned,
    CommitStarted,
    InstanceUpdate,
    SetInstanceProperties,
    TableUpdate,
)
from deployer.state.model.entities import INSTANCE_LOG
from deployer.state.snapshots.retention import SnapshotPolicy
from deployer.state.store import StateStore

BIN = Path(sys.executable).parent
NAME = "upgrade"
LAKE = "lakes/dev"

INSTANCE = """\
kind: Instance
name: upgrade
description: {description}
root: lakes/dev
engine: embedded
clusters:
  local: {{kind: local, cores: 1, memory: 1g}}
"""
CARRIERS = """\
kind: Table
database: air
name: carriers
description: A row is a carrier.
columns:
  - {{name: carrier, type: string, nullable: false, description: Two-letter code.}}
  - {{name: {name}, type: string{renamed}}}
  - {{name: fleet, type: {fleet}}}
{more}row_keys: [carrier]
deletion_protection: false
tags: {{owner: data}}
storage: {{keep_replaced_for: 30000d}}
"""
FLIGHTS = """\
kind: Table
database: air
name: flights
description: A row is a departure.
columns:
  - {{name: day, type: date32, nullable: false}}
  - {{name: carrier, type: string, nullable: false}}
  - {{name: flight, type: int32, nullable: false}}
  - {{name: at, type: "timestamp[us, UTC]"}}
  - {{name: delay, type: int32}}
  - {{name: price, type: "decimal128(10, 2)"}}
row_keys: [{keys}]
sort_keys: [at]
tags: {{owner: data}}
partitions:
  split_points: [2013-02-01, 2013-03-01]
indexes:
  - {{kind: bitmap, columns: [carrier]}}
  - {{kind: btree, columns: [delay]}}
services:
  compact: {{trigger: {{small_files: 64}}}}
  cluster: {{trigger_mode: ON_DEMAND, options: {{columns: [carrier, day], curve: zorder}}}}
  clean: {{trigger_mode: ON_DEMAND, options: {{older_than: 30000d}}}}
  autosavepoint: {{trigger_mode: ON_DEMAND, options: {{expires_after: 30000d}}}}
storage: {{keep_replaced_for: 30000d}}
"""
DRAFTS = """\
kind: Table
database: air
name: drafts
columns:
  - {name: note, type: string}
deletion_protection: false
"""
ADDED = "  - {name: alliance, type: string, default: \"'none'\", description: Alliance of airlines.}\n"


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder).resolve() / NAME
        write(project)
        hide_folders(project)
        check(project)
        target.write_bytes(packed(project))


def write(project: Path) -> None:
    run(project.parent, "init", str(project))
    shutil.rmtree(project / ".github")
    (project / "specs" / "trips.yaml").unlink()
    text = (project / "Pulumi.yaml").read_text(encoding="utf-8")
    (project / "Pulumi.yaml").write_text(text.replace(str(BIN), ".venv/bin"), encoding="utf-8")
    (project / ".venv").symlink_to(BIN.parent)  # only while this script runs

    declare(project, keys="day, carrier, flight")
    run(project, "up", "--yes")
    load(project, "carriers", "load-carriers", ["carrier,name,fleet", "AA,American,12", "UA,United,9", "DL,Delta,7"])
    for month in (1, 2, 3):
        load(project, "flights", f"load-{month}", flights(month))
    run(project, "savepoint", "create", "loaded", "--note", "Three months.")
    run(project, "savepoint", "create", "extra")

    declare(project, description="Flights, with an index.", carrier_name="title", fleet="int64", more=ADDED)
    run(project, "up", "--yes")
    declare(
        project,
        description="Flights, with an index.",
        carrier_name="title",
        fleet="int64",
        more=ADDED,
        keys="day, flight, carrier",
    )
    run(project, "up", "--yes")
    load(project, "flights", "load-4", flights(4))
    run(project, "table", "split", "air.flights", "--max-rows", "30", "--write-spec")
    remove_a_file(project)
    for service in ("AUTOSAVEPOINT", "COMPACT", "CLUSTER", "CLEAN"):
        run(project, "service", "run", "air.flights", service, "--engine", "driver")
    run(project, "service", "pause", "air.flights", "compact")
    run(project, "service", "resume", "air.flights", "compact")
    run(project, "service", "create", "air.carriers", "COMPACT")
    run(project, "service", "delete", "air.carriers", "COMPACT")
    run(project, "savepoint", "create", "before-a-mistake", "--table", "air.carriers")
    load(project, "carriers", "load-mistake", ["carrier,title,fleet,alliance", "XX,Mistake,1,none"])
    run(project, "restore", "before-a-mistake", "--yes")
    remove_old_datasets(project)

    (project / "specs" / "drafts.yaml").write_text(DRAFTS, encoding="utf-8")
    run(project, "up", "--yes")
    (project / "specs" / "drafts.yaml").unlink()
    run(project, "up", "--yes", "--allow-destroy", "table/air.drafts")
    run(project, "table", "rename", "air.carriers", "airlines", "--write-spec")
    finish_logs(project / LAKE)

    flights_spec = project / "specs" / "flights.yaml"
    now = flights_spec.read_text(encoding="utf-8")
    flights_spec.write_text(now.replace("A row is a departure.", "A row is a scheduled departure."), encoding="utf-8")
    run(project, "preview", "--out", "saved.plan")
    flights_spec.write_text(now, encoding="utf-8")
    run(project, "state", "export", "state.zip")
    run(project, "stack", "export", "stack.json")
    run(project, "preview", "--exit-code")
    run(project, "state", "verify")
    (project / ".venv").unlink()


def declare(
    project: Path,
    *,
    description: str = "Flights.",
    carrier_name: str = "name",
    fleet: str = "int32",
    more: str = "",
    keys: str = "day, carrier, flight",
) -> None:
    renamed = ", renamed_from: name" if carrier_name != "name" else ""
    specs = {
        "instance": INSTANCE.format(description=description),
        "carriers": CARRIERS.format(name=carrier_name, renamed=renamed, fleet=fleet, more=more),
        "flights": FLIGHTS.format(keys=keys),
    }
    for name, text in specs.items():
        (project / "specs" / f"{name}.yaml").write_text(text, encoding="utf-8")


def flights(month: int) -> list[str]:
    rows = [
        f"2013-{month:02}-{day:02},{carrier},{number},2013-{month:02}-{day:02}T{hour:02}:00:00Z,{day - 5},{day}.50"
        for day in range(1, 11)
        for number, (carrier, hour) in enumerate((("AA", 6), ("UA", 12), ("DL", 18)), 1)
    ]
    return ["day,carrier,flight,at,delay,price", *rows]


def load(project: Path, table: str, job_id: str, lines: list[str]) -> None:
    file = project / "data" / f"{job_id}.csv"
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    run(project, "ingest", f"air.{table}", f"data/{job_id}.csv", "--job-id", job_id, "--engine", "driver")


def remove_a_file(project: Path) -> None:
    """All rows of a load are deleted by plain Lance, and the log takes that over."""
    load(project, "flights", "load-5", flights(5)[:2])
    with closing(open_store(project / LAKE)) as store:
        location = next(each.location for each in store.instance().tables.values() if each.name == "flights")
    lance.dataset(str(project / LAKE / location)).delete("day >= DATE '2013-05-01'")
    run(project, "state", "repair")


def remove_old_datasets(project: Path) -> None:
    """The rewrite's old data goes, as it does when its time is over."""
    spec = project / "specs" / "flights.yaml"
    text = spec.read_text(encoding="utf-8")
    spec.write_text(text.replace("keep_replaced_for: 30000d", "keep_replaced_for: 0d"), encoding="utf-8")
    run(project, "savepoint", "delete", "extra")
    run(project, "savepoint", "delete", "loaded")
    run(project, "up", "--yes")
    run(project, "up", "--yes")
    spec.write_text(text, encoding="utf-8")
    run(project, "up", "--yes")


def finish_logs(root: Path) -> None:
    """The entries that no command writes unless a process dies, and a snapshot of every log."""
    opened: Any = open_store(root)  # of another release: its parts have other types
    with closing(opened):
        store = StateStore(opened._backend, opened._objects, opened._clock, SnapshotPolicy(entries=1))
        carriers = next(each.table_id for each in store.instance().tables.values() if each.name == "airlines")
        version = store.table(carriers).lance_version
        store.commit(carriers, [CommitStarted("load-died", "ingest", version)])
        store.commit(carriers, [CommitAbandoned("load-died")])
        store.commit(carriers, [RunQueued("run-died", "COMPACT", "on demand")])
        store.commit(carriers, [RunStarted("run-died", "a-worker", 60_000)])
        store.commit(carriers, [LeaseRenewed("run-died", 60_000, {"files": 1})])
        store.commit(carriers, [CancelRequested("run-died")])
        store.commit(carriers, [RunEnded("run-died", "CANCELLED", reason="cancelled")])
        for log in store.logs():
            if log == INSTANCE_LOG:
                store.commit(log, [SetInstanceProperties({})])
            else:
                store.commit(log, [SavepointsExpired(opened._clock.now())])


def hide_folders(project: Path) -> None:
    """Pulumi's history has the folder of the specs, which nothing reads again."""
    for path in project.glob(".pulumi/history/**/*.json"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(str(project.parent), "/projects"), encoding="utf-8")


def check(project: Path) -> None:
    """Raises AssertionError unless the logs have every kind of entry, and no file names this machine's folders."""
    expected = {each.__name__ for each in (*get_args(InstanceUpdate), *get_args(TableUpdate))}
    found = {type(update).__name__ for update in updates(project / LAKE / "_state" / "state.db")}
    assert expected <= found, f"no entry has {sorted(expected - found)}"
    with closing(sqlite3.connect(project / LAKE / "_state" / "state.db")) as database:
        logs, snapshots = (
            {
                log
                for (log,) in database.execute(f"SELECT DISTINCT log FROM {table}")  # noqa: S608 -- names of this file
            }
            for table in ("entries", "snapshots")
        )
    assert logs <= snapshots, f"no snapshot of {sorted(logs - snapshots)}"
    for path in project.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert str(project.parent).encode() not in content, f"{path} names the folder"


def updates(database: Path) -> Iterator[Any]:
    with closing(sqlite3.connect(database)) as connection:
        for log, version, txn_id, body in connection.execute("SELECT log, version, txn_id, body FROM entries"):
            yield from from_record(Record(log, version, txn_id, body)).updates


def packed(project: Path) -> bytes:
    """The project as a tar file whose bytes depend on names and contents only."""
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0, compresslevel=9) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted(each for each in project.rglob("*") if each.is_file() and "__pycache__" not in each.parts):
            entry = archive.gettarinfo(path, arcname=str(path.relative_to(project)))
            entry.uid = entry.gid = entry.mtime = 0
            entry.uname = entry.gname = ""
            with path.open("rb") as content:
                archive.addfile(entry, content)
    return buffer.getvalue()


def run(folder: Path, *arguments: str) -> None:
    print("$ deployer", *arguments, flush=True)
    subprocess.run([BIN / "deployer", *arguments], cwd=folder, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
