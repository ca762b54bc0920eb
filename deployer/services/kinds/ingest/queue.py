"""Event notifications of a bucket in an SQS queue: their messages name new files, and go once these are committed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_plus

from botocore.exceptions import BotoCoreError, ClientError

from deployer.errors import DeployerError
from deployer.platform.aws.session import aws_session
from deployer.services.kinds.ingest.landing import Landings

HIDDEN_SECONDS = 900  #: for which no other reader gets a message; one that comes again names a loaded file
MESSAGES = 10  #: of one answer of SQS, at most
AT_ONCE = 10_000  #: messages whose files are loaded together
_ARN = re.compile(r"arn:[a-z0-9-]+:sqs:(?P<region>[a-z0-9-]+):(?P<account>[0-9]{12}):(?P<name>[A-Za-z0-9_-]+)")


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages of one queue that were received together, and counts of all so far.

    `handles` are of messages to delete once `paths`, the files that they name, are committed or recorded. `outside`
    counts messages that name nothing of the place, and `unknown` those that are not notifications, which stay.
    """

    queue: str
    paths: Sequence[str] = ()
    handles: Sequence[str] = ()
    count: int = 0
    outside: int = 0
    unknown: int = 0
    _client: Any = field(default=None, compare=False, repr=False)
    _url: str = ""

    def delete(self) -> None:
        """Deletes the messages. One that is not deleted comes again, and names a file that is loaded."""
        for first in range(0, len(self.handles), MESSAGES):
            part = self.handles[first : first + MESSAGES]
            entries: list[Any] = [{"Id": str(i), "ReceiptHandle": handle} for i, handle in enumerate(part)]
            try:
                self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)
            except (ClientError, BotoCoreError) as error:
                raise _refused(error, self.queue) from None

    def release(self) -> None:
        """Makes the messages available to the next run at once, as far as SQS allows it; else they come again later."""
        for first in range(0, len(self.handles), MESSAGES):
            part = self.handles[first : first + MESSAGES]
            entries = [{"Id": str(i), "ReceiptHandle": handle, "VisibilityTimeout": 0} for i, handle in enumerate(part)]
            with suppress(ClientError, BotoCoreError):
                self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)


def no_messages() -> Messages:
    """Returns what a run has that reads no queue."""
    return Messages("")


def received(queue: str, place: Landings) -> Iterator[Messages]:
    """Yields the queue's messages in parts, until it is empty. Messages that name nothing of the place are deleted.

    Raises DeployerError where AWS refuses.
    """
    try:
        client = _client_of(queue)
        url = _url_of(client, queue)
        seen, total, outside, unknown = set[str](), 0, 0, 0
        while True:
            paths, handles = dict[str, None](), list[str]()
            while len(handles) < AT_ONCE and (answer := _answer(client, url, seen)):
                for message in answer:
                    named = files_named(message.get("Body", ""))
                    if named is None:
                        unknown += 1
                        continue
                    total += 1
                    handles.append(message["ReceiptHandle"])
                    inside = [path for path in named if place.takes(path)]
                    outside += not inside
                    paths |= dict.fromkeys(inside)
            yield Messages(queue, tuple(paths), tuple(handles), total, outside, unknown, client, url)
            if len(handles) < AT_ONCE:
                return
    except (ClientError, BotoCoreError) as error:
        raise _refused(error, queue) from None


def waiting(queue: str) -> int:
    """Returns about how many messages wait in a queue. Raises DeployerError where AWS refuses."""
    try:
        client = _client_of(queue)
        name = "ApproximateNumberOfMessages"
        found = client.get_queue_attributes(QueueUrl=_url_of(client, queue), AttributeNames=[name])
        return int(found["Attributes"][name])
    except (ClientError, BotoCoreError) as error:
        raise _refused(error, queue) from None


def _answer(client: Any, url: str, seen: set[str]) -> list[Mapping[str, Any]]:
    """Returns the next messages that are not `seen` yet; none where the queue is empty."""
    while True:
        answer = client.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=MESSAGES,
            VisibilityTimeout=HIDDEN_SECONDS,
            WaitTimeSeconds=1,  # asks all servers of the queue
        )
        messages = answer.get("Messages", [])
        found = [each for each in messages if each["MessageId"] not in seen]
        seen |= {each["MessageId"] for each in found}
        if found or not messages:
            return found


def files_named(body: str) -> list[str] | None:
    """Returns the objects that a message says were made, as s3:// addresses; None for one that is not a notification.

    It may be S3's own, within one of SNS or not, or EventBridge's. One that tells of something else names none.
    """
    try:
        form = json.loads(body)
        if isinstance(form, dict) and form.get("Type") == "Notification" and isinstance(form.get("Message"), str):
            form = json.loads(form["Message"])
        if not isinstance(form, dict):
            return None
        if form.get("Event") == "s3:TestEvent":
            return []
        if form.get("source") == "aws.s3":
            made = form.get("detail-type") == "Object Created"
            detail = form["detail"]
            return [_address(detail["bucket"]["name"], detail["object"]["key"])] if made else []
        if "Records" not in form:
            return None
        return [
            _address(each["s3"]["bucket"]["name"], unquote_plus(each["s3"]["object"]["key"]))
            for each in form["Records"]
            if str(each["eventName"]).removeprefix("s3:").startswith("ObjectCreated")
        ]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _address(bucket: object, key: object) -> str:
    if not isinstance(bucket, str) or not isinstance(key, str):
        raise TypeError("a bucket and a key are texts")
    return f"s3://{bucket}/{key}"


def _client_of(queue: str) -> Any:
    session = aws_session()
    if found := _ARN.fullmatch(queue):
        return session.client("sqs", region_name=found["region"])
    return session.client("sqs")


def _url_of(client: Any, queue: str) -> str:
    if (found := _ARN.fullmatch(queue)) is None:
        return queue
    return str(client.get_queue_url(QueueName=found["name"], QueueOwnerAWSAccountId=found["account"])["QueueUrl"])


def _refused(error: ClientError | BotoCoreError, queue: str) -> DeployerError:
    return DeployerError(
        f"SQS returned no messages: {str(error).splitlines()[0]}",
        where=queue,
        remedy="check the queue, and that the role may sqs:ReceiveMessage, sqs:DeleteMessage and sqs:GetQueueUrl",
    )
