"""A lake on S3 with all that it stands on: the program applied by the embedded engine to moto's server."""

from __future__ import annotations

from tests.cli.conftest import Deployer
from tests.stacks.conftest import MakeProject


def test_up(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws()
    ran = deployer("preview")
    print(ran.out, ran.err)
    ran = deployer("up", "--yes")
    print(ran.out, ran.err)
    assert ran.code == 0
    ran = deployer("preview", "--exit-code")
    print(ran.out, ran.err)
    assert ran.code == 0
