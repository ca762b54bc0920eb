"""What the role that runs `deployer preview` needs on AWS: the reads of what the deploying role may do. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from deployer.compute.iam.grants import Grant

#: Calls that change nothing. With a key, reading takes what decrypts.
_READS = re.compile(r"[a-z0-9-]+:(BatchGet|Describe|Get|List|Query|Scan|View)[A-Za-z]*[*]?|kms:Decrypt")


def previewing_grants(deploying: Iterable[Grant]) -> tuple[Grant, ...]:
    """The reads among the grants of the deploying role, with the same resources and conditions."""
    found = (replace(grant, actions=tuple(filter(_READS.fullmatch, grant.actions))) for grant in deploying)
    return tuple(grant for grant in found if grant.actions)
