"""The policy of a lake's own KMS key, and what the deploying role needs to make and use it. Pure."""

from __future__ import annotations

from deployer.compute.aws_access import POLICY_VERSION, Policy, name_on_aws, readable, service_domain
from deployer.compute.grants import Grant


def key_alias(root: str, instance: str) -> str:
    return f"alias/{name_on_aws(root, instance, '/key')}"


def key_policy(key_arn: str, instance: str) -> Policy:
    """IAM of the account says who may use the key; and CloudWatch does so for the logs of the lake's clusters."""
    _, partition, _, region, account, _ = key_arn.split(":", 5)
    groups = f"arn:{partition}:logs:{region}:{account}:log-group:/emr-serverless/deployer-{readable(instance)}-*"
    iam = {
        "Sid": "ByIam",
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:{partition}:iam::{account}:root"},
        "Action": "kms:*",
        "Resource": "*",
    }
    logs = {
        "Sid": "Logs",
        "Effect": "Allow",
        "Principal": {"Service": f"logs.{region}.{service_domain(partition)}"},
        "Action": ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"],
        "Resource": "*",
        "Condition": {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
    }
    return {"Version": POLICY_VERSION, "Statement": [iam, logs]}


def deploying_key_grants(instance: str, region: str, account: str, partition: str = "aws") -> tuple[Grant, ...]:
    """What `deployer up` needs for a lake with a key of its own: keys that have the instance's tag alone."""
    keys = f"arn:{partition}:kms:{region}:{account}:key/"
    aliases = f"arn:{partition}:kms:{region}:{account}:alias/deployer-{readable(instance)}-"
    asked, tagged = ({f"aws:{kind}Tag/deployer:instance": instance} for kind in ("Request", "Resource"))
    key, alias = f"{keys}example", f"{aliases}example"

    def through(service: str) -> dict[str, str]:
        return {**tagged, "kms:ViaService": f"{service}.{region}.{service_domain(partition)}"}

    def of_key(
        sid: str, actions: tuple[str, ...], keys_of_request: dict[str, str], resource: str = f"{keys}*"
    ) -> Grant:
        condition = {"StringEquals": keys_of_request}
        return Grant(sid, "key", actions, (resource,), (key,), condition, keys_of_request)

    return (
        of_key("CreateKey", ("kms:CreateKey", "kms:TagResource"), asked, "*"),  # IAM knows no resource for CreateKey
        Grant("FindAliases", "key", ("kms:ListAliases",), ("*",), (alias,)),  # nor for this
        of_key("Key", _KEY_ACTIONS, tagged),
        Grant("KeyAlias", "key", _ALIAS_ACTIONS, (f"{aliases}*",), (alias,)),
        of_key("KeyOfObjects", ("kms:Decrypt", "kms:GenerateDataKey"), through("s3")),
        of_key("KeyOfState", _TABLE_ACTIONS, through("dynamodb")),
    )


_ALIAS_ACTIONS = ("kms:CreateAlias", "kms:DeleteAlias", "kms:UpdateAlias")
_KEY_ACTIONS = tuple(
    f"kms:{action}"
    for action in (
        "CreateAlias",
        "DeleteAlias",
        "DescribeKey",
        "EnableKeyRotation",
        "GetKeyPolicy",
        "GetKeyRotationStatus",
        "ListResourceTags",
        "PutKeyPolicy",
        "TagResource",
        "UntagResource",
        "UpdateAlias",
        "UpdateKeyDescription",
    )
)
#: DynamoDB takes the key for a table from whoever makes the table, and keeps a grant for its own work.
_TABLE_ACTIONS = (
    "kms:CreateGrant",
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)
