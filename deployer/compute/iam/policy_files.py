"""The policies of a lake as documents that IAM takes: parted by what they are for, each within IAM's limits. Pure.

Limits: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from deployer.compute.iam.boundary import boundary_policy
from deployer.compute.iam.deploying import deploying_grants
from deployer.compute.iam.grants import Grant, Part
from deployer.compute.iam.jobs import POLICY_VERSION, Policy
from deployer.compute.iam.lake import LakeOnAws
from deployer.errors import Refused

MOST_CHARACTERS = 6_144  #: of a managed policy, without white space
#: Calls that change nothing. With a key, reading takes what decrypts.
_READS = re.compile(r"[a-z0-9-]+:(BatchGet|Describe|Get|List|Query|Scan|View)[A-Za-z]*[*]?|kms:Decrypt")
MOST_POLICIES = 10  #: managed ones of a role, unless AWS was asked for more


class PolicyRole(StrEnum):
    """The roles for which policies are written."""

    DEPLOY = "deploy"
    PREVIEW = "preview"
    BOUNDARY = "boundary"


NEW_KEY = "new-key"
#: Which policy of the deploying role has which grants.
_PARTED: Mapping[str, tuple[Part, ...]] = {
    "deploy-lake": ("lake", "bucket", "table", "key"),
    "deploy-clusters": ("clusters", "emr-serverless", "emr"),
    "deploy-services": ("services", "alarms", "budget"),
    NEW_KEY: ("new-key",),
}


def policies(lake: LakeOnAws, roles: Iterable[PolicyRole] = tuple(PolicyRole)) -> dict[str, Policy]:
    """Returns the policies by name, such as `deploy-lake`; a second one of a name has `-2`. Raises Refused for names
    that are too long for IAM."""
    wanted = set(roles)
    grants = needed_grants(lake)
    found: dict[str, Policy] = {}
    if PolicyRole.BOUNDARY in wanted:
        found["boundary"] = _checked("boundary", boundary_policy(lake))
    if PolicyRole.DEPLOY in wanted:
        for name, parts in _PARTED.items():
            found |= _packed(name, [grant.statement() for grant in grants if grant.part in parts])
    if PolicyRole.PREVIEW in wanted:
        reads = previewing_grants(grant for grant in grants if grant.part != "new-key")
        found |= _packed("preview", [grant.statement() for grant in reads])
    return found


def needed_grants(lake: LakeOnAws) -> tuple[Grant, ...]:
    """Returns the grants of the deploying role for the kinds of clusters that the lake has."""
    without = {"emr-serverless", "emr"} - lake.kinds
    if not lake.kinds:
        without |= {"clusters", "services"}
    return tuple(grant for grant in deploying_grants(lake) if grant.part not in without)


def characters(policy: Policy) -> int:
    """Returns the size of a policy as IAM counts it."""
    return len(json.dumps(policy, separators=(",", ":")))


def _packed(name: str, statements: Sequence[Mapping[str, Any]]) -> dict[str, Policy]:
    """Returns the statements in as few documents as they need, in their order."""
    documents = [_document(group) for group in _groups(statements)]
    names = [name if number == 1 else f"{name}-{number}" for number in range(1, len(documents) + 1)]
    return {each: _checked(each, document) for each, document in zip(names, documents, strict=True)}


def _groups(statements: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    group: list[Mapping[str, Any]] = []
    for statement in statements:
        if group and characters(_document([*group, statement])) > MOST_CHARACTERS:
            yield group
            group = []
        group.append(statement)
    if group:
        yield group


def _document(statements: Sequence[Mapping[str, Any]]) -> Policy:
    return {"Version": POLICY_VERSION, "Statement": list(statements)}


def _checked(name: str, policy: Policy) -> Policy:
    if (size := characters(policy)) > MOST_CHARACTERS:
        raise Refused(
            f"the policy {name} has {size:,} characters, and IAM takes {MOST_CHARACTERS:,}",
            remedy="shorten the root's prefix or the instance's name, or name fewer roles and log folders",
        )
    return policy


def previewing_grants(deploying: Iterable[Grant]) -> tuple[Grant, ...]:
    """Returns the reads among the grants of the deploying role, with the same resources and conditions."""
    found = (replace(grant, actions=tuple(filter(_READS.fullmatch, grant.actions))) for grant in deploying)
    return tuple(grant for grant in found if grant.actions)
