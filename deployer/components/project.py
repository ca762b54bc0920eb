"""The whole program of most projects: it declares the lake in the specs of the stack, and exports its outputs."""

from __future__ import annotations

import pulumi

from deployer.components.context import managed_on_aws, project_dir
from deployer.provider.sdk import declare_tables, stack_values
from deployer.specs import load_lake
from deployer.specs.model import Lake as LakeSpec


def project_lake(specs: str | None = None) -> LakeSpec:
    """Returns the lake that the specs declare for this stack. `specs` is a file or folder of the project; by default
    that of `deployer:specs`.

    Raises InvalidSpecs with every problem.
    """
    found = specs or pulumi.Config("deployer").get("specs") or "specs"
    return load_lake(project_dir(), project_dir() / found, pulumi.get_stack(), stack_values())


def declare_project(lake: LakeSpec | None = None) -> None:
    """Declares the lake of this stack and exports its outputs. `lake` is a lake that the program has already read.

    For a root on S3, `deployer:aws` sets how much of AWS is declared with it: `all`, `table` or `none`.
    """
    lake = lake or project_lake()
    if lake.instance.root.startswith("s3://") and managed_on_aws() != "none":
        from deployer.components.lake import Lake, LakeArgs

        Lake(lake.instance.name, LakeArgs(lake)).export()
    else:
        pulumi.export("root", declare_tables(lake).instance.root)
