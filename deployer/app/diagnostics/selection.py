"""The selection of checks for a project: those of the machine, of the project, and of AWS where the lake is on AWS."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from deployer.app.diagnostics import machine
from deployer.app.diagnostics.checks import Check, Finding, not_applicable
from deployer.app.diagnostics.functions import packaged_functions
from deployer.app.diagnostics.project import Place, local_root, program, pulumi_state, state_store
from deployer.specs.model import Lake

if TYPE_CHECKING:
    from deployer.app.diagnostics.aws import Aws

_GROUPS = ("machine", "project", "lake", "aws")  #: in the order in which they are shown


def checks_of(place: Place) -> list[Check]:
    """Returns the checks in the order in which they are shown. Checks that do not concern the lake get the finding "not
    applicable"."""
    project = place.workspace.project if place.workspace else None
    managed = place.workspace.values.get("aws", "all") if place.workspace else "all"
    unneeded = "" if place.is_on_s3 else "the root is not on S3"
    if not unneeded and managed == "none":
        unneeded = "deployer:aws is none"
    checks = [
        Check("machine", "python", machine.python),
        Check("machine", "deployer", machine.package),
        Check("machine", "packages", machine.packages),
        Check("machine", "java", machine.java),
        Check("machine", "pulumi-cli", lambda: machine.pulumi_cli(place.engine)),
        Check("machine", "lake-provider", lambda: machine.lake_provider(project, place.engine)),
        Check("project", "project", lambda: place.project),
        Check("project", "specs", lambda: place.specs),
        Check("project", "program", lambda: program(place)),
        Check("lake", "root", lambda: _root(place)),
        Check("aws", "aws-package", lambda: machine.aws_package(unneeded)),
        Check("aws", "aws-provider", lambda: machine.aws_provider(project, place.engine, unneeded)),
        *(_on_aws(place, managed) if place.is_on_s3 or place.keeps_state_on_s3 else _on_disk(place)),
    ]
    return sorted(checks, key=lambda check: _GROUPS.index(check.group))


def _root(place: Place) -> Finding:
    if not place.root:
        return not_applicable("it is unknown")
    return not_applicable("see `bucket`") if place.is_on_s3 else local_root(place.root)


_AWS_CHECKS = ("credentials", "region", "identity", "s3", "dynamodb", "sts", "emr-serverless", "emr", "clock")
_LAKE_CHECKS = ("bucket", "permissions", "job-roles", "quotas")


def _on_disk(place: Place) -> list[Check]:
    why = "the root is not on S3" if place.root else "the root is unknown"
    return [
        Check("project", "pulumi-state", lambda: pulumi_state(place)),
        Check("lake", "state-store", lambda: state_store(place.root)),
        Check("lake", "functions", lambda: packaged_functions(place.root)),
        *(Check("aws", name, lambda: not_applicable(why)) for name in (*_AWS_CHECKS, *_LAKE_CHECKS)),
    ]


def _on_aws(place: Place, managed: str) -> list[Check]:
    """Returns the checks for a project whose lake, or only Pulumi's state, is on S3."""
    from deployer.app.diagnostics import aws as of_aws  # it loads boto3, which a lake on a disk does not need
    from deployer.app.diagnostics import lake as of_lake
    from deployer.app.diagnostics.roles import job_roles

    aws, lake, root = of_aws.Aws(), place.lake, place.root
    no_specs = not_applicable("the specs cannot be read")
    common = [
        Check("project", "pulumi-state", lambda: pulumi_state(place, partial(_unready_for_state, place, aws))),
        Check("aws", "credentials", lambda: of_aws.credentials(aws)),
        Check("aws", "region", lambda: of_aws.region(aws)),
        Check("aws", "identity", lambda: of_aws.identity(aws)),
        Check("aws", "s3", lambda: of_aws.endpoint(aws, "s3")),
        Check("aws", "sts", lambda: of_aws.endpoint(aws, "sts", needed=False)),
        Check("aws", "clock", lambda: of_aws.clock(aws)),
    ]
    if not place.is_on_s3:
        off = not_applicable("the root is not on S3" if root else "the root is unknown")
        lake_checks = ("dynamodb", "emr-serverless", "emr", *_LAKE_CHECKS)
        return [
            *common,
            Check("lake", "state-store", lambda: state_store(root)),
            Check("lake", "functions", lambda: packaged_functions(root)),
            *(Check("aws", name, lambda: off) for name in lake_checks),
        ]
    return [
        *common,
        Check("aws", "dynamodb", lambda: of_aws.endpoint(aws, "dynamodb")),
        *(Check("aws", kind, partial(_cluster_endpoint, aws, lake, kind)) for kind in ("emr-serverless", "emr")),
        Check("aws", "bucket", lambda: of_lake.bucket(aws, root, managed)),
        Check("lake", "state-store", lambda: state_store(root, lambda: of_lake.unready(aws))),
        Check("lake", "functions", lambda: packaged_functions(root, lambda: of_lake.unready(aws))),
        Check("aws", "permissions", lambda: of_lake.permissions(aws, lake, root, managed) if lake else no_specs),
        Check("aws", "job-roles", lambda: job_roles(aws, lake, root) if lake else no_specs),
        Check("aws", "quotas", lambda: of_lake.quotas(aws, lake) if lake else no_specs),
    ]


def _unready_for_state(place: Place, aws: Aws) -> str:
    """Returns why Pulumi's state cannot be read; empty where it is in a folder, or names its own profile."""
    from deployer.app.diagnostics.aws import without_credentials

    backend = place.workspace.project.backend_url if place.workspace else ""
    return without_credentials(aws) if place.keeps_state_on_s3 and "profile=" not in backend else ""


def _cluster_endpoint(aws: Aws, lake: Lake | None, kind: str) -> Finding:
    from deployer.app.diagnostics.aws import endpoint
    from deployer.app.diagnostics.lake import clusters_of

    return endpoint(aws, kind) if clusters_of(lake, kind) else not_applicable(f"no cluster of kind {kind} is declared")
