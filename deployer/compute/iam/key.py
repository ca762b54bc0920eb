"""The policy of a lake's own KMS key, and the grants of the deploying role to make and use the key. All functions are
pure.

KMS authorizes the tags of a new key by `kms:TagResource`, without the tags themselves (`aws:ResourceTag`), and requires
a permission for all keys of the account
(https://docs.aws.amazon.com/kms/latest/developerguide/tag-permissions.html). A role with this permission can tag any
key, and so take it over. Therefore a separate policy has the permission to make a key. It is attached only for the `up`
that makes the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployer.compute.iam.grants import Condition, Grant, equals, of
from deployer.compute.iam.jobs import POLICY_VERSION, Policy
from deployer.compute.iam.key_use import DISK_CONTEXT, KEY_USE
from deployer.compute.iam.lake import LakeOnAws
from deployer.platform.aws.arns import service_domain, through
from deployer.platform.aws.names import lake_id, name_on_aws, own_names


def key_alias(root: str, instance: str) -> str:
    return f"alias/{name_on_aws(root, instance, '/key')}"


def key_policy(key_arn: str, root: str, instance: str) -> Policy:
    """Returns the policy of the lake's key. The account's IAM policies decide who may use the key. These services may
    use it only for the lake: CloudWatch for logs of clusters and for alarms, EMR Serverless for disks, and AWS Budgets
    for its notifications."""
    _, partition, _, region, account, _ = key_arn.split(":", 5)
    own = own_names(root, instance)
    here = f"{region}:{account}"

    def service(sid: str, name: str, actions: tuple[str, ...], condition: Condition) -> dict[str, Any]:
        principal, resource = {"Service": name}, "*"
        return {
            "Sid": sid,
            "Effect": "Allow",
            "Principal": principal,
            "Action": list(actions),
            "Resource": resource,
            "Condition": condition,
        }

    def from_(source: str, **more: str) -> Condition:
        """Returns the condition for requests that a service makes for a resource of the account."""
        return {
            "StringEquals": {"aws:SourceAccount": account, **more},
            "ArnLike": {"aws:SourceArn": f"arn:{partition}:{source}"},
        }

    iam = {
        "Sid": "ByIam",
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:{partition}:iam::{account}:root"},
        "Action": "kms:*",
        "Resource": "*",
    }
    groups = f"arn:{partition}:logs:{here}:log-group:/emr-serverless/{own}*"
    disk = {f"kms:EncryptionContext:{DISK_CONTEXT}": lake_id(root, instance)}
    statements = [
        iam,
        service(
            "Logs",
            f"logs.{region}.{service_domain(partition)}",
            ("kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"),
            {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
        ),
        service(
            "Disks",
            "emr-serverless.amazonaws.com",
            KEY_USE,
            from_(f"emr-serverless:{here}:/applications/*", **disk),
        ),
        service(
            "Alarms",
            "cloudwatch.amazonaws.com",
            ("kms:Decrypt", "kms:GenerateDataKey*"),
            from_(f"cloudwatch:{here}:alarm:{own}*"),
        ),
        service(
            "Budget",
            "budgets.amazonaws.com",
            ("kms:Decrypt", "kms:GenerateDataKey*"),
            from_(f"budgets::{account}:*"),
        ),
    ]
    return {"Version": POLICY_VERSION, "Statement": statements}


def deploying_key_grants(lake: LakeOnAws) -> tuple[Grant, ...]:
    """Returns the grants that `deployer up` needs for a lake's KMS key; an empty result for a lake without a key. A key
    that the stack makes is identified by the lake's tag."""
    if lake.settings.kms_key is None:
        return ()
    keys, of_keys = lake.keys, lake.of_keys
    example = keys.replace("*", "example")

    def of_key(sid: str, actions: tuple[str, ...], more: Mapping[str, str]) -> Grant:
        context = {**of_keys, **more}
        return Grant(sid, "key", actions, (keys,), (example,), equals(context) if context else {}, context)

    used = (
        of_key("KeyOfObjects", KEY_USE, {"kms:ViaService": through("s3", lake.table_arn)}),
        of_key("KeyOfState", _TABLE_ACTIONS, {"kms:ViaService": through("dynamodb", lake.table_arn)}),
    )
    if lake.settings.kms_key != "managed":
        return (of_key("LookAtKey", ("kms:DescribeKey",), {}), *used)
    alias = lake.arn("kms", key_alias(lake.root, lake.instance))
    not_given_away: Condition = {"StringEquals": of_keys, "StringEqualsIfExists": lake.asked}
    not_locked: Condition = {"StringEquals": of_keys, "BoolIfExists": {"kms:BypassPolicyLockoutSafetyCheck": "false"}}
    return (
        # IAM has no resource type for CreateKey, and KMS requires permission to tag all keys
        Grant(
            "MakeKey",
            "new-key",
            ("kms:CreateKey", "kms:TagResource"),
            ("*",),
            (example,),
            equals(lake.asked),
            lake.asked,
        ),
        Grant("FindAliases", "key", ("kms:ListAliases",), ("*",), (alias,)),  # no resource type
        of_key("Key", _KEY_ACTIONS, {}),
        Grant("TagsOfKey", "key", ("kms:TagResource",), (keys,), (example,), not_given_away, {**of_keys, **lake.asked}),
        Grant("PolicyOfKey", "key", ("kms:PutKeyPolicy",), (keys,), (example,), not_locked, of_keys),
        Grant("KeyAlias", "key", _ALIAS_ACTIONS, (alias,), (alias,)),
        *used,
    )


_ALIAS_ACTIONS = of("kms", ("CreateAlias", "DeleteAlias", "UpdateAlias"))
_KEY_ACTIONS = of(
    "kms",
    (
        "CreateAlias",
        "DeleteAlias",
        "DescribeKey",
        "EnableKeyRotation",
        "GetKeyPolicy",
        "GetKeyRotationStatus",
        "ListResourceTags",
        "UntagResource",
        "UpdateAlias",
        "UpdateKeyDescription",
    ),
)
#: The actions on the key by the principal that makes a table. DynamoDB acts for this principal, and keeps a grant.
_TABLE_ACTIONS = of(
    "kms",
    ("CreateGrant", "Decrypt", "DescribeKey", "Encrypt", "GenerateDataKey", "ReEncryptFrom", "ReEncryptTo"),
)
