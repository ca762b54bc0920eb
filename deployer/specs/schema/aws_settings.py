"""The part `aws` of an instance: its JSON Schema, its reader and its writer."""

from __future__ import annotations

from typing import Any

from deployer.errors import Problem
from deployer.specs.model import AccessOnlyFrom, AwsSettings, ObjectLock, ReplicateTo
from deployer.specs.rules import Rule
from deployer.specs.schema.parts import choice, count, list_of, object_schema, text
from deployer.specs.yaml.nodes import Node

_UNITS = ("read", "write")
_KEY_ARN = "^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/.+$"
_KEY_HINT = "write a key's ARN: arn:aws:kms:REGION:ACCOUNT:key/ID"

AWS_SETTINGS = object_schema(
    "AWS settings",
    "Resources that the stack creates for a root on S3. It has no effect for a root on a disk.",
    (),
    {
        "kms_key": text(
            "The key that encrypts bucket, state, logs, alarms and disks of clusters: `managed` for a KMS key "
            "of the lake's "
            "own, which the stack makes and AWS renews each year, or the ARN of one that is there, of the same "
            "account. AWS's own keys unless set.",
            pattern="^(managed|arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/.+)$",
            patternErrorMessage="write managed, or a key's ARN: arn:aws:kms:REGION:ACCOUNT:key/ID",
            examples=["managed"],
        ),
        "permissions_boundary": text(
            "ARN of the policy that bounds the roles that the stack makes, as `deployer doctor --write-policy` writes "
            "it. Needed where the deploying role has the policies of that command.",
            pattern="^arn:aws[a-z-]*:iam::[0-9]{12}:policy/.+$",
            patternErrorMessage="write a policy's ARN: arn:aws:iam::ACCOUNT:policy/NAME",
            examples=["arn:aws:iam::123456789012:policy/deployer-1a2b3c4d5e-boundary"],
        ),
        "state_capacity": object_schema(
            "State capacity",
            "Units of DynamoDB that are set aside for the state's table, and paid for by the hour. Paid by request "
            "unless set.",
            _UNITS,
            {
                "read": count("Read units, each 4 KB of consistent reads a second.", 1, 40_000),
                "write": count("Write units, each 1 KB of writes a second, half of it in transactions.", 1, 40_000),
            },
        ),
        "state_ceiling": object_schema(
            "State ceiling",
            "The most units a second that DynamoDB serves of a table that is paid by request; commits beyond are "
            "throttled and tried again. It bounds what the table can cost.",
            _UNITS,
            {
                "read": count("Read units a second.", 1, 40_000, default=4_000),
                "write": count("Write units a second.", 1, 40_000, default=1_000),
            },
        ),
        "budget": object_schema(
            "Budget",
            "A budget of AWS over all that has the tag `deployer:instance`, which is to be activated for cost "
            "allocation. The topic of the alarms is notified at 80% of it, and when AWS forecasts more than all of it.",
            ("monthly",),
            {
                "monthly": count(
                    "USD a month, 0 for no budget. Twice the expected cost of what is declared, but at least 25, "
                    "unless set; see docs/cost.md.",
                    0,
                    100_000_000,
                )
            },
        ),
        "access_logs": text(
            "Where S3 logs who reads and writes the bucket: `managed` for a bucket of the lake's own, which keeps logs "
            "for 365 days, a folder on S3 that is there, or `none`.",
            pattern="^(managed|none|s3://[^/]+(/.*)?)$",
            patternErrorMessage="write managed, none or s3://bucket/prefix",
            default="managed",
        ),
        "object_lock": object_schema(
            "Object Lock",
            "How long S3 keeps each version of an object. No request deletes one earlier; S3 never turns this off.",
            ("mode", "days"),
            {
                "mode": choice(
                    "`governance`: identities with `s3:BypassGovernanceRetention` may still delete. "
                    "`compliance`: no identity may, the account's root user included.",
                    ("governance", "compliance"),
                ),
                "days": count(
                    "Days from the version's writing. Versions are kept, and paid for, at least that long.", 1, 36_500
                ),
            },
        ),
        "replicate_to": object_schema(
            "Copies",
            "A bucket with versions in which S3 keeps a copy of the lake's objects, in another region or account. "
            "Objects that exist already are not copied.",
            ("bucket",),
            {
                "bucket": text(
                    "ARN of the bucket.",
                    pattern="^arn:aws[a-z-]*:s3:::[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$",
                    patternErrorMessage="write a bucket's ARN: arn:aws:s3:::NAME",
                    examples=["arn:aws:s3:::our-lakes-copy"],
                ),
                "kms_key": text(
                    "ARN of a KMS key in the bucket's region, which encrypts the copies. Needed for a lake with "
                    "`kms_key`.",
                    pattern=_KEY_ARN,
                    patternErrorMessage=_KEY_HINT,
                ),
            },
        ),
        "emr_certificates": text(
            "A zip file on S3 with `privateKey.pem` and `certificateChain.pem`, by which the nodes of clusters of kind "
            "emr speak TLS. Spark's own encryption unless set.",
            pattern="^s3://[^/]+/.+[.]zip$",
            patternErrorMessage="write it as s3://bucket/path/certificates.zip",
        ),
        "only_from": object_schema(
            "Access only from",
            "Conditions on everybody who reads or writes the bucket's objects, in the bucket's policy. The role "
            "that deploys must satisfy them too.",
            (),
            {
                "organization": text(
                    "Id of the AWS organization that callers belong to.",
                    pattern="^o-[a-z0-9]{10,32}$",
                    patternErrorMessage="write an organization's id, such as o-a1b2c3d4e5",
                ),
                "vpc_endpoints": list_of(
                    "Ids of the VPC endpoints that requests come through.",
                    text("An endpoint's id.", pattern="^vpce-[a-z0-9]+$", patternErrorMessage="write vpce-…"),
                    minItems=1,
                ),
            },
        ),
    },
)


def read_aws_settings(node: Node | None, problems: list[Problem]) -> AwsSettings:
    """Returns the settings of the part `aws`, whose shape the caller has checked; None stands for an omitted part.

    Adds a problem to `problems` for settings that contradict each other.
    """
    found: dict[str, Any] = node.plain() if node else {}
    unset = AwsSettings()
    capacity, ceiling = found.get("state_capacity"), found.get("state_ceiling")
    copies = found.get("replicate_to")
    if copies and found.get("kms_key") and "kms_key" not in copies:
        assert node is not None and isinstance(node.value, dict)  # noqa: S101 -- the shape was checked
        what = "`replicate_to` has no `kms_key`, and the lake's objects are encrypted by one"
        remedy = "name a key in the region of the copies: S3 cannot use the lake's key there"
        problems.append(Problem(node.value["replicate_to"].key_at, what, remedy, Rule.AWS_SETTING))
    lock, source = found.get("object_lock"), found.get("only_from") or {}
    only_from = AccessOnlyFrom(source.get("organization"), tuple(source.get("vpc_endpoints") or ()))
    return AwsSettings(
        kms_key=found.get("kms_key"),
        state_capacity=(capacity["read"], capacity["write"]) if capacity else None,
        permissions_boundary=found.get("permissions_boundary"),
        state_ceiling=(ceiling["read"], ceiling["write"]) if ceiling else unset.state_ceiling,
        budget=(found.get("budget") or {}).get("monthly"),
        access_logs=found.get("access_logs", unset.access_logs),
        object_lock=ObjectLock(lock["mode"], lock["days"]) if lock else None,
        replicate_to=ReplicateTo(copies["bucket"], copies.get("kms_key")) if copies else None,
        emr_certificates=found.get("emr_certificates"),
        only_from=only_from,
    )


def aws_document(aws: AwsSettings) -> dict[str, Any]:
    """Returns the settings that differ from their defaults, in the form of the part `aws`. The result is empty where
    none differs."""
    unset = AwsSettings()
    simple = ("kms_key", "permissions_boundary", "access_logs", "emr_certificates")
    found: dict[str, Any] = {name: getattr(aws, name) for name in simple if getattr(aws, name) != getattr(unset, name)}
    for name in ("state_capacity", "state_ceiling"):
        if (units := getattr(aws, name)) != getattr(unset, name):
            found[name] = dict(zip(_UNITS, units, strict=True))
    if aws.budget is not None:
        found["budget"] = {"monthly": aws.budget}
    if aws.object_lock is not None:
        found["object_lock"] = {"mode": aws.object_lock.mode, "days": aws.object_lock.days}
    if aws.replicate_to is not None:
        copies = {"bucket": aws.replicate_to.bucket, "kms_key": aws.replicate_to.kms_key}
        found["replicate_to"] = {name: value for name, value in copies.items() if value}
    if aws.only_from != unset.only_from:
        source = {"organization": aws.only_from.organization, "vpc_endpoints": list(aws.only_from.vpc_endpoints)}
        found["only_from"] = {name: value for name, value in source.items() if value}
    return found
