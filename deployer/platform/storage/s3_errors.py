"""Readable errors for refusals of S3, by codes in the messages of Rust's object_store, of obstore's requests and
Lance's."""

from __future__ import annotations

from dataclasses import dataclass

from deployer.platform.aws.error_codes import CREDENTIALS, DENIED, THROTTLED

_DENIED = (*DENIED, "403 Forbidden", "AllAccessDisabled", "lacked the necessary privileges")
_BUSY = (*THROTTLED, "503 Service Unavailable")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal by S3. `is_final`: repeating the request cannot help."""

    what: str
    remedy: str
    is_final: bool = True


def refusal_in(message: str) -> Refusal | None:
    """Returns S3's reason for a refusal, if the message shows it; None for other messages."""
    if any(code in message for code in CREDENTIALS):
        expired = "have expired" if "Expired" in message else "are not accepted by AWS"
        return Refusal(f"the credentials {expired}", "renew them, or choose others by AWS_PROFILE, and run it again")
    if any(code in message for code in _DENIED):
        return Refusal(
            "access to the bucket was denied",
            "check the credentials (AWS_PROFILE), and allow them the actions listed in docs/aws-permissions.md",
        )
    if any(code in message for code in _BUSY):
        return Refusal(
            "S3 is too busy for this prefix: SlowDown",
            "try again in a minute; S3 adds capacity for a busy prefix",
            is_final=False,
        )
    return None
