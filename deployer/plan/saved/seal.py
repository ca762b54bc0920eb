"""The seal of a saved plan, which proves that it was reviewed: the digest of its file, and a signature in it.

The digest is the SHA-256 of the file's bytes, as `sha256sum` prints it. The signature is Ed25519's over the checksum of
the plan's content, so a check needs no secret. The checksum alone detects only accidental changes, because everyone can
compute it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deployer.errors import InvalidInput, Refused
from deployer.platform.files.reading import MAX_JSON_BYTES, read_limited

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PRIVATE_KEY_VARIABLE = "DEPLOYER_PLAN_KEY"
PUBLIC_KEY_VARIABLE = "DEPLOYER_PLAN_PUBLIC_KEY"
_PURPOSE = (
    b"deployer plan\n"  #: signed together with the checksum, so that the key cannot sign other content by accident
)
_ID_LENGTH = 16


@dataclass(frozen=True, slots=True)
class SavedAs:
    """A plan's file: its digest, and the id of the key that signed it, empty when none did."""

    file: str
    digest: str
    signed_by: str = ""


# --- digests


def digest_of(data: bytes) -> str:
    """Returns `sha256:` and 64 hexadecimal digits."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def expected_digest(text: str) -> str:
    """Returns the digest that `--expect` asks for. Raises InvalidInput unless it is complete: a file could be made to
    match a part."""
    digest = text.strip().lower()
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise InvalidInput(
            f"--expect {text!r} is not the digest of a plan",
            remedy="give sha256: and all 64 digits, as `preview --out` shows them",
        )
    return digest


def read_file(path: Path, expected: str | None) -> bytes:
    """Returns the content of the plan's file, which is read once. Raises OSError, also for a file that is too long, and
    Refused when its digest is not the expected one."""
    data = read_limited(path, MAX_JSON_BYTES)
    found = digest_of(data)
    if expected is not None and not hmac.compare_digest(found, expected):
        raise Refused(
            f"this is not the expected plan: its digest is {found}, not {expected}",
            where=path,
            remedy="apply the file that was reviewed, or review this one",
        )
    return data


# --- signatures


@dataclass(frozen=True, slots=True)
class PlanSigner:
    """A private key, by which plans are signed."""

    key: Ed25519PrivateKey

    def sign(self, checksum: str) -> dict[str, str]:
        """Returns the plan's field `signature`."""
        value = self.key.sign(_PURPOSE + checksum.encode())
        return {"key": key_id(self.key.public_key()), "ed25519": base64.b64encode(value).decode()}


def plan_signer() -> PlanSigner | None:
    """Returns the key of the environment that signs plans, if there is one. Raises InvalidInput for an invalid key."""
    text = _variable(PRIVATE_KEY_VARIABLE)
    return None if text is None else PlanSigner(_private(text))


def checking_key() -> Ed25519PublicKey | None:
    """Returns the key of the environment that plans have to be signed with; the signer's key where only that one is
    set."""
    text = _variable(PUBLIC_KEY_VARIABLE)
    if text is not None:
        return _public(text)
    signer = plan_signer()
    return None if signer is None else signer.key.public_key()


def check_signature(document: Mapping[str, Any], checksum: str, key: Ed25519PublicKey | None, path: Path) -> str:
    """Returns the id of the key that signed the plan; empty when no key is required. Raises Refused unless `key` signed
    it."""
    if key is None:
        return ""
    from cryptography.exceptions import InvalidSignature

    signature = document.get("signature")
    if signature is None:
        raise Refused(
            f"the plan is not signed, and {PUBLIC_KEY_VARIABLE} asks for a signature",
            where=path,
            remedy=f"save it again with {PRIVATE_KEY_VARIABLE} set",
        )
    wanted = key_id(key)
    try:
        value = base64.b64decode(signature["ed25519"], validate=True)
        key.verify(value, _PURPOSE + checksum.encode())
    except (InvalidSignature, ValueError, TypeError, KeyError):
        named = signature.get("key") if isinstance(signature, dict) else None
        other = isinstance(named, str) and named != wanted
        raise Refused(
            f"the plan is signed by another key than {wanted}" if other else "the plan's signature does not match it",
            where=path,
            remedy="apply a plan that the right key signed and that was not changed since",
        ) from None
    return wanted


def key_id(key: Ed25519PublicKey) -> str:
    """Returns the first digits of the SHA-256 of the public key's 32 bytes."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:_ID_LENGTH]


def _variable(name: str) -> str | None:
    """Returns the variable's text, None when it is not set.

    Raises InvalidInput for an empty one: a pipeline gives an empty text for a missing secret, and that must not disable
    signatures.
    """
    text = os.environ.get(name)
    if text is not None and not text.strip():
        raise InvalidInput(f"{name} is empty", remedy="set it to a key in PEM, or unset it")
    return text


def _private(text: str) -> Ed25519PrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(text.strip().encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidInput(
            f"{PRIVATE_KEY_VARIABLE} is not a private Ed25519 key in PEM without a password",
            remedy="make one: openssl genpkey -algorithm ed25519",
        )
    return key


def _public(text: str) -> Ed25519PublicKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(text.strip().encode())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidInput(
            f"{PUBLIC_KEY_VARIABLE} is not a public Ed25519 key in PEM",
            remedy="take it from the private one: openssl pkey -pubout",
        )
    return key
