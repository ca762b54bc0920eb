"""The addresses of job code on S3, and the settings by which Spark on EMR runs jobs with this code.

The stack uploads the files that `deployer package` builds, and exports their addresses as `jobs`, by architecture.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployer.errors import NotFound
from deployer.specs.declarations.clusters import processors_of
from deployer.specs.model import Cluster

OUTPUT = "jobs"  #: the name of the stack's output
PREFIX = "_jobs"  #: the folder of the code below the instance's root
REMOTE_KINDS = ("emr-serverless", "emr")
ENVIRONMENT = "environment"  #: the folder into which the archive is unpacked, in the driver's and executors' folder


@dataclass(frozen=True, slots=True)
class JobCode:
    """The s3:// addresses of the job code for clusters of one architecture. `scripts` has the programs by job name,
    such as `ingest`."""

    architecture: str
    python: str  #: such as `3.11`
    wheel: str
    archive: str
    scripts: Mapping[str, str]
    modules: str = ""  #: the file with the project's modules that jobs import; empty for none
    functions: tuple[str, ...] = ()  #: the project's functions that jobs can import

    @staticmethod
    def from_outputs(outputs: Mapping[str, Any], architecture: str) -> JobCode:
        """Returns the job code from a stack's outputs. Raises NotFound when the stack has no code for the
        architecture."""
        found = (outputs.get(OUTPUT) or {}).get(architecture)
        if found is None:
            raise NotFound(
                f"the stack has uploaded no code of jobs for {architecture}",
                remedy="run `deployer up`; it needs a cluster on AWS, and deployer:jobs other than none",
            )
        return JobCode(
            architecture,
            found["python"],
            found["wheel"],
            found["archive"],
            dict(found["scripts"]),
            found.get("modules") or "",
            tuple(found.get("functions") or ()),
        )

    def script(self, job: str) -> str:
        """Returns the address of a job's program. Raises NotFound for an unknown job."""
        if job not in self.scripts:
            there = ", ".join(sorted(self.scripts))
            raise NotFound(f"no job {job!r} was uploaded, there are {there}", remedy="run `deployer up` again")
        return self.scripts[job]

    def serverless_settings(self) -> dict[str, str]:
        """Returns Spark's settings for a job on EMR Serverless."""
        driver = "spark.emr-serverless.driverEnv."
        return {
            "spark.archives": f"{self.archive}#{ENVIRONMENT}",
            "spark.submit.pyFiles": ",".join(filter(None, (self.wheel, self.modules))),
            **{f"{driver}{name}": value for name, value in self._variables().items()},
            f"{driver}PYSPARK_DRIVER_PYTHON": f"python{self.python}",
            **self._of_executors(),
        }

    def yarn_settings(self) -> dict[str, str]:
        """Returns Spark's settings for a step on an EMR cluster with `--deploy-mode cluster`."""
        driver = "spark.yarn.appMasterEnv."
        return {
            "spark.yarn.dist.archives": f"{self.archive}#{ENVIRONMENT}",
            "spark.submit.pyFiles": ",".join(filter(None, (self.wheel, self.modules))),
            **{f"{driver}{name}": value for name, value in self._variables().items()},
            f"{driver}PYSPARK_DRIVER_PYTHON": f"python{self.python}",
            **self._of_executors(),
        }

    def _variables(self) -> dict[str, str]:
        return {"PYTHONPATH": f"./{ENVIRONMENT}", "PYSPARK_PYTHON": f"python{self.python}"}

    def _of_executors(self) -> dict[str, str]:
        return {f"spark.executorEnv.{name}": value for name, value in self._variables().items()}


def architecture_of(cluster: Cluster) -> str:
    """Returns the architecture of a cluster: `arm64` or `x86_64`."""
    if cluster.kind != "emr":
        return str(cluster.options.get("architecture", "arm64"))
    fleets: Any = cluster.options.get("fleets") or {}
    instance_type = str(cluster.options.get("instance_type") or next(iter(fleets.get("types", ())), ""))
    return processors_of(instance_type)
