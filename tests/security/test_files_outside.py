"""Files outside of a project that its own files name: not read, and not told whether they exist."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from deployer.errors import InvalidInput, InvalidSpecs
from deployer.policy.load import load_policies
from deployer.specs import load_lake
from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, make_project, table
from tests.security.test_compared_repositories import commit, git

SECRET = "secret-of-the-machine"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder outside of the project with files that a branch asks for."""
    folder = tmp_path / "outside"
    (folder / "sub").mkdir(parents=True)
    (folder / "there.yaml").write_text(f"runtime: {SECRET}\nformat: [{SECRET}\n", encoding="utf-8")
    (folder / "sub" / "there.yaml").write_text(table("outside"), encoding="utf-8")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = make_project(tmp_path / "project", {"demo.yaml": INSTANCE, "flights.yaml": table("flights")})
    (made / "specs" / "sub").mkdir()
    git(made, "init", "-q", "-b", "main")
    commit(made)
    return made


INCLUDES = [
    "../../outside/NAME.yaml",
    "../../outside/NA*.yaml",
    "../../outs*/NAME.yaml",
    "sub/../../../outside/NAME.yaml",
    "*/../../../outside/NAME.yaml",
    "**/../../../outside/NAME.yaml",
    "s?b/../../../outside/N*",
    "[s]ub/../../../outside/NAME.yaml",
    "./../../outside/./NAME.yaml",
    "link/NAME.yaml",
    "link/NAME/x.yaml",
    "lin*/NAME.yaml",
    "link/../NAME.yaml",
    "link/N*.yaml",
    "NAME-link.yaml",
    "NAM*-link.yaml",
    "{../../outside/NAME.yaml,x}",
    "~/NAME.yaml",
    "/etc/NAME.yaml",
]


@pytest.mark.parametrize("pattern", INCLUDES)
def test_an_include_does_not_tell_what_exists_outside(pattern: str, project: Path, outside: Path) -> None:
    """F29: `*/../../../../etc/host*` said whether a file outside exists."""
    (project / "specs" / "link").symlink_to(outside)
    for name in ("there", "gone"):
        (project / "specs" / f"{name}-link.yaml").symlink_to(outside / f"{name}.yaml")
    said = []
    for name in ("there", "gone"):
        asked = pattern.replace("NAME", name).replace("NAM", name[:3]).replace("NA", name[:2]).replace("N*", name[0])
        (project / "specs" / "main.txt").write_text(f"{INSTANCE}---\ninclude: ['{asked}']\n", encoding="utf-8")
        with pytest.raises(InvalidSpecs) as caught:
            load_lake(project, project / "specs" / "main.txt")
        said.append([(str(each).replace(asked, "PATTERN").replace(name, "NAME")) for each in caught.value.problems])
    assert said[0] == said[1]
    assert not any(SECRET in line or "did you mean" in line for line in said[0])


def test_a_link_among_the_specs_does_not_tell_what_exists_outside(project: Path, outside: Path) -> None:
    """F29: a link in the folder of specs was an error where its target exists, and nothing else."""
    said = []
    for name in ("there.yaml", "gone.yaml", "sub"):
        link = project / "specs" / "link.yaml"
        link.symlink_to(outside / name)
        with pytest.raises(InvalidSpecs) as caught:
            load_lake(project, project / "specs")
        said.append([str(each) for each in caught.value.problems])
        link.unlink()
    assert said[0] == said[1] == said[2]


def test_a_link_among_the_rules_does_not_tell_what_exists_outside(project: Path, outside: Path) -> None:
    """F29: the same for `policies/`."""
    (project / "policies").mkdir()
    said = []
    for name in ("there.yaml", "gone.yaml", "sub"):
        link = project / "policies" / "link.yaml"
        link.symlink_to(outside / name)
        with pytest.raises(InvalidSpecs) as caught:
            load_policies(project)
        said.append([str(each) for each in caught.value.problems])
        link.unlink()
    assert said[0] == said[1] == said[2]


def setting(key: str, value: str) -> Callable[[Path, Path, str], None]:
    def change(project: Path, outside: Path, name: str) -> None:
        text = value.replace("NAME", name).replace("OUTSIDE", str(outside))
        (project / "Pulumi.dev.yaml").write_text(f"config:\n  {key}: {text}\n", encoding="utf-8")

    return change


def linked(path: str, target: str) -> Callable[[Path, Path, str], None]:
    def change(project: Path, outside: Path, name: str) -> None:
        link = project / path
        if link.is_dir() and not link.is_symlink():
            shutil.rmtree(link)
        link.unlink(missing_ok=True)
        link.symlink_to(target.replace("NAME", name).replace("OUTSIDE", str(outside)))

    return change


def also_linked(project: Path, outside: Path, name: str) -> None:
    linked("Pulumi.yaml", "specs")(project, outside, name)
    linked("Pulumi.yml", "../outside/NAME.yaml")(project, outside, name)


CHANGES = {
    "specs above": setting("deployer:specs", "../outside/NAME.yaml"),
    "specs absolute": setting("deployer:specs", "OUTSIDE/NAME.yaml"),
    "specs a link": linked("specs", "OUTSIDE/NAME"),
    "specs by a link": linked("specs", "../outside/NAME"),
    "project file": linked("Pulumi.yaml", "../outside/NAME.yaml"),
    "project file by its other name": also_linked,
    "stack file": linked("Pulumi.dev.yaml", "../outside/NAME.yaml"),
    "program": linked("stacks/__main__.py", "../../outside/NAME.yaml"),
    "prices": setting("deployer:prices", "../outside/NAME.yaml"),
    "prices absolute": setting("deployer:prices", "OUTSIDE/NAME.yaml"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_nothing_that_a_branch_names_is_outside_of_its_project(
    name: str,
    project: Path,
    outside: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployer: Deployer,
) -> None:
    """F29: what `--against` compares is in the project's folder, links followed."""
    monkeypatch.chdir(project)
    said = []
    for what in ("there", "gone"):
        specs = project / "specs"
        if name.startswith("prices"):
            (specs / "demo.yaml").write_text(INSTANCE.replace("lakes/demo", "s3://bucket/lake"), encoding="utf-8")
        CHANGES[name](project, outside, what)
        ran = deployer("preview", "--against", "main")
        assert (ran.code, ran.out) == (1, "")
        assert "out of the project's folder" in ran.err, ran.err
        said.append(ran.err.replace(what, "NAME"))
    assert said[0] == said[1]
    assert SECRET not in said[0]


def test_specs_that_a_person_names_may_be_elsewhere(
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployer: Deployer,
) -> None:
    shutil.move(project / "specs", tmp_path / "elsewhere")
    monkeypatch.chdir(project)
    assert deployer("validate", "--specs", str(tmp_path / "elsewhere")).code == 0
    assert deployer("preview", "--specs", str(tmp_path / "elsewhere"), "--against", "main").code == 0


@pytest.mark.parametrize("kind", ["FIFO", "device"])
@pytest.mark.parametrize("place", ["specs", "specs/pipe.yaml", "prices.yaml", "policies/pipe.py", "policies/pipe.yaml"])
def test_special_files_are_refused_in_words(
    place: str,
    kind: str,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployer: Deployer,
) -> None:
    """F24, F29: reading a FIFO never ends, and `/dev/zero` has no end."""
    monkeypatch.chdir(project)
    if place == "specs":
        shutil.rmtree(project / "specs")
    (project / place).parent.mkdir(exist_ok=True)
    if kind == "FIFO":
        os.mkfifo(project / place)
    else:
        (project / place).symlink_to("/dev/zero")
    command = {"policies": ("preview",), "prices.yaml": ("cost", "--prices", place)}.get(place.split("/")[0])
    ran = deployer(*(command or ("validate", *(("--specs", "specs") if place == "specs" else ()))))
    assert ran.code == 1, ran
    assert "and not a file" in ran.err or "out of the project's folder" in ran.err, ran.err


def test_an_error_of_yaml_shows_nothing_of_a_file_of_prices(outside: Path) -> None:
    """F29: the text of a YAML error quotes the line, which may be of a file that a branch only names."""
    from deployer.cost.prices import read_prices

    with pytest.raises(InvalidInput) as caught:
        read_prices(outside / "there.yaml")
    assert "not valid YAML" in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "line", ['main: "st\\0x"', 'plugins: {providers: [{name: lake, path: "a\\0b"}]}', 'backend: {url: "file://a\\0b"}']
)
def test_a_null_character_in_the_settings_ends_in_words(
    line: str,
    project: Path,
    deployer: Deployer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """F25: no path has one, and Python fails on it."""
    monkeypatch.chdir(project)
    settings = project / "Pulumi.yaml"
    kept = [each for each in settings.read_text().splitlines() if not each.startswith("main:")]
    settings.write_text("\n".join([*[each for each in kept if each.startswith(("name:", "runtime:"))], line, ""]))
    ran = deployer("preview")
    assert ran.code == 1 and "a text has a null character" in ran.err, ran
