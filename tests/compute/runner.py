"""Plays the machines of EMR Serverless and EMR: takes job runs and steps from moto, and runs each with the Spark of
this machine exactly as its submit parameters say.

As there, archives are unpacked where the driver runs, and environment variables come by settings of Spark. What the
driver of a job run prints goes to CloudWatch, and a job run that is cancelled is killed.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import boto3
import pyspark

from deployer.compute.emr import settings as submission
from deployer.compute.spark.java import java_home
from deployer.compute.spark.local import SHORT_COLLECTOR, SHORT_COMPILER
from tests.archives import unpack
from tests.compute.aws_runs import runs_of, set_state, states

#: What a cluster has of itself: here one machine, which nobody reaches from outside.
CLUSTER = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": f"{SHORT_COMPILER} {SHORT_COLLECTOR}",  # as sessions of this machine are started
}
_FILES = ("spark.archives", "spark.yarn.dist.archives", "spark.submit.pyFiles")


@dataclass(frozen=True)
class Submitted:
    """What a service was told to run: options of spark-submit, the program and its arguments."""

    run_id: str
    settings: Mapping[str, str]
    program: str
    arguments: Sequence[str]
    driver_env: str
    log_stream: tuple[str, str] | None  #: group and stream
    ended: tuple[str, str]  #: what the service calls success and failure


@contextmanager
def runner(server: str, folder: Path, bucket: str, failures: list[BaseException]) -> Iterator[list[str]]:
    """Runs what is submitted of programs in the bucket until the block is left; gives the commands that were run.

    What goes wrong here is put into `failures`, since whoever follows a run would wait for it forever.
    """
    commands: list[str] = []
    stop = threading.Event()

    def serve() -> None:
        try:
            _serve(server, folder, f"s3://{bucket}/", stop, commands)
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield commands
    finally:
        stop.set()
        thread.join()


def _serve(server: str, folder: Path, programs: str, stop: threading.Event, commands: list[str]) -> None:
    seen: set[str] = set()  # of all that was looked at, that of others too
    while not stop.wait(0.2):
        if seen.issuperset(found := states(server)):
            continue
        for submitted in [*_job_runs(programs), *_steps(programs)]:
            if submitted.run_id not in seen:
                place = folder / submitted.run_id
                place.mkdir(parents=True)
                _run(server, submitted, place, stop, commands)
        seen |= found.keys()


def _job_runs(programs: str) -> Iterator[Submitted]:
    emr = boto3.session.Session().client("emr-serverless")
    for application in emr.list_applications()["applications"]:
        group = _log_group(emr.get_application(applicationId=application["id"])["application"])
        for run in runs_of(application["id"]):
            driver, where = run["jobDriver"]["sparkSubmit"], (run["applicationId"], run["jobRunId"])
            if run["state"] == "SUBMITTED" and driver["entryPoint"].startswith(programs):  # others leave theirs
                settings, rest = _settings(shlex.split(driver["sparkSubmitParameters"]))
                assert not rest
                stream = f"/applications/{where[0]}/jobs/{where[1]}/SPARK_DRIVER"
                yield Submitted(
                    run["jobRunId"],
                    settings,
                    driver["entryPoint"],
                    driver["entryPointArguments"],
                    submission.SERVERLESS_ENV,
                    (group, stream),
                    ("SUCCESS", "FAILED"),
                )


def _log_group(application: Mapping[str, Any]) -> str:
    """The log group that the application's configuration names; without a name, EMR Serverless writes to its own."""
    logging = application.get("monitoringConfiguration", {}).get("cloudWatchLoggingConfiguration", {})
    return str(logging.get("logGroupName", "/aws/emr-serverless"))


def _steps(programs: str) -> Iterator[Submitted]:
    emr = boto3.session.Session().client("emr")
    for cluster in emr.list_clusters()["Clusters"]:
        for step in emr.list_steps(ClusterId=cluster["Id"])["Steps"]:
            own = any(each.startswith(programs) for each in step["Config"]["Args"])
            if own and step["Status"]["State"] in ("PENDING", "RUNNING"):
                submit, mode, kind, *options = step["Config"]["Args"]
                assert (submit, mode, kind) == ("spark-submit", "--deploy-mode", "cluster")
                settings, (program, *arguments) = _settings(options)
                ended = ("COMPLETED", "FAILED")
                yield Submitted(step["Id"], settings, program, arguments, submission.YARN_ENV, None, ended)


def _settings(options: Sequence[str]) -> tuple[dict[str, str], Sequence[str]]:
    """The settings, and what comes after them."""
    settings: dict[str, str] = {}
    while options and options[0] == "--conf":
        name, _, value = options[1].partition("=")
        settings[name], options = value, options[2:]
    return settings, options


def _run(server: str, submitted: Submitted, folder: Path, stop: threading.Event, commands: list[str]) -> None:
    settings, prefix = {**CLUSTER, **submitted.settings}, submitted.driver_env
    for name in _FILES:
        if name in settings:
            settings[name] = ",".join(_fetched(each, folder) for each in settings[name].split(","))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {name.removeprefix(prefix): value for name, value in settings.items() if name.startswith(prefix)}
    spark = Path(pyspark.__file__).parent
    environment |= {
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(spark),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "spark"),
        "PATH": os.pathsep.join((str(_python(folder)), os.environ["PATH"])),
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    program = _fetched(submitted.program, folder)
    command = [str(spark / "bin" / "spark-submit"), *options, program, *submitted.arguments]
    commands.append(shlex.join(command))
    set_state(server, submitted.run_id, "RUNNING")
    pipe = subprocess.PIPE
    with (
        ThreadPoolExecutor(2) as pool,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True) as process,
    ):
        pumps = [
            pool.submit(_pump, stream, name, submitted.log_stream)
            for name, stream in (("stdout", process.stdout), ("stderr", process.stderr))
            if stream is not None
        ]
        killed = False
        while process.poll() is None:
            broken = any(pump.done() and pump.exception() for pump in pumps)  # the program would wait for its reader
            if not killed and (broken or stop.is_set() or states(server)[submitted.run_id] == "CANCELLED"):
                process.terminate()
                killed = True
            time.sleep(0.1)
        for pump in pumps:
            pump.result()
    if states(server)[submitted.run_id] != "CANCELLED":
        failed = process.returncode != 0
        details = f"Job failed, please check complete logs. ExitCode: {process.returncode}." if failed else ""
        set_state(server, submitted.run_id, submitted.ended[failed], details)


def _pump(pipe: IO[str], name: str, to: tuple[str, str] | None) -> None:
    lines = (text for line in pipe if (text := line.rstrip("\n")))
    if to is None:
        sys.stderr.writelines(f"{line}\n" for line in lines)
        return
    logs, stream = boto3.session.Session().client("logs"), f"{to[1]}/{name}"
    logs.create_log_stream(logGroupName=to[0], logStreamName=stream)
    for line in lines:
        event = {"timestamp": time.time_ns() // 1_000_000, "message": line}
        logs.put_log_events(logGroupName=to[0], logStreamName=stream, logEvents=[event])


def _fetched(address: str, folder: Path) -> str:
    """The object as a file here. An archive, `ADDRESS#FOLDER`, is unpacked too."""
    place, _, unpacked = address.partition("#")
    bucket, _, key = place.removeprefix("s3://").partition("/")
    file = folder / key.rpartition("/")[2]
    file.write_bytes(boto3.session.Session().client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())
    if not unpacked:
        return str(file)
    unpack(file, folder / unpacked)
    return f"{file}#{unpacked}"


def _python(folder: Path) -> Path:
    """A folder with the Python that the cluster's release has, which here is the one of the tests."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    python = bin_folder / f"python3.{sys.version_info.minor}"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    return bin_folder
