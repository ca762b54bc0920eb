"""The settings of spark-submit besides the places of job code: sizes, region, and those of our own sessions."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from deployer.compute.clusters import most_workers, timeout_minutes
from deployer.specs.values.target_server import HOSTS_VARIABLE

#: What the driver's environment variables begin with.
SERVERLESS_ENV, YARN_ENV = "spark.emr-serverless.driverEnv.", "spark.yarn.appMasterEnv."
MINUTES = "DEPLOYER_JOB_MINUTES"  #: the variable by which a job ends itself in time
#: What `deployer.compute.spark.local` sets for a session of its own too.
_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.log.level": "WARN",  # EMR's own is INFO, which hides the lines of a job
}


def settings(
    options: Mapping[str, Any], region: str | None, driver_env: str, variables: Mapping[str, str] | str = ""
) -> dict[str, str]:
    """Spark's settings of a cluster. `driver_env` is what the driver's environment variables begin with there.

    `variables` are those of the driver that the stack's settings give it (`job_variables`). Programs that `init` of
    earlier releases wrote give the hosts of METASYNC alone, as a text.
    """
    if isinstance(variables, str):
        variables = {HOSTS_VARIABLE: variables} if variables else {}
    found = dict(_ALWAYS)
    if "cores" in options:
        found |= dict.fromkeys(("spark.driver.cores", "spark.executor.cores"), str(options["cores"]))
    if "memory" in options:
        found |= dict.fromkeys(("spark.driver.memory", "spark.executor.memory"), str(options["memory"]))
    if region is not None:
        found[f"{driver_env}AWS_REGION"] = found["spark.executorEnv.AWS_REGION"] = region
    return found | {f"{driver_env}{name}": text for name, text in variables.items()}


def serverless_settings(
    options: Mapping[str, Any], region: str | None, variables: Mapping[str, str] | str = ""
) -> dict[str, str]:
    """Spark's settings of a cluster of kind emr-serverless: as many workers as it may have, which speak TLS.

    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/interworker-encryption.html
    """
    return {
        **settings(options, region, SERVERLESS_ENV, variables),
        "spark.dynamicAllocation.maxExecutors": str(most_workers(options)),
        "spark.ssl.internode.enabled": "true",
    }


def step_settings(
    options: Mapping[str, Any], region: str | None, variables: Mapping[str, str] | str = ""
) -> dict[str, str]:
    """Spark's settings of a step of a cluster of kind emr. A driver that ended is not started again, and ends itself in
    time: EMR has no limit for a step."""
    return {
        **settings(options, region, YARN_ENV, variables),
        "spark.yarn.maxAppAttempts": "1",
        f"{YARN_ENV}{MINUTES}": str(timeout_minutes(options)),
    }


def as_options(settings: Mapping[str, str]) -> list[str]:
    """Returns the settings as options of spark-submit."""
    return [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]


def as_text(settings: Mapping[str, str]) -> str:
    """Returns the settings as one line of options."""
    return shlex.join(as_options(settings))
