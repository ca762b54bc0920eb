"""Clusters of kind emr: declared, changed, scaled and fixed, and the template of those that a job starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest

from deployer.platform.aws.names import lake_id, name_on_aws, own_name, own_names
from tests.cli.conftest import Deployer
from tests.stacks.conftest import MakeProject, bucket_of
from tests.stacks.graph import outputs_of

pytestmark = pytest.mark.full

LONG = """\
tags: {team: data}
clusters:
  big:
    kind: emr
    release: emr-7.12.0
    lifetime: long
    instance_type: r7g.xlarge
    primary_type: m7g.large
    instances: 2
    idle_minutes: 30
    subnets: [subnet-1]
"""


def exported(project: Path) -> dict[str, Any]:
    found: dict[str, Any] = outputs_of(project)["clusters"]
    return found


def change(project: Path, *replacements: tuple[str, str]) -> None:
    specs = project / "specs" / "demo.yaml"
    text = specs.read_text(encoding="utf-8")
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    specs.write_text(text, encoding="utf-8")


def planned(deployer: Deployer) -> dict[str, str]:
    return {each["address"].split(" ")[-1]: each["action"] for each in deployer("preview", "--json").json["foreign"]}


def groups(cluster: str) -> dict[str, tuple[str, int]]:
    listed = boto3.client("emr").list_instance_groups(ClusterId=cluster)["InstanceGroups"]
    return {each["InstanceGroupType"]: (each["InstanceType"], each["RequestedInstanceCount"]) for each in listed}


def status(cluster: str) -> str:
    return str(boto3.client("emr").describe_cluster(ClusterId=cluster)["Cluster"]["Status"]["State"])


def test_a_long_cluster_comes_changes_and_goes(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws(LONG, tables="")
    ran = deployer("up", "--yes")
    assert ran.code == 0, ran.err
    assert deployer("preview", "--exit-code").code == 0
    emr, iam = boto3.client("emr"), boto3.client("iam")
    root = f"s3://{bucket_of(project)}/demo"
    name, role, own = name_on_aws(root, "demo", "big"), own_name(root, "demo", "big"), own_names(root, "demo")
    found = exported(project)["big"]
    assert (found["kind"], found["lifetime"]) == ("emr", "long")
    assert found["role"] == iam.get_role(RoleName=role)["Role"]["Arn"]
    made = emr.describe_cluster(ClusterId=found["cluster"])["Cluster"]
    assert (made["Name"], made["ReleaseLabel"], made["ServiceRole"]) == (name, "emr-7.12.0", found["service_role"])
    assert made["LogUri"] == f"s3://{bucket_of(project)}/demo/_job-logs/big/"
    assert {each["Key"]: each["Value"] for each in made["Tags"]} == {
        "team": "data",
        "deployer:instance": "demo",
        "deployer:stack": "lakes/dev",
        "deployer:lake": lake_id(root, "demo"),
        "for-use-with-amazon-emr-managed-policies": "true",
    }
    assert groups(found["cluster"]) == {"MASTER": ("m7g.large", 1), "CORE": ("r7g.xlarge", 2)}
    policy = emr.get_auto_termination_policy(ClusterId=found["cluster"])["AutoTerminationPolicy"]
    assert policy == {"IdleTimeout": 1800}

    change(project, ("instances: 2", "instances: 3"), ("idle_minutes: 30", "idle_minutes: 10"))
    assert planned(deployer) == {"cluster/big": "update"}
    assert deployer("up", "--yes").code == 0
    assert (exported(project)["big"]["cluster"], groups(found["cluster"])["CORE"][1]) == (found["cluster"], 3)

    change(project, ("r7g.xlarge", "r7g.2xlarge"))
    rule = {"rule/failed-steps/big": "update", "tells/failed-steps/big": "update"}  # of the cluster's id
    assert planned(deployer) == {"cluster/big": "replace", **rule}
    assert deployer("up", "--yes").code == 0
    newer = exported(project)["big"]["cluster"]
    assert (status(found["cluster"]), status(newer)) == ("TERMINATED", "WAITING")
    assert deployer("preview", "--exit-code").code == 0

    specs = project / "specs" / "demo.yaml"
    specs.write_text(specs.read_text().split("clusters:")[0], encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    assert status(newer) == "TERMINATED"
    assert not [each for each in iam.list_roles()["Roles"] if each["RoleName"].startswith(f"{own}demo-big")]
    assert role not in {each["InstanceProfileName"] for each in iam.list_instance_profiles()["InstanceProfiles"]}


def test_what_was_changed_by_hand_or_ended_is_found(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws(LONG.replace("instances: 2", "instances: 2\n    max_instances: 8"), tables="")
    assert deployer("up", "--yes").code == 0
    emr, iam = boto3.client("emr"), boto3.client("iam")
    found = exported(project)["big"]
    emr.remove_managed_scaling_policy(ClusterId=found["cluster"])
    emr.remove_auto_termination_policy(ClusterId=found["cluster"])
    role = found["service_role"].rpartition("/")[2]
    (attached,) = iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
    iam.detach_role_policy(RoleName=role, PolicyArn=attached["PolicyArn"])
    assert planned(deployer) == {"cluster/big": "update", "scaling/big": "create", "emr/big": "create"}
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    assert exported(project)["big"] == found

    emr.terminate_job_flows(JobFlowIds=[found["cluster"]])  # as EMR does when it was idle
    rule = {"rule/failed-steps/big": "update", "tells/failed-steps/big": "update"}  # of the cluster's id
    assert planned(deployer) == {"cluster/big": "create", "scaling/big": "create", **rule}
    assert deployer("up", "--yes").code == 0
    assert exported(project)["big"]["cluster"] != found["cluster"]


@pytest.mark.slow
def test_what_managed_scaling_changes_is_left_to_it(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws(LONG.replace("instances: 2", "instances: 2\n    max_instances: 8"), tables="")
    assert deployer("up", "--yes").code == 0
    emr, cluster = boto3.client("emr"), exported(project)["big"]["cluster"]
    limits = emr.get_managed_scaling_policy(ClusterId=cluster)["ManagedScalingPolicy"]["ComputeLimits"]
    assert limits == {"UnitType": "Instances", "MinimumCapacityUnits": 2, "MaximumCapacityUnits": 8}
    core = next(
        each for each in emr.list_instance_groups(ClusterId=cluster)["InstanceGroups"]
        if each["InstanceGroupType"] == "CORE"
    )  # fmt: skip
    emr.modify_instance_groups(InstanceGroups=[{"InstanceGroupId": core["Id"], "InstanceCount": 6}])
    assert deployer("preview", "--exit-code").code == 0
    change(project, ("max_instances: 8", "max_instances: 4"))
    assert planned(deployer) == {"scaling/big": "replace"}
    assert deployer("up", "--yes").code == 0
    limits = emr.get_managed_scaling_policy(ClusterId=cluster)["ManagedScalingPolicy"]["ComputeLimits"]
    assert limits["MaximumCapacityUnits"] == 4
    assert groups(cluster)["CORE"] == ("r7g.xlarge", 6)


FLEETS = """\
clusters:
  spot:
    kind: emr
    release: emr-7.12.0
    LIFETIME
    fleets: {types: [r7g.xlarge, r6g.xlarge], on_demand: 1, spot: 3}
    primary_type: m7g.large
    max_instances: 10
    subnets: [subnet-1, subnet-2]
    security_groups: [sg-1, sg-2]
    execution_role: arn:aws:iam::123456789012:role/own-jobs
    log_uri: s3://our-logs/emr
"""


def _own_role() -> None:
    boto3.client("iam").create_role(RoleName="own-jobs", AssumeRolePolicyDocument='{"Version": "2012-10-17"}')


def _what_runs(cluster: str) -> dict[str, Any]:
    """All that the declared cluster and one from the template must have alike."""
    emr = boto3.client("emr")
    found: dict[str, Any] = dict(emr.describe_cluster(ClusterId=cluster)["Cluster"])
    alike = ("ReleaseLabel", "Applications", "LogUri", "ServiceRole", "Name", "Tags")
    place = ("IamInstanceProfile", "RequestedEc2SubnetIds", "AdditionalMasterSecurityGroups")
    fleets = emr.list_instance_fleets(ClusterId=cluster)["InstanceFleets"]
    scaling = emr.get_managed_scaling_policy(ClusterId=cluster)["ManagedScalingPolicy"]
    attributes: dict[str, Any] = dict(found["Ec2InstanceAttributes"])
    return {
        **{name: found[name] for name in alike},
        **{name: attributes[name] for name in place},
        "fleets": fleets,
        "scaling": scaling,
    }


@pytest.mark.slow
def test_a_template_starts_the_cluster_that_long_declares(on_aws: MakeProject, deployer: Deployer) -> None:
    _own_role()
    project = on_aws(FLEETS.replace("LIFETIME", "lifetime: run"), tables="")
    emr = boto3.client("emr")
    before = {each["Id"] for each in emr.list_clusters()["Clusters"]}
    assert deployer("up", "--yes").code == 0
    found = exported(project)["spot"]
    assert {each["Id"] for each in emr.list_clusters()["Clusters"]} == before
    assert (found["lifetime"], found["role"]) == ("run", "arn:aws:iam::123456789012:role/own-jobs")
    assert not found["template"]["Instances"]["KeepJobFlowAliveWhenNoSteps"]
    step = {"Name": "sleep", "HadoopJarStep": {"Jar": "command-runner.jar", "Args": ["sleep", "1"]}}
    started = emr.run_job_flow(**found["template"], Steps=[step])["JobFlowId"]

    change(project, ("lifetime: run", "lifetime: long"))
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    declared = _what_runs(exported(project)["spot"]["cluster"])
    assert declared == _what_runs(started)
    assert declared["RequestedEc2SubnetIds"] == ["subnet-1", "subnet-2"]
    assert declared["AdditionalMasterSecurityGroups"] == ["sg-1", "sg-2"]
    assert [(each["TargetOnDemandCapacity"], each["TargetSpotCapacity"]) for each in declared["fleets"]] == [
        (1, 0),
        (1, 3),
    ]
    assert declared["scaling"]["ComputeLimits"]["MaximumOnDemandCapacityUnits"] == 1

    cluster = exported(project)["spot"]["cluster"]
    grown = {"InstanceFleetId": declared["fleets"][1]["Id"], "TargetOnDemandCapacity": 1, "TargetSpotCapacity": 7}
    emr.modify_instance_fleet(ClusterId=cluster, InstanceFleet=grown)  # as scaling does
    assert deployer("preview", "--exit-code").code == 0
