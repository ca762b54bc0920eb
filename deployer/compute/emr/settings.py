"""The settings for spark-submit, except the locations of job code: sizes, region, and deployer's session settings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from deployer.compute.clusters import most_workers, timeout_minutes
from deployer.specs.values.target_server import HOSTS_VARIABLE

#: The prefixes of the settings for the driver's environment variables.
SERVERLESS_ENV, YARN_ENV = "spark.emr-serverless.driverEnv.", "spark.yarn.appMasterEnv."
MINUTES = "DEPLOYER_JOB_MINUTES"  #: the variable with the minutes after which a job ends itself
#: The settings that `deployer.compute.spark.local` also gives to its own sessions.
_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.log.level": "WARN",  # EMR's default INFO would hide the lines of a job
}


def settings(
    options: Mapping[str, Any], region: str | None, driver_env: str, variables: Mapping[str, str] | str = ""
) -> dict[str, str]:
    """Returns Spark's settings for a cluster. `driver_env` is the prefix of the settings for the driver's environment
    variables.

    `variables` are the driver's variables from the stack's settings (`job_variables`). Programs that `init` of earlier
    releases wrote pass only the hosts of METASYNC, as a string.
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
    """Returns Spark's settings for a cluster of kind emr-serverless: up to its most workers, with TLS between them.

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
    """Returns Spark's settings for a step on a cluster of kind emr. A driver is not started again after it ends. It
    ends itself after the cluster's limit of minutes, because EMR has no limit for a step."""
    return {
        **settings(options, region, YARN_ENV, variables),
        "spark.yarn.maxAppAttempts": "1",
        f"{YARN_ENV}{MINUTES}": str(timeout_minutes(options)),
    }


def as_options(settings: Mapping[str, str]) -> list[str]:
    """Returns the settings as a list of spark-submit's options."""
    return [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]


def as_text(settings: Mapping[str, str]) -> str:
    """Returns the settings as one line of spark-submit's options."""
    return shlex.join(as_options(settings))
