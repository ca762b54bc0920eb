"""Makes the object that runs jobs on a declared cluster, from the stack's outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployer.compute.jobs.cluster import RemoteCluster
from deployer.compute.jobs.code import JobCode, architecture_of
from deployer.compute.jobs.variables import job_variables
from deployer.errors import NotFound
from deployer.specs.model import Cluster

OUTPUT = "clusters"  #: the name of the stack's output


def connect(
    cluster: Cluster, outputs: Mapping[str, Any], where: str, settings: Mapping[str, str] | None = None
) -> RemoteCluster:
    """Returns the cluster that the stack made. Raises NotFound when the stack has not made it.

    `settings` are the stack's settings, some of which its jobs get as variables. Raises InvalidInput for invalid
    settings.
    """
    variables = job_variables(settings or {})
    found = (outputs.get(OUTPUT) or {}).get(cluster.name)
    if not isinstance(found, Mapping):
        what = "has not been applied" if not outputs else f"has made no cluster {cluster.name} yet"
        raise NotFound(f"the stack {what}", where=where, remedy="run `deployer up`, and then this again")

    def code() -> JobCode:
        return JobCode.from_outputs(outputs, architecture_of(cluster))

    if found.get("kind") == "emr":
        from deployer.compute.emr.steps import EmrSteps

        template = found.get("template") or {}
        long_lived = found.get("cluster")
        logs = str(found["logs"])
        return EmrSteps(cluster.name, long_lived, template, cluster.options, code, logs, _region(), variables=variables)
    from deployer.compute.emr.serverless import EmrServerless

    return EmrServerless(
        cluster.name,
        str(found["application"]),
        str(found["role"]),
        cluster.options,
        code,
        _region(),
        found.get("log_group"),
        variables=variables,
        disk_key=(str(found["key"]), str(found["lake"])) if found.get("key") else None,
    )


def _region() -> str | None:
    """Returns the region that this machine uses; jobs use the same."""
    from deployer.platform.aws.session import aws_session

    region: str | None = aws_session().region_name
    return region
