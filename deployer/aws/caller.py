"""Who commits to a lake on AWS: the ARN by which AWS knows the caller, and not a name that the machine says."""

from __future__ import annotations

from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from deployer.aws.session import aws_session
from deployer.system.user import local_user

_SECONDS = 3


def aws_author(region: str | None) -> str:
    """The caller's ARN by STS of a region; where STS does not answer, the local user, marked as unverified.

    Every caller may ask STS; no permission is needed.
    """
    wait = Config(connect_timeout=_SECONDS, read_timeout=_SECONDS, retries={"total_max_attempts": 1})
    try:
        sts: Any = aws_session().client("sts", region_name=region, config=wait)
        return str(sts.get_caller_identity()["Arn"])
    except (BotoCoreError, ClientError):
        return f"{local_user()} (not verified by AWS)"
