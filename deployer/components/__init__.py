"""Components of Pulumi programs: lakes, and the AWS resources that lakes need.

Modules for a root on S3 import `pulumi_aws`, which is large, so they are loaded at their first use.

Programs import it; no other package may import it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deployer.components.project import declare_project, project_lake

if TYPE_CHECKING:
    from deployer.components.alarms import Alarms, AlarmsArgs
    from deployer.components.bucket import DataBucket
    from deployer.components.catalog import Catalog, CatalogArgs
    from deployer.components.clusters.args import ClusterArgs, Network
    from deployer.components.clusters.emr import EmrCluster
    from deployer.components.clusters.serverless import ServerlessCluster
    from deployer.components.context import LakeContext
    from deployer.components.jobs import JobCode, JobCodeArgs
    from deployer.components.key import LakeKey
    from deployer.components.lake import Lake, LakeArgs
    from deployer.components.landing import Landing, LandingArgs
    from deployer.components.roles import LakeRole, LakeRoleArgs
    from deployer.components.schedules import Schedules, SchedulesArgs
    from deployer.components.state_table import StateTable

__all__ = [
    "Alarms",
    "AlarmsArgs",
    "Catalog",
    "CatalogArgs",
    "ClusterArgs",
    "DataBucket",
    "EmrCluster",
    "JobCode",
    "JobCodeArgs",
    "Lake",
    "LakeArgs",
    "LakeContext",
    "LakeKey",
    "LakeRole",
    "LakeRoleArgs",
    "Landing",
    "LandingArgs",
    "Network",
    "Schedules",
    "SchedulesArgs",
    "ServerlessCluster",
    "StateTable",
    "declare_project",
    "project_lake",
]

_MODULES = {
    **dict.fromkeys(("Lake", "LakeArgs"), "lake"),
    **dict.fromkeys(("Alarms", "AlarmsArgs"), "alarms"),
    **dict.fromkeys(("Catalog", "CatalogArgs"), "catalog"),
    **dict.fromkeys(("ClusterArgs", "Network"), "clusters.args"),
    **dict.fromkeys(("JobCode", "JobCodeArgs"), "jobs"),
    **dict.fromkeys(("LakeRole", "LakeRoleArgs"), "roles"),
    **dict.fromkeys(("Landing", "LandingArgs"), "landing"),
    **dict.fromkeys(("Schedules", "SchedulesArgs"), "schedules"),
    "DataBucket": "bucket",
    "EmrCluster": "clusters.emr",
    "LakeContext": "context",
    "LakeKey": "key",
    "ServerlessCluster": "clusters.serverless",
    "StateTable": "state_table",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
