"""A program with a Spark session of its own, which tests kill: `python -m tests.spark.session_program PLAN`.

PLAN is a JSON file: `folder` for Spark's files, `root` of the lake, whether Spark runs as a `cluster` whose executors
are processes of Java on two hosts, and `steps`. Each step is a write or a stream of all Parquet files of a folder, with
the failpoint that the Python of its tasks and of its commit has. One JSON line is printed when a step begins, and
another one when it ends or fails; the steps after a failure run, too, unless PLAN has `stops_at_failure`.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession

from deployer.compute.spark.java import java_home
from deployer.compute.spark.local import LOG4J, LocalCluster, settings
from deployer.spark import register
from tests.spark.writes import spark_columns
from tests.tables.lakes import FLIGHTS

HOSTS = ("127.0.0.2", "127.0.0.3")  #: of the executors: Spark repeats a slow task on another host alone
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.minTaskRuntime": "500ms",
}


def session(folder: Path, *, cluster: bool) -> SparkSession:
    """A session that repeats failed tasks: in one process of Java, or with two executors and speculation."""
    (folder / "conf").mkdir(parents=True, exist_ok=True)
    (folder / "conf" / "log4j2.properties").write_text(LOG4J, encoding="utf-8")
    os.environ |= {
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    chosen = settings(LocalCluster(2), folder) | {"spark.master": "local[2,4]", "spark.driver.memory": "512m"}
    if cluster:
        chosen |= {"spark.authenticate.secret": uuid.uuid4().hex, "spark.executor.memory": "512m", **SPECULATION}
        chosen |= {"spark.executor.extraJavaOptions": chosen["spark.driver.extraJavaOptions"]}
    conf = SparkConf(loadDefaults=False).setAll(list(chosen.items()))
    gateway = launch_gateway(conf, {"stdout": sys.stderr, "stderr": sys.stderr})  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)
    if cluster:
        conf.set("spark.master", start_cluster(chosen, folder))
    return SparkSession(SparkContext(conf=conf))


def start_cluster(chosen: Mapping[str, str], folder: Path) -> str:
    """Starts a master, and a worker for each host, in this program's Java; the master's URL."""
    jvm: Any = SparkContext._jvm
    conf = jvm.org.apache.spark.SparkConf(False)
    for name, value in chosen.items():
        conf.set(name, value)
    deploy = jvm.org.apache.spark.deploy
    master = deploy.master.Master.startRpcEnvAndEndpoint("127.0.0.1", 0, 0, conf)
    url = f"spark://{master._1().address().hostPort()}"
    none = jvm.scala.Option.empty()
    urls = SparkContext._gateway.new_array(jvm.java.lang.String, 1)  # type: ignore[union-attr]
    urls[0] = url
    for host in HOSTS:
        deploy.worker.Worker.startRpcEnvAndEndpoint(host, 0, 0, 1, 512, urls, str(folder / host), none, conf, none)
    return url


def run_step(spark: SparkSession, root: str, step: Mapping[str, Any]) -> None:
    """Runs one step; each file of a stream is a batch."""
    # Spark starts new Python processes for another environment: those of a former step have passed the failpoint.
    failpoint = step.get("failpoint", "")
    spark.sparkContext.environment |= {"DEPLOYER_FAILPOINT": failpoint, "STEP": uuid.uuid4().hex if failpoint else ""}
    register(spark)  # with the environment as it is now
    options = {"root": root, **step.get("options", {})}
    if step["kind"] == "write":
        rows: DataFrame = spark.read.schema(spark_columns(FLIGHTS)).parquet(step["source"])
        writer = rows.repartition(step.get("tasks", 2)).write.format("deployer").options(**options)
        writer.mode(step.get("mode", "append")).save(step["table"])
        return
    found = spark.readStream.schema(spark_columns(FLIGHTS)).option("maxFilesPerTrigger", 1).parquet(step["source"])
    stream = found.repartition(2).writeStream.format("deployer").options(**options)
    stream = stream.option("checkpointLocation", step["checkpoint"]).trigger(availableNow=True)
    stream.start(step["table"]).awaitTermination()


def report(number: int, event: str, error: str = "") -> None:
    print(json.dumps({"step": number, "event": event, "error": error}), flush=True)


def main(path: str) -> None:
    plan = json.loads(Path(path).read_text(encoding="utf-8"))
    spark = session(Path(plan["folder"]), cluster=plan.get("cluster", False))
    for number, step in enumerate(plan["steps"]):
        report(number, "begins")
        try:
            run_step(spark, plan["root"], step)
        except Exception as failure:
            report(number, "failed", str(failure)[:2000])
            if plan.get("stops_at_failure"):
                break
        else:
            report(number, "ended")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
