"""Runs of a job on a cluster on AWS: starting, following and cancelling one, and how to continue after a stop."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import typer
from rich.text import Text

from deployer.app.stack.engine import engine_for
from deployer.app.stack.state import stack_outputs
from deployer.app.workspace import Workspace
from deployer.cli.console.output import ask_yes_or_no, note, print_lines
from deployer.cli.console.progress_display import Meter
from deployer.cli.options import DEFAULT_STACK
from deployer.compute.jobs.cluster import RemoteCluster, RemoteJob, RunState, RunStatus
from deployer.compute.jobs.status import StartedJob, ask_to_end
from deployer.compute.running.connect import connect
from deployer.compute.running.follow import Watcher, run_continues
from deployer.compute.running.follow import follow as follow_to_end
from deployer.compute.running.start import run_job
from deployer.errors import Interrupted
from deployer.platform.aws.calls import CallFailed
from deployer.platform.system.clock import Clock
from deployer.platform.system.progress import Progress, with_rows_read
from deployer.specs.model import Cluster, Lake


def run_on(
    cluster: Cluster, workspace: Workspace, lake: Lake, job: RemoteJob, *, as_json: bool, detach: bool
) -> Mapping[str, Any] | None:
    """Runs the job on the declared cluster; returns its result; None with `detach`.

    Raises the error that ended the job, as the job on this machine would, and Interrupted when it was cancelled or is
    not followed any longer. Ctrl-C asks whether to cancel; without a terminal it cancels.
    """
    outputs = stack_outputs(workspace, engine_for(workspace, lake))
    there = connect(cluster, outputs, f"stack {workspace.stack}", workspace.values)
    root = workspace.root(lake)
    again = follow_command(job.job_id, workspace.stack)
    if not as_json:
        note(f"job {job.job_id}")
    is_started = False

    def follow(started: StartedJob) -> Mapping[str, Any] | None:
        nonlocal is_started
        is_started = True
        if detach:
            note(f"{there.describe_run(started.run_id)} has started; follow it: {again}")
            return None
        return follow_run(there, root, started, again, as_json=as_json)

    def on_again() -> None:
        nonlocal is_started
        is_started = False
        note("AWS has not yet distributed the role: the run is started again")

    try:
        return run_job(there, root, job, follow, clock=Clock(), on_again=on_again)
    except KeyboardInterrupt:
        if is_started:
            raise
        raise Interrupted(
            "stopped while the run was being started; it may be running",
            where=f"cluster {cluster.name}",
            remedy=f"the same command with --job-id {job.job_id} finds it, or starts it if it does not run",
        ) from None


def follow_run(
    cluster: RemoteCluster, root: str, started: StartedJob, again: str, *, as_json: bool
) -> Mapping[str, Any]:
    """Follows a run until its job ends; returns the job's result. `again` is the command that continues to follow it.
    Raises as `run_on` does."""
    run_name = cluster.describe_run(started.run_id)
    cancelled = False
    while True:
        try:
            with Meter(as_json=as_json) as meter:
                meter.begin(started.title, started.title)
                watcher = _watcher(meter, started.title, run_name)
                return follow_to_end(cluster, root, started.run_id, started.key, watcher, Clock())
        except KeyboardInterrupt:
            if cancelled or (wanted := _wants_to_cancel(run_name)) is None:
                raise Interrupted("the run continues", where=run_name, remedy=f"follow it: {again}") from None
            if wanted:
                ask_to_end(root, started.key)
                cluster.cancel(started.run_id)
                cancelled = True
                note("the run was asked to end; Ctrl-C stops waiting for it")
        except CallFailed as failure:
            raise run_continues(failure, run_name, f"follow it: {again}") from failure


def follow_command(job_id: str, stack: str) -> str:
    """Returns the command that continues to follow a job."""
    from shlex import quote

    return f"deployer follow {quote(job_id)}" + ("" if stack == DEFAULT_STACK else f" --stack {quote(stack)}")


def _wants_to_cancel(run_name: str) -> bool | None:
    """Asks whether to cancel the run. Returns None for a second Ctrl-C."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    try:
        return ask_yes_or_no(f"cancel {run_name}?")
    except (typer.Abort, KeyboardInterrupt):
        return None


def _watcher(meter: Meter, name: str, run_name: str) -> Watcher:
    def on_status(status: RunStatus) -> None:
        doing = f"{status.state} ({status.reported})"
        meter.report(name, Progress(doing, 0, None, ""))
        if meter.as_json:
            meter.event("status", run=run_name, state=status.state, said=status.reported, detail=status.detail)
        elif status.state in (RunState.WAITING, RunState.RUNNING):
            meter.console.print(Text(f"{run_name}: {doing}", "dim"), soft_wrap=True)

    def on_progress(progress: Progress) -> None:
        meter.report(name, with_rows_read(progress))

    def on_line(line: str) -> None:
        if meter.as_json:
            meter.event("line", line=line)
        else:
            print_lines(meter.console, f"  | {line}", "dim")

    return Watcher(on_status, on_progress, on_line)
