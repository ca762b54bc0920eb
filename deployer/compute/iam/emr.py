"""The IAM policies for EMR clusters. Each cluster has two roles: EMR's service role and the role of its instances. All
functions are pure.

https://docs.aws.amazon.com/emr/latest/ManagementGuide/emr-iam-roles.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployer.compute.iam.grants import Grant, equals
from deployer.compute.iam.jobs import POLICY_VERSION, Policy, lake_statements, log_statements
from deployer.compute.iam.key_use import key_statements
from deployer.compute.iam.lake import LakeOnAws
from deployer.platform.aws.arns import partition_of, service_domain, through

_TO_EMR, _TO_EC2 = "elasticmapreduce.amazonaws.com*", "ec2.amazonaws.com*"


def instance_policy(
    root: str, table_arn: str, log_uri: str, key_arn: str | None = None, certificates: str | None = None
) -> Policy:
    """Returns the permissions of the instances of an EMR cluster and of their jobs: to read and write one lake, and to
    write logs.

    With a key, the instances use it to encrypt their own disks, because no service does that for them. `certificates`
    (s3://…) is the file with certificates that they fetch.
    """
    statements = [
        *lake_statements(root, table_arn),
        *log_statements(log_uri, root, table_arn),
        *key_statements(key_arn, root, table_arn),
        *([_disks(key_arn)] if key_arn else []),
        *([_certificates(certificates, partition_of(table_arn))] if certificates else []),
    ]
    return {"Version": POLICY_VERSION, "Statement": statements}


def _disks(key_arn: str) -> dict[str, Any]:
    """Returns the statement that allows the use of the key for disks, but not for data that S3 or DynamoDB encrypt."""
    others = ("kms:ViaService", "kms:EncryptionContext:aws:s3:arn", "kms:EncryptionContext:aws:dynamodb:tableName")
    return {
        "Sid": "KeyOfDisks",
        "Effect": "Allow",
        "Action": list(DISK_ACTIONS),
        "Resource": key_arn,
        "Condition": {"Null": dict.fromkeys(others, "true")},
    }


def _certificates(uri: str, partition: str) -> dict[str, Any]:
    place = f"arn:{partition}:s3:::{uri.removeprefix('s3://')}"
    return {"Sid": "Certificates", "Effect": "Allow", "Action": "s3:GetObject", "Resource": place}


def volumes_policy(key_arn: str) -> Policy:
    """Returns the permissions of EMR's service role to use the key for the instances' EBS volumes, which EC2 encrypts.

    https://docs.aws.amazon.com/emr/latest/ManagementGuide/emr-encryption-enable.html#emr-awskms-ebs-encryption
    """
    via = {"StringEquals": {"kms:ViaService": through("ec2", key_arn)}}
    use = {
        "Sid": "Volumes",
        "Effect": "Allow",
        "Action": list(VOLUME_ACTIONS),
        "Resource": key_arn,
        "Condition": via,
    }
    grant = {
        "Sid": "VolumesOfInstances",
        "Effect": "Allow",
        "Action": "kms:CreateGrant",
        "Resource": key_arn,
        "Condition": {**via, "Bool": {"kms:GrantIsForAWSResource": "true"}},
    }
    return {"Version": POLICY_VERSION, "Statement": [use, grant]}


#: The actions on the key by instances that encrypt their disks, and by EC2 for volumes.
DISK_ACTIONS = ("kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey")
VOLUME_ACTIONS = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)


def emr_trust(table_arn: str) -> Policy:
    """Returns the trust policy that allows EMR to assume a role, only for clusters of this account and region."""
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
    """Returns the trust policy that allows EC2 to assume a role, for the instances that have its profile."""
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": f"ec2.{service_domain(partition_of(table_arn))}"},
        "Action": "sts:AssumeRole",
    }
    return {"Version": POLICY_VERSION, "Statement": [statement]}


def pass_policy(role_arn: str) -> Policy:
    """Returns the permission that EMR's managed policy does not have: to pass the instances' role to EC2."""
    statement = {
        "Sid": "GiveInstancesTheirRole",
        "Effect": "Allow",
        "Action": "iam:PassRole",
        "Resource": role_arn,
        "Condition": {"StringLike": {"iam:PassedToService": _TO_EC2}},
    }
    return {"Version": POLICY_VERSION, "Statement": [statement]}


def emr_service_policy_arn(table_arn: str) -> str:
    """Returns the ARN of EMR's managed policy for its service role. The policy allows to make and end instances that
    have EMR's tag, in networks that have it too."""
    return _service_policy(partition_of(table_arn))


def deploying_emr_grants(lake: LakeOnAws) -> tuple[Grant, ...]:
    """Returns the grants that `deployer up` needs for clusters of kind emr, without those for roles. They cover only
    clusters with the lake's tag.

    EMR requires the permission to tag where a cluster is made with tags. The request is then for the literal resource
    `cluster/*`, or has the tags of the new cluster.
    """
    clusters = lake.arn("elasticmapreduce", "cluster/")
    roles, profiles = lake.roles, f"arn:{lake.partition}:iam::{lake.account}:instance-profile/{lake.own}"
    borrowed = (f"{roles}*", *lake.borrowed_roles)

    def grant(sid: str, actions: tuple[str, ...], place: str, keys: Mapping[str, str] | None = None) -> Grant:
        return Grant(
            sid, "emr", actions, (f"{place}*",), (f"{place}example",), equals(keys) if keys else {}, keys or {}
        )

    return (
        grant("StartEmrClusters", ("elasticmapreduce:RunJobFlow",), clusters, lake.asked),
        Grant(
            "TagNewEmrClusters",
            "emr",
            ("elasticmapreduce:AddTags",),
            (f"{clusters}${{*}}",),
            (f"{clusters}*",),
            equals(lake.asked),
            lake.asked,
        ),
        grant("EmrClusters", _CLUSTER_ACTIONS, clusters, lake.tagged),
        # IAM has no resource types for these actions
        Grant(
            "FindEmrClusters", "emr", ("elasticmapreduce:ListClusters",), ("*",), (lake.arn("elasticmapreduce", "*"),)
        ),
        Grant("EmrSecurity", "emr", _SECURITY_ACTIONS, ("*",), (lake.arn("elasticmapreduce", "example"),)),
        Grant(
            "EmrServicePolicy",
            "emr",
            ("iam:AttachRolePolicy", "iam:DetachRolePolicy"),
            (f"{roles}*",),
            (f"{roles}example",),
            {
                "ArnEquals": {"iam:PolicyARN": _service_policy(lake.partition)},
                "StringEquals": {"iam:PermissionsBoundary": lake.boundary},
            },
            {"iam:PolicyARN": _service_policy(lake.partition), "iam:PermissionsBoundary": lake.boundary},
        ),
        grant("InstanceProfiles", _PROFILE_ACTIONS, profiles),
        Grant(
            "GiveEmrRoles",
            "emr",
            ("iam:PassRole",),
            borrowed,
            (f"{roles}example",),
            {"StringLike": {"iam:PassedToService": (_TO_EMR, _TO_EC2)}},
            {"iam:PassedToService": "ec2.amazonaws.com"},
        ),
    )


def _service_policy(partition: str) -> str:
    return f"arn:{partition}:iam::aws:policy/service-role/AmazonEMRServicePolicy_v2"


_SECURITY_ACTIONS = tuple(
    f"elasticmapreduce:{action}SecurityConfiguration" for action in ("Create", "Delete", "Describe")
)
_CLUSTER_ACTIONS = tuple(
    f"elasticmapreduce:{action}"
    for action in (
        "AddJobFlowSteps",
        "AddTags",
        "CancelSteps",
        "DescribeCluster",
        "DescribeStep",
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
