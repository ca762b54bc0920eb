"""Objects in a bucket, through obstore. Credentials are found as boto3 finds them, and never kept or shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import boto3
import obstore
from botocore.configprovider import ConfiguredEndpointProvider
from botocore.exceptions import BotoCoreError, NoCredentialsError, ProfileNotFound
from obstore.auth.boto3 import Boto3CredentialProvider
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from deployer.errors import DeployerError, NotFound, OutcomeUnknown
from deployer.state.clock import Clock
from deployer.state.dynamodb_requests import setting_missing
from deployer.state.objects import Missing

if TYPE_CHECKING:
    from obstore.store import S3Config

T = TypeVar("T")

PATIENCE = 20.0  #: seconds in which a request is sent again; obstore does so by itself, except after a time-out


class S3Objects:
    """Fulfils `objects.ObjectStore` below `s3://bucket/prefix`. Thread-safe; not to be used on after a fork."""

    def __init__(self, root: str, clock: Clock | None = None) -> None:
        self._root, self._clock = root.rstrip("/"), clock or Clock()

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
        return self._asked(lambda store: [str(each["path"]) for each in obstore.list(store, prefix).collect()], prefix)

    def delete(self, paths: Iterable[str]) -> None:
        listed = list(paths)
        if listed:
            self._asked(lambda store: obstore.delete(store, listed), listed[0])

    @cached_property
    def _store(self) -> S3Store:
        parts = urlsplit(self._root)
        try:
            session = boto3.session.Session()
            credentials = Boto3CredentialProvider(session)
            endpoint = _endpoint(session)
        except ValueError:  # it found none
            raise setting_missing(NoCredentialsError(), self._root) from None
        except BotoCoreError as error:
            raise setting_missing(error, self._root) from error
        config: S3Config = {"virtual_hosted_style_request": endpoint is None}
        if session.region_name is not None:
            config["region"] = session.region_name
        if endpoint is not None:
            config["endpoint"] = endpoint
        return S3Store(
            parts.netloc,
            prefix=parts.path.strip("/"),
            config=config,
            credential_provider=credentials,
            client_options={
                "allow_http": endpoint is not None and endpoint.startswith("http://"),
                "timeout": timedelta(seconds=PATIENCE / 2),
                "connect_timeout": timedelta(seconds=PATIENCE / 4),
            },
            retry_config={
                "retry_timeout": timedelta(seconds=PATIENCE / 2),
                "backoff": {"init_backoff": timedelta(milliseconds=20), "max_backoff": timedelta(seconds=1), "base": 2},
            },
        )

    def _asked(self, ask: Callable[[S3Store], T], path: str) -> T:
        store, deadline = self._store, self._clock.monotonic() + PATIENCE
        while True:
            try:
                return ask(store)
            except AlreadyExistsError:
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
        said = " ".join(str(error).split())
        if "NoSuchBucket" in said:
            return self._no_bucket()
        if isinstance(error, BotoCoreError):
            return setting_missing(error, self._root)
        if "redirect" in said.lower():
            return DeployerError(
                "the bucket is in another region", where=self._root, remedy="set AWS_REGION to the bucket's region"
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


def _endpoint(session: boto3.session.Session) -> str | None:
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
