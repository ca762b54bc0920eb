"""Calls of AWS services. A call is repeated while that can help, within limits; failures become errors with a
remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
    TokenRetrievalError,
    UnauthorizedSSOTokenError,
)

from deployer.errors import DeployerError
from deployer.platform.aws.error_codes import CREDENTIALS, DENIED, THROTTLED
from deployer.platform.aws.session import aws_session, setting_missing

if TYPE_CHECKING:
    from botocore.client import BaseClient

ATTEMPTS = 6  #: attempts of a call after throttling and lost answers, with pauses that grow to 20 s
CONNECT_WITHIN, ANSWER_WITHIN = 10.0, 30.0  # seconds


class Cause(StrEnum):
    """The reasons of failed calls that a user can act on."""

    CREDENTIALS = "credentials"
    DENIED = "denied"
    THROTTLED = "throttled"
    UNREACHABLE = "unreachable"
    MISSING = "missing"
    REFUSED = "refused"


_CAUSES = {
    Cause.CREDENTIALS: CREDENTIALS,
    Cause.DENIED: DENIED,
    Cause.THROTTLED: THROTTLED,
    Cause.MISSING: {"ResourceNotFoundException", "EntityNotFoundException"},  # this one is Glue's
}


class CallFailed(DeployerError):
    """A call of AWS failed. `cause` is the reason, `aws_message` the message of AWS."""

    kind = "CallFailed"

    def __init__(self, cause: Cause, aws_message: str, what: str, *, where: object, remedy: str) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.cause, self.aws_message = cause, aws_message


@dataclass(frozen=True)
class Calls:
    """Calls of one service about one resource, which `where` names in messages. Thread-safe.

    Credentials and region are found as by boto3; credentials are not stored or shown.
    """

    service: str
    where: str
    attempts: int | None = None  #: attempts of a call, if not `ATTEMPTS`: one, where a repeated call has an effect too
    region: str | None = None  #: if not that of the environment

    def __call__(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Returns the answer to an operation such as `start_job_run`. Raises CallFailed, and DeployerError without
        settings."""
        name = "".join(part.title() for part in operation.split("_"))
        try:
            answer: dict[str, Any] = getattr(self._client, operation)(**parameters)
            return answer
        except ClientError as error:
            raise self._refusal(name, error) from error
        except (TokenRetrievalError, UnauthorizedSSOTokenError) as error:
            raise self._bad_credentials(name, str(error)) from error
        except (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError) as error:
            missing = setting_missing(error, self.where)
            what = f"{name} could not be sent: {missing.what}"
            raise CallFailed(Cause.CREDENTIALS, missing.what, what, where=self.where, remedy=missing.remedy) from error
        except (NoRegionError, ProfileNotFound) as error:
            raise setting_missing(error, self.where) from error
        except (ConnectionError, HTTPClientError) as error:
            raise CallFailed(
                Cause.UNREACHABLE,
                str(error),
                f"{name} got no answer: {error}",
                where=self.where,
                remedy="check the network and the endpoint, then try again",
            ) from error
        except BotoCoreError as error:
            raise CallFailed(
                Cause.REFUSED,
                str(error),
                f"{name} could not be sent: {error}",
                where=self.where,
                remedy="check the AWS settings of this machine",
            ) from error

    @property
    def _attempts(self) -> int:
        return self.attempts or ATTEMPTS

    @property
    def _times(self) -> str:
        return "once" if self._attempts == 1 else f"{self._attempts} times"

    @cached_property
    def _client(self) -> BaseClient:
        config = Config(
            retries={"mode": "standard", "total_max_attempts": self._attempts},
            connect_timeout=CONNECT_WITHIN,
            read_timeout=ANSWER_WITHIN,
        )
        try:
            made: BaseClient = aws_session().client(self.service, region_name=self.region, config=config)  # type: ignore[call-overload]
        except BotoCoreError as error:
            raise setting_missing(error, self.where) from error
        return made

    def _refusal(self, name: str, error: ClientError) -> CallFailed:
        answer = error.response.get("Error", {})
        code, text = str(answer.get("Code", "unknown")), str(answer.get("Message", "")).strip()
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        cause = next((cause for cause, codes in _CAUSES.items() if code in codes), Cause.REFUSED)
        if cause is Cause.REFUSED and status >= 500:
            cause = Cause.UNREACHABLE
        shown = f"{code}: {text}" if text else code
        if cause is Cause.CREDENTIALS:
            return self._bad_credentials(name, shown)
        match cause:
            case Cause.DENIED:
                what = f"{name} was denied ({shown})"
                remedy = "allow this identity the action that AWS names: docs/aws-permissions.md lists them"
            case Cause.THROTTLED:
                what = f"{name} was throttled {self._times} ({shown})"
                remedy = "try again later, or ask AWS for a higher quota"
            case Cause.UNREACHABLE:
                what = f"{name} failed inside AWS {self._times} ({shown})"
                remedy = "try again later"
            case Cause.MISSING:
                what = f"{name} found nothing there ({shown})"
                remedy = "check account and region (AWS_PROFILE, AWS_REGION); if it was removed, run `deployer up`"
            case _:
                what, remedy = f"{name} was refused ({shown})", "fix what AWS names, then try again"
        return CallFailed(cause, text, what, where=self.where, remedy=remedy)

    def _bad_credentials(self, name: str, shown: str) -> CallFailed:
        return CallFailed(
            Cause.CREDENTIALS,
            shown,
            f"{name} was rejected: the credentials are expired or wrong ({shown})",
            where=self.where,
            remedy="renew them (such as with `aws sso login`), or choose others with AWS_PROFILE",
        )
