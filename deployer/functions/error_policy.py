"""The handling of a function that fails for a row: the work ends, the row is skipped, or the call is repeated.

The first rule that matches the exception applies. Where a `Retry` has used its attempts, the next rule that matches and
is not a `Retry` applies. An exception that no rule matches ends the work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from deployer.errors import InvalidFunction

MOST_ATTEMPTS = 100
LONGEST_PAUSE = 3600.0  #: seconds
_WHERE = "on_error"


class Rule:
    """A rule of an error policy: the exceptions that it applies to. Use `Fail`, `Skip` or `Retry`."""

    exceptions: tuple[type[BaseException], ...]
    match: str

    def matches(self, error: BaseException) -> bool:
        """Returns whether the exception is of one of the rule's types and its message contains the pattern."""
        return isinstance(error, self.exceptions) and (not self.match or re.search(self.match, str(error)) is not None)


@dataclass(frozen=True, init=False)
class Fail(Rule):
    """Ends the work with the first failure: `Fail(AuthError)`. Without types it applies to every exception.

    `match` is a regular expression that is searched in the message.
    """

    exceptions: tuple[type[BaseException], ...]
    match: str

    def __init__(self, *exceptions: type[BaseException], match: str = "") -> None:
        object.__setattr__(self, "exceptions", _types(exceptions))
        object.__setattr__(self, "match", _pattern(match))


@dataclass(frozen=True, init=False)
class Skip(Rule):
    """Leaves the row null and records the failure: `Skip(ValueError)`. Parameters as those of `Fail`."""

    exceptions: tuple[type[BaseException], ...]
    match: str

    def __init__(self, *exceptions: type[BaseException], match: str = "") -> None:
        object.__setattr__(self, "exceptions", _types(exceptions))
        object.__setattr__(self, "match", _pattern(match))


@dataclass(frozen=True, init=False)
class Retry(Rule):
    """Repeats the call: `Retry(ConnectionError, attempts=5)` makes 5 calls at most.

    In seconds: the pause before the second call is random and at most `first_pause`; the limit doubles with each
    failure, up to `longest_pause`.
    """

    exceptions: tuple[type[BaseException], ...]
    match: str
    attempts: int
    first_pause: float
    longest_pause: float

    def __init__(
        self,
        *exceptions: type[BaseException],
        match: str = "",
        attempts: int = 3,
        first_pause: float = 1.0,
        longest_pause: float = 60.0,
    ) -> None:
        if isinstance(attempts, bool) or not isinstance(attempts, int) or not 2 <= attempts <= MOST_ATTEMPTS:
            raise InvalidFunction(
                f"attempts={attempts!r} is not a number of calls", where=_WHERE, remedy=f"use 2 to {MOST_ATTEMPTS}"
            )
        object.__setattr__(self, "exceptions", _types(exceptions))
        object.__setattr__(self, "match", _pattern(match))
        object.__setattr__(self, "attempts", attempts)
        object.__setattr__(self, "first_pause", _pause("first_pause", first_pause))
        object.__setattr__(self, "longest_pause", _pause("longest_pause", longest_pause))
        if self.longest_pause < self.first_pause:
            raise InvalidFunction(
                f"longest_pause={longest_pause!r} is shorter than first_pause={first_pause!r}",
                where=_WHERE,
                remedy="make the longest pause at least as long as the first",
            )


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """The rules for failures of one function, in order, and the share of failed rows above which the work ends.

    The share is judged from `after_rows` rows on, so that the first failures do not end the work; `exceeded` says
    whether it is passed.
    """

    rules: tuple[Fail | Skip | Retry, ...] = ()
    max_share: float = 1.0
    after_rows: int = field(default=100)

    def exceeded(self, failed: int, rows: int) -> bool:
        """Returns whether the share of failed rows is above the limit, and the number of rows is sufficient to
        decide."""
        return rows >= self.after_rows and failed > rows * self.max_share

    def retry_for(self, error: BaseException, attempts: int) -> Retry | None:
        """Returns the rule by which the call is repeated after this many attempts; None when it is not."""
        rule = next((rule for rule in self.rules if rule.matches(error)), None)
        return rule if isinstance(rule, Retry) and attempts < rule.attempts else None

    def skips(self, error: BaseException) -> bool:
        """Returns whether the row is skipped for this exception after all repetitions."""
        last = (rule for rule in self.rules if not isinstance(rule, Retry))
        return isinstance(next((rule for rule in last if rule.matches(error)), None), Skip)

    @property
    def repeats(self) -> bool:
        """Returns whether any rule repeats calls."""
        return any(isinstance(rule, Retry) for rule in self.rules)


OnError = ErrorPolicy | Fail | Skip | Retry | Iterable[Fail | Skip | Retry]


def fail() -> ErrorPolicy:
    """Returns the policy that ends the work with the first failure. It is the default."""
    return ErrorPolicy()


def skip(*exceptions: type[BaseException]) -> ErrorPolicy:
    """Returns the policy that leaves a row null and records the failure, for these exceptions or for all."""
    return ErrorPolicy((Skip(*exceptions),))


def retry(
    *exceptions: type[BaseException],
    attempts: int = 3,
    first_pause: float = 1.0,
    longest_pause: float = 60.0,
    then: Fail | Skip | None = None,
) -> ErrorPolicy:
    """Returns the policy that repeats failed calls, as `Retry` does, and then ends the work or does `then`."""
    rule = Retry(*exceptions, attempts=attempts, first_pause=first_pause, longest_pause=longest_pause)
    return error_policy((rule,) if then is None else (rule, then))


def stop_above(share: float, policy: OnError | None = None, *, after_rows: int = 100) -> ErrorPolicy:
    """Returns the policy (by default one that skips failed rows) with a limit: the work ends when more than `share` (0
    to 1) of at least `after_rows` rows have failed."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise InvalidFunction(
            f"{share!r} is not a share of rows", where=_WHERE, remedy="use 0 to 1, such as 0.01 for 1%"
        )
    if isinstance(after_rows, bool) or not isinstance(after_rows, int) or after_rows < 1:
        raise InvalidFunction(
            f"after_rows={after_rows!r} is not a number of rows", where=_WHERE, remedy="use 1 or more"
        )
    return ErrorPolicy(error_policy(skip() if policy is None else policy).rules, float(share), after_rows)


def error_policy(given: object) -> ErrorPolicy:
    """Returns the policy that a policy, a rule or a list of rules stands for. Raises InvalidFunction for anything
    else."""
    if isinstance(given, ErrorPolicy):
        return given
    rules = (given,) if isinstance(given, Rule) else given
    if isinstance(rules, list | tuple) and rules and all(isinstance(rule, Fail | Skip | Retry) for rule in rules):
        return ErrorPolicy(tuple(rules))
    raise InvalidFunction(
        f"{given!r} is not an error policy",
        where=_WHERE,
        remedy="use fail(), skip(), retry(), stop_above(), or a list of Retry, Skip and Fail",
    )


def _types(exceptions: tuple[object, ...]) -> tuple[type[BaseException], ...]:
    for each in exceptions:
        if not isinstance(each, type) or not issubclass(each, Exception):
            raise InvalidFunction(
                f"{each!r} is not a type of exceptions", where=_WHERE, remedy="name classes such as ValueError"
            )
    return tuple(exceptions) or (Exception,)  # type: ignore[arg-type]  # checked above


def _pattern(match: object) -> str:
    try:
        re.compile(match)  # type: ignore[call-overload]  # a TypeError is answered below
    except (re.error, TypeError):
        raise InvalidFunction(
            f"match={match!r} is not a regular expression", where=_WHERE, remedy="correct it, or escape it by re.escape"
        ) from None
    return str(match)


def _pause(name: str, seconds: object) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST_PAUSE:
        raise InvalidFunction(
            f"{name}={seconds!r} is not a number of seconds", where=_WHERE, remedy=f"use 0 to {LONGEST_PAUSE:g}"
        )
    return float(seconds)
