from __future__ import annotations

from pathlib import Path

import pytest

from deployer.errors import InvalidSpecs, NotFound
from deployer.specs import load_lake
from deployer.specs.model import Lake
from deployer.specs.rules import Rule

INSTANCE = "kind: Instance\nname: lake\nroot: lakes/lake\n"


def table(name: str) -> str:
    return f"---\nkind: Table\ndatabase: db\nname: {name}\ncolumns:\n  - {{name: id, type: int64}}\n"


def write(project: Path, **files: str) -> None:
    for name, text in files.items():
        path = project / name.replace("__", "/").replace("_yaml", ".yaml").replace("_yml", ".yml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def names(lake: Lake) -> list[str]:
    return [found.name for found in lake.tables]


def rules(project: Path, specs: str) -> list[str]:
    with pytest.raises(InvalidSpecs) as caught:
        load_lake(project, Path(specs))
    return [problem.rule for problem in caught.value.problems]


def test_a_folder_gives_its_own_files_in_order_and_what_they_include(tmp_path: Path) -> None:
    write(
        tmp_path,
        specs__b_yaml=table("b"),
        specs__a_yml=INSTANCE + "---\ninclude: [more/**/*.yaml]\n",
        specs__more__d__c_yaml=table("c"),
        specs__unread__d_yaml=table("d"),
        specs__notes_txt="not: [yaml",
    )
    lake = load_lake(tmp_path, Path("specs"))
    assert names(lake) == ["c", "b"]
    assert lake.files == ("specs/a.yml", "specs/more/d/c.yaml", "specs/b.yaml")


def test_one_file_gives_itself_and_what_it_includes(tmp_path: Path) -> None:
    write(
        tmp_path,
        specs__a_yaml=INSTANCE + "---\ninclude: [b.yaml]\n",
        specs__b_yaml=table("b"),
        specs__c_yaml=table("c"),
    )
    assert names(load_lake(tmp_path, tmp_path / "specs" / "a.yaml")) == ["b"]


def test_a_file_reached_twice_is_read_once(tmp_path: Path) -> None:
    write(
        tmp_path,
        specs__a_yaml=INSTANCE + "---\ninclude: [b.yaml, 'b*.yaml', sub/c.yaml]\n",
        specs__b_yaml=table("b"),
        specs__sub__c_yaml="include: [../b.yaml]\n" + table("c"),
    )
    assert names(load_lake(tmp_path, Path("specs"))) == ["b", "c"]


def test_a_glob_means_the_other_files(tmp_path: Path) -> None:
    write(tmp_path, specs__a_yaml=INSTANCE + "---\ninclude: ['*.yaml']\n", specs__b_yaml=table("b"))
    assert names(load_lake(tmp_path, Path("specs/a.yaml"))) == ["b"]


def test_a_file_that_includes_itself_is_a_cycle(tmp_path: Path) -> None:
    write(tmp_path, specs__a_yaml=INSTANCE + "---\ninclude: [a.yaml]\n")
    assert rules(tmp_path, "specs") == [Rule.INCLUDE_CYCLE]


def test_pulumi_files_beside_the_specs_are_not_specs(tmp_path: Path) -> None:
    write(tmp_path, a_yaml=INSTANCE)
    (tmp_path / "Pulumi.yaml").write_text("name: lakes\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {}\n")
    assert load_lake(tmp_path, Path()).files == ("a.yaml",)


@pytest.mark.parametrize("how", ["included", "in the folder"])
def test_links_do_not_lead_out_of_the_project(tmp_path: Path, how: str) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    include = "---\ninclude: [sub/*.yaml]\n" if how == "included" else ""
    write(tmp_path, project__specs__a_yaml=INSTANCE + include, outside__b_yaml=table("b"))
    (project / "specs" / "sub").mkdir()
    (project / "specs" / ("sub" if how == "included" else ".") / "b.yaml").symlink_to(outside / "b.yaml")
    assert rules(project, "specs") == [Rule.INCLUDE_OUTSIDE]


def test_links_within_the_project_are_followed(tmp_path: Path) -> None:
    write(tmp_path, specs__a_yaml=INSTANCE + "---\ninclude: [linked.yaml]\n", shared__b_yaml=table("b"))
    (tmp_path / "specs" / "linked.yaml").symlink_to(tmp_path / "shared" / "b.yaml")
    assert load_lake(tmp_path, Path("specs")).files == ("specs/a.yaml", "shared/b.yaml")


def test_specs_may_lie_outside_of_the_project(tmp_path: Path) -> None:
    write(
        tmp_path,
        project__empty_txt="",
        other__a_yaml=INSTANCE + "---\ninclude: [sub/b.yaml]\n",
        other__sub__b_yaml=table("b"),
    )
    assert names(load_lake(tmp_path / "project", tmp_path / "other")) == ["b"]


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        load_lake(tmp_path, Path("specs"))


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that is there and cannot be read")
def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    assert rules(tmp_path, "/proc/self/mem") == [Rule.UNREADABLE_FILE]


def test_a_file_that_cannot_be_read_hides_no_declaration(tmp_path: Path) -> None:
    """What it may declare is not reported as missing."""
    write(tmp_path, specs__a_yaml="kind: Instance\nname: [\n", specs__b_yaml=table("b") + "schemas: [somewhere]\n")
    assert rules(tmp_path, "specs") == [Rule.YAML_SYNTAX]
