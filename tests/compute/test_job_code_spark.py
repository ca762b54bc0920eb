"""Spark's executors find the code of jobs where the settings say: a cluster of one worker on this machine."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from deployer.compute.jobs.code import JobCode
from deployer.compute.packaging.archive import pack
from deployer.compute.packaging.wheel import build_wheel
from deployer.compute.spark.java import java_home
from tests.wheelhouse import make_wheel

PROGRAM = """\
from pyspark.sql import SparkSession

def where(batches):
    import os
    import pyarrow
    import deployer, packaged_tiny
    for batch in batches:
        yield pyarrow.RecordBatch.from_pydict({"file": [os.path.relpath(each.__file__) for each in (deployer, packaged_tiny)]})

rows = SparkSession.builder.getOrCreate().range(1).repartition(1).mapInArrow(where, "file string").collect()
print([row.file for row in rows])
"""  # noqa: E501


@pytest.mark.slow
@pytest.mark.spark
def test_executors_import_the_wheel_and_the_archive(tmp_path: Path) -> None:
    """Executors of this kind of cluster have a folder of their own, as they have on EMR."""
    pack([make_wheel(tmp_path, "tiny", "1.0")], tmp_path / "environment-arm64.tar.gz")
    (tmp_path / "deployer.zip").write_bytes(build_wheel())
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    code = JobCode(
        "arm64", python, str(tmp_path / "deployer.zip"), str(tmp_path / "environment-arm64.tar.gz"),
        {"program": str(tmp_path / "program.py")},
    )  # fmt: skip
    home = tmp_path / "spark"  # Spark keeps the folders of executors in its own
    home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        (home / part.name).symlink_to(part)
    sizes = {"spark.executor.memory": "900m", "spark.driver.memory": "700m", "spark.ui.enabled": "false"}
    settings = {name: value for name, value in code.serverless_settings().items() if "driverEnv" not in name} | sizes
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    command = [str(home / "bin" / "spark-submit"), "--master", "local-cluster[1,1,1200]", *options]
    ran = subprocess.run(
        [*command, code.script("program")], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ast.literal_eval(ran.stdout.splitlines()[-1]) == [
        "deployer.zip/deployer/__init__.py",
        "environment/packaged_tiny.py",
    ]
