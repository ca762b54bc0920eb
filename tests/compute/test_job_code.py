"""Where a stack says that the code of jobs is, and how Spark is told."""

from __future__ import annotations

from typing import Any

import pytest

from deployer.compute.jobs.code import JobCode, architecture_of
from deployer.errors import NotFound
from deployer.specs.model import Cluster

OUTPUTS = {
    "bucket": "lakes",
    "jobs": {
        "arm64": {
            "python": "3.11",
            "wheel": "s3://lakes/a/_jobs/1/deployer.zip",
            "archive": "s3://lakes/a/_jobs/2/environment-arm64.tar.gz",
            "scripts": {"ingest": "s3://lakes/a/_jobs/3/ingest.py"},
        }
    },
}
SHARED = {
    "spark.submit.pyFiles": "s3://lakes/a/_jobs/1/deployer.zip",
    "spark.executorEnv.PYTHONPATH": "./environment",
    "spark.executorEnv.PYSPARK_PYTHON": "python3.11",
}


def test_settings_of_emr_serverless() -> None:
    code = JobCode.from_outputs(OUTPUTS, "arm64")
    assert code.script("ingest") == "s3://lakes/a/_jobs/3/ingest.py"
    assert code.serverless_settings() == SHARED | {
        "spark.archives": "s3://lakes/a/_jobs/2/environment-arm64.tar.gz#environment",
        "spark.emr-serverless.driverEnv.PYTHONPATH": "./environment",
        "spark.emr-serverless.driverEnv.PYSPARK_PYTHON": "python3.11",
        "spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON": "python3.11",
    }


def test_settings_of_steps() -> None:
    assert JobCode.from_outputs(OUTPUTS, "arm64").yarn_settings() == SHARED | {
        "spark.yarn.dist.archives": "s3://lakes/a/_jobs/2/environment-arm64.tar.gz#environment",
        "spark.yarn.appMasterEnv.PYTHONPATH": "./environment",
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": "python3.11",
        "spark.yarn.appMasterEnv.PYSPARK_DRIVER_PYTHON": "python3.11",
    }


@pytest.mark.parametrize("outputs", [{}, {"jobs": None}, {"jobs": {"x86_64": {}}}])
def test_what_was_not_uploaded_is_said(outputs: dict[str, Any]) -> None:
    with pytest.raises(NotFound, match="has uploaded no code of jobs for arm64; run `deployer up`"):
        JobCode.from_outputs(outputs, "arm64")


def test_a_job_that_was_not_uploaded_is_said() -> None:
    with pytest.raises(NotFound, match="no job 'compact' was uploaded, there are ingest; run `deployer up` again"):
        JobCode.from_outputs(OUTPUTS, "arm64").script("compact")


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("emr-serverless", {}, "arm64"),
        ("emr-serverless", {"architecture": "x86_64"}, "x86_64"),
        *(("emr", {"instance_type": f"{each}.xlarge"}, "arm64") for each in ("r7g", "m6gd", "c7gn", "x2gd")),
        *(("emr", {"instance_type": f"{each}.xlarge"}, "x86_64") for each in ("r7i", "m5", "g5", "m7i-flex")),
        ("emr", {"fleets": {"types": ["r7g.xlarge", "r6g.xlarge"]}}, "arm64"),
        ("emr", {"fleets": {"types": ["r7a.xlarge"]}}, "x86_64"),
    ],
)  # fmt: skip
def test_architectures(kind: str, options: dict[str, Any], expected: str) -> None:
    assert architecture_of(Cluster("a", kind, options)) == expected
