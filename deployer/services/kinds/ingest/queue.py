"""Event notifications of a bucket in an SQS queue. Messages name new files; a run deletes them after the commit."""

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

HIDDEN_SECONDS = 900  #: how long other readers do not get a received message
MESSAGES = 10  #: the most messages in one answer of SQS
AT_ONCE = 10_000  #: messages whose files are loaded together
_ARN = re.compile(r"arn:[a-z0-9-]+:sqs:(?P<region>[a-z0-9-]+):(?P<account>[0-9]{12}):(?P<name>[A-Za-z0-9_-]+)")


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages of one queue that were received together, and counts of all messages so far.

    `paths` are the files that the messages name. `handles` belong to the messages to delete once these files are
    committed or recorded. `outside` counts messages that name no file of the place. `unknown` counts messages that are
    not notifications; they stay in the queue.
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
        """Deletes the messages. Raises DeployerError where AWS refuses.

        A message that is not deleted is received again; the file that it names is already loaded then.
        """
        for first in range(0, len(self.handles), MESSAGES):
            part = self.handles[first : first + MESSAGES]
            entries: list[Any] = [{"Id": str(i), "ReceiptHandle": handle} for i, handle in enumerate(part)]
            try:
                self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)
            except (ClientError, BotoCoreError) as error:
                raise _refused(error, self.queue) from None

    def release(self) -> None:
        """Makes the messages available to the next run immediately. If SQS refuses, they become available later."""
        for first in range(0, len(self.handles), MESSAGES):
            part = self.handles[first : first + MESSAGES]
            entries = [{"Id": str(i), "ReceiptHandle": handle, "VisibilityTimeout": 0} for i, handle in enumerate(part)]
            with suppress(ClientError, BotoCoreError):
                self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)


def no_messages() -> Messages:
    """Returns the messages of a run that reads no queue."""
    return Messages("")


def received(queue: str, place: Landings) -> Iterator[Messages]:
    """Yields the queue's messages in parts, until it is empty.

    Messages that name no file of the place are among those to delete. Raises DeployerError where AWS refuses.
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
    """Returns the approximate number of messages in a queue. Raises DeployerError where AWS refuses."""
    try:
        client = _client_of(queue)
        name = "ApproximateNumberOfMessages"
        found = client.get_queue_attributes(QueueUrl=_url_of(client, queue), AttributeNames=[name])
        return int(found["Attributes"][name])
    except (ClientError, BotoCoreError) as error:
        raise _refused(error, queue) from None


def _answer(client: Any, url: str, seen: set[str]) -> list[Mapping[str, Any]]:
    """Returns the next messages whose ids are not in `seen`, and adds their ids to it; none where the queue is
    empty."""
    while True:
        answer = client.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=MESSAGES,
            VisibilityTimeout=HIDDEN_SECONDS,
            WaitTimeSeconds=1,  # makes SQS ask all servers of the queue
        )
        messages = answer.get("Messages", [])
        found = [each for each in messages if each["MessageId"] not in seen]
        seen |= {each["MessageId"] for each in found}
        if found or not messages:
            return found


def files_named(body: str) -> list[str] | None:
    """Returns the s3:// addresses of the objects that a message reports as created; None unless it is a notification.

    A notification comes from S3, with or without SNS around it, or from EventBridge. A notification of another event
    gives no address.
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
