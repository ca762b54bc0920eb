"""F2 (the chain by way of previews): who only reads leaves no trace in the lake, its state or Pulumi's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import lance
import pytest

from deployer.errors import DeployerError
from deployer.state import create_store, open_reader
from deployer.state.reader import StateReader
from deployer.state.store import StateStore
from deployer.tables.admin.tables import create_table
from tests.cli.conftest import Deployer
from tests.projects import table
from tests.security.foreign.lake_damage import add_rows, location_of, rows_recorded
from tests.security.foreign.photograph import differences, photograph
from tests.state.faults import Interpose

#: Every command that only reads, with arguments for a lake with the table air.flights.
READING: tuple[tuple[str, ...], ...] = (
    ("preview",),
    ("preview", "--format", "markdown"),
    ("preview", "--policy-only"),
    ("preview", "--out", "../saved.plan"),
    ("drift",),
    ("tables",),
    ("describe", "flights"),
    ("history", "flights"),
    ("query", "flights", "--keys", "1"),
    ("query", "notes", "--where", "text = 'a'"),
    ("sql", "select count(*) from flights join planes on flights.id = planes.id"),
    ("report", "--html", "../page.html"),
    ("graph",),
    ("cost",),
    ("render",),
    ("validate",),
    ("doctor",),
    ("service", "list"),
    ("service", "check"),
    ("service", "runs", "flights"),
    ("savepoint", "list"),
    ("table", "partitions", "flights"),
    ("table", "files", "flights"),
    ("state", "log", "flights"),
    ("state", "log", "--instance"),
    ("state", "show", "flights"),
    ("state", "verify"),
    ("state", "export", "../state.zip"),
    ("stack", "export", "../stack.json"),
)


#: Those of them that are not refused in a project without policies and prices whose plan drops a column.
READABLE = [each for each in READING if each[0] != "cost" and not {"--policy-only", "--out"} & set(each)]


def settled(root: Path) -> None:
    """All is recorded, and nobody has the state open."""


def ahead(root: Path) -> None:
    """Lance has rows, a column and an index that the log has not."""
    add_rows(root, "flights", {"id": [7, 8], "delay": [1, 2]})
    dataset = lance.dataset(location_of(root, "flights"))
    dataset.add_columns({"gate": "cast(NULL as string)"})
    dataset.create_scalar_index("delay", "BTREE")


def left_by_a_killed_writer(root: Path) -> None:
    """What a process that was killed leaves of the write-ahead log."""
    with sqlite3.connect(root / "_state" / "state.db", isolation_level=None) as held:
        held.execute("PRAGMA wal_autocheckpoint = 0")
        held.execute("CREATE TABLE later (x)")
        held.execute("DROP TABLE later")
        for suffix in ("", "-wal", "-shm"):
            shutil.copy2(root / "_state" / f"state.db{suffix}", root / "_state" / f"copy{suffix}")
    held.close()
    for suffix in ("", "-wal", "-shm"):
        (root / "_state" / f"state.db{suffix}").unlink(missing_ok=True)
        (root / "_state" / f"copy{suffix}").rename(root / "_state" / f"state.db{suffix}")


LAKES: Mapping[str, Callable[[Path], None]] = {
    each.__name__: each for each in (settled, ahead, left_by_a_killed_writer)
}


@pytest.mark.parametrize("lake", LAKES)
def test_commands_that_read_leave_no_trace(project: Path, root: Path, deployer: Deployer, lake: str) -> None:
    Path("policies").mkdir()
    Path("policies/rules.yaml").write_text("kind: Policy\nrule: destroys-data\n")
    Path("specs/planes.yaml").write_text(table("planes", "seats: int32"))  # something to plan
    LAKES[lake](root)
    deployer("validate")  # the program's caches of bytecode are made now
    before = photograph(root, project / ".pulumi", project / "specs")
    for command in READING:
        ran = deployer(*command)
        assert "Traceback" not in ran.err and (ran.code != 1 or command[0] in ("doctor", "cost")), (command, ran.err)
        after = photograph(root, project / ".pulumi", project / "specs")
        assert differences(before, after) == [], command


def test_reading_tells_what_lance_has(project: Path, root: Path, deployer: Deployer) -> None:
    """Rows, columns and indexes of others are counted in, and their commits told as foreign; `up` records them."""
    ahead(root)
    [told] = [each for each in deployer("tables", "--json").json["tables"] if each["name"] == "air.flights"]
    assert told["rows"] == 5 and rows_recorded(root, "flights") == 3
    assert len(deployer("query", "flights", "--json").json["rows"]) == 5
    described = deployer("describe", "flights", "--json").json
    assert [each["name"] for each in described["columns"]] == ["id", "delay", "gate"]
    assert [each["name"] for each in described["indexes"]] == ["delay_idx"]
    drift = deployer("drift", "--json").json["drift"]
    assert {(each["kind"], each["who"]) for each in drift} == {
        ("AddColumn", "plain Lance"),
        ("CreateIndex", "plain Lance"),
    }
    newest = deployer("history", "flights", "--json").json["versions"][0]
    assert newest["foreign"] and rows_recorded(root, "flights") == 3
    deployer("up", "--yes", "--allow-destroy", "table/air.flights")
    assert rows_recorded(root, "flights") == 5


def test_a_reader_has_nothing_to_write_with(root: Path) -> None:
    """The type has no commit, what it reads with has no put, and the file is opened for reading only."""
    with closing(open_reader(root)) as reader:
        assert not isinstance(reader, StateStore)
        writing = {name for name in dir(StateStore) if not name.startswith("_")} - set(dir(StateReader))
        assert {"commit", "commit_all", "snapshot", "remove_log", "import_from"} <= writing
        logs = reader._logs
        for name in ("put", "add_snapshot", "replace_snapshot", "begin_at", "truncate", "flush", "turn"):
            assert not hasattr(logs, name), name
        with pytest.raises(DeployerError, match="readonly database"):
            logs._rows("DELETE FROM entries")  # type: ignore[attr-defined]


def test_a_reader_beside_a_writer_sees_what_is_committed(root: Path) -> None:
    """The writer is another process, whose log and index the reader maps for reading only."""
    code = (
        "import sys\n"
        "from deployer.state import open_store\n"
        "from deployer.state.model.entities import INSTANCE_LOG\n"
        "from deployer.state.log.updates import SetInstanceProperties\n"
        "store = open_store(sys.argv[1])\n"
        "for number, _ in enumerate(sys.stdin):\n"
        "    store.commit(INSTANCE_LOG, [SetInstanceProperties({'x': number})])\n"
        "    print(number, flush=True)\n"
    )
    with closing(open_reader(root)) as reader:
        assert "x" not in reader.instance().properties
        writer = subprocess.Popen(
            [sys.executable, "-c", code, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert writer.stdin is not None and writer.stdout is not None
        try:
            for number in range(3):
                writer.stdin.write("\n")
                writer.stdin.flush()
                assert writer.stdout.readline() == f"{number}\n"
                before = photograph(root)
                assert reader.instance().properties["x"] == number
                assert differences(before, photograph(root)) == []
        finally:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            writer.stdin.close()
            writer.stdout.close()
        assert reader.instance().properties["x"] == 2
        for suffix in ("-shm",):  # as in a folder that was copied without it
            (root / "_state" / f"state.db{suffix}").unlink()
        before = photograph(root)
        assert reader.instance().properties["x"] == 2
        assert differences(before, photograph(root)) == []


def test_a_reader_and_a_writer_in_one_process(root: Path) -> None:
    """SQLite has one mapping of the index a process: a reader must not leave one behind that nobody can write to."""
    from deployer.state import open_store
    from deployer.state.log.updates import SetInstanceProperties
    from deployer.state.model.entities import INSTANCE_LOG

    left_by_a_killed_writer(root)
    with closing(open_reader(root)) as reader:
        version = reader.instance().version
        with closing(open_store(root)) as store:
            store.commit(INSTANCE_LOG, [SetInstanceProperties({"x": 1})])
            assert reader.instance().version == version + 1
            store.commit(INSTANCE_LOG, [SetInstanceProperties({"x": 2})])
        assert reader.instance().properties["x"] == 2


#: What prints an exit code for each command on a line of its own.
RUN_ALL = """
import json, sys
from deployer.cli.main import run
for command in json.loads(sys.argv[1]):
    print("exit code", run(command), *command, flush=True)
"""


#: What a process does before it becomes the one that its arguments say. A `preexec_fn` would run in a fork of this
#: process, where other threads may hold locks, such as that of the dynamic linker, which nobody gives back then.
GO_ON = "import os, sys\nos.execv(sys.executable, [sys.executable, *sys.argv[1:]])\n"
ON_A_FULL_DISK = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
#: What is run next has root's name, and not root's right to pass over the rights of files.
WITHOUT_ROOTS_RIGHTS = """
import ctypes
drop, override, read_search, owner = 24, 1, 2, 3  # PR_CAPBSET_DROP, and capabilities of linux/capability.h
for capability in (override, read_search, owner):
    ctypes.CDLL(None).prctl(drop, capability, 0, 0, 0)
"""


def python(code: str, *arguments: str, after: str = "") -> list[str]:
    """The command that runs Python code in a process that has done `after` before."""
    command = [sys.executable, "-c", code, *arguments]
    return [sys.executable, "-c", after + GO_ON, *command[1:]] if after else command


def run_all(project: Path, commands: Sequence[Sequence[str]], before: str) -> dict[str, int]:
    """The exit codes of commands that run one after the other in a process of their own; none prints a traceback."""
    ran = subprocess.run(
        python(RUN_ALL, json.dumps(commands), after=before),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=project,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in ran.stderr and "nothing to do" not in ran.stdout, ran.stderr
    lines = (line.split(" ", 3) for line in ran.stdout.splitlines() if line.startswith("exit code "))
    codes = {command: int(code) for _, _, code, command in lines}
    assert len(codes) == len(commands), ran.stderr
    return codes


def test_rights_to_read_are_enough(project: Path, root: Path) -> None:
    """Nothing of the project, the lake and Pulumi's state may be written to, by a process that such rights hold for."""
    ahead(root)
    folders = [project, *(path for path in project.rglob("*") if path.is_dir() and not path.is_symlink())]
    files = [path for path in project.rglob("*") if path.is_file() and not path.is_symlink()]
    try:
        for path, mode in (*((each, 0o444) for each in files), *((each, 0o555) for each in folders)):
            path.chmod(mode)
        before = WITHOUT_ROOTS_RIGHTS if os.getuid() == 0 else ""
        codes = run_all(project, [*READABLE, ("ingest", "flights", "flights.csv")], before)
    finally:
        for path in folders:
            path.chmod(0o755)
    assert codes.pop("ingest flights flights.csv") == 1
    assert codes.pop("drift") == codes.pop("state verify") == 2  # of what plain Lance has committed
    assert codes.pop("doctor") in (0, 1)  # the root cannot be written to
    assert {command for command, code in codes.items() if code} == set()


@pytest.mark.full
def test_a_full_disk_is_enough(project: Path, root: Path) -> None:
    """No file may grow, those for temporary files included; commands that write one say so."""
    ahead(root)
    codes = run_all(project, [*READABLE, ("ingest", "flights", "flights.csv"), ("up", "--yes")], ON_A_FULL_DISK)
    writing = {command for command in codes if "../" in command or command.startswith(("ingest", "up"))}
    assert codes.pop("drift") == codes.pop("state verify") == 2
    assert {command for command, code in codes.items() if code} - {"doctor"} == writing
    assert {codes[command] for command in writing} == {1}
    assert rows_recorded(root, "flights") == 3


#: What DynamoDB and S3 are asked by those who only read.
DYNAMODB_READS = {"GetItem", "Query", "TransactGetItems", "BatchGetItem", "Scan", "DescribeTable"}
S3_READS = {"GET", "HEAD"}


@pytest.mark.full
def test_on_s3_no_request_of_a_reader_writes(on_s3: str, interpose: Interpose, tmp_path: Path) -> None:
    from deployer.datasets.storage.options import storage_options
    from deployer.live.provenance import column_origin
    from deployer.live.reader import read_lake
    from deployer.provider.resources.run_context import Stores
    from deployer.specs.model import TableSpec
    from deployer.specs.types.types import Column, Scalar
    from deployer.state.snapshots.retention import SnapshotPolicy
    from deployer.tables.inspect.describe import describe, summaries
    from deployer.tables.maintenance.verify.verify import verify
    from deployer.tables.read.table import open_table

    with closing(create_store(on_s3, instance="tests")) as store:
        for name in ("flights", "planes"):
            columns = (Column("id", Scalar("int64"), nullable=False),)
            create_table(store, on_s3, TableSpec("air", name, columns, row_keys=("id",)), "tests/dev")
        entry = next(each for each in store.instance().tables.values() if each.name == "flights")
        store._retention._policy = SnapshotPolicy(entries=1)  # one is due: no reader may take it
    location = f"{on_s3}/{entry.location}"
    import pyarrow as pa

    rows = pa.table(
        {"id": pa.array([1, 2], pa.int64())}, lance.dataset(location, storage_options=storage_options(location)).schema
    )
    lance.write_dataset(rows, location, mode="append", storage_options=storage_options(location))
    dynamo, s3 = interpose({})
    with closing(open_reader(on_s3)) as reader:
        assert read_lake(reader, on_s3).tables["table/air.flights"].statistics.rows == 2
        assert [each.rows for each in summaries(reader, on_s3)[0]] == [2, 0]
        assert len(list(verify(reader, on_s3))) == 3
        column_origin(reader, on_s3, entry, "id")
        reader.log(entry.table_id)
        reader.export_to(tmp_path / "state.zip")
    assert Stores(tmp_path).live_lake(on_s3).tables["table/air.planes"].statistics.rows == 0
    opened = open_table(on_s3, "flights")
    assert opened.scan(where="id > 1").to_table().num_rows == 1 and len(opened.history()) == 2
    describe(opened.opened)
    opened.close()
    assert dynamo.requests and s3.requests
    assert set(dynamo.requests) <= DYNAMODB_READS, sorted(set(dynamo.requests))
    assert set(s3.requests) <= S3_READS, sorted(set(s3.requests))
