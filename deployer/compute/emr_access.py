"""What EMR clusters need of IAM: two roles each, EMR's own and that of its instances, and who makes them. Pure.

https://docs.aws.amazon.com/emr/latest/ManagementGuide/emr-iam-roles.html
"""

from __future__ import annotations

from deployer.compute.aws_access import (
    POLICY_VERSION,
    Policy,
    key_statements,
    lake_statements,
    log_statements,
    partition_of,
    readable,
    service_domain,
)
from deployer.compute.grants import Grant

_PASSED = {"iam:PassedToService": "ec2.amazonaws.com*"}


def instance_policy(root: str, table_arn: str, log_uri: str, key_arn: str | None = None) -> Policy:
    """What the instances of an EMR cluster may do, and so the jobs there: reading and writing one lake, and logging."""
    statements = [
        *lake_statements(root, table_arn),
        *log_statements(log_uri, root, table_arn),
        *key_statements(key_arn, root, table_arn),
    ]
    return {"Version": POLICY_VERSION, "Statement": statements}


def emr_trust(table_arn: str) -> Policy:
    """Lets EMR act in a role, for clusters of this account and region alone."""
    _, partition, _, region, account, _ = table_arn.split(":", 5)
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": f"elasticmapreduce.{service_domain(partition)}"},
        "Action": "sts:AssumeRole",
        "Condition": {
            "StringEquals": {"aws:SourceAccount": account},
            "ArnLike": {"aws:SourceArn": f"arn:{partition}:elasticmapreduce:{region}:{account}:*"},
        },
    }
    return {"Version": POLICY_VERSION, "Statement": [statement]}


def instance_trust(table_arn: str) -> Policy:
    """Lets EC2 act in a role, for the instances that have its profile."""
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": f"ec2.{service_domain(partition_of(table_arn))}"},
        "Action": "sts:AssumeRole",
    }
    return {"Version": POLICY_VERSION, "Statement": [statement]}


def pass_policy(role_arn: str) -> Policy:
    """What EMR's own policy leaves out: handing the instances' role to EC2."""
    statement = {
        "Sid": "GiveInstancesTheirRole",
        "Effect": "Allow",
        "Action": "iam:PassRole",
        "Resource": role_arn,
        "Condition": {"StringLike": _PASSED},
    }
    return {"Version": POLICY_VERSION, "Statement": [statement]}


def emr_service_policy_arn(table_arn: str) -> str:
    """EMR's own policy for its service role: it makes and ends instances that have EMR's tag, where that is too."""
    return _service_policy(partition_of(table_arn))


def deploying_emr_grants(instance: str, region: str, account: str, partition: str = "aws") -> tuple[Grant, ...]:
    """What `deployer up` needs for clusters of kind emr, beside roles: clusters that have the instance's tag alone."""
    clusters = f"arn:{partition}:elasticmapreduce:{region}:{account}:cluster/"
    own = f"deployer-{readable(instance)}-"
    roles = f"arn:{partition}:iam::{account}:role/{own}"
    profiles = f"arn:{partition}:iam::{account}:instance-profile/{own}"
    policy = {"iam:PolicyARN": _service_policy(partition)}
    asked, tagged = ({f"elasticmapreduce:{kind}Tag/deployer:instance": instance} for kind in ("Request", "Resource"))

    def grant(
        sid: str, actions: tuple[str, ...], place: str, kind: str = "", keys: dict[str, str] | None = None
    ) -> Grant:
        condition = {kind: keys} if keys else {}
        context = {key: value.replace("*", "") for key, value in (keys or {}).items()}
        return Grant(sid, "emr", actions, (f"{place}*",), (f"{place}example",), condition, context)

    return (
        grant("StartEmrClusters", ("elasticmapreduce:RunJobFlow",), clusters, "StringEquals", asked),
        grant("EmrClusters", _CLUSTER_ACTIONS, clusters, "StringEquals", tagged),
        grant("EmrServicePolicy", ("iam:AttachRolePolicy", "iam:DetachRolePolicy"), roles, "ArnEquals", policy),
        grant("InstanceProfiles", _PROFILE_ACTIONS, profiles),
        grant("GiveEmrItsRole", ("iam:PassRole",), roles, "StringLike", _TO_EMR),
        grant("GiveInstancesTheirRole", ("iam:PassRole",), roles, "StringLike", _PASSED),
    )


def _service_policy(partition: str) -> str:
    return f"arn:{partition}:iam::aws:policy/service-role/AmazonEMRServicePolicy_v2"


_TO_EMR = {"iam:PassedToService": "elasticmapreduce.amazonaws.com*"}
_CLUSTER_ACTIONS = tuple(
    f"elasticmapreduce:{action}"
    for action in (
        "AddTags",
        "DescribeCluster",
        "GetAutoTerminationPolicy",
        "GetManagedScalingPolicy",
        "ListBootstrapActions",
        "ListInstanceFleets",
        "ListInstanceGroups",
        "ListInstances",
        "ListSteps",
        "ModifyInstanceFleet",
        "ModifyInstanceGroups",
        "PutAutoTerminationPolicy",
        "PutManagedScalingPolicy",
        "RemoveAutoTerminationPolicy",
        "RemoveManagedScalingPolicy",
        "RemoveTags",
        "SetTerminationProtection",
        "TerminateJobFlows",
    )
)
_PROFILE_ACTIONS = tuple(
    f"iam:{action}"
    for action in (
        "AddRoleToInstanceProfile",
        "CreateInstanceProfile",
        "DeleteInstanceProfile",
        "GetInstanceProfile",
        "RemoveRoleFromInstanceProfile",
        "TagInstanceProfile",
        "UntagInstanceProfile",
    )
)
