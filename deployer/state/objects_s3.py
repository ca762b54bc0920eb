"""Objects in a bucket, through obstore. Credentials are found as boto3 finds them; none is written or shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import obstore
from botocore.configprovider import ConfiguredEndpointProvider
from botocore.exceptions import BotoCoreError, NoCredentialsError, ProfileNotFound
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import S3Store

from deployer.errors import DeployerError, NotFound, OutcomeUnknown
from deployer.state.aws_session import aws_session
from deployer.state.clock import Clock
from deployer.state.dynamodb_requests import setting_missing
from deployer.state.objects import Described, Missing

if TYPE_CHECKING:
    import boto3
    from botocore.credentials import Credentials, ReadOnlyCredentials
    from obstore.store import S3Config

T = TypeVar("T")

TRANSFER = 60.0  #: seconds that one request may take with all of its body
PATIENCE = 20.0  #: seconds in which a request is sent again; obstore does so by itself, except after a time-out


@dataclass(frozen=True, slots=True)
class _Settings:
    """What boto3 found on this machine."""

    credentials: Credentials
    region: str | None
    endpoint: str | None


class S3Objects:
    """Fulfils `objects.ObjectStore` below `s3://bucket/prefix`. Thread-safe; not to be used on after a fork."""

    def __init__(self, root: str, clock: Clock | None = None) -> None:
        self._root, self._clock = root.rstrip("/"), clock or Clock()
        self._lock = Lock()
        self._client: tuple[ReadOnlyCredentials, S3Store] | None = None

    def put(self, path: str, data: bytes) -> None:
        # What has a name never changes, so that putting it again is harmless.
        self._asked(lambda store: obstore.put(store, path, data), path)

    def put_new(self, path: str, data: bytes) -> bool:
        """Puts an object unless there is one of that name."""
        try:
            self._asked(lambda store: obstore.put(store, path, data, mode="create"), path)
        except AlreadyExistsError:
            return self.get(path) == data
        return True

    def get(self, path: str) -> bytes:
        return self._asked(lambda store: bytes(obstore.get(store, path).bytes()), path)

    def list(self, prefix: str) -> Sequence[str]:
        return self._asked(lambda store: _paths(obstore.list(store, prefix).collect()), prefix)

    def described(self, prefix: str) -> Sequence[Described]:
        return [
            Described(str(each["path"]), int(each["size"]), each["last_modified"].timestamp())
            for each in self._asked(lambda store: obstore.list(store, prefix).collect(), prefix)
        ]

    def first_page(self, prefix: str) -> Sequence[str]:
        """The first 1,000 paths in the folder `prefix` and below, in the order of their names. One request."""
        return self._asked(lambda store: _paths(next(obstore.list(store, prefix, chunk_size=1000), ())), prefix)

    def has(self, path: str) -> bool:
        """Whether there is an object of that name."""
        try:
            self._asked(lambda store: obstore.head(store, path), path)
        except Missing:
            return False
        return True

    def tagged(self, path: str) -> tuple[bytes, str] | None:
        """An object and the tag of its content; None when there is none."""

        def ask(store: S3Store) -> tuple[bytes, str]:
            found = obstore.get(store, path)
            return bytes(found.bytes()), str(found.meta["e_tag"])

        try:
            return self._asked(ask, path)
        except Missing:
            return None

    def replace(self, path: str, data: bytes, tag: str | None) -> str | None:
        """Puts an object in place of the one with this tag (None: where none is); its new tag. None: that moved on."""
        mode: Any = "create" if tag is None else {"e_tag": tag}
        try:
            return str(self._asked(lambda store: obstore.put(store, path, data, mode=mode), path)["e_tag"])
        except (AlreadyExistsError, PreconditionError):
            found = self.tagged(path)  # an answer may have been lost
            return found[1] if found is not None and found[0] == data else None

    def delete(self, paths: Iterable[str]) -> None:
        listed = list(paths)
        if listed:
            self._asked(lambda store: obstore.delete(store, listed), listed[0])

    def _current(self) -> S3Store:
        """The client with the credentials of now; boto3 renews those that expire.

        obstore could ask for them itself, from its own threads, where they would wait for whoever has the interpreter.
        """
        try:
            frozen = self._settings.credentials.get_frozen_credentials()
        except BotoCoreError as error:
            raise setting_missing(error, self._root) from error
        with self._lock:
            if self._client is None or self._client[0] != frozen:
                self._client = frozen, _client(self._root, self._settings, frozen)
            return self._client[1]

    @cached_property
    def _settings(self) -> _Settings:
        try:
            session = aws_session()
            credentials = session.get_credentials()
            if credentials is None:
                raise setting_missing(NoCredentialsError(), self._root)
            return _Settings(credentials, session.region_name, endpoint_of(session))
        except BotoCoreError as error:
            raise setting_missing(error, self._root) from error

    def _asked(self, ask: Callable[[S3Store], T], path: str) -> T:
        deadline = self._clock.monotonic() + PATIENCE
        while True:
            try:
                return ask(self._current())
            except (AlreadyExistsError, PreconditionError):
                raise
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise self._no_bucket() from None
                raise Missing(path) from None
            except (BaseError, BotoCoreError) as error:
                failure = self._in_words(error)
                if not isinstance(failure, OutcomeUnknown) or self._clock.monotonic() > deadline:
                    raise failure from error
            self._clock.sleep(self._clock.uniform(0, 0.2))

    def _in_words(self, error: BaseError | BotoCoreError) -> DeployerError:
        said = " ".join(str(error).split()).partition(" Debug source")[0]
        if "NoSuchBucket" in said:
            return self._no_bucket()
        if isinstance(error, BotoCoreError):
            return setting_missing(error, self._root)
        if "redirect" in said.lower():
            return DeployerError(
                "the bucket is in another region", where=self._root, remedy="set AWS_REGION to the bucket's region"
            )
        if any(code in said for code in ("ExpiredToken", "InvalidAccessKeyId", "SignatureDoesNotMatch")):
            return DeployerError(
                "AWS does not accept the credentials",
                where=self._root,
                remedy="renew them, or choose others by AWS_PROFILE",
            )
        if isinstance(error, PermissionDeniedError | UnauthenticatedError):
            return DeployerError(
                "access to the bucket was denied",
                where=self._root,
                remedy="check the credentials (AWS_PROFILE), and allow them the actions listed in docs/state-format.md",
            )
        return OutcomeUnknown(
            f"the bucket gave no answer: {said[:200]}", where=self._root, remedy="check the endpoint, then try again"
        )

    def _no_bucket(self) -> NotFound:
        return NotFound(
            "there is no such bucket", where=self._root, remedy="create the bucket, or check the instance's `root`"
        )


def _client(root: str, settings: _Settings, credentials: ReadOnlyCredentials) -> S3Store:
    parts, endpoint = urlsplit(root), settings.endpoint
    config: S3Config = {
        "virtual_hosted_style_request": endpoint is None,
        "access_key_id": credentials.access_key or "",
        "secret_access_key": credentials.secret_key or "",
    }
    if credentials.token is not None:
        config["session_token"] = credentials.token
    if settings.region is not None:
        config["region"] = settings.region
    if endpoint is not None:
        config["endpoint"] = endpoint
    return S3Store(
        parts.netloc,
        prefix=parts.path.strip("/"),
        config=config,
        client_options={
            "allow_http": endpoint is not None and endpoint.startswith("http://"),
            "timeout": timedelta(seconds=TRANSFER),
            "read_timeout": timedelta(seconds=PATIENCE / 2),
            "connect_timeout": timedelta(seconds=PATIENCE / 4),
        },
        retry_config={
            "retry_timeout": timedelta(seconds=PATIENCE / 2),
            "backoff": {"init_backoff": timedelta(milliseconds=20), "max_backoff": timedelta(seconds=1), "base": 2},
        },
    )


def _paths(listed: Iterable[Any]) -> list[str]:
    return [str(each["path"]) for each in listed]


def endpoint_of(session: boto3.session.Session) -> str | None:
    """Another endpoint than AWS's own, from AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or the profile."""
    core: Any = session._session
    if core.get_config_variable("ignore_configured_endpoint_urls"):
        return None
    try:
        scoped = core.get_scoped_config()
    except ProfileNotFound:
        scoped = {}
    found: str | None = ConfiguredEndpointProvider(core.full_config, scoped, "s3").provide()
    return found
