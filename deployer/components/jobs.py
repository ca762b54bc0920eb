"""The code of jobs that run on clusters of a lake on S3: objects below the root, named after what is in them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws

from deployer.compute.job_code import OUTPUT, PREFIX
from deployer.compute.job_package import FOLDER, JobPackage, PackagedFile, architectures, build_package, read_package
from deployer.specs.model import InstanceSpec

#: A job that runs may still ask for the code that it was started with, so objects of earlier builds stay.
KEPT = pulumi.ResourceOptions(retain_on_delete=True)


class JobCode(pulumi.ComponentResource):
    """The wheel, the programs and the archives of packages; `places` are their addresses, by architecture."""

    def __init__(self, instance: InstanceSpec, package: JobPackage, needs: Sequence[pulumi.Resource]) -> None:
        super().__init__("deployer:aws:JobCode", instance.name)
        self._bucket, _, prefix = instance.root.removeprefix("s3://").partition("/")
        self._folder = f"{prefix.strip('/')}/{PREFIX}".lstrip("/")
        own = pulumi.ResourceOptions(parent=self, depends_on=list(needs))
        self._options = pulumi.ResourceOptions.merge(KEPT, own)
        # Spark puts zip files on Python's path, and does not take a wheel for one
        wheel = self._object("wheel", package.wheel, "deployer.zip")
        scripts = {job: self._object(job, file, file.path.name) for job, file in sorted(package.scripts.items())}
        self.places = {
            architecture: {
                "python": package.python,
                "wheel": wheel,
                "archive": self._object(f"packages-{architecture}", file, file.path.name),
                "scripts": scripts,
            }
            for architecture, file in sorted(package.archives.items())
        }
        self.register_outputs({})

    def _object(self, name: str, file: PackagedFile, called: str) -> pulumi.Output[str]:
        found = aws.s3.BucketObjectv2(
            f"job-code/{name}",
            bucket=self._bucket,
            key=f"{self._folder}/{file.sha256}/{called}",
            source=pulumi.FileAsset(str(file.path)),
            opts=self._options,
        )
        return pulumi.Output.concat("s3://", found.bucket, "/", found.key)


def declare_jobs(
    instance: InstanceSpec, needs: Sequence[pulumi.Resource], project_dir: Path
) -> Mapping[str, Any] | None:
    """Declare the code for the clusters on AWS, if there are any, and export where it is. Gives the places, if any.

    `deployer:jobs` names a folder of code that `deployer package` built, which is taken as it is; with `none` there is
    no code, and no job can be started. Otherwise it is built here, unless that was done before.
    """
    config = pulumi.Config("deployer")
    said = config.get("jobs")
    if said == "none":
        return None
    folder = project_dir / (said or FOLDER)
    if wanted := architectures(instance.clusters):
        package = read_package(folder, wanted) if said else build_package(folder, wanted, project_dir=project_dir)
        places = JobCode(instance, package, needs).places
        pulumi.export(OUTPUT, places)
        return places
    return None
