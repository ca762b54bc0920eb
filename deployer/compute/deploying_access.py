"""What the role that runs `deployer up` needs on AWS: the one list, of which docs/aws.md prints the policy. Pure.

`deployer doctor` asks IAM about every call of it. `tests/stacks/test_access.py` holds the page and this list together.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from deployer.compute.aws_access import ITEM_ACTIONS, OBJECT_ACTIONS, POLICY_VERSION, Policy, readable
from deployer.compute.emr_access import deploying_emr_grants
from deployer.compute.grants import Grant
from deployer.compute.job_code import PREFIX
from deployer.compute.key_access import deploying_key_grants
from deployer.compute.service_access import deploying_service_grants
from deployer.state.dynamodb_table import table_name


def deploying_policy(root: str, instance: str, region: str, account: str, partition: str = "aws") -> Policy:
    """All grants as a policy."""
    grants = deploying_grants(root, instance, region, account, partition)
    return {"Version": POLICY_VERSION, "Statement": [grant.statement() for grant in grants]}


def deploying_grants(
    root: str, instance: str, region: str, account: str, partition: str = "aws", table: str | None = None
) -> tuple[Grant, ...]:
    """What `deployer up` needs for the lake at `root` (s3://…) with all that a stack may declare.

    `table` is the name of the state's table, where it is declared.
    """
    parts = urlsplit(root)
    prefix = parts.path.strip("/")
    below = f"{prefix}/" if prefix else ""
    bucket = f"arn:{partition}:s3:::{parts.netloc}"

    def arn(service: str, resource: str) -> str:
        return f"arn:{partition}:{service}:{region}:{account}:{resource}"

    own = f"deployer-{readable(instance)}-"
    tables = arn("dynamodb", f"table/{table or table_name(root, instance).rpartition('-')[0] + '-*'}")
    named_table = arn("dynamodb", f"table/{table or table_name(root, instance)}")
    log_groups = arn("logs", f"log-group:/emr-serverless/{own}*")
    roles = f"arn:{partition}:iam::{account}:role/{own}"
    applications = arn("emr-serverless", "/applications/")
    listing = {"StringLike": {"s3:prefix": f"{below}*"}} if prefix else {}
    return (
        Grant(
            "BucketItself", "bucket", _BUCKET_ACTIONS, (bucket,), (bucket,), expanded={"s3:GetBucket*": _BUCKET_READS}
        ),
        Grant("LakeData", "lake", OBJECT_ACTIONS, (f"{bucket}/{below}*",), (f"{bucket}/{below}_state/store.json",)),
        Grant(
            "ListLake",
            "lake",
            ("s3:ListBucket",),
            (bucket,),
            (bucket,),
            condition=listing,
            context={"s3:prefix": below},
        ),
        Grant(
            "JobCode",
            "clusters",
            ("s3:GetObjectTagging",),
            (f"{bucket}/{below}{PREFIX}/*",),
            (f"{bucket}/{below}{PREFIX}/example/deployer.zip",),
        ),
        Grant("StateTable", "table", _TABLE_ACTIONS, (tables,), (named_table,)),
        Grant("LakeState", "lake", ITEM_ACTIONS, (tables,), (named_table,)),
        Grant(
            "FindTransactions",
            "lake",
            ("dynamodb:Query",),
            (f"{tables}/index/*",),
            (f"{named_table}/index/by_transaction",),
        ),
        Grant(
            "CreateClusters",
            "emr-serverless",
            ("emr-serverless:CreateApplication",),
            (arn("emr-serverless", "/*"),),
            (arn("emr-serverless", "/"),),
        ),
        Grant("Clusters", "emr-serverless", _APPLICATION_ACTIONS, (f"{applications}*",), (f"{applications}00example",)),
        Grant(
            "FindLogs",
            "emr-serverless",
            ("logs:DescribeLogGroups",),
            (arn("logs", "*"),),
            (arn("logs", "log-group::log-stream:"),),
        ),
        Grant(
            "Logs",
            "emr-serverless",
            _LOG_ACTIONS,
            (log_groups, f"{log_groups}:*"),
            (arn("logs", f"log-group:/emr-serverless/{own}example"),),
        ),
        Grant("Roles", "clusters", _ROLE_ACTIONS, (f"{roles}*",), (f"{roles}example",)),
        *deploying_emr_grants(instance, region, account, partition),
        *deploying_key_grants(instance, region, account, partition),
        *deploying_service_grants(instance, region, account, partition),
    )


_BUCKET_ACTIONS = (
    "s3:CreateBucket",
    "s3:GetAccelerateConfiguration",
    "s3:GetBucket*",
    "s3:GetEncryptionConfiguration",
    "s3:GetLifecycleConfiguration",
    "s3:GetReplicationConfiguration",
    "s3:ListBucket",
    "s3:ListTagsForResource",
    "s3:PutBucketOwnershipControls",
    "s3:PutBucketPolicy",
    "s3:PutBucketPublicAccessBlock",
    "s3:PutBucketTagging",
    "s3:PutBucketVersioning",
    "s3:PutEncryptionConfiguration",
    "s3:PutLifecycleConfiguration",
    "s3:TagResource",
    "s3:UntagResource",
)
#: Those that the provider reads a bucket with.
_BUCKET_READS = tuple(
    f"s3:GetBucket{what}"
    for what in (
        "Acl",
        "CORS",
        "Location",
        "Logging",
        "ObjectLockConfiguration",
        "OwnershipControls",
        "Policy",
        "PublicAccessBlock",
        "RequestPayment",
        "Tagging",
        "Versioning",
        "Website",
    )
)
_TABLE_ACTIONS = tuple(
    f"dynamodb:{action}"
    for action in (
        "CreateTable",
        "DescribeContinuousBackups",
        "DescribeTable",
        "DescribeTimeToLive",
        "ListTagsOfResource",
        "Scan",
        "TagResource",
        "UntagResource",
        "UpdateContinuousBackups",
        "UpdateTable",
    )
)
_APPLICATION_ACTIONS = tuple(
    f"emr-serverless:{action}"
    for action in (
        "DeleteApplication",
        "GetApplication",
        "ListTagsForResource",
        "StopApplication",
        "TagResource",
        "UntagResource",
        "UpdateApplication",
    )
)
_LOG_ACTIONS = tuple(
    f"logs:{action}"
    for action in (
        "AssociateKmsKey",
        "CreateLogGroup",
        "DeleteLogGroup",
        "DeleteRetentionPolicy",
        "DisassociateKmsKey",
        "ListTagsForResource",
        "PutRetentionPolicy",
        "TagResource",
        "UntagResource",
    )
)
_ROLE_ACTIONS = tuple(
    f"iam:{action}"
    for action in (
        "CreateRole",
        "DeleteRole",
        "DeleteRolePolicy",
        "GetRole",
        "GetRolePolicy",
        "ListAttachedRolePolicies",
        "ListInstanceProfilesForRole",
        "ListRolePolicies",
        "PutRolePolicy",
        "TagRole",
        "UntagRole",
        "UpdateAssumeRolePolicy",
        "UpdateRole",
    )
)
