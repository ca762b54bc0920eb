"""Checks of `doctor` that ask AWS about the user who runs it: credentials, region, endpoints, clock. No credential is
shown.

Requests have short timeouts and two attempts, because a person waits for the result. Endpoints that the environment or
the profile sets are used.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    LoginError,
    NoRegionError,
    RefreshWithMFAUnsupportedError,
    SSOError,
    TokenRetrievalError,
)
from botocore.parsers import ResponseParserError

from deployer.app.diagnostics.checks import Finding, not_applicable, ok, warning, wrong
from deployer.errors import DeployerError
from deployer.platform.aws.error_codes import CREDENTIALS
from deployer.platform.aws.session import aws_session, role_refused, setting_missing
from deployer.state.model.times import iso_utc

if TYPE_CHECKING:
    from botocore.credentials import Credentials

CONNECT, ANSWER = 4.0, 6.0  #: timeouts in seconds: for a connection, and then for an answer
#: seconds of clock skew: the most that all services of AWS accept in signatures (S3 accepts 15 minutes, others 5), and
#: the least that the check warns about
MOST_SKEW, SOME_SKEW = 300, 60
_SOON = dt.timedelta(minutes=15)
_LONGEST = 200  #: characters of a message
#: the exceptions that a call raises without an answer, or with an answer that is not from AWS
NO_ANSWER = (BotoCoreError, ResponseParserError, ValueError, OSError)

#: botocore's names of the places where it found credentials
_SOURCES = {
    "env": "environment variables",
    "shared-credentials-file": "the shared credentials file",
    "config-file": "the config file",
    "assume-role": "a role that the profile assumes",
    "assume-role-with-web-identity": "a web identity (OIDC)",
    "sso": "IAM Identity Center (SSO)",
    "login": "`aws login`",
    "custom-process": "the profile's credential process",
    "container-role": "the container's role",
    "iam-role": "the machine's role (instance profile)",
}
_LOG_IN = "run `aws configure` or `aws sso login`, or set AWS_PROFILE or AWS_ACCESS_KEY_ID"


class Aws:
    """A session of AWS with the credentials, identity and region of this machine's user, shared by the checks. Safe for
    threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @cached_property
    def session(self) -> Any:
        """The session of boto3. Raises DeployerError for a profile that does not exist, or a file that cannot be
        read."""
        try:
            session = aws_session()
            _refuse_to_ask(session)
        except BotoCoreError as error:
            raise setting_missing(error, None) from error
        return session

    @cached_property
    def credentials(self) -> Credentials | None:
        """The usable credentials, refreshed if they had expired; None where there are none."""
        session = self.session
        try:
            with self._lock:
                found: Credentials | None = session.get_credentials()
            if found is not None:
                found.get_frozen_credentials()
        except RefreshWithMFAUnsupportedError:  # raised for every thread but the first
            raise _code_needed() from None
        except (SSOError, LoginError, TokenRetrievalError) as error:
            raise DeployerError(str(error), remedy="log in again: `aws sso login`, or `aws login`") from error
        except RuntimeError:
            raise DeployerError("the credentials have expired", remedy="renew them, or log in again") from None
        except BotoCoreError as error:
            raise setting_missing(error, None) from None
        except ClientError as error:  # raised by STS, for a role
            raise role_refused(error, None) from error
        return found

    @cached_property
    def identity(self) -> tuple[str, str]:
        """The account number and the ARN of the caller."""
        answer = self.client("sts").get_caller_identity()
        return str(answer["Account"]), str(answer["Arn"])

    @property
    def region(self) -> str | None:
        found: str | None = self.session.region_name
        return found

    def client(self, service: str, *, signed: bool = True) -> Any:
        config = Config(connect_timeout=CONNECT, read_timeout=ANSWER, retries={"total_max_attempts": 2})
        if not signed:
            config = config.merge(Config(signature_version=UNSIGNED))
        with self._lock:  # creating a client is not safe for threads
            return self.session.client(service, config=config)

    def answer(self, service: str) -> tuple[str, dt.timedelta | None]:
        """Returns the URL of a service, and how far its clock is ahead of this machine's; None where the answer has no
        date. The request is not signed."""
        with self._lock:
            known = self._answers.setdefault(service, _Once(lambda: self._read_clock(service)))
        found: tuple[str, dt.timedelta | None] = known.value
        return found

    @cached_property
    def _answers(self) -> dict[str, _Once]:
        return {}

    def _read_clock(self, service: str) -> tuple[str, dt.timedelta | None]:
        from botocore.awsrequest import AWSRequest
        from botocore.httpsession import URLLib3Session
        from botocore.utils import get_environ_proxies

        client = self.client(service, signed=False)
        url = client.meta.endpoint_url
        http = URLLib3Session(
            verify=self.session._session.get_config_variable("ca_bundle") or True,
            proxies=get_environ_proxies(url),
            timeout=(CONNECT, ANSWER),  # type: ignore[arg-type] # the type stubs accept whole seconds only
        )
        try:
            response = http.send(AWSRequest("GET", url).prepare())
        finally:
            http.close()
        parts = urlsplit(url)
        date = response.headers.get("Date")
        skew = parsedate_to_datetime(date) - dt.datetime.now(dt.UTC) if date else None
        return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else ""), skew


class _Once:
    """A value that is computed at most once. A failure is kept too, and raised at each access."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self._ask, self._lock = ask, threading.Lock()
        self._found: tuple[Any, Exception | None] | None = None

    @property
    def value(self) -> Any:
        with self._lock:
            if self._found is None:
                try:
                    self._found = self._ask(), None
                except Exception as error:
                    self._found = None, error
            found, failed = self._found
        if failed is not None:
            raise failed
        return found


def _code_needed() -> DeployerError:
    remedy = "assume the role by `aws sts assume-role`, then try again"
    return DeployerError("the profile needs a code (MFA)", remedy=remedy)


def _refuse_to_ask(session: Any) -> None:
    """Makes the session refuse a profile that needs an MFA code: botocore would ask for the code on the terminal."""

    def refuse(prompt: str) -> str:
        raise _code_needed()

    providers = session._session.get_component("credential_provider").providers
    for provider in providers:
        if provider.METHOD == "assume-role":
            provider._prompter = refuse


def aws_message(error: ClientError) -> str:
    """Returns the error code and message of AWS: `AccessDenied: …`."""
    what_is_there = error.response.get("Error", {})
    code, message = str(what_is_there.get("Code", "unknown")), one_line(what_is_there.get("Message", ""))
    return f"{code}: {message}" if message and message != code else code


def one_line(what: object) -> str:
    """Returns a message as one line of at most 200 characters: some servers and proxies answer with whole pages."""
    text = " ".join(str(what).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def without_credentials(aws: Aws) -> str:
    """Returns why no request can be signed; empty where the credentials work."""
    try:
        return "" if aws.credentials is not None else "there are no credentials"
    except DeployerError:
        return "there are no credentials that work"


def credentials(aws: Aws) -> Finding:
    found = aws.credentials
    if found is None:
        return wrong("none were found", _LOG_IN)
    source = _SOURCES.get(found.method, found.method)
    profile = aws.session.profile_name
    if found.method in ("shared-credentials-file", "config-file", "assume-role", "sso", "custom-process", "login"):
        source += f", profile {profile}"
    expiry: dt.datetime | None = getattr(found, "_expiry_time", None)
    details = {"source": found.method, "expires": iso_utc(expiry) if expiry else None}
    if expiry is None:
        ends = "temporary, with an unknown expiry" if found.token else "they do not expire"
        return ok(f"from {source}; {ends}", **details)
    left = expiry - dt.datetime.now(dt.UTC)
    what_is_there = f"from {source}; they expire at {expiry.astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC"
    if found.method == "env" and left < _SOON:
        return warning(
            what_is_there,
            "renew them before a long `up` or load: credentials in environment variables are not renewed",
            **details,
        )
    return ok(what_is_there, **details)


def identity(aws: Aws) -> Finding:
    if why := without_credentials(aws):
        return not_applicable(why)
    try:
        account, arn = aws.identity
    except ClientError as error:
        if code_of(error) in CREDENTIALS:
            remedy = "renew the credentials, or choose others by AWS_PROFILE; also check the clock below"
            return wrong(f"AWS does not accept the credentials: {aws_message(error)}", remedy)
        return warning(f"STS did not report the caller's identity: {aws_message(error)}", "allow sts:GetCallerIdentity")
    except NoRegionError:
        return not_applicable("there is no region")
    except NO_ANSWER as error:
        return warning(f"STS did not report the caller's identity: {one_line(error)}", "see the endpoints below")
    return ok(arn, account=account, arn=arn)


def region(aws: Aws) -> Finding:
    name = aws.region
    if not name:
        return wrong("none is set", "set AWS_REGION, or `region` in the profile")
    known = aws.session.get_available_regions("s3")
    if name not in known and name not in aws.session.get_available_regions("dynamodb", aws_partition(aws, name)):
        return warning(
            f"{name} is not a region that this boto3 knows", "look for a typing error, or update boto3", region=name
        )
    return ok(name, region=name)


def aws_partition(aws: Aws, region: str) -> str:
    """Returns the region's partition: `aws`, `aws-cn`, …; `aws` for an unknown region."""
    try:
        return str(aws.session.get_partition_for_region(region))
    except BotoCoreError:
        return "aws"


def endpoint(aws: Aws, service: str, *, needed: bool = True) -> Finding:
    """Checks whether the endpoint of a service can be reached; the request is not signed."""
    try:
        url, _ = aws.answer(service)
    except NoRegionError:
        return not_applicable("there is no region")
    except NO_ANSWER as error:
        remedy = "check network, proxy (HTTPS_PROXY, NO_PROXY), and AWS_ENDPOINT_URL if it is set"
        return (wrong if needed else warning)(one_line(error), remedy)
    return ok(f"{url} answers", url=url)


def clock(aws: Aws) -> Finding:
    """Compares this machine's clock with the `Date` header of AWS's answers, because signatures depend on the clock."""
    for service in ("s3", "dynamodb", "sts"):
        try:
            url, skew = aws.answer(service)
        except NO_ANSWER:
            continue
        if skew is not None:
            return judged_skew(skew.total_seconds(), url)
    return not_applicable("no endpoint answered with a date")


def judged_skew(seconds: float, url: str) -> Finding:
    """Judges `seconds`, by which the clock of `url` is ahead of this machine's."""
    off = round(abs(seconds))
    what_is_there = (
        f"{off} s {'behind' if seconds > 0 else 'ahead of'} the clock of {url}"
        if off > 1
        else f"the same as that of {url}"
    )
    remedy = "set the clock by NTP: AWS refuses requests that are signed with a wrong time"
    if off > MOST_SKEW:
        return wrong(what_is_there, remedy, seconds=-round(seconds))
    if off > SOME_SKEW:
        return warning(what_is_there, remedy, seconds=-round(seconds))
    return ok(what_is_there, seconds=-round(seconds))
