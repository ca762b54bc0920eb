"""The permissions boundary of the roles that a stack makes: the most permissions that these roles can have. All
functions are pure.

The deploying role can make roles only with this boundary. It can neither change the boundary nor give a role another
one. Therefore a role cannot do more than the boundary allows, whatever the deploying role writes into its policies, and
whatever identity it allows to use the role. Of IAM, the boundary only allows passing the lake's roles to the services
that run its jobs.

https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from deployer.compute.iam.emr import DISK_ACTIONS, VOLUME_ACTIONS
from deployer.compute.iam.grants import one_or_all
from deployer.compute.iam.jobs import ITEM_ACTIONS, OBJECT_ACTIONS, POLICY_VERSION, Policy
from deployer.compute.iam.key_use import KEY_USE
from deployer.compute.iam.lake import LakeOnAws
from deployer.compute.iam.services import glue_names
from deployer.platform.aws.names import EMR_TAG

_Statement = dict[str, Any]


def boundary_policy(lake: LakeOnAws) -> Policy:
    """Returns the boundary of the roles of one lake."""
    statements = [*_data(lake), *_key(lake), *_jobs(lake), *(_machines(lake) if "emr" in lake.kinds else ())]
    return {"Version": POLICY_VERSION, "Statement": statements}


def _allow(
    sid: str, actions: tuple[str, ...], resources: tuple[str, ...], condition: dict[str, Any] | None = None
) -> _Statement:
    found = {"Sid": sid, "Effect": "Allow", "Action": one_or_all(actions), "Resource": one_or_all(resources)}
    return {**found, "Condition": condition} if condition else found


def _data(lake: LakeOnAws) -> Iterator[_Statement]:
    folders = [f"arn:{lake.partition}:s3:::{_folder(uri)}/*" for uri in lake.log_folders]
    yield _allow("Objects", OBJECT_ACTIONS, (f"{lake.bucket}/{lake.below}*", *folders))
    listing = {"StringLike": {"s3:prefix": f"{lake.below}*"}} if lake.below else None
    yield _allow("List", ("s3:ListBucket",), (lake.bucket,), listing)
    yield _allow("State", ITEM_ACTIONS, (lake.table_arn, f"{lake.table_arn}/index/*"))
    logs = ("logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents")
    yield _allow("FindLogs", ("logs:DescribeLogGroups",), (lake.arn("logs", "*"),))
    yield _allow("Logs", logs, (lake.arn("logs", f"log-group:/emr-serverless/{lake.own}*"),))
    begins = glue_names(lake.instance)
    catalog = tuple(lake.arn("glue", each) for each in ("catalog", f"database/{begins}*", f"table/{begins}*/*"))
    tables = tuple(f"glue:{action}Table" for action in ("Create", "Delete", "Get", "Update"))
    yield _allow("Catalog", tables, catalog)
    if copies := lake.settings.replicate_to:
        yield _allow(
            "ReadForCopies",
            ("s3:GetReplicationConfiguration", "s3:GetObjectVersion*"),
            (lake.bucket, f"{lake.bucket}/*"),
        )
        yield _allow("Copies", ("s3:Replicate*",), (f"{copies.bucket}/*",))
        if copies.kms_key:
            yield _allow("KeyOfCopies", ("kms:Encrypt", "kms:GenerateDataKey"), (copies.kms_key,))
    if uri := lake.settings.emr_certificates:
        yield _allow("Certificates", ("s3:GetObject",), (f"arn:{lake.partition}:s3:::{_folder(uri)}",))


def _key(lake: LakeOnAws) -> Iterator[_Statement]:
    if lake.settings.kms_key is None:
        return
    emr = "emr" in lake.kinds
    actions = tuple(sorted({*KEY_USE, "kms:DescribeKey", *((*DISK_ACTIONS, *VOLUME_ACTIONS) if emr else ())}))
    mine = {"StringEquals": dict(lake.of_keys)} if lake.of_keys else {}
    yield _allow("Key", actions, (lake.keys,), mine)
    if emr:
        yield _allow(
            "Volumes", ("kms:CreateGrant",), (lake.keys,), {**mine, "Bool": {"kms:GrantIsForAWSResource": "true"}}
        )


def _jobs(lake: LakeOnAws) -> Iterator[_Statement]:
    """Yields the statements for starting the lake's jobs, passing its roles to them, and sending notifications."""
    own = {"StringEquals": dict(lake.tagged)}
    yield _allow(
        "StartJobs",
        ("elasticmapreduce:AddJobFlowSteps", "emr-serverless:StartJobRun"),
        (lake.arn("elasticmapreduce", "cluster/*"), lake.arn("emr-serverless", "/applications/*")),
        own,
    )
    services = ["emr-serverless.amazonaws.com", *(["ec2.amazonaws.com*"] if "emr" in lake.kinds else [])]
    yield _allow(
        "GiveRoles",
        ("iam:PassRole",),
        (f"{lake.roles}*", *lake.borrowed_roles),
        {"StringLike": {"iam:PassedToService": services if len(services) > 1 else services[0]}},
    )
    yield _allow(
        "Tell", ("sns:Publish", "sqs:SendMessage"), (lake.arn("sns", f"{lake.own}*"), lake.arn("sqs", f"{lake.own}*"))
    )


def _machines(lake: LakeOnAws) -> Iterator[_Statement]:
    """Yields the statements for the use of EC2 by EMR's own role. They shorten those of `AmazonEMRServicePolicy_v2` for
    clusters."""
    (tag, value), *_ = EMR_TAG.items()
    has_tag = {"StringEquals": {f"aws:ResourceTag/{tag}": value}}
    gives_tag = {"StringEquals": {f"aws:RequestTag/{tag}": value}}
    made = ("CreateFleet", "CreateLaunchTemplate", "CreateNetworkInterface", "CreateSecurityGroup", "RunInstances")
    changed = (
        *(*made, "CreateLaunchTemplateVersion", "DeleteLaunchTemplate", "DeleteNetworkInterface"),
        *("ModifyInstanceAttribute", "TerminateInstances", "CreateTags", "DeleteTags"),
        *("AuthorizeSecurityGroup*", "RevokeSecurityGroup*"),
    )

    def ec2(kinds: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"arn:{lake.partition}:ec2:*:*:{kind}/*" for kind in kinds)

    def act(actions: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"ec2:{action}" for action in actions)

    new = ec2(("instance", "volume", "launch-template", "network-interface", "security-group"))
    beside = (
        *ec2(("network-interface", "fleet")),
        f"arn:{lake.partition}:ec2:*::image/ami-*",
    )
    yield _allow("LookAtMachines", ("ec2:Describe*",), ("*",))
    yield _allow("NewMachines", act(made), new, gives_tag)
    yield _allow("MachinesWith", act(("CreateFleet", "CreateLaunchTemplate*", "RunInstances")), beside)
    yield _allow("Machines", act(changed), ("*",), has_tag)
    created = {"StringEquals": {"ec2:CreateAction": list(made)}}
    yield _allow("TagNewMachines", act(("CreateTags",)), ("*",), created)


def _folder(uri: str) -> str:
    parts = urlsplit(uri)
    return f"{parts.netloc}/{parts.path.strip('/')}".rstrip("/")
