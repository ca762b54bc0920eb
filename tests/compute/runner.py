"""Plays the machines of EMR Serverless: takes job runs from moto, and runs each with the Spark of this machine exactly
as its submit parameters say.

As there, archives are unpacked where the driver runs, environment variables come by `spark.emr-serverless.driverEnv.`,
what the driver prints goes to CloudWatch, and a run that is cancelled is killed.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import boto3
import pyspark

from deployer.compute.emr_serverless import DRIVER_ENV
from deployer.compute.java import java_home
from tests.compute.aws_runs import runs_of, set_state

#: What a cluster has of itself: here one machine, which nobody reaches from outside.
CLUSTER = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_FILES = ("spark.archives", "spark.submit.pyFiles")


@contextmanager
def runner(server: str, folder: Path) -> Iterator[list[str]]:
    """Runs what is submitted until the block is left; gives the commands that were run."""
    commands: list[str] = []
    stop = threading.Event()
    thread = threading.Thread(target=_serve, args=(server, folder, stop, commands))
    thread.start()
    try:
        yield commands
    finally:
        stop.set()
        thread.join()


def _serve(server: str, folder: Path, stop: threading.Event, commands: list[str]) -> None:
    emr = boto3.session.Session().client("emr-serverless")
    while not stop.wait(0.2):
        for application in emr.list_applications()["applications"]:
            for run in runs_of(application["id"]):
                if run["state"] == "SUBMITTED":
                    place = folder / run["jobRunId"]
                    place.mkdir(parents=True)
                    _run(server, run, f"/emr-serverless/{application['name']}", place, stop, commands)


def _run(
    server: str, run: dict[str, Any], group: str, folder: Path, stop: threading.Event, commands: list[str]
) -> None:
    driver, run_id = run["jobDriver"]["sparkSubmit"], run["jobRunId"]
    given = shlex.split(driver["sparkSubmitParameters"])
    assert set(given[::2]) == {"--conf"}, given
    settings = CLUSTER | dict(each.split("=", 1) for each in given[1::2])
    for name in _FILES:
        if name in settings:
            settings[name] = ",".join(_fetched(each, folder) for each in settings[name].split(","))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {
        name.removeprefix(DRIVER_ENV): value for name, value in settings.items() if name.startswith(DRIVER_ENV)
    }
    spark = Path(pyspark.__file__).parent
    environment |= {
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(spark),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "spark"),
        "PATH": os.pathsep.join((str(_python(folder)), os.environ["PATH"])),
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    program = _fetched(driver["entryPoint"], folder)
    command = [str(spark / "bin" / "spark-submit"), *options, program, *driver["entryPointArguments"]]
    commands.append(shlex.join(command))
    set_state(server, run_id, "RUNNING")
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        pumps = [
            threading.Thread(target=_pump, args=(pipe, group, f"{_stream(run)}/{name}"))
            for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr))
        ]
        for pump in pumps:
            pump.start()
        killed = False
        while process.poll() is None:
            if not killed and (stop.is_set() or _state(run) == "CANCELLED"):
                process.terminate()
                killed = True
            time.sleep(0.1)
        for pump in pumps:
            pump.join()
    if _state(run) != "CANCELLED":
        failed = process.returncode != 0
        details = f"Job failed, please check complete logs. ExitCode: {process.returncode}." if failed else ""
        set_state(server, run_id, "FAILED" if failed else "SUCCESS", details)


def _state(run: dict[str, Any]) -> str:
    (found,) = [each for each in runs_of(run["applicationId"]) if each["jobRunId"] == run["jobRunId"]]
    return str(found["state"])


def _stream(run: dict[str, Any]) -> str:
    return f"/applications/{run['applicationId']}/jobs/{run['jobRunId']}/SPARK_DRIVER"


def _pump(pipe: IO[str], group: str, stream: str) -> None:
    logs = boto3.session.Session().client("logs")
    logs.create_log_stream(logGroupName=group, logStreamName=stream)
    for line in pipe:
        if text := line.rstrip("\n"):
            event = {"timestamp": time.time_ns() // 1_000_000, "message": text}
            logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=[event])


def _fetched(address: str, folder: Path) -> str:
    """The object as a file here. An archive, `ADDRESS#FOLDER`, is unpacked too."""
    place, _, unpacked = address.partition("#")
    bucket, _, key = place.removeprefix("s3://").partition("/")
    file = folder / key.rpartition("/")[2]
    file.write_bytes(boto3.session.Session().client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())
    if not unpacked:
        return str(file)
    with tarfile.open(file) as archive:
        archive.extractall(folder / unpacked, filter="data")
    return f"{file}#{unpacked}"


def _python(folder: Path) -> Path:
    """A folder with the Python that the cluster's release has, which here is the one of the tests."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    python = bin_folder / f"python3.{sys.version_info.minor}"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    return bin_folder
