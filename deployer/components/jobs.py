"""The code of jobs on clusters of a lake on S3: objects below the root, named after the hash of their contents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws

from deployer.components.context import GUARD, after, below
from deployer.compute.jobs.code import PREFIX
from deployer.compute.packaging.package import (
    FOLDER,
    JobPackage,
    PackagedFile,
    architectures,
    build_package,
    read_package,
    requirements_of,
)
from deployer.compute.running.named_functions import named_functions
from deployer.specs.model import InstanceSpec, Lake


@dataclass(frozen=True, slots=True)
class JobCodeArgs:
    """The arguments of JobCode. `needs` must exist before the objects are uploaded."""

    instance: InstanceSpec
    package: JobPackage
    prefix: str = ""  #: of names in Pulumi
    needs: Sequence[pulumi.Resource] = ()


class JobCode(pulumi.ComponentResource):
    """The wheel, the programs and the archives of packages; `places` has their addresses by architecture."""

    places: Mapping[str, Mapping[str, Any]]

    def __init__(self, name: str, args: JobCodeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("deployer:aws:JobCode", name, None, opts)
        instance, package, self._prefix = args.instance, args.package, args.prefix
        self._bucket, _, prefix = instance.root.removeprefix("s3://").partition("/")
        self._folder = f"{prefix.strip('/')}/{PREFIX}".lstrip("/")
        # a running job may still read the code that it was started with, so objects of earlier builds are kept
        self._options = below(self, after(GUARD, *args.needs))
        # Spark adds zip files to Python's path, but not wheels
        wheel = self._object("wheel", package.wheel, "deployer.zip")
        scripts = {job: self._object(job, file, file.path.name) for job, file in sorted(package.scripts.items())}
        modules: dict[str, Any] = {}
        if package.modules is not None:
            modules = {"modules": self._object("modules", package.modules, package.modules.path.name)}
        if package.functions:
            modules["functions"] = list(package.functions)
        self.places = {
            architecture: {
                "python": package.python,
                "wheel": wheel,
                "archive": self._object(f"packages-{architecture}", file, file.path.name),
                "scripts": scripts,
                **modules,
            }
            for architecture, file in sorted(package.archives.items())
        }
        self.register_outputs({})

    def _object(self, name: str, file: PackagedFile, called: str) -> pulumi.Output[str]:
        found = aws.s3.BucketObjectv2(
            f"job-code/{self._prefix}{name}",
            bucket=self._bucket,
            key=f"{self._folder}/{file.sha256}/{called}",
            source=pulumi.FileAsset(str(file.path)),
            opts=self._options,
        )
        return pulumi.Output.concat("s3://", found.bucket, "/", found.key)


def job_package(lake: Lake, configured: str | None, project_dir: Path) -> JobPackage | None:
    """Returns the code for the clusters on AWS; None where there are no such clusters, or the stack has no code.

    `configured` is a folder of code that `deployer package` built and that is used unchanged, or `none`: then no job
    can start. Otherwise the code is built here, unless it is up to date.
    """
    wanted = architectures(lake.instance.clusters)
    if configured == "none" or not wanted:
        return None
    folder = project_dir / (configured or FOLDER)
    if configured:
        return read_package(folder, wanted)
    return build_package(
        folder,
        wanted,
        project_dir=project_dir,
        functions=named_functions(lake),
        requirements=requirements_of(lake.instance.clusters),
    )
