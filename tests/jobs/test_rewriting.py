"""Tables written anew by jobs elsewhere: started once, followed, ended and resumed. The cluster is processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from deployer.compute.jobs.cluster import RemoteJob, Run, RunState, RunStatus
from deployer.compute.running.remote_rewrite import rewrite_on
from deployer.compute.running.table_jobs import TableCluster
from deployer.errors import DeployerError, Interrupted, Refused
from deployer.platform.aws.calls import CallFailed, Cause
from deployer.platform.system.clock import Clock
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.specs.model import TableSpec
from deployer.tables.admin.tables import update_table
from deployer.tables.inspect.recorded import recorded_table
from tests import forks
from tests.tables.lakes import Lake, flights, sorted_rows

KEYS = {"row_keys": ("flight", "carrier"), "split_points": ((300,), (600,))}
FAILED = RunStatus(RunState.FAILED, "FAILED", "the driver was lost")


@dataclass
class Processes:
    """A cluster whose runs are processes of this machine, at the failure point that is set, if one is."""

    name: str = "nightly"
    failpoint: str = ""
    runs: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    cancelled: list[str] = field(default_factory=list)

    def start(self, job: RemoteJob, attempt: int = 1) -> Run:
        key = job.key(attempt)
        if key not in self.runs:
            command = [sys.executable, "-m", "spark_jobs.rewrite", f"--tell={key}", *job.arguments]
            self.runs[key] = forks.Popen(command, env={**os.environ, "DEPLOYER_FAILPOINT": self.failpoint})
        return Run(key, key, attempt)

    def status(self, run_id: str) -> RunStatus:
        code = self.runs[run_id].poll()
        if code is None:
            return RunStatus(RunState.RUNNING, "RUNNING")
        return RunStatus(RunState.SUCCEEDED, "SUCCESS") if code == 0 else FAILED

    def new_lines(self, run_id: str) -> Sequence[str]:
        return ()

    def cancel(self, run_id: str) -> None:
        self.cancelled.append(run_id)
        self.runs[run_id].kill()
        self.runs[run_id].wait()

    def wait_until_stopped(self, run_id: str) -> None:
        """Returns once the process is at its failure point."""
        _, status = os.waitpid(self.runs[run_id].pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def describe_run(self, run_id: str) -> str:
        return f"run {run_id[:8]}"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    monkeypatch.setattr("deployer.compute.running.follow.LAST_LINES", 0.0)
    monkeypatch.setattr("deployer.compute.running.table_jobs.PAUSE", 0.2)
    found = Processes()
    yield found
    for process in found.runs.values():
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


@pytest.fixture
def filled(lake: Lake) -> Lake:
    lake.table()
    lake.ingest(lake.file(flights(600)))
    return lake


def wanted(lake: Lake) -> tuple[str, TableSpec]:
    entry = lake.store.instance().by_name("air.flights")
    assert entry is not None
    return entry.table_id, replace(recorded_table(lake.store, lake.root, entry).spec, **KEYS)  # type: ignore[arg-type]


def up(lake: Lake, cluster: Processes, on_progress: OnProgress = no_progress) -> None:
    """What `up` does with the table."""
    table_id, spec = wanted(lake)
    there = TableCluster(cluster, True, "demo")

    def elsewhere(*arguments: object) -> None:
        rewrite_on(there, *arguments)  # type: ignore[arg-type]

    update_table(lake.store, lake.root, table_id, spec, on_progress=on_progress, elsewhere=elsewhere)


def check_is_rewritten(lake: Lake, dataset: int) -> None:
    table = lake.open()
    assert table.opened.state.properties.row_keys == KEYS["row_keys"]
    assert table.opened.state.dataset == dataset
    assert sorted_rows(table.scan().to_table()) == sorted_rows(flights(600))


def test_a_table_is_rewritten_by_a_job_and_its_progress_is_told(filled: Lake, cluster: Processes) -> None:
    reported: list[Progress] = []
    up(filled, cluster, reported.append)
    check_is_rewritten(filled, 2)
    [key] = cluster.runs
    assert f"run {key[:8]}: running (RUNNING)" in {each.doing for each in reported}
    up(filled, cluster)
    assert len(cluster.runs) == 1  # nothing is left to do


def test_a_job_that_is_killed_is_resumed_and_keeps_what_it_wrote(filled: Lake, cluster: Processes) -> None:
    cluster.failpoint = "tables.rewrite.range-written@2"
    with pytest.raises(DeployerError, match="the run failed: the driver was lost"):
        up(filled, cluster)
    [unfinished] = [each for each in filled.open().opened.state.datasets if each.status == "writing"]
    written = files_of(filled, unfinished.location)
    cluster.failpoint = ""
    up(filled, cluster)
    check_is_rewritten(filled, unfinished.number)
    assert len(cluster.runs) == 2 and len(written) >= 2
    assert written <= files_of(filled, unfinished.location)


def files_of(lake: Lake, location: str) -> set[str]:
    return {each.name for each in (lake.folder / "lake" / location / "data").iterdir()}


def stop_at_first(_: Progress) -> None:
    raise Interrupted("stopped")


def test_an_up_that_is_interrupted_ends_the_job_and_the_next_one_starts_it_again(
    filled: Lake, cluster: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deployer.compute.running.table_jobs.TO_END", 0.0)
    cluster.failpoint = "tables.rewrite.started=stop"  # it hears of nothing
    with pytest.raises(Interrupted, match="was asked to end; the table is unchanged"):
        up(filled, cluster, stop_at_first)
    assert cluster.cancelled == list(cluster.runs)
    cluster.failpoint = ""
    up(filled, cluster)
    assert len(cluster.runs) == 2
    assert filled.open().opened.state.properties.row_keys == KEYS["row_keys"]


def test_an_up_that_is_killed_leaves_the_job_and_the_next_one_follows_it(filled: Lake, cluster: Processes) -> None:
    class Killed(BaseException):
        """Ends `up` without a word, as SIGKILL does."""

    def killed(_: Progress) -> None:
        raise Killed

    cluster.failpoint = "tables.rewrite.started=stop"
    with pytest.raises(Killed):
        up(filled, cluster, killed)
    [(key, process)] = cluster.runs.items()
    assert cluster.cancelled == [] and process.poll() is None
    cluster.wait_until_stopped(key)
    process.send_signal(signal.SIGCONT)
    up(filled, cluster)
    assert list(cluster.runs) == [key]
    check_is_rewritten(filled, 2)


def test_what_the_job_refuses_is_refused_here(filled: Lake, cluster: Processes) -> None:
    table_id, spec = wanted(filled)
    refused = replace(spec, row_keys=("delay",), split_points=())
    with pytest.raises(Refused, match="'delay' is null in"):
        rewrite_on(
            TableCluster(cluster, True, "demo"), filled.store, filled.root, table_id, refused, no_progress, Clock()
        )
    assert filled.open().opened.state.dataset == 1


def test_an_aws_that_lets_nobody_look_says_that_the_job_continues(
    filled: Lake, cluster: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: str) -> RunStatus:
        raise CallFailed(Cause.REFUSED, "no", "GetJobRun was denied", where="cluster nightly", remedy="allow it")

    monkeypatch.setattr(cluster, "status", refused)
    with pytest.raises(CallFailed, match="The run continues; the next `deployer up` follows it"):
        up(filled, cluster)
    [key] = cluster.runs
    [file] = (filled.folder / "lake" / "_runs").glob("job-*.json")
    assert json.loads(file.read_text(encoding="utf-8"))["key"] == key
