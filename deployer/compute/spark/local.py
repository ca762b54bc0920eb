"""The cluster kind `local`: one Spark session in this process, which starts when it is first needed and stays open."""

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
#: Java options for sessions of the default size, which are short: the optimizing compiler and the parallel collector
#: would mostly cost startup time. Arrow and Lance read, sort and write rows outside of Java.
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
    """The sizes of the local cluster: its `cores` (None: all cores of the machine), and the `memory` of its Java, such
    as `4g`."""

    cores: int | None = None
    memory: str = DEFAULT_MEMORY

    @staticmethod
    def of(options: Mapping[str, object]) -> LocalCluster:
        """Returns the sizes from the options of a declared cluster. Raises InvalidInput for unknown options and invalid
        values."""
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
    """The only session of this process, and the temporary folder that is removed after it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.session: SparkSession | None = None
        self.folder: Path | None = None


_running = _Running()


def local_session(cluster: LocalCluster | None = None) -> SparkSession:
    """Returns the Spark session of this process. The first call starts it and determines its sizes.

    Spark's own log goes to a file in the session's temporary folder, which is removed at exit. Nothing is written to
    the terminal or the working folder. Raises NotFound when no Java is found, and DeployerError when Spark does not
    start.
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
            # A signal to the process group may already have ended Java. PySpark reports that as an error or a warning.
            with contextlib.suppress(Exception), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                session.stop()
            _end_gateway(gateway)
        if folder is not None:
            remove_temporary_folder(folder)


def settings(cluster: LocalCluster, folder: Path) -> dict[str, str]:
    """Returns Spark's configuration for a local session with its files in `folder`."""
    return {
        "spark.master": f"local[{cluster.cores or '*'}]",
        "spark.app.name": "deployer",
        "spark.driver.memory": cluster.memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # The ports for calls and for blocks are on loopback, where all users of the machine can reach them. Spark makes
        # the secret of a local session itself, in Java's memory: the secret is in no argument and no environment.
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
    """Returns the Java options that shorten the start of a session with the default memory. Other sessions keep Java's
    own defaults.

    Java does not start with two collectors; therefore no collector is added if the environment names one.
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
        "PATH": os.pathsep.join(filter(None, (os.environ.get("PATH"), os.defpath))),  # Spark's launcher needs bash
        "SPARK_CONF_DIR": os.environ.get("SPARK_CONF_DIR") or str(folder / "conf"),
    }
    try:
        with _environment(wanted), log.open("wb") as sink, warnings.catch_warnings():
            # Java is started by fork and exec. Lance warns of forks, but this child does not return to Python.
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
    """Ends the Java process by closing its standard input, and allows a later session to start another process."""
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
    """Delays Ctrl-C and SIGTERM to the end of the block, in which Java is started.

    Before the end of the block, this process has no handle of Java's process, and Java would outlive it.
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
    """Restores the process's handler of Ctrl-C after the block. Spark's own handler would call Java within the call
    that it interrupts."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Returns whether a record of the root logger is not from py4j, which logs each failed call with its stack."""
    return f"{os.sep}py4j{os.sep}" not in record.pathname


@contextlib.contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        # Spark reads PYSPARK_PYTHON again for each task; it must stay the Python of this process.
        for name, value in before.items():
            if name == "PYSPARK_PYTHON":
                continue
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def was_submitted() -> bool:
    """Returns whether spark-submit started this process. spark-submit sets the port of its Java gateway in the
    environment."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def job_session(cluster: Callable[[], LocalCluster]) -> SparkSession:
    """Returns the Spark session of a job: the submitted one, or else the local session. `cluster` returns the sizes for
    a local session; it is not called for a submitted one."""
    if not was_submitted():
        return local_session(cluster())
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    # Jobs rely on these settings; they override those of the submission.
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
    return session
