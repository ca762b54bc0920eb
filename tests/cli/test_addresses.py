"""Addresses in options: one that names nothing is told, with what it may mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Deployer
from tests.projects import table

MISTYPED = ("table/air.flihgts", "did you mean table/air.flights?")


@pytest.mark.parametrize(
    ("command", "given", "remedy"),
    [
        pytest.param(("preview",), *MISTYPED, id="mistyped"),
        pytest.param(("preview",), "air.flights", "did you mean table/air.flights?", id="without-its-kind"),
        pytest.param(("preview",), "demo", "did you mean instance/demo?", id="instance"),
        pytest.param(
            ("preview",), "somewhere", "leave it out, or write an address such as table/nyc.flights", id="like-none"
        ),
        pytest.param(("preview", "--policy-only"), *MISTYPED, id="policy-only"),
        pytest.param(("up", "--yes"), *MISTYPED, id="up"),
        pytest.param(("destroy", "--yes"), *MISTYPED, id="destroy"),
    ],
)
def test_an_address_of_nothing_is_refused(
    command: tuple[str, ...], given: str, remedy: str, applied: Path, deployer: Deployer
) -> None:
    ran = deployer(*command, "--allow-destroy", "table/air.planes", "--allow-destroy", given)
    assert (ran.code, ran.out) == (1, "")
    assert f"instance/demo: --allow-destroy {given}: nothing in the plan has this address; {remedy}" in ran.err
    assert (applied / "lakes" / "demo").exists()


def test_what_a_plan_has_may_be_named(project: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes", "--allow-destroy", "table/air.planes").code == 0
    (project / "specs" / "planes.yaml").write_text(table("jets", more="renamed_from: air.planes\n"))
    (project / "specs" / "flights.yaml").unlink()
    given = ("--allow-destroy", "table/air.jets", "--allow-destroy", "table/air.flights")
    assert deployer("preview", *given).code == 0
    assert deployer("up", "--yes", *given).code == 0
    assert (
        deployer("destroy", "--yes", "--allow-destroy", "table/air.jets", "--allow-destroy", "instance/demo").code == 0
    )
