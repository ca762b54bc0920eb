"""Remedies for AWS errors that a provider reports, by AWS's error codes.

The official provider and boto3 show the codes in the same way: `api error AccessDenied: …`, `(AccessDenied)`.
docs/aws.md has the same table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from deployer.platform.aws.error_codes import CREDENTIALS, DENIED, EXPIRED, THROTTLED

_WAIT = "wait a minute"


def _any(codes: Iterable[str]) -> str:
    """Returns a pattern that matches any of the codes in a message."""
    return "|".join(sorted(codes))


#: Patterns of causes in a message, each with its remedy. All matches count, in this order.
_REMEDIES: tuple[tuple[str, str], ...] = (
    (
        r"BucketAlreadyExists\b",
        "names of buckets are shared by all of AWS, and another account has this one: choose another `root`",
    ),
    (
        r"BucketAlreadyOwnedByYou\b",
        "the bucket is there, of another stack or from before: set deployer:aws to table, or to none when the state's "
        "table is there too",
    ),
    (
        rf"{_any(EXPIRED)}|token (?:included in the request )?(?:is|has) expired",
        "the credentials expired: renew them (`aws sso login`, or a new token in CI)",
    ),
    (
        rf"{_any(CREDENTIALS - EXPIRED)}|"
        r"No valid credential sources|no EC2 IMDS role found|Unable to locate credentials",
        "AWS does not know the credentials: choose others by AWS_PROFILE, or log in",
    ),
    (
        r"(?:cannot|can't|unable to|must allow .{1,80} to) (?:be )?assumed?\b|NoSuchEntity\b|"
        r"MalformedPolicyDocument\b.*[Pp]rincipal|Invalid principal in policy",
        f"a role that was just made is not known everywhere yet: {_WAIT}; if it stays so, look at its trust policy",
    ),
    (
        rf"{_any(DENIED)}|[Nn]ot authorized to perform",
        "allow the role that deploys the action of the call that is named (docs/aws-permissions.md), or choose "
        "other credentials (AWS_PROFILE)",
    ),
    (
        r"ServiceQuotaExceeded|TooManyBuckets|(?<!Request)LimitExceeded(?:Exception)?\b(?!.*[Rr]ate)",
        "a quota of the account is used up: remove what is not needed, or ask AWS for more (Service Quotas)",
    ),
    (
        rf"{_any(THROTTLED)}|Throttl|PriorRequestNotComplete|"
        r"ServiceUnavailable|InternalError|StatusCode: 50[0-4]",
        f"AWS is busy: {_WAIT}",
    ),
    (
        r"OperationAborted|ResourceInUseException|ConcurrentModification|ConflictException",
        f"another process is changing it: {_WAIT}",
    ),
    (
        r"must be in one of the following statuses",
        "EMR Serverless changes an application only while it is stopped: wait until it is",
    ),
    (
        r"dial tcp|no such host|Could not connect to the endpoint|connection refused",
        "AWS cannot be reached from here: check the network, AWS_REGION and AWS_ENDPOINT_URL (`deployer doctor`)",
    ),
)


def remedies_for(message: str) -> str:
    """Returns the remedies for the AWS errors in a message, joined by `; `; empty when no known error is in it."""
    found = [remedy for pattern, remedy in _REMEDIES if re.search(pattern, message)]
    return "; ".join(found)
