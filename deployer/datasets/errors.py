"""Readable errors for a dataset that cannot be read and for requests that storage refuses. The original texts of Lance
and Arrow contain requests, addresses, and source lines of the machine that built them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from deployer.errors import Corrupt, DeployerError
from deployer.platform.storage.s3_errors import refusal_in

#: the exceptions of Lance and Arrow; a panic in Rust is another one (see `is_of_lance`)
OF_LANCE = (OSError, ValueError, RuntimeError, NotImplementedError)

_REQUEST = re.compile(r"Error performing (\w+) (https?://\S+)")
_SOURCE_LINE = re.compile(r",? *(?:at )?(?:[\w.-]*/)[^\s,:]*\.rs:\d+(?::\d+)?")
_PREFIXES = re.compile(
    r"(?:External error|LanceError\(\w+\)|Generic [\w/]+(?: \w+)? error|Invalid user input|Execution error"
    r"|IO error for operation on [^:]+): *|Encountered internal error\. Please file a bug report at \S+ *"
)
_NOT_FOUND = re.compile(r"Not found: ([^,]+)|Object at location ([^,]+?) not found|No such file or directory")
_INTERRUPTED = re.compile(r"(?:External error: )?KeyboardInterrupt:? *(?:$|\n)")
_NO_RIGHT = re.compile(r"(?:open file |operation on )?(/[^:]*)?:? ?Permission denied")


def lost_data(table: str = "TABLE") -> str:
    """Returns the remedy for a data file that is missing or damaged."""
    return (
        "copy the file back from a backup; else return to a version that does not need it: `deployer history "
        f"{table}`, then `deployer restore {table} --at VERSION`; else `deployer table delete {table} --force`"
    )


def is_of_lance(failure: BaseException) -> bool:
    """Returns whether Lance or Arrow may have raised the exception. A panic in Rust counts too, although it is not an
    `Exception`."""
    return (
        isinstance(failure, OF_LANCE)
        or type(failure).__module__.startswith("pyarrow")
        or type(failure).__name__ == "PanicException"
    )


def is_interruption(failure: BaseException) -> bool:
    """Returns whether Ctrl-C ended a call of Lance or Arrow, which report it as an error of their own."""
    return is_of_lance(failure) and bool(_INTERRUPTED.match(str(failure)))


def is_of_files(failure: BaseException) -> bool:
    """Returns whether the failure is about the dataset's files, and not about the request."""
    message = str(failure)
    return bool(_NOT_FOUND.search(message)) or "Permission denied" in message or "Lance file" in message


def as_deployer_error(failure: BaseException, location: str) -> DeployerError:
    """Returns the error for a dataset at `location` that cannot be read because of `failure`."""
    if isinstance(failure, DeployerError):
        return failure
    if (refused := refused_by_storage(failure, location)) is not None:
        return refused
    message = str(failure)
    if isinstance(failure, PermissionError) or "Permission denied" in message:
        found = _NO_RIGHT.search(message)
        path = getattr(failure, "filename", None) or (found[1] if found else None) or location
        return Corrupt(
            "it cannot be read: permission denied",
            where=_below(str(path), location),
            remedy="allow this user to read it",
        )
    if isinstance(failure, FileNotFoundError) or _NOT_FOUND.search(message):
        found = _NOT_FOUND.search(message)
        path = getattr(failure, "filename", None) or (found and (found[1] or found[2])) or location
        return missing_file(_below(str(path), location))
    return Corrupt(f"the dataset cannot be read: {first_line(failure)}", where=location, remedy=lost_data())


def missing_file(path: str) -> Corrupt:
    """Returns the error for a dataset whose manifest names a file that is not at `path`."""
    return Corrupt("the dataset names a file that is missing", where=path, remedy=lost_data())


def _below(path: str, location: str) -> str:
    """Returns the path that a message names if the path is in the dataset, otherwise the dataset's location."""
    name = location.rstrip("/").rpartition("/")[2]
    _, found, below = path.strip().partition(name)
    return f"{location.rstrip('/')}{below}" if found else location


def first_line(failure: BaseException) -> str:
    """Returns the first line of the message, without source lines and text that does not help a user."""
    line = next(iter(str(failure).strip().splitlines()), "")
    line = _SOURCE_LINE.sub("", line)
    before = ""
    while line != before:
        before, line = line, _PREFIXES.sub("", line).strip(" ,")
    return line[:500] or type(failure).__name__


def refused_by_storage(failure: BaseException, location: str) -> DeployerError | None:
    """Returns the error for a dataset at `location` whose files S3 refused to read or write; None for any other
    failure."""
    message = str(failure)
    refusal = refusal_in(message) if location.startswith("s3://") else None
    if refusal is None:
        return None
    asked = ""
    if request := _REQUEST.search(message):
        name = location.rstrip("/").rpartition("/")[2]
        _, found, below = request[2].partition(name)
        asked = f" ({request[1]} of {location}{below if found else ''})"
    return DeployerError(f"{refusal.what}{asked}", where=location, remedy=refusal.remedy)


@contextmanager
def lance_errors(location: str) -> Iterator[None]:
    """Wraps reads of the dataset at `location` by Lance or Arrow: raises their failures as readable errors."""
    try:
        yield
    except BaseException as failure:
        if isinstance(failure, DeployerError) or not is_of_lance(failure):
            raise
        if is_interruption(failure):
            raise KeyboardInterrupt from failure
        raise as_deployer_error(failure, location) from failure


@contextmanager
def storage_errors(location: str) -> Iterator[None]:
    """Wraps Lance's writes to a dataset at `location`: raises refusals of storage as readable errors, and all other
    failures unchanged."""
    try:
        yield
    except DeployerError:
        raise
    except Exception as failure:
        if is_interruption(failure):
            raise KeyboardInterrupt from failure
        if (refused := refused_by_storage(failure, location)) is not None:
            raise refused from failure
        raise


def message_of(failure: BaseException, location: str) -> str:
    """Returns the failure in one line, for a message with more context."""
    refused = refused_by_storage(failure, location)
    return refused.what if refused is not None else first_line(failure)
