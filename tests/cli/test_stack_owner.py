"""A lake that another stack applied, asked for by a mistyped `--stack`; and another stack's tables in one's own."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from deployer.state import open_store
from deployer.state.log.updates import SetTableProperties
from deployer.state.model.declared_properties import OWNER
from tests.cli.conftest import Deployer

OTHERS_LAKE = (
    "instance/demo: stack lakes/dev manages the lake at {root}, not lakes/prdo; give --stack dev, or give this"
)


def own(project: Path, owner: str) -> None:
    """Lets `owner` manage air.planes."""
    with closing(open_store(str(project / "lakes" / "demo"))) as store:
        entry = store.instance().by_name("air.planes")
        assert entry is not None
        declared = {**store.table(entry.table_id).properties.declared, OWNER: owner}
        store.commit(entry.table_id, [SetTableProperties({"declared": declared})])


@pytest.mark.parametrize(
    "command",
    [
        ("preview",),
        ("preview", "--policy-only"),
        ("up", "--yes"),
        ("drift",),
        ("drift", "--write-spec"),
        ("destroy", "--yes"),
    ],
    ids=" ".join,
)
def test_a_mistyped_stack_is_told_whose_lake_it_is(project: Path, deployer: Deployer, command: tuple[str, ...]) -> None:
    assert deployer("up", "--yes").code == 0
    ran = deployer(*command, "--stack", "prdo")
    assert (ran.code, ran.out) == (3, "")
    assert OTHERS_LAKE.format(root=project / "lakes" / "demo") in ran.err
    assert not list((project / ".pulumi").rglob("prdo.json"))
    assert deployer("preview", "--exit-code").code == 0


@pytest.mark.parametrize(
    ("owner", "remedy"),
    [
        pytest.param("lakes/other", "give --stack other, or remove them from these specs", id="stack-of-this-project"),
        pytest.param("far/prod", "use their project, or remove them from these specs", id="stack-of-another-project"),
    ],
)
def test_declared_tables_of_another_stack_are_named(project: Path, deployer: Deployer, owner: str, remedy: str) -> None:
    planes = (project / "specs" / "planes.yaml").read_text()
    assert deployer("up", "--yes").code == 0
    own(project, owner)
    assert deployer("preview").code == 0, "what Pulumi's state of the stack holds is the stack's own"
    own(project, "lakes/dev")
    (project / "specs" / "planes.yaml").unlink()
    assert deployer("up", "--yes", "--allow-destroy", "table/air.planes").code == 0
    (project / "specs" / "planes.yaml").write_text(planes)
    shutil.copytree(project / ".pulumi", project / "kept")  # Pulumi's state from before the table is made again
    assert deployer("up", "--yes").code == 0
    shutil.rmtree(project / ".pulumi")
    (project / "kept").rename(project / ".pulumi")
    own(project, owner)
    for command in (("preview",), ("up", "--yes"), ("destroy", "--yes")):
        ran = deployer(*command)
        assert ran.code == 3
        whose = f"instance/demo: stack {owner} manages 1 table that these specs declare, not lakes/dev: "
        assert f"{whose}table/air.planes; {remedy}" in ran.err


def test_a_stack_without_its_state_takes_its_lake_over(project: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    shutil.rmtree(project / ".pulumi" / "stacks")
    ran = deployer("preview")
    assert "create table/air.flights it exists already; Pulumi's state of this stack takes it over" in ran.out
    assert "Plan: 3 for Pulumi's state, 3 unchanged" in ran.out
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0


def test_a_renamed_stack_keeps_its_lake(project: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    file = project / ".pulumi" / "stacks" / "lakes" / "dev.json"  # as `pulumi stack rename` leaves it
    file.with_name("new.json").write_text(file.read_text().replace("urn:pulumi:dev::", "urn:pulumi:new::"))
    file.unlink()
    for command in (("preview", "--exit-code"), ("up", "--yes"), ("destroy", "--yes")):
        assert deployer(*command, "--stack", "new").code == 0
