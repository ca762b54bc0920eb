"""The place of a project's state: a folder, or a bucket with the options that Pulumi's own backend takes."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deployer.errors import InvalidInput, Refused
from deployer.platform.storage.objects import LocalObjects, ObjectStore

if TYPE_CHECKING:
    from deployer.engine.project.project import Project
    from deployer.platform.storage.s3_client import S3Access

_PLACE = "Pulumi.yaml or PULUMI_BACKEND_URL"
_ENCRYPTIONS = ("AES256", "aws:kms", "aws:kms:dsse")
# : Options of `s3://` by all their names, those of Go CDK's `s3blob`. `awssdk` chooses Go's SDK and has no :
# consequence here.
_NAMES = {
    "region": "region",
    "endpoint": "endpoint",
    "profile": "profile",
    "use_path_style": "path_style",
    "s3ForcePathStyle": "path_style",
    "disable_https": "disable_https",
    "disableSSL": "disable_https",
    "ssetype": "encryption",
    "kmskeyid": "kms_key",
    "awssdk": "awssdk",
}


@dataclass(frozen=True)
class Backend:
    """A backend's `.pulumi` and its address for messages. `folder` is None for a backend outside the file system."""

    at: str
    objects: ObjectStore
    folder: Path | None = None

    def where(self, path: str) -> str:
        return f"{self.at}/{path}"


def is_known(url: str) -> bool:
    """Returns whether this engine reads and writes state there itself."""
    return url.startswith(("file://", "s3://"))


def open_backend(project: Project) -> Backend:
    """Returns the backend of a project's `backend_url`; relative folders start from the project's folder.

    No request is sent yet. Raises Refused for kinds that only the CLI supports, InvalidInput for options that no
    backend has.
    """
    url = project.backend_url
    if url.startswith("file://"):
        text = urllib.parse.unquote(url.removeprefix("file://").partition("?")[0]) or "."
        folder = (project.dir / Path(text).expanduser()).resolve() / ".pulumi"
        return Backend(str(folder), LocalObjects(folder, keeps_folders=True, private=folder), folder)
    if url.startswith("s3://"):
        from deployer.platform.storage.s3_objects import S3Objects  # it loads boto3

        place, access = s3_place(url)
        at = f"{place}/.pulumi"
        return Backend(at, S3Objects(at, access=access))
    scheme = url.partition("://")[0]
    raise Refused(
        f"the embedded engine keeps state in a folder or on S3, not at {scheme}://…",
        where=_PLACE,
        remedy="install the Pulumi CLI (`pulumi`), which is then used, or set `backend: {url: file://.}` or s3://BUCKET",
    )


def s3_place(url: str) -> tuple[str, S3Access]:
    """Returns `s3://bucket/prefix` of a backend's URL, and the options to reach it. Raises InvalidInput."""
    from deployer.platform.storage.s3_client import S3Access

    parts = urllib.parse.urlsplit(url)
    if not parts.netloc or parts.username or parts.password:
        raise InvalidInput(
            "no bucket in the backend's URL", where=_PLACE, remedy="write s3://BUCKET or s3://BUCKET/PREFIX"
        )
    given: dict[str, str] = {}
    for name, value in urllib.parse.parse_qsl(parts.query, keep_blank_values=True):
        if name not in _NAMES:
            raise InvalidInput(
                f"the backend's URL has an option {name!r} that this engine does not know",
                where=_PLACE,
                remedy=f"use {', '.join(_NAMES)}; or install the Pulumi CLI, which is then used",
            )
        given[_NAMES[name]] = value
    if given.get("encryption", "AES256") not in _ENCRYPTIONS:
        raise InvalidInput(
            f"ssetype {given['encryption']!r} is not an encryption of S3",
            where=_PLACE,
            remedy=f"use {', '.join(_ENCRYPTIONS)}",
        )
    place = f"s3://{parts.netloc}{urllib.parse.unquote(parts.path).rstrip('/')}"
    return place, S3Access(
        region=given.get("region") or None,
        endpoint=_endpoint(given),
        profile=given.get("profile") or None,
        path_style=_flag(given, "path_style"),
        encryption=given.get("encryption"),
        kms_key=given.get("kms_key"),
    )


def _endpoint(given: Mapping[str, str]) -> str | None:
    """Returns the endpoint with its scheme, which Pulumi's URLs often omit."""
    without_tls = _flag(given, "disable_https")
    endpoint = given.get("endpoint")
    if not endpoint or "://" in endpoint:
        return endpoint or None
    return f"{'http' if without_tls else 'https'}://{endpoint}"


def _flag(given: Mapping[str, str], name: str) -> bool | None:
    match given.get(name, "").lower():
        case "":
            return None
        case "true" | "1" | "t":
            return True
        case "false" | "0" | "f":
            return False
        case other:
            raise InvalidInput(
                f"{other!r} is neither true nor false", where=_PLACE, remedy=f"write true or false for {name}"
            )
