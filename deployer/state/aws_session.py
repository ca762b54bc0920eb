"""Credentials, region and endpoints of this machine, as AWS's own tools find them."""

from __future__ import annotations

import os

import boto3


def aws_session(profile: str | None = None) -> boto3.session.Session:
    """A session of its own, of the environment's profile unless given: boto3's default one is not safe for threads.

    AWS_REGION counts first, as for AWS's CLI and every other SDK; boto3 knows AWS_DEFAULT_REGION and the profile only.
    """
    return boto3.session.Session(region_name=os.environ.get("AWS_REGION") or None, profile_name=profile)
