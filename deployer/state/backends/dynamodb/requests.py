"""Requests to one DynamoDB table. A request is repeated within a limited time while that can help, and a failure is
raised as one of deployer's errors.

botocore's own retries are off: after a lost answer they would send a write again and report only the second outcome.
Then "another writer won" could not be distinguished from "this write had won already". This module reports that doubt.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
)

from deployer.errors import DeployerError, NotFound, OutcomeUnknown
from deployer.platform.aws.error_codes import CREDENTIALS, DENIED, EXPIRED, THROTTLED
from deployer.platform.aws.session import aws_session, role_refused, setting_missing
from deployer.platform.system.clock import Clock
from deployer.platform.system.retry import Backoff, steady

if TYPE_CHECKING:
    from botocore.client import BaseClient

PATIENCE = 10.0  #: seconds during which a request is repeated
ANSWER_WITHIN = 3.0  #: seconds to wait for one answer
_BACKOFF, _BUSY_PAUSE = Backoff(first=0.01, longest=1.0), steady(0.1)

_BUSY = THROTTLED | {"LimitExceededException"}  # the last code: too many tables change at once
_CONFLICT = {"TransactionConflict", "TransactionConflictException"}
_UNSURE = {"InternalServerError", "InternalFailure", "ServiceUnavailable", "TransactionInProgressException"}


@dataclass(frozen=True, slots=True)
class TableAddress:
    """The address of a DynamoDB table. By default, region and endpoint come from the environment or profile."""

    name: str
    region: str | None = None
    endpoint: str | None = None

    def __str__(self) -> str:
        return f"DynamoDB table {self.name}" + (f" in {self.region}" if self.region else "")


class ConditionFailed(Exception):
    """A write failed because of its condition, or because of another transaction on the same items.

    `found` has the existing item for each item of a transaction, as far as the answer shows it. `in_doubt`: the same
    write was sent before and got no answer.
    """

    def __init__(self, found: Sequence[Mapping[str, Any]], *, in_doubt: bool) -> None:
        self.found, self.in_doubt = found, in_doubt
        super().__init__()


class InUse(DeployerError):
    """The table is currently being created or removed."""

    kind = "InUse"


class Throttled(DeployerError):
    """The table throttled every request until the time limit; nothing was written."""

    kind = "TurnedAway"


class Requests:
    """The sender of requests to one table. It is safe for threads and after a fork: each process has its own client.

    Credentials are found in the same way as by boto3, and are never stored or shown. `patience` and `answer` are in
    seconds.
    """

    def __init__(
        self,
        table: TableAddress,
        clock: Clock | None = None,
        *,
        patience: float = PATIENCE,
        answer: float = ANSWER_WITHIN,
    ) -> None:
        self.table = table
        self._clock, self._patience = clock or Clock(), patience
        self._config = Config(
            retries={"total_max_attempts": 1, "mode": "standard"},
            connect_timeout=answer,
            read_timeout=answer,
            max_pool_connections=32,
            tcp_keepalive=True,
        )
        self._clients: dict[int, BaseClient] = {}

    def read(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Returns the answer to a read. Raises OutcomeUnknown when no answer came in time."""
        try:
            return self._sent(operation, parameters)
        except Throttled as error:
            raise OutcomeUnknown(error.what, where=error.where, remedy=error.remedy) from None

    def write(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Returns the answer to a write. Raises ConditionFailed, Throttled, and OutcomeUnknown when the write may have
        been carried out."""
        return self._sent(operation, parameters)

    def batch(self, operation: str, items: Mapping[str, Any], unprocessed: str) -> Iterator[dict[str, Any]]:
        """Yields the answers to a batch. A busy table carries out only a part of the batch for each request; the rest
        is sent again. Raises as `read` does."""
        deadline = self._clock.monotonic() + self._patience
        while items:
            answer = self.read(operation, RequestItems=items)
            yield answer
            items = answer.get(unprocessed, {})
            if items and self._clock.monotonic() > deadline:
                raise OutcomeUnknown("it is too busy", where=self._where, remedy="try again later")
            if items:
                _BUSY_PAUSE.wait(1, self._clock)

    def close(self) -> None:
        client = self._clients.pop(os.getpid(), None)
        if client is not None:
            client.close()

    @cached_property
    def _where(self) -> str:
        return str(self.table)

    def _sent(self, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        deadline = self._clock.monotonic() + self._patience
        in_doubt, failures, last, looked_again, throttled = False, 0, "", False, False
        while True:
            try:
                answer: dict[str, Any] = getattr(self._client(), operation)(**parameters)
                return answer
            except ClientError as error:
                if error.operation_name.startswith("AssumeRole"):
                    raise role_refused(error, self._where) from error
                codes = _codes(error)
                status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
                if "ConditionalCheckFailed" in codes or "ConditionalCheckFailedException" in codes:
                    raise ConditionFailed(_found(error), in_doubt=in_doubt) from None
                if codes & _CONFLICT and operation == "transact_write_items" and not in_doubt:
                    raise ConditionFailed((), in_doubt=False) from None
                if codes & EXPIRED and not looked_again:  # the credentials may have been renewed on disk
                    looked_again = True
                    self._clients.pop(os.getpid(), None)
                    continue
                if codes & _UNSURE or status >= 500:
                    in_doubt = True
                elif not codes & (_BUSY | _CONFLICT):
                    raise self._as_error(error, codes, operation) from error
                last, throttled = ", ".join(sorted(codes)), bool(codes & _BUSY)
            except (NoCredentialsError, PartialCredentialsError, NoRegionError, ProfileNotFound) as error:
                raise setting_missing(error, self._where) from error
            except (EndpointConnectionError, ConnectTimeoutError) as error:  # the request was not sent
                last = str(error)
            except (ConnectionError, HTTPClientError) as error:
                in_doubt, last = True, str(error)
            except BotoCoreError as error:
                raise DeployerError(
                    f"DynamoDB cannot be used: {error}", where=self._where, remedy="check the AWS settings"
                ) from error
            left = deadline - self._clock.monotonic()
            if left <= 0:
                what = f"no answer to {_call(operation)} within {self._patience:g} s: {last}"
                remedy = "check that the endpoint can be reached, then try again"
                if throttled:
                    remedy = "the table is too busy: try again later, or have it paid by request (docs/aws-state.md)"
                raise (OutcomeUnknown if in_doubt else Throttled)(what, where=self._where, remedy=remedy)
            failures += 1
            _BACKOFF.wait(failures, self._clock, left)

    def _client(self) -> BaseClient:
        client = self._clients.get(os.getpid())
        if client is None:
            client = aws_session().client(
                "dynamodb", region_name=self.table.region, endpoint_url=self.table.endpoint, config=self._config
            )
            self._clients[os.getpid()] = client
        return client

    def _as_error(self, error: ClientError, codes: set[str], operation: str) -> DeployerError:
        message = error.response.get("Error", {}).get("Message", "")
        if "ResourceNotFoundException" in codes:
            return NotFound(
                "the table does not exist",
                where=self._where,
                remedy="check the region and account (AWS_REGION, AWS_PROFILE), or restore the table from a backup",
            )
        if "ResourceInUseException" in codes:
            return InUse(message, where=self._where, remedy="try again in a moment")
        if codes & DENIED:
            return DeployerError(
                f"access was denied ({_call(operation)}): {message}",
                where=self._where,
                remedy="allow this identity the actions listed in docs/aws-permissions.md",
            )
        if codes & CREDENTIALS:
            return DeployerError(
                f"AWS does not accept the credentials ({_call(operation)}): {message or ', '.join(codes)}",
                where=self._where,
                remedy="renew them, or choose others by AWS_PROFILE, and run it again",
            )
        if "ValidationException" in codes and "schema" in message:
            return DeployerError(
                "this table was not made for a state store",
                where=self._where,
                remedy="name another by `table` in the instance's `state`",
            )
        return DeployerError(
            f"DynamoDB refused the request: {message or ', '.join(codes)}",
            where=self._where,
            remedy="see the AWS error",
        )


def _codes(error: ClientError) -> set[str]:
    """Returns the code of an error, or for a cancelled transaction the codes of its items."""
    reasons = [reason.get("Code", "None") for reason in error.response.get("CancellationReasons", ())]
    found = {code for code in reasons if code != "None"}
    return found or {str(error.response.get("Error", {}).get("Code", "unknown"))}


def _found(error: ClientError) -> Sequence[Mapping[str, Any]]:
    return [reason.get("Item", {}) for reason in error.response.get("CancellationReasons", ())]


def _call(operation: str) -> str:
    """Returns AWS's name of an operation, such as `PutItem` for `put_item`."""
    return operation.replace("_", " ").title().replace(" ", "")
