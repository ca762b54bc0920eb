"""`deployer doctor --write-policy`: the lake's IAM policies as files, each within the size limits of IAM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from deployer.errors import NotFound, Refused

if TYPE_CHECKING:
    from deployer.app.diagnostics.project import Place


def write_policies(place: Place, folder: Path) -> dict[Path, int]:
    """Writes the policies to `folder`; returns the files with their sizes in characters, as IAM counts them.

    Each file is named after its policy. The name of the boundary is the one that the other policies refer to, unless
    the specs name another.

    Raises NotFound without a project, and Refused without readable specs, for a root that is not on S3, without
    credentials, and for a folder that cannot be written.
    """
    from deployer.app.diagnostics.aws import Aws
    from deployer.app.diagnostics.lake import lake_on_aws, unready
    from deployer.compute.iam.policy_files import characters, policies

    if place.workspace is None:
        raise NotFound(place.project.what, remedy=place.project.remedy)
    if place.lake is None:
        raise Refused(f"the policies follow from the specs: {place.specs.what}", remedy=place.specs.remedy)
    if not place.is_on_s3:
        raise Refused("a lake on a disk needs no policies: its root is not on S3", remedy="choose another --stack")
    aws = Aws()
    if why := unready(aws):
        raise Refused(f"the policies name the AWS account: {why}", remedy="run `deployer doctor`")
    lake = lake_on_aws(aws, place.lake)
    written = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, policy in policies(lake).items():
            path = folder / f"{lake.own}{name}.json"
            path.write_text(json.dumps(policy, indent=2) + "\n", encoding="utf-8")
            written[path] = characters(policy)
    except OSError as error:
        raise Refused(f"the policies cannot be written: {error}", remedy="name a folder for --write-policy") from None
    return written
