"""The place of an external table: a URL of a file system or of S3, in a form that can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from deployer.datasets.storage.options import manifest_names
from deployer.errors import DeployerError, InvalidInput
from deployer.state.model.names import has_control_characters

LONGEST = 2000  #: most characters of a URL
_REMEDY = "give file:///folder or s3://bucket/key"


@dataclass(frozen=True, slots=True)
class Place:
    """A folder or a prefix of keys. `location` is the form that Lance gets: a path without links, or a URI."""

    location: str

    def is_within(self, other: Place) -> bool:
        """Returns whether the place equals `other` or lies inside it."""
        return f"{self.location}/".startswith(f"{other.location}/")

    def parents(self) -> Iterator[Place]:
        """Yields the places that contain this place, the nearest first."""
        parent = self.location.rpartition("/")[0]
        while parent and not parent.endswith(("/", ":")):
            yield Place(parent)
            parent = parent.rpartition("/")[0]


def place_of(url: str) -> Place:
    """Returns the place of a `file://` or `s3://` URL. Raises InvalidInput for any other."""
    try:
        parsed = urlsplit(url)
        parsed.port  # noqa: B018 -- raises ValueError for an invalid port
    except ValueError as failure:
        raise _not_a_place(url, str(failure)) from None
    if len(url) > LONGEST or has_control_characters(url):
        raise _not_a_place(url, f"it is longer than {LONGEST} characters, or holds control characters")
    if parsed.query or parsed.fragment:
        raise _not_a_place(url, "it has a query or a fragment")
    if parsed.scheme == "file":
        if parsed.netloc not in ("", "localhost"):
            raise _not_a_place(url, f"it names the host {parsed.netloc}")
        return _local(url, unquote(parsed.path))
    if parsed.scheme == "s3":
        key = parsed.path.strip("/")
        if not parsed.netloc or "@" in parsed.netloc or not key:
            raise _not_a_place(url, "it does not name a bucket and a key")
        if any(part in ("", ".", "..") for part in key.split("/")):
            raise _not_a_place(url, "its key has an empty part, or one that is `.` or `..`")
        return Place(f"s3://{parsed.netloc}/{key}")
    raise _not_a_place(url, "it is not a file:// or s3:// URL")


def place_of_root(root: str) -> Place:
    """Returns the place of an instance's root, which is a path, or an address in S3."""
    if root.startswith("s3://"):
        return Place(root.rstrip("/"))
    return Place(str(Path(root.removeprefix("file://")).resolve()))


def refuse_overlap(place: Place, url: str, root: str, others: Iterable[tuple[str, Place]]) -> None:
    """Raises InvalidInput for a place that overlaps the instance's root or an entry, or that lies inside a dataset.

    Two places overlap where one contains the other. `others` are the names and places of entries; a place that equals
    one of theirs is allowed.
    """
    own = place_of_root(root)
    if place.is_within(own) or own.is_within(place):
        raise InvalidInput(
            f"the URL {url} overlaps the instance's root {root}, whose tables deployer manages",
            remedy="choose a URL outside of it, or declare the table in the specs and run `deployer up`",
        )
    for name, other in others:
        if place != other and (place.is_within(other) or other.is_within(place)):
            raise InvalidInput(f"the URL {url} overlaps the table {name}", remedy="choose a URL outside of it")
    for parent in place.parents():
        if _is_dataset(parent):
            raise InvalidInput(
                f"the URL {url} lies inside the table at {parent.location}", remedy="choose a URL outside of it"
            )


def _local(url: str, path: str) -> Place:
    if not path.startswith("/") or "\0" in path:
        raise _not_a_place(url, "it does not name an absolute path")
    try:
        found = str(Path(path).resolve())
    except (OSError, RuntimeError) as failure:  # a loop of links, a name that is too long
        raise _not_a_place(url, str(failure)) from None
    if found == "/":
        raise _not_a_place(url, "it names the root of the file system")
    return Place(found)


def _is_dataset(place: Place) -> bool:
    try:
        return bool(manifest_names(place.location))
    except (OSError, DeployerError):  # there is no folder, or it cannot be read
        return False


def _not_a_place(url: str, why: str) -> InvalidInput:
    return InvalidInput(f"the URL {url[:200]!r} cannot be that of a table: {why}", remedy=_REMEDY)
