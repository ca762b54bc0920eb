"""The client of a bucket, which all reads and writes share.

Credentials are found as by boto3, and are never written or shown. boto3 renews expired credentials, and a new client is
made with them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any

import boto3
from botocore.configprovider import ConfiguredEndpointProvider
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, ProfileNotFound
from obstore.store import S3Store

from deployer.errors import DeployerError
from deployer.platform.aws.session import aws_session, role_refused, setting_missing
from deployer.platform.text import masking

if TYPE_CHECKING:
    from botocore.credentials import Credentials, ReadOnlyCredentials
    from obstore.store import S3Config, S3Credential

TRANSFER = 60.0  #: seconds of one request, including its whole body
PATIENCE = 20.0  #: seconds during which a request is repeated; obstore does so by itself, except after a time-out


@dataclass(frozen=True, slots=True)
class S3Access:
    """The settings of a bucket that differ from those of boto3. `path_style`: the bucket's name is not part of the
    host."""

    region: str | None = None
    endpoint: str | None = None
    profile: str | None = None
    path_style: bool | None = None
    encryption: str | None = None  #: encryption of new objects: `AES256`, `aws:kms` or `aws:kms:dsse`
    kms_key: str | None = None


AS_FOUND = S3Access()


@dataclass(frozen=True, slots=True)
class _Found:
    """The settings that boto3 found on this machine."""

    credentials: Credentials
    region: str | None
    endpoint: str | None


class Bucket:
    """One bucket with one kind of access. It is safe for threads; do not use it after a fork."""

    def __init__(self, name: str, access: S3Access) -> None:
        self.name, self._access = name, access
        self._lock = Lock()
        self._found: _Found | None = None
        self._client: tuple[ReadOnlyCredentials, S3Store] | None = None

    @property
    def uri(self) -> str:
        return f"s3://{self.name}"

    def client(self) -> S3Store:
        """Returns the client with the current credentials.

        Raises DeployerError where there are none. obstore is not given a function for credentials: its own threads
        would call it, and wait for the thread that holds the interpreter.
        """
        try:
            with self._lock:
                found = self._found = self._found or self._look()
            frozen = found.credentials.get_frozen_credentials()
        except BotoCoreError as error:
            raise setting_missing(error, self.uri) from error
        except ClientError as error:
            raise role_refused(error, self.uri) from error
        except OSError as error:  # such as the token of a web identity
            raise DeployerError(
                f"the credentials cannot be read: {error.strerror}",
                where=error.filename,
                remedy="check the path (AWS_WEB_IDENTITY_TOKEN_FILE) and its permissions",
            ) from error
        with self._lock:
            if self._client is None or self._client[0] != frozen:
                self._client = frozen, self._made(found, frozen)
            return self._client[1]

    def look_again(self) -> None:
        """Finds the credentials again, after they have expired or were renewed on disk."""
        with self._lock:
            self._found = None

    def _look(self) -> _Found:
        session = aws_session(self._access.profile)
        credentials = session.get_credentials()
        if credentials is None:
            raise NoCredentialsError
        return _Found(
            credentials, self._access.region or session.region_name, self._access.endpoint or endpoint_of(session)
        )

    def _made(self, found: _Found, credentials: ReadOnlyCredentials) -> S3Store:
        path_style = self._access.path_style
        for credential in (credentials.secret_key, credentials.token):
            masking.current().add_issued(credential, "a credential of AWS")
        config: S3Config = {
            "virtual_hosted_style_request": found.endpoint is None if path_style is None else not path_style,
            "checksum_algorithm": "sha256",  # a bucket with Object Lock requires it; S3's clients compute one anyway
        }
        given: S3Credential = {
            "access_key_id": credentials.access_key or "",
            "secret_access_key": credentials.secret_key or "",
            "token": credentials.token,
            "expires_at": None,
        }
        if found.region is not None:
            config["region"] = found.region
        if found.endpoint is not None:
            config["aws_endpoint_url_s3"] = found.endpoint  # otherwise obstore would prefer that of the environment
        if self._access.encryption is not None:
            config["server_side_encryption"] = self._access.encryption
        if self._access.kms_key is not None:
            config["sse_kms_key_id"] = self._access.kms_key
        return S3Store(
            self.name,
            config=config,
            # in the configuration, obstore would take a missing token from the environment, where it belongs to other
            # credentials
            credential_provider=lambda: given,
            client_options={
                "allow_http": found.endpoint is not None and found.endpoint.startswith("http://"),
                "timeout": timedelta(seconds=TRANSFER),
                "read_timeout": timedelta(seconds=PATIENCE / 2),
                "connect_timeout": timedelta(seconds=PATIENCE / 4),
            },
            retry_config={
                "retry_timeout": timedelta(seconds=PATIENCE / 2),
                "backoff": {"init_backoff": timedelta(milliseconds=20), "max_backoff": timedelta(seconds=1), "base": 2},
            },
        )


def bucket_of(name: str, access: S3Access = AS_FOUND) -> Bucket:
    """Returns the bucket's one client of this process, as long as AWS's settings in the environment are unchanged."""
    settings = tuple(sorted((key, value) for key, value in os.environ.items() if key.startswith("AWS_")))
    return _shared(os.getpid(), settings, name, access)


@lru_cache(maxsize=64)
def _shared(process: int, settings: tuple[tuple[str, str], ...], name: str, access: S3Access) -> Bucket:
    return Bucket(name, access)


def endpoint_of(session: boto3.session.Session) -> str | None:
    """Returns an endpoint other than AWS's own, from AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or the profile."""
    core: Any = session._session
    if core.get_config_variable("ignore_configured_endpoint_urls"):
        return None
    try:
        scoped = core.get_scoped_config()
    except ProfileNotFound:
        scoped = {}
    found: str | None = ConfiguredEndpointProvider(core.full_config, scoped, "s3").provide()
    return found
