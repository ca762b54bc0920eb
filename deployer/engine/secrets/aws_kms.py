"""Keys by AWS KMS in Pulumi's form: `awskms://KEY?region=…`, by the Go CDK's rules for such URLs.

The stack has a data key of its own, which KMS encrypts; secrets are encrypted with the data key. `KEY` is a key's id or
`alias/NAME`; an ARN follows three slashes. Parameters `context_NAME` are KMS's encryption context. Credentials are
found as boto3 finds them.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from deployer.engine.secrets.crypter import KEY_BYTES
from deployer.errors import Corrupt, InvalidInput, Refused

SCHEME = "awskms"
_PASSED_OVER = frozenset({"awssdk"})  #: the SDK for Go, which has no effect
_FLAGS = ("fips", "dualstack")
_KEY = re.compile(r"[A-Za-z0-9:/_-]{1,2048}")


@dataclass(frozen=True, slots=True)
class KmsUrl:
    """The parts of a key's URL."""

    key: str
    region: str | None = None
    profile: str | None = None
    flags: tuple[str, ...] = ()
    context: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_alias(self) -> bool:
        return "alias/" in self.key


def parse_kms(url: str) -> KmsUrl:
    """Returns the parts of the URL. Raises InvalidInput for a URL without a key, and Refused for settings that this
    engine does not support."""
    try:
        parts = urlsplit(url)
        settings = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise _invalid("its query cannot be read") from None
    key = unquote(f"{parts.netloc}/{parts.path.lstrip('/')}").strip("/")
    if parts.scheme != SCHEME or parts.fragment or ":" in parts.netloc or not _KEY.fullmatch(key):
        raise _invalid("it names no key")
    region, profile, flags, context = None, None, [], {}
    seen: set[str] = set()
    for name, value in settings:
        if name in seen:
            raise _invalid(f"`{name}` occurs twice")
        seen.add(name)
        if name.startswith("context_"):
            context[name.removeprefix("context_")] = value
        elif name == "region":
            region = value
        elif name == "profile":
            profile = value
        elif name in _FLAGS:
            flags += [name] if value.lower() in ("1", "t", "true") else []
        elif name not in _PASSED_OVER:
            raise Refused(
                f"the key's URL has `{name}`, which this engine does not know",
                where="secretsprovider",
                remedy="use the Pulumi CLI, or leave it out; AWS's variables set endpoints and roles",
            )
    if region is None and key.startswith("arn:"):
        region = key.split(":")[3] or None
    return KmsUrl(key, region, profile, tuple(flags), context)


def _invalid(what: str) -> InvalidInput:
    return InvalidInput(
        f"the URL of the key in KMS is not valid: {what}",
        where="secretsprovider",
        remedy="write awskms://alias/NAME?region=REGION, or awskms:///ARN",
    )


def new_data_key(url: str) -> tuple[bytes, str]:
    """Returns a new data key, and the same key encrypted by KMS, in base64."""
    parsed, key = parse_kms(url), os.urandom(KEY_BYTES)
    answer = _call(parsed, "encrypt", KeyId=parsed.key, Plaintext=key, **_context(parsed))
    return key, base64.b64encode(answer["CiphertextBlob"]).decode()


def data_key(url: str, encrypted: str) -> bytes:
    """Returns the data key that KMS decrypts. Raises Refused where KMS refuses, Corrupt for a value that is not a
    key."""
    parsed = parse_kms(url)
    try:
        blob = base64.b64decode(encrypted, validate=True)
    except ValueError:
        blob = b""
    if not blob:
        raise Corrupt("`encryptedkey` is not base64", where="encryptedkey", remedy="restore Pulumi.STACK.yaml")
    # the alias may now have another key; KMS knows the key that encrypted this value
    which = {} if parsed.is_alias else {"KeyId": parsed.key}
    key: bytes = _call(parsed, "decrypt", CiphertextBlob=blob, **which, **_context(parsed))["Plaintext"]
    if len(key) != KEY_BYTES:
        raise Corrupt(
            f"`encryptedkey` holds {len(key)} bytes, which is not a key", where="encryptedkey", remedy="restore it"
        )
    return key


def _context(parsed: KmsUrl) -> dict[str, Any]:
    return {"EncryptionContext": dict(parsed.context)} if parsed.context else {}


def _call(parsed: KmsUrl, operation: str, **arguments: Any) -> dict[str, Any]:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        region = parsed.region or os.environ.get("AWS_REGION") or None
        session = boto3.session.Session(region_name=region, profile_name=parsed.profile)
        config = Config(
            use_fips_endpoint="fips" in parsed.flags,
            use_dualstack_endpoint="dualstack" in parsed.flags,
            connect_timeout=10,
            read_timeout=30,
        )
        answer: dict[str, Any] = getattr(session.client("kms", config=config), operation)(**arguments)
    except ClientError as failure:
        code = failure.response.get("Error", {}).get("Code", "unknown")
        raise Refused(
            f"KMS does not {operation} the stack's data key: {code}",
            where=f"secretsprovider {parsed.key}",
            remedy=f"allow kms:{operation.capitalize()} on that key to the user who runs this, and check that "
            "the key is enabled",
        ) from None
    except (BotoCoreError, ValueError) as failure:
        raise Refused(
            f"KMS cannot be asked for the stack's data key: {failure}",
            where=f"secretsprovider {parsed.key}",
            remedy="check that there are AWS credentials and a region, and that KMS can be reached",
        ) from None
    return answer
