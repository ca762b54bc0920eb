"""The permissions on AWS of the role that runs `deployer up`. `deployer doctor --write-policy` makes the policies from
this list. All functions are pure.

`deployer doctor` checks each call of the list with IAM. `tests/stacks/test_recorded_access.py` compares the list with
the calls of the commands, and `tests/security/test_aws_deploying_role.py` checks what the role cannot do.
"""

from __future__ import annotations

from deployer.compute.iam.emr import deploying_emr_grants
from deployer.compute.iam.grants import Grant, equals, of
from deployer.compute.iam.jobs import ITEM_ACTIONS, OBJECT_ACTIONS
from deployer.compute.iam.key import deploying_key_grants
from deployer.compute.iam.lake import LakeOnAws
from deployer.compute.iam.services import deploying_service_grants
from deployer.compute.jobs.code import PREFIX


def deploying_grants(lake: LakeOnAws) -> tuple[Grant, ...]:
    """Returns the grants that `deployer up` needs for the lake, with everything that a stack may declare."""
    return (
        *_lake_grants(lake),
        *_cluster_grants(lake),
        *deploying_emr_grants(lake),
        *deploying_key_grants(lake),
        *deploying_service_grants(lake),
    )


def _lake_grants(lake: LakeOnAws) -> tuple[Grant, ...]:
    bucket, table = lake.bucket, lake.table_arn
    made = (bucket, lake.log_bucket) if lake.settings.access_logs == "managed" else (bucket,)
    listing = {"StringLike": {"s3:prefix": f"{lake.below}*"}} if lake.below else {}
    return (
        Grant("BucketItself", "bucket", _BUCKET_ACTIONS, made, made, expanded={"s3:GetBucket*": _BUCKET_READS}),
        Grant(
            "LakeData", "lake", OBJECT_ACTIONS, (f"{bucket}/{lake.below}*",), (f"{bucket}/{lake.below}_state/a.json",)
        ),
        Grant(
            "ListLake",
            "lake",
            ("s3:ListBucket",),
            (bucket,),
            (bucket,),
            condition=listing,
            context={"s3:prefix": lake.below},
        ),
        Grant(
            "JobCode",
            "clusters",
            ("s3:GetObjectTagging",),
            (f"{bucket}/{lake.below}{PREFIX}/*",),
            (f"{bucket}/{lake.below}{PREFIX}/example/deployer.zip",),
        ),
        Grant("StateTable", "table", _TABLE_ACTIONS, (table,), (table,)),
        Grant("LakeState", "lake", ITEM_ACTIONS, (table,), (table,)),
        Grant(
            "FindTransactions", "lake", ("dynamodb:Query",), (f"{table}/index/*",), (f"{table}/index/by_transaction",)
        ),
    )


def _cluster_grants(lake: LakeOnAws) -> tuple[Grant, ...]:
    """Returns the grants for clusters and their roles.

    Roles are made and changed only below the lake's path and with its boundary. An application is identified by its
    tag, because AWS chooses its id. The request to tag a new application has no id, or has the new tags.
    """
    applications = lake.arn("emr-serverless", "/applications/")
    any_new = tuple(lake.arn("emr-serverless", place) for place in ("/", "/${*}", "/applications/${*}"))
    log_groups = lake.arn("logs", f"log-group:/emr-serverless/{lake.own}*")
    bounded = {"iam:PermissionsBoundary": lake.boundary}
    roles, role = (f"{lake.roles}*",), (f"{lake.roles}example",)
    serverless, example = (f"{applications}*",), (f"{applications}00example",)
    return (
        Grant(
            "CreateClusters",
            "emr-serverless",
            ("emr-serverless:CreateApplication",),
            (lake.arn("emr-serverless", "/*"),),
            (lake.arn("emr-serverless", "/"),),
            equals(lake.asked),
            lake.asked,
        ),
        Grant(
            "TagNewClusters",
            "emr-serverless",
            ("emr-serverless:TagResource",),
            any_new,
            (lake.arn("emr-serverless", "/"),),
            equals(lake.asked),
            lake.asked,
        ),
        Grant(
            "Clusters",
            "emr-serverless",
            of("emr-serverless", _APPLICATION_ACTIONS),
            serverless,
            example,
            equals(lake.tagged),
            lake.tagged,
        ),
        Grant(
            "FindLogs",
            "emr-serverless",
            ("logs:DescribeLogGroups",),
            (lake.arn("logs", "*"),),
            (lake.arn("logs", "log-group::log-stream:"),),
        ),
        Grant(
            "Logs",
            "emr-serverless",
            of("logs", _LOG_ACTIONS),
            (log_groups, f"{log_groups}:*"),
            (lake.arn("logs", f"log-group:/emr-serverless/{lake.own}example"),),
        ),
        # a job that rewrites a table runs in the cluster's own role
        Grant(
            "StartJobs",
            "emr-serverless",
            ("emr-serverless:StartJobRun",),
            (f"{applications}*",),
            (f"{applications}00example",),
            equals(lake.tagged),
            lake.tagged,
        ),
        Grant(
            "TagNewJobs",
            "emr-serverless",
            ("emr-serverless:TagResource",),
            (f"{applications}*/jobruns/", f"{applications}*/jobruns/${{*}}"),
            (f"{applications}00example/jobruns/",),
            equals(lake.asked),
            lake.asked,
        ),
        Grant(
            "Jobs",
            "emr-serverless",
            ("emr-serverless:CancelJobRun", "emr-serverless:GetJobRun"),
            (f"{applications}*/jobruns/*",),
            (f"{applications}00example/jobruns/00example",),
            equals(lake.tagged),
            lake.tagged,
        ),
        Grant(
            "GiveJobsTheirRole",
            "emr-serverless",
            ("iam:PassRole",),
            (*roles, *lake.borrowed_roles),
            role,
            equals(_TO_SERVERLESS),
            _TO_SERVERLESS,
        ),
        Grant("BoundedRoles", "clusters", of("iam", _BOUNDED_ROLE_ACTIONS), roles, role, equals(bounded), bounded),
        Grant("Roles", "clusters", of("iam", _ROLE_ACTIONS), roles, role),
    )


_TO_SERVERLESS = {"iam:PassedToService": "emr-serverless.amazonaws.com"}
_BUCKET_ACTIONS = of(
    "s3",
    (
        "CreateBucket",
        "GetAccelerateConfiguration",
        "GetBucket*",
        "GetEncryptionConfiguration",
        "GetLifecycleConfiguration",
        "GetReplicationConfiguration",
        "ListBucket",
        "ListTagsForResource",
        "PutBucketLogging",
        "PutBucketObjectLockConfiguration",
        "PutBucketOwnershipControls",
        "PutBucketPolicy",
        "PutBucketPublicAccessBlock",
        "PutBucketTagging",
        "PutBucketVersioning",
        "PutEncryptionConfiguration",
        "PutLifecycleConfiguration",
        "PutReplicationConfiguration",
        "TagResource",
        "UntagResource",
    ),
)
#: The calls by which Pulumi's provider reads a bucket.
_BUCKET_READS = of(
    "s3",
    (
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
    ),
)
_BUCKET_READS = tuple(each.replace("s3:", "s3:GetBucket") for each in _BUCKET_READS)
_TABLE_ACTIONS = of(
    "dynamodb",
    (
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
    ),
)
_APPLICATION_ACTIONS = (
    "DeleteApplication",
    "GetApplication",
    "ListTagsForResource",
    "StopApplication",
    "TagResource",
    "UntagResource",
    "UpdateApplication",
)
_LOG_ACTIONS = (
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
#: The actions that make a role or change its permissions. They are allowed only with the boundary, which the principal
#: can neither remove nor replace. Only these actions have `iam:PermissionsBoundary` in their context; a condition on it
#: would always deny other actions.
_BOUNDED_ROLE_ACTIONS = ("CreateRole", "DeleteRolePolicy", "PutRolePolicy")
_ROLE_ACTIONS = (
    "DeleteRole",
    "GetRole",
    "GetRolePolicy",
    "ListAttachedRolePolicies",
    "ListInstanceProfilesForRole",
    "ListRolePolicies",
    "ListRoleTags",
    "TagRole",
    "UntagRole",
    "UpdateAssumeRolePolicy",
    "UpdateRole",
)
