"""AWS's error codes by remedy. There is one table, because services have several codes for one cause."""

from __future__ import annotations

EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"})

#: credentials that AWS does not accept: expired, unknown, with a wrong signature, or missing
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

#: valid credentials without the permission
DENIED = frozenset({"AccessDenied", "AccessDeniedException", "AuthorizationError", "UnauthorizedOperation"})

#: too many requests: the same request may succeed later
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
