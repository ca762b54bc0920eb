"""`deployer state …`: what is printed, what is left alone, and the exit codes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deployer.runs.records import queue_run
from deployer.services.api.attachments import create_service, pause_service
from deployer.services.savepoints.savepoints import take_savepoint
from deployer.state import open_store
from deployer.state.log.updates import CommitStarted
from deployer.state.model.services import Service
from tests import forks
from tests.cli.conftest import TWO_TABLES, Deployer
from tests.projects import INSTANCE, applied_project, run


def load() -> None:
    for number in range(3):
        ids = pa.array(range(number * 10, number * 10 + 10), pa.int64())
        pq.write_table(pa.table({"id": ids, "delay": ids.cast(pa.int32())}), "rows.parquet")
        run("ingest", "flights", "rows.parquet", "--job-id", f"load-{number}")


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two tables; flights has three loads of ten rows, jobs load-0 to load-2. The current folder."""
    monkeypatch.setenv("COLUMNS", "240")
    folder = applied_project(tmp_path / "project", TWO_TABLES, load)
    monkeypatch.chdir(folder)
    return folder


def root(project: Path) -> Path:
    return project / "lakes" / "demo"


def dataset(project: Path) -> lance.LanceDataset:
    [path] = (root(project) / "air").glob("flights-*.lance")
    return lance.dataset(str(path))


def table_id(project: Path) -> str:
    entry = open_store(root(project)).instance().by_name("air.flights")
    assert entry
    return entry.table_id


def versions(text: str) -> list[int]:
    return [int(found) for found in re.findall(r"^\s*(\d+)   \d{4}-", text, re.M)]


def test_log_lists_entries_in_words(filled: Path, deployer: Deployer) -> None:
    ran = deployer("state", "log", "flights")
    assert ran.code == 0 and versions(ran.out) == [7, 6, 5, 4, 3, 2, 1]
    assert "add 1 file with 10 rows (job load-2, dataset version 4)" in ran.out
    assert "begin ingest (job load-2, on dataset version 3)" in ran.out
    assert "create the table: row keys id, 1 leaf (dataset version 1)" in ran.out
    limited = deployer("state", "log", "air.flights", "--limit", "2")
    assert versions(limited.out) == [7, 6] and "5 older (--limit 0 shows all that are kept)" in limited.err
    after = deployer("state", "log", table_id(filled), "--after", "2", "--limit", "3")
    assert versions(after.out) == [3, 4, 5] and "2 newer (--after 5 shows them)" in after.err
    found = deployer("state", "log", "flights", "--limit", "1", "--json").json
    assert (found["newest"], [entry["what"] for entry in found["entries"]]) == (
        7,
        ["add 1 file with 10 rows (job load-2, dataset version 4)"],
    )


def test_show_and_log_tell_services_runs_and_savepoints(filled: Path, deployer: Deployer) -> None:
    table, before = table_id(filled), " ".join(deployer("state", "show", "flights").out.split())
    assert "services none runs none running, 0 ended savepoints none" in before
    with closing(open_store(root(filled))) as store:
        create_service(store, table, Service("COMPACT", "AUTOMATIC", {"commits": 10}))
        queue_run(store, table, "COMPACT", cause="on demand", run_id="first")
        take_savepoint(store, [table], "before-2026")
        pause_service(store, table, "COMPACT")
    shown = deployer("state", "show", "flights").out
    assert "COMPACT (automatic, paused)" in shown and "first (COMPACT, QUEUED)" in shown
    assert "before-2026 (version 4)" in shown
    found = deployer("state", "show", "flights", "--json").json
    assert [found[what][0] for what in ("services", "runs", "savepoints")]
    assert (found["services"][0]["trigger"], found["runs"][0]["run_id"]) == ({"commits": 10}, "first")
    log = deployer("state", "log", "flights").out
    assert "queue run first of COMPACT (on demand)" in log and "take savepoint before-2026" in log
    assert deployer("state", "verify").code == 0


def test_log_says_what_is_no_longer_kept(filled: Path, deployer: Deployer) -> None:
    with closing(open_store(root(filled))) as store:
        store.snapshot(table_id(filled))
        store._backend.truncate(table_id(filled), 7)
    assert deployer("ingest", "flights", "rows.parquet", "--job-id", "late").code == 0
    for options in ([], ["--after", "0"], ["--limit", "0"]):
        ran = deployer("state", "log", "flights", *options)
        assert sorted(versions(ran.out)) == [8, 9]
        assert "entries before version 8 are no longer kept; snapshots replace them" in ran.err


def test_log_and_show_of_the_instance(filled: Path, deployer: Deployer) -> None:
    log = deployer("state", "log", "--instance")
    assert "register table air.flights" in log.out and "owner = " in log.out
    show = deployer("state", "show", "--instance")
    assert "air.flights" in show.out and "active" in show.out
    assert deployer("state", "show", "--instance", "--at", "1", "--json").json["tables"] == []


def test_show_tells_the_state_at_a_version_or_time(filled: Path, deployer: Deployer) -> None:
    assert "30 in 3 files" in deployer("state", "show", "flights").out
    assert "10 in 1 file" in deployer("state", "show", "flights", "--at", "3").out
    third = open_store(root(filled)).log(table_id(filled))[2]
    import datetime as dt

    moment = dt.datetime.fromtimestamp(third.at / 1000, dt.UTC)
    found = deployer("state", "show", "flights", "--at", moment.isoformat(), "--json").json
    assert (found["version"], len(found["files"]), [job["job_id"] for job in found["jobs"]]) == (3, 1, ["load-0"])
    assert [column["name"] for column in found["columns"]] == ["id", "delay"]


WRONG = [
    (["log"], 1, "the log to list is missing; give a table, or --instance"),
    (["log", "flights", "--instance"], 1, "the log to list is missing"),
    (["show", "nothing"], 1, "there is no table 'nothing'"),
    (["show", "flights", "--at", "99"], 1, "table/air.flights: there is no version 99; the newest is 7"),
    (["show", "flights", "--at", "2020-01-01"], 1, "table/air.flights: it did not exist yet at 2020-01-01"),
    (["show", "flights", "--at", "soon"], 1, "--at 'soon' is neither a version nor a time"),
    (["verify", "nothing"], 1, "there is no table 'nothing'"),
    (["repair", "nothing"], 1, "there is no table 'nothing'"),
    (["export", "nowhere/state.zip"], 1, "no such folder; create it first"),
    (["export", "rows.parquet"], 3, "the file exists already; give another name, or --force"),
    (["import", "nothing.zip"], 1, "nothing.zip: no such file"),
    (["import", "rows.parquet"], 1, "it is not a valid export of a state store"),
]


@pytest.mark.parametrize(("arguments", "code", "words"), WRONG, ids=["-".join(each[0]) for each in WRONG])
def test_what_cannot_be_done_is_said(
    arguments: list[str], code: int, words: str, filled: Path, deployer: Deployer
) -> None:
    ran = deployer("state", *arguments)
    assert (ran.code, ran.out) == (code, "") and words in ran.err


def test_verify_and_repair_after_somebody_else_committed(filled: Path, deployer: Deployer) -> None:
    whole = deployer("state", "verify")
    assert whole.code == 0
    assert whole.out.splitlines()[1] == "air.flights: whole (version 7, 7 entries, 0 snapshots, keys of 3 files read)"
    dataset(filled).delete("id < 5")
    ran = deployer("state", "verify")
    assert ran.code == 2
    assert "air.flights: 1 difference (version 7" in ran.out
    assert "table/air.flights: Lance has 1 commit that the log lacks (versions 5 to 5)" in ran.out
    planned = deployer("state", "repair", "--dry-run")
    assert planned.code == 2 and planned.out.startswith(
        "would be done: table/air.flights: record what Lance has, up to"
    )
    assert deployer("state", "verify", "--json").json["differences"] == 1
    done = deployer("state", "repair")
    assert (done.code, done.out) == (
        0,
        "table/air.flights: recorded what Lance had: replace 1 file by 1 file with 5 rows (dataset version 5)\n",
    )
    assert deployer("state", "verify", "--full").code == 0
    assert deployer("state", "repair").out == "nothing to repair\n"


def test_a_commit_under_way_is_told_and_given_up_when_old(filled: Path, deployer: Deployer) -> None:
    open_store(root(filled)).commit(table_id(filled), [CommitStarted("dead", "ingest", 4)])
    ran = deployer("state", "verify")
    assert ran.code == 0 and "job dead (ingest) began to commit at" in ran.err
    assert deployer("state", "repair").out == "nothing to repair\n"
    assert "gave up the commit of job dead" in deployer("state", "repair", "--grace", "0").out
    assert "job dead" not in deployer("state", "verify").err


def damaged(project: Path) -> Path:
    """A snapshot at version 7, one byte of it flipped."""
    with closing(open_store(root(project))) as store:
        store.snapshot(table_id(project))
    [file] = (root(project) / "_state" / "snapshots").rglob("files.parquet")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))
    return file


def test_a_damaged_snapshot_is_got_over_with_a_warning_and_repaired(filled: Path, deployer: Deployer) -> None:
    file = damaged(filled)
    command = [sys.executable, "-m", "deployer"]
    read = forks.run([*command, "describe", "flights"], text=True)
    assert read.returncode == 0 and "30 in 3 files" in read.stdout
    assert f"snapshot 7 of log {table_id(filled)}: the checksum of" in read.stderr
    assert "; read from the log instead: `deployer state repair` makes it again" in read.stderr
    ran = deployer("state", "verify", "flights")
    assert ran.code == 2 and f"{file.parent.name}/files.parquet does not match" in ran.out
    done = deployer("state", "repair", "flights")
    words = f"table/air.flights, snapshot 7 of log {table_id(filled)}: rebuilt from the previous snapshot and the log\n"
    assert (done.code, done.out) == (0, words)
    assert deployer("state", "verify").code == 0
    assert not file.exists()


@pytest.mark.parametrize("point", ["snapshot:before-part", "snapshot:before-replacing", "snapshot:after-replacing"])
def test_a_repair_that_is_killed_can_be_run_again(filled: Path, deployer: Deployer, point: str) -> None:
    damaged(filled)
    command = [sys.executable, "-m", "deployer", "state", "repair"]
    killed = forks.run(command, env={**os.environ, "DEPLOYER_FAILPOINT": point})
    assert killed.returncode == -signal.SIGKILL
    assert deployer("state", "repair").code == 0
    assert deployer("state", "verify").code == 0
    assert "30 in 3 files" in deployer("describe", "flights").out


def test_a_damaged_entry_hides_no_other(filled: Path, deployer: Deployer) -> None:
    with sqlite3.connect(root(filled) / "_state" / "state.db") as database:
        database.execute("UPDATE entries SET body = ? WHERE log = ? AND version = 3", (b"x", table_id(filled)))
    ran = deployer("state", "log", "flights")
    assert ran.code == 1 and "3" in ran.out and versions(ran.out) == [7, 6, 5, 4, 2, 1]
    assert "cannot be read: the state store did not write this content" in ran.out
    assert "air.flights: 1 entry cannot be read; `deployer state repair` repairs what it can" in ran.err
    assert "10 in 1 file" not in deployer("state", "show", "flights", "--at", "2").out
    assert f"entry 3 of log {table_id(filled)}: the state store did not" in deployer("describe", "flights").err
    left = deployer("state", "repair")
    assert left.code == 2 and "left as it is: table/air.flights, log " in left.out


@pytest.mark.parametrize("names", [(), ("flights",)], ids=["all", "one"])
def test_a_damaged_log_of_the_instance_hides_no_table(names: tuple[str, ...], filled: Path, deployer: Deployer) -> None:
    with sqlite3.connect(root(filled) / "_state" / "state.db") as database:
        database.execute("UPDATE entries SET body = ? WHERE log = 'instance' AND version = 1", (b"x",))
    ran = deployer("state", "verify", *names)
    assert (
        ran.code == 2
        and "instance: 1 difference" in ran.out
        and re.search(rf"^{table_id_of(filled)}\w+: whole", ran.out, re.M)
    )
    assert deployer("state", "repair", *names).code == 2
    assert versions(deployer("state", "log", "--instance").out) == [5, 4, 3, 2]


def table_id_of(project: Path) -> str:
    """The same when no state tells it: Lance's folder has its first digits."""
    [path] = (root(project) / "air").glob("flights-*.lance")
    return path.stem.partition("-")[2]


def test_what_cannot_be_repaired_is_said(filled: Path, deployer: Deployer) -> None:
    file = next((Path(dataset(filled).uri) / "data").iterdir())
    file.unlink()
    ran = deployer("state", "repair")
    assert ran.code == 2 and ran.out.startswith("left as it is: table/air.flights: fragment ")
    assert f"its data file data/{file.name} is missing; copy the file back from a backup" in ran.out
    assert deployer("state", "verify").code == 2


def test_a_store_moves_with_its_data_to_another_root(filled: Path, deployer: Deployer) -> None:
    wrote = deployer("state", "export", "state.zip")
    assert (wrote.code, wrote.out) == (0, "wrote state.zip: 3 logs, 13 entries, 0 snapshots\n")
    assert deployer("state", "export", "state.zip", "--force", "--json").json["logs"][table_id(filled)] == 7
    refused = deployer("state", "import", "state.zip")
    assert refused.code == 3 and "there is a state store already" in refused.err
    spec = filled / "specs" / "demo.yaml"
    spec.write_text(INSTANCE.replace("lakes/demo", "lakes/moved"), encoding="utf-8")
    shutil.copytree(root(filled) / "air", filled / "lakes" / "moved" / "air")
    assert deployer("state", "import", "state.zip").out == "imported state.zip: 3 logs, 13 entries, 0 snapshots\n"
    assert deployer("state", "verify", "--full").code == 0
    assert "30 in 3 files" in deployer("describe", "flights").out
