"""What Lance says when storage refuses, in words: Lance tells requests, addresses and its own source lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from deployer.errors import DeployerError
from deployer.state.s3_words import refusal_in

_REQUEST = re.compile(r"Error performing (\w+) (https?://\S+)")


def refused_by_storage(failure: BaseException, location: str) -> DeployerError | None:
    """The error for a dataset at `location` whose files S3 refused to read or write; None for any other failure."""
    said = str(failure)
    refusal = refusal_in(said) if location.startswith("s3://") else None
    if refusal is None:
        return None
    asked = ""
    if request := _REQUEST.search(said):
        name = location.rstrip("/").rpartition("/")[2]
        _, found, below = request[2].partition(name)
        asked = f" ({request[1]} of {location}{below if found else ''})"
    return DeployerError(f"{refusal.what}{asked}", where=location, remedy=refusal.remedy)


@contextmanager
def storage_in_words(location: str) -> Iterator[None]:
    """Around what Lance does to a dataset at `location`: raises what storage refused in words, all else as it is."""
    try:
        yield
    except DeployerError:
        raise
    except Exception as failure:
        if (refused := refused_by_storage(failure, location)) is not None:
            raise refused from failure
        raise


def words_of(failure: BaseException, location: str) -> str:
    """The failure in one line, for a message that says more."""
    refused = refused_by_storage(failure, location)
    return refused.what if refused is not None else (str(failure).splitlines() or [type(failure).__name__])[0]


def lost_races(failure: BaseException) -> bool:
    """Whether Lance gave a commit up because others were always first, which takes it half a minute: not committed."""
    return "too many concurrent writers" in str(failure).lower()
