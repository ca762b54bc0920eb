"""`deployer validate` and `preview` name spec files that nothing reads."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Deployer
from tests.projects import table


def words(text: str) -> str:
    return " ".join(text.split())


def test_spec_files_that_nothing_reads_are_named(project: Path, deployer: Deployer) -> None:
    assert "not read" not in deployer("validate").err
    file = project / "specs" / "sea" / "ships.yaml"
    file.parent.mkdir()
    file.write_text(table("ships"), encoding="utf-8")
    said = (
        "specs/sea/ships.yaml is not read: no file includes it to read such files, add the document "
        '`include: ["sea/*.yaml"]` to a spec file in specs/'
    )
    for command in ("validate", "preview"):
        ran = deployer(command)
        assert ran.code == 0 and said in words(ran.err)
    assert deployer("validate", "--json").json["unread"] == ["specs/sea/ships.yaml"]
    (project / "specs" / "planes.yaml").write_text("kind: Table\n", encoding="utf-8")
    ran = deployer("validate")
    assert ran.code == 1 and said in words(ran.err)
    (project / "specs" / "planes.yaml").write_text('include: ["sea/*.yaml"]\n', encoding="utf-8")
    ran = deployer("validate")
    assert ran.code == 0 and "not read" not in ran.err and "air.ships" in str(deployer("validate", "--json").json)


def test_the_remedy_for_another_stack_s_lake_works(project: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    ran = deployer("preview", "--stack", "qa")
    assert ran.code != 0 and "`lakes/${stack}`" in words(ran.err)
    file = project / "specs" / "demo.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("lakes/demo", "lakes/${stack}"), encoding="utf-8")
    assert deployer("preview", "--stack", "qa").code == 0
