"""The options by which Lance reaches a dataset, and its folder as plain objects.

Lance finds credentials by itself, where boto3 finds them too: environment, profile, web identity, instance. It reads
region and endpoint from only a few environment variables. So this module looks them up as boto3 does and passes them to
Lance.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deployer.platform.storage.objects import ObjectStore
    from deployer.platform.storage.s3_objects import S3Objects

_SETTINGS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE")
_SORTED = 20  #: digits in the names of manifests that sort by age; datasets of early releases have other names


def storage_options(location: str) -> dict[str, str] | None:
    """Returns Lance's storage options for a dataset at `location`, a path or URI; None where it needs none."""
    if not location.startswith("s3://"):
        return None
    return dict(_s3_options(tuple(os.environ.get(name) for name in _SETTINGS)))


def objects_at(location: str, private: str | None = None) -> ObjectStore:
    """Returns the files under `location`, a path or URI, as objects. Folders that become empty stay, as others may use
    them.

    On a local disk, only the owner can read files that are put below the folder `private`.
    """
    if location.startswith("s3://"):
        return _s3_objects(location)
    from pathlib import Path

    from deployer.platform.storage.objects import LocalObjects

    folder = Path(location)
    return LocalObjects(folder, keeps_folders=True, private=None if private is None else folder / private)


def manifest_names(location: str) -> Sequence[str]:
    """Returns names of the dataset's manifests, among them the newest. Raises OSError where the folder does not
    exist."""
    if not location.startswith("s3://"):
        return os.listdir(f"{location}/_versions")  # noqa: PTH208 (asked for a thousand tables in one preview)
    objects = _s3_objects(location)
    names = [_name(path) for path in objects.first_page("_versions/")]
    if all(len(name.partition(".")[0]) == _SORTED for name in names):
        return names  # the newest comes first
    return [_name(path) for path in objects.list("_versions/")]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _s3_objects(location: str) -> S3Objects:
    from deployer.platform.storage.s3_objects import S3Objects

    return S3Objects(location)


@cache
def _s3_options(settings: tuple[str | None, ...]) -> dict[str, str]:
    """Returns boto3's session for the settings in the environment."""
    from deployer.platform.aws.session import aws_session
    from deployer.platform.storage.s3_client import endpoint_of

    session = aws_session()
    endpoint = endpoint_of(session)
    options = {
        "checksum_algorithm": "sha256"
    }  # S3 requires a checksum in a bucket with Object Lock; it is computed in any case
    if session.region_name:
        options["region"] = session.region_name
    if endpoint is not None:
        options |= {"endpoint": endpoint, "allow_http": str(endpoint.startswith("http://")).lower()}
    return options
