"""The golden stack's lake as policies see it, and the policies of whoever deploys it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from deployer.compute.iam.lake import LakeOnAws
from deployer.compute.iam.policy_files import PolicyRole, policies
from deployer.specs.model import AwsSettings, ReplicateTo

ACCOUNT, REGION = "123456789012", "eu-central-1"
SETTINGS = AwsSettings(
    kms_key="managed",
    permissions_boundary=f"arn:aws:iam::{ACCOUNT}:policy/deployer-demo-boundary",
    replicate_to=ReplicateTo("arn:aws:s3:::golden-lakes-copy", f"arn:aws:kms:eu-west-1:{ACCOUNT}:key/copies"),
    emr_certificates="s3://our-logs/certificates.zip",
)


def lake(root: str = "s3://golden-lakes/demo", instance: str = "demo", **settings: Any) -> LakeOnAws:
    """A lake with all that a stack may declare."""
    given = {
        "region": REGION,
        "account": ACCOUNT,
        "settings": SETTINGS,
        "borrowed_roles": (f"arn:aws:iam::{ACCOUNT}:role/jobs",),
    }
    return LakeOnAws(root, instance, **{**given, **settings})


DEMO = lake()


@cache
def deploying(of: LakeOnAws = DEMO) -> list[Mapping[str, Any]]:
    """What is attached to the role that deploys, all the time."""
    found = policies(of, [PolicyRole.DEPLOY])
    return [document for name, document in found.items() if not name.startswith("new-key")]
