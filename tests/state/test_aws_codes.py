"""Every code of the one table is understood the same wherever AWS's errors are put into words."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from deployer.cli.commands.deploy.aws_remedies import remedies_for
from deployer.platform.aws.calls import Calls, Cause
from deployer.platform.aws.error_codes import CREDENTIALS, DENIED, EXPIRED, THROTTLED
from deployer.platform.storage.s3_errors import refusal_in

CODES = {
    **dict.fromkeys(CREDENTIALS, (Cause.CREDENTIALS, "does not know the credentials", "credentials are not")),
    **dict.fromkeys(EXPIRED, (Cause.CREDENTIALS, "credentials expired", "the credentials")),
    **dict.fromkeys(DENIED, (Cause.DENIED, "allow the role that deploys", "access to the bucket was denied")),
    **dict.fromkeys(THROTTLED, (Cause.THROTTLED, "AWS is busy", "too busy")),
}


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_code_means_the_same_everywhere(code: str) -> None:
    cause, remedy, of_s3 = CODES[code]
    error = ClientError({"Error": {"Code": code, "Message": "no"}}, "StartJobRun")
    assert Calls("emr", "cluster small")._refusal("StartJobRun", error).cause is cause
    assert remedy in remedies_for(f"StatusCode: 400, api error {code}: no")
    refusal = refusal_in(f"Generic S3 error: <Code>{code}</Code>")
    assert refusal is not None and of_s3 in refusal.what
    assert refusal.is_final == (cause is not Cause.THROTTLED)
