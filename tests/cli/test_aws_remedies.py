"""Errors of AWS as the official provider and boto3 word them, and what the command says to do."""

from __future__ import annotations

import pytest

from deployer.cli.commands.deploy.aws_remedies import remedies_for

#: Messages of the official provider (Go SDK v2) begin with what it was doing, those of boto3 end with AWS's own words.
DENIED, BUSY, ROLE = "allow the role that deploys", "AWS is busy: wait a minute", "a role that was just made"
MESSAGES = {
    "creating S3 Bucket (lakes): operation error S3: CreateBucket, https response error StatusCode: 409, RequestID: 1, "
    "HostID: 2, BucketAlreadyExists:": "choose another `root`",
    "operation error S3: CreateBucket, https response error BucketAlreadyOwnedByYou:": "set deployer:aws",
    "An error occurred (AccessDenied) when calling the CreateBucket operation: Access Denied": DENIED,
    "creating IAM Role (a): operation error IAM: CreateRole, https response error StatusCode: 403, api error "
    "AccessDenied: User: u is not authorized to perform: iam:CreateRole": DENIED,
    "An error occurred (ExpiredTokenException) when calling the DescribeTable operation": "the credentials expired",
    "api error ExpiredToken: The security token included in the request is expired": "the credentials expired",
    "api error SlowDown: Please reduce your request rate.": BUSY,
    "An error occurred (ThrottlingException) when calling the CreateApplication operation: Rate exceeded": BUSY,
    "https response error StatusCode: 503, RequestID: 1, api error ServiceUnavailable: x": BUSY,
    "api error ValidationException: The execution role you provide must allow AWS EventBridge Scheduler to assume the "
    "role.": ROLE,
    "An error occurred (NoSuchEntity) when calling the PutRolePolicy operation: Role a not found": ROLE,
    "api error OperationAborted: A conflicting conditional operation is in progress": "another process is changing",
    "api error TooManyBuckets: You have attempted to create more buckets than allowed": "a quota of the account",
    "dial tcp: lookup s3.eu-nowhere-1.amazonaws.com: no such host": "AWS cannot be reached from here",
    "No valid credential sources found": "AWS does not know the credentials",
    "table/air.flights: rows are in the way": "",
}


@pytest.mark.parametrize("message", MESSAGES)
def test_each_error_has_its_remedy(message: str) -> None:
    found = remedies_for(message)
    assert found.startswith(MESSAGES[message]) or MESSAGES[message] in found
    assert len(found.split("; ")) <= 2 and bool(found) == bool(MESSAGES[message])
