"""AWS's codes of errors by what can be done about them: the one table, since services name one cause by several."""

from __future__ import annotations

EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"})

#: Credentials that AWS does not take: expired, unknown, wrongly signed with, or none at all.
CREDENTIALS = EXPIRED | {
    "AuthFailure",
    "IncompleteSignature",
    "IncompleteSignatureException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "InvalidToken",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}

#: Credentials that AWS knows, and that may not do this.
DENIED = frozenset({"AccessDenied", "AccessDeniedException", "AuthorizationError", "UnauthorizedOperation"})

#: Too much at once: the same request may pass a moment later.
THROTTLED = frozenset(
    {
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "Throttling",
        "ThrottledException",
        "ThrottlingError",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
