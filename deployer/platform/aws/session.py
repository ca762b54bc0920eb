"""Credentials, region and endpoints of this machine, as AWS's own tools find them, and the caller's identity."""

from __future__ import annotations

import os
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
)

from deployer.errors import DeployerError
from deployer.platform.system.processes import local_user

_STS_SECONDS = 3


def aws_session(profile: str | None = None) -> boto3.session.Session:
    """Returns a session of its own, of the environment's profile by default: boto3's default one is not safe for
    threads.

    AWS_REGION has priority, as for AWS's CLI and every other SDK; boto3 reads only AWS_DEFAULT_REGION and the profile.
    """
    return boto3.session.Session(region_name=os.environ.get("AWS_REGION") or None, profile_name=profile)


def role_refused(error: ClientError, where: object) -> DeployerError:
    """Returns the error for a role that could not be assumed: the profile's, or that of a web identity (OIDC)."""
    found = error.response.get("Error", {})
    answer = " ".join(filter(None, (found.get("Code"), found.get("Message"))))
    remedy = "check the role's trust policy, and who assumes it"
    if error.operation_name == "AssumeRoleWithWebIdentity":
        remedy = (
            "check that the trust policy of AWS_ROLE_ARN names the identity's issuer, audience and subject, and that "
            "the token in AWS_WEB_IDENTITY_TOKEN_FILE is not too old"
        )
    return DeployerError(
        f"the role could not be assumed ({error.operation_name}): {answer}", where=where, remedy=remedy
    )


def setting_missing(error: BotoCoreError, where: object) -> DeployerError:
    """Returns the error for settings that boto3 did not find on this machine."""
    match error:
        case NoCredentialsError() | PartialCredentialsError():
            what = "no AWS credentials were found" if isinstance(error, NoCredentialsError) else str(error)
            remedy = "run `aws configure` or `aws sso login`, or set AWS_PROFILE or AWS_ACCESS_KEY_ID"
        case NoRegionError():
            what, remedy = "no AWS region is set", "set AWS_REGION, or `region` in the instance's `state`"
        case CredentialRetrievalError():  # its text may be output of a program of the profile, including secrets
            provider = error.kwargs.get("provider", "the profile's source")
            what, remedy = f"{provider} gave no credentials", "run it by hand, or log in again"
        case _:
            what, remedy = str(error), "set AWS_PROFILE to a profile that is configured"
    return DeployerError(what, where=where, remedy=remedy)


def aws_author(region: str | None) -> str:
    """Returns the caller's ARN by STS of a region, not a name that the machine reports; where STS does not answer, the
    local user, marked as unverified.

    Every caller may ask STS; no permission is needed.
    """
    wait = Config(connect_timeout=_STS_SECONDS, read_timeout=_STS_SECONDS, retries={"total_max_attempts": 1})
    try:
        sts: Any = aws_session().client("sts", region_name=region, config=wait)
        return str(sts.get_caller_identity()["Arn"])
    except (BotoCoreError, ClientError):
        return f"{local_user()} (not verified by AWS)"
