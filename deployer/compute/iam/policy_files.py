"""The policies of a lake as documents for IAM: one for each purpose, and each within IAM's limits. All functions are
pure.

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

MOST_CHARACTERS = 6_144  #: most characters of a managed policy, without white space
#: Calls that change nothing. Reads of a lake with a key need `kms:Decrypt`.
_READS = re.compile(r"[a-z0-9-]+:(BatchGet|Describe|Get|List|Query|Scan|View)[A-Za-z]*[*]?|kms:Decrypt")
MOST_POLICIES = 10  #: most managed policies of a role, by AWS's default quota


class PolicyRole(StrEnum):
    """The roles for which policies are written."""

    DEPLOY = "deploy"
    PREVIEW = "preview"
    BOUNDARY = "boundary"


NEW_KEY = "new-key"
#: The parts whose grants each policy of the deploying role has.
_PARTS: Mapping[str, tuple[Part, ...]] = {
    "deploy-lake": ("lake", "bucket", "table", "key"),
    "deploy-clusters": ("clusters", "emr-serverless", "emr"),
    "deploy-services": ("services", "alarms", "budget"),
    NEW_KEY: ("new-key",),
}


def policies(lake: LakeOnAws, roles: Iterable[PolicyRole] = tuple(PolicyRole)) -> dict[str, Policy]:
    """Returns the policies of `roles` by name, such as `deploy-lake`. The second policy of a name has the suffix `-2`.
    Raises Refused for a policy that is too long for IAM."""
    wanted = set(roles)
    grants = needed_grants(lake)
    found: dict[str, Policy] = {}
    if PolicyRole.BOUNDARY in wanted:
        found["boundary"] = _checked("boundary", boundary_policy(lake))
    if PolicyRole.DEPLOY in wanted:
        for name, parts in _PARTS.items():
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
    """Returns the number of characters of a policy, as IAM counts them."""
    return len(json.dumps(policy, separators=(",", ":")))


def _packed(name: str, statements: Sequence[Mapping[str, Any]]) -> dict[str, Policy]:
    """Returns documents with the statements in their order, as few as possible."""
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
