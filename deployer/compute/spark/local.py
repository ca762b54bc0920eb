"""The cluster kind `local`: one Spark session in this process, started when it is first needed and kept."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deployer.compute.spark.java import java_home
from deployer.errors import DeployerError, InvalidInput
from deployer.platform.files.temporary import make_temporary_folder, remove_temporary_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


DEFAULT_MEMORY = "2g"
#: A session of the default size is short: most of what the optimising compiler and the parallel collector cost is their
#: start. Rows are read, sorted and written by Arrow and Lance, outside of Java.
SHORT_COMPILER = "-XX:TieredStopAtLevel=1"
SHORT_COLLECTOR = "-XX:+UseSerialGC"

_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")

LOG4J = """rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """Sizes of the local cluster: `cores` (None: all of the machine) and `memory` of its Java, such as `4g`."""

    cores: int | None = None
    memory: str = DEFAULT_MEMORY

    @staticmethod
    def of(options: Mapping[str, object]) -> LocalCluster:
        """Reads the options of a declared cluster; raises InvalidInput for one that `local` does not have."""
        known = {"cores", "memory"}
        if unknown := sorted(set(options) - known):
            raise InvalidInput(
                f"a local cluster has no option {', '.join(map(repr, unknown))}", remedy="use `cores` and `memory`"
            )
        cores, memory = options.get("cores"), options.get("memory", DEFAULT_MEMORY)
        if cores is not None and (not isinstance(cores, int) or isinstance(cores, bool) or cores < 1):
            raise InvalidInput(f"`cores` of a local cluster is {cores!r}", remedy="give a whole number from 1")
        return LocalCluster(cores, str(memory))


class _Running:
    """The one session of this process and what is to be cleaned up after it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.session: SparkSession | None = None
        self.folder: Path | None = None


_running = _Running()


def local_session(cluster: LocalCluster | None = None) -> SparkSession:
    """Returns the process's Spark session; the first call starts it and fixes its sizes.

    Spark's own log goes to a file in the session's temporary folder, which is removed at exit: nothing is written to
    the terminal or the working folder. Raises NotFound without a Java, DeployerError when Spark does not start.
    """
    with _running.lock:
        if _running.session is None:
            _running.folder = make_temporary_folder("spark")
            atexit.register(stop_session)
            _running.session = _start(cluster or LocalCluster(), _running.folder)
        return _running.session


def stop_session() -> None:
    """Stops the session, if there is one, and removes its temporary files."""
    with _running.lock:
        session, folder = _running.session, _running.folder
        _running.session = _running.folder = None
        if session is not None:
            gateway = session.sparkContext._gateway  # its process has no public handle, and outlives `stop`
            with contextlib.suppress(Exception):  # a signal to the process group may have ended Java before
                session.stop()
            _end_gateway(gateway)
        if folder is not None:
            remove_temporary_folder(folder)


def settings(cluster: LocalCluster, folder: Path) -> dict[str, str]:
    """Spark's configuration for a local session that keeps its files in `folder`."""
    return {
        "spark.master": f"local[{cluster.cores or '*'}]",
        "spark.app.name": "deployer",
        "spark.driver.memory": cluster.memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Its ports for calls and for blocks are on loopback, where every user of the machine reaches them. Of a local
        # session Spark makes the secret itself, in Java's memory: it is in no argument and no environment.
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.network.crypto.saslFallback": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.shuffle.partitions": str(2 * (cluster.cores or os.cpu_count() or 2)),
        "spark.driver.extraJavaOptions": " ".join(
            [*java_options(cluster), f"-Djava.io.tmpdir={folder}", f"-Dderby.system.home={folder}"]
        ),
    }


def java_options(cluster: LocalCluster, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Options that shorten the start of a session of the default memory; a larger one keeps Java's own choices.

    Java refuses to start with two collectors, so one that the environment names is left alone.
    """
    if cluster.memory != DEFAULT_MEMORY:
        return []
    chosen = any(_COLLECTOR.search(environ.get(name, "")) for name in _JAVA_VARIABLES)
    return [SHORT_COMPILER] if chosen else [SHORT_COMPILER, SHORT_COLLECTOR]


def _start(cluster: LocalCluster, folder: Path) -> SparkSession:
    home = java_home()
    log = folder / "spark.log"
    (folder / "conf").mkdir()
    (folder / "conf" / "log4j2.properties").write_text(LOG4J, encoding="utf-8")
    wanted = {
        "JAVA_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONSAFEPATH": "1",  # Spark's workers are started with `-m`, and import nothing from the current folder
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PATH": os.pathsep.join(filter(None, (os.environ.get("PATH"), os.defpath))),  # Spark's launcher wants bash
        "SPARK_CONF_DIR": os.environ.get("SPARK_CONF_DIR") or str(folder / "conf"),
    }
    try:
        with _environment(wanted), log.open("wb") as sink, warnings.catch_warnings():
            # Java is started by fork and exec, which Lance warns of: the child does not come back into Python.
            warnings.filterwarnings("ignore", message="lance is not fork-safe")
            return _launch(settings(cluster, folder), sink)
    except Exception as failure:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:] if log.exists() else []
        raise DeployerError(
            "Spark did not start: " + (" / ".join(lines) or str(failure)),
            where=home,
            remedy="check the cluster's `memory`, or set JAVA_HOME to another Java of 17 or later",
        ) from failure


def _launch(options: Mapping[str, str], sink: Any) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False).setAll(list(options.items()))
    logging.getLogger().addFilter(_is_not_of_py4j)
    gateway = None
    try:
        with _signals_deferred():
            gateway = launch_gateway(conf, {"stdout": sink, "stderr": sink})  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway, conf=conf)
        with _own_interrupts():
            return SparkSession(SparkContext(conf=conf))
    except BaseException:
        if gateway is not None:
            _end_gateway(gateway)
        raise


def _end_gateway(gateway: Any) -> None:
    """Ends the Java process, which goes when its standard input closes, and lets a later session start another."""
    from pyspark import SparkContext

    SparkContext._gateway = None
    SparkContext._jvm = None
    with contextlib.suppress(Exception):
        gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.stdin.close()
        with contextlib.suppress(Exception):
            process.wait(timeout=10)


@contextlib.contextmanager
def _signals_deferred() -> Iterator[None]:
    """Handles Ctrl-C and SIGTERM at the end of the block, in which Java is started.

    Before that, this process has no handle of Java's process, which would outlive it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    deferred: list[int] = []
    kept = (signal.SIGINT, signal.SIGTERM)
    before = {each: signal.signal(each, lambda number, _: deferred.append(number)) for each in kept}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        for number in deferred:
            signal.raise_signal(number)


@contextlib.contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keeps the process's handling of Ctrl-C. Spark's own calls Java inside of the call that it interrupts."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Returns whether a record of the root logger is not from py4j, which logs each broken call with its stack."""
    return f"{os.sep}py4j{os.sep}" not in record.pathname


@contextlib.contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        # PYSPARK_PYTHON is read again whenever a task is sent, and must stay the Python that this is.
        for name, value in before.items():
            if name == "PYSPARK_PYTHON":
                continue
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def was_submitted() -> bool:
    """Returns whether spark-submit started this process: it hands the program a gateway to the Java that it runs in."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def job_session(cluster: Callable[[], LocalCluster]) -> SparkSession:
    """Returns the session. `cluster` is asked only when a local one is to be started."""
    if not was_submitted():
        return local_session(cluster())
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    # What the load relies on, whatever the submission said.
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
    return session
