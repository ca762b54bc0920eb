"""The one hierarchy of errors that users see. Each says what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a spec file; `line` and `column` count from 1."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with the input: where it is, what it is and how to fix it."""

    at: Position
    what: str
    remedy: str
    rule: str = field(default="", compare=False)  #: stable name of the rule that was broken, such as `unknown-field`

    def __str__(self) -> str:
        return f"{self.at}: {self.what}; {self.remedy}" if self.remedy else f"{self.at}: {self.what}"


class DeployerError(Exception):
    """Any failure that a command reports as a message, and never as a traceback.

    `where` is a file position, an address such as `table/nyc.flights`, a path or a URN. `kind` is the name of the class
    in JSON, such as that of `preview --json`: programs compare it, so it stays when the class is renamed.
    """

    kind = "DeployerError"
    exit_code = 1

    def __init__(self, what: str, *, where: object = None, remedy: str = "") -> None:
        self.what, self.where, self.remedy = what, where, remedy
        super().__init__(what, where, remedy)

    def __reduce__(self) -> tuple[Any, ...]:
        """Carries the error between processes. Exceptions are made again by calling them with their `args`, which
        keyword arguments are none of."""
        return _made_again, (type(self), self.args), self.__dict__

    def details(self) -> tuple[str, ...]:
        """Lines that people read before the message: one for each thing that the error consists of."""
        return ()

    def document(self) -> dict[str, Any]:
        """Returns the JSON document that a command prints."""
        where = str(self.where) if self.where is not None else None
        return {"error": {"kind": self.kind, "what": self.what, "where": where, "remedy": self.remedy or None}}

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where is not None else self.what
        return f"{head}; {self.remedy}" if self.remedy else head


def _made_again(kind: type[DeployerError], args: tuple[object, ...]) -> DeployerError:
    return kind.__new__(kind, *args)


class InvalidSpecs(DeployerError):
    """The specs, or the policies, break at least one rule; carries every problem that was found."""

    kind = "InvalidSpecs"

    def __init__(self, problems: Sequence[Problem], *, of: str = "the specs") -> None:
        self.problems = tuple(sorted(problems, key=lambda p: p.at))
        count = len(self.problems)
        super().__init__(f"{count} problem{'s' if count != 1 else ''} in {of}")

    def details(self) -> tuple[str, ...]:
        return tuple(map(str, self.problems))  # one line each, for editors that jump to file:line:column

    def document(self) -> dict[str, Any]:
        document = super().document()
        document["error"]["problems"] = [
            {
                "file": problem.at.file,
                "line": problem.at.line,
                "column": problem.at.column,
                "what": problem.what,
                "remedy": problem.remedy,
                "rule": problem.rule,
            }
            for problem in self.problems
        ]
        return document


class NotFound(DeployerError):
    """A named object does not exist."""

    kind = "NotFound"


class InvalidInput(DeployerError):
    """An argument, option or input file that cannot be used as it is."""

    kind = "InvalidInput"


class InvalidFunction(InvalidInput, ValueError):
    """A function of a computed column, or its use for a column, that cannot be as it is.

    It is a ValueError too, as the interface of computed columns says.
    """

    kind = "InvalidFunction"


class FunctionFailed(DeployerError):
    """A function of a computed column failed, and its error policy says that the work ends with it.

    `row` counts from 0 in the batch, -1 where no single row is at fault; `traceback` is shortened, and secrets in it
    are masked.
    """

    kind = "FunctionFailed"

    def __init__(
        self, what: str, *, where: object = None, remedy: str = "", row: int = -1, traceback: str = ""
    ) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.row, self.traceback = row, traceback


class ResourcesUnavailable(DeployerError):
    """A cluster does not have what a job needs."""

    kind = "ResourcesUnavailable"


class Refused(DeployerError):
    """The request is understood and not carried out: it would destroy data, or is not supported."""

    kind = "Refused"
    exit_code = 3


class Conflict(DeployerError):
    """Another process changed the state that this request was based on."""

    kind = "Conflict"


class KeysTaken(Conflict):
    """Another process added rows with keys that this request adds to a table with unique keys."""

    kind = "KeysTaken"


class Preempted(Conflict):
    """Another process committed something that a prepared commit must not follow; the commit may be prepared again."""

    kind = "Preempted"


class CommitTimedOut(DeployerError):
    """A transaction could not be committed in its time; `attempts` says how often it was tried."""

    kind = "CommitTimedOut"

    def __init__(self, what: str, *, where: object = None, remedy: str = "", attempts: int = 0) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.attempts = attempts


class OutcomeUnknown(DeployerError):
    """A write was sent and its answer never came; it may have happened."""

    kind = "OutcomeUnknown"


class Corrupt(DeployerError):
    """Stored state that fails its checksum or cannot be read."""

    kind = "Corrupt"


class EngineFailed(DeployerError):
    """The Pulumi engine, its program or a provider failed."""

    kind = "EngineFailed"


class Interrupted(DeployerError):
    """The user stopped the command; everything finished until then is saved."""

    kind = "Interrupted"
    exit_code = 130
