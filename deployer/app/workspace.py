"""The workspace of a command: the project around the current folder, the stack, and its specs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from deployer.engine.project.project import Project, StackRef, load_yaml, read_project, text_of
from deployer.errors import InvalidInput
from deployer.platform.files.reading import NotAFile, check_regular
from deployer.specs import load_lake
from deployer.specs.model import Lake
from deployer.specs.values.root import resolve_root

NAMESPACE = "deployer:"
SPECS_KEY = NAMESPACE + "specs"


@dataclass(frozen=True, slots=True)
class Workspace:
    """A project and stack; `specs` is the file or folder of specs, `values` are the variables that the stack sets.

    `confined`: no file of the project may name a file outside of the project's folder. `new_state`: a lost state store
    may be replaced by a new one. `delete_savepoints`: tables may be deleted with their savepoints.
    """

    project: Project
    stack: str
    specs: Path
    values: Mapping[str, str] = field(default_factory=dict)
    confined: bool = False
    new_state: bool = False
    delete_savepoints: bool = False

    @property
    def dir(self) -> Path:
        return self.project.dir

    @property
    def owner(self) -> str:
        """The owner of what this stack applies, as the state store records it."""
        return f"{self.project.name}/{self.stack}"

    @property
    def stack_ref(self) -> StackRef:
        return StackRef(self.project, self.stack)

    def lake(self) -> Lake:
        """Returns the lake that this stack declares. Raises InvalidSpecs with every problem."""
        return load_lake(self.dir, self.specs, self.stack, self.values)

    def root(self, lake: Lake) -> str:
        """Returns the instance's root as an absolute path or URI."""
        return resolve_root(self.dir, lake.instance.root)

    def file_of(self, setting: str) -> Path:
        """Returns the file that a setting of the stack names. Raises InvalidInput where it is outside of a confined
        project."""
        file = self.dir / self.values[setting]
        if self.confined:
            require_inside(self.dir, file, f"{NAMESPACE}{setting}")
        return file


def open_workspace(
    project_dir: Path | str | None, stack: str, specs: Path | str | None, *, confined: bool = False
) -> Workspace:
    """Returns the workspace of a command's `--project`, `--stack` and `--specs`.

    `confined` is for a project of an untrusted author. Its files may not be outside of its folder, nor name anything
    outside of it. Paths in options are the user's, and may be anywhere.
    """
    project_dir = Path(project_dir) if project_dir is not None else None
    specs = Path(specs) if specs is not None else None
    if confined:
        project_dir = _find_project(project_dir, confined=True)
        for name in ("Pulumi.yaml", "Pulumi.yml", f"Pulumi.{stack}.yaml"):
            require_inside(project_dir, project_dir / name, name)
    named = specs is not None
    project, specs, settings = specs_place(project_dir, stack, specs)
    if confined and not named:
        require_inside(project.dir, specs, SPECS_KEY)
    if not specs.exists():
        raise InvalidInput(
            "no such file or folder of specs",
            where=specs,
            remedy=f"give --specs, or set {SPECS_KEY} in Pulumi.{stack}.yaml or Pulumi.yaml",
        )
    if not specs.is_dir():
        try:
            check_regular(specs)
        except NotAFile as error:
            remedy = "name a file or folder of specs"
            raise InvalidInput(f"the file cannot be read: {error.strerror}", where=specs, remedy=remedy) from None
    values = {key.removeprefix(NAMESPACE): text for key, text in settings.items() if key != SPECS_KEY}
    return Workspace(project, stack, specs.resolve(), values, confined)


def require_inside(folder: Path, file: Path, name: str) -> None:
    """Raises InvalidInput when `file`, which `name` names, is outside of `folder` after links are followed.

    A file outside is never opened, so that the message is the same whether or not it exists.
    """
    lexical = Path(os.path.normpath(file))
    if not lexical.is_relative_to(folder) or not Path(os.path.realpath(lexical)).is_relative_to(folder):
        raise InvalidInput(
            f"`{name}` leads out of the project's folder",
            where=folder,
            remedy="keep the file in the project's folder, and name it by a path that has no link to elsewhere",
        )


def specs_place(
    project_dir: Path | str | None, stack: str, specs: Path | str | None
) -> tuple[Project, Path, Mapping[str, str]]:
    """Returns the project, the place of its specs (which may not exist), and the `deployer:…` settings of the stack."""
    project = read_project(_find_project(Path(project_dir) if project_dir is not None else None))
    settings = _settings(StackRef(project, stack))
    return project, Path(specs) if specs else project.dir / settings.get(SPECS_KEY, "specs"), settings


def _settings(stack: StackRef) -> dict[str, str]:
    """Returns the `deployer:…` settings of the stack's configuration over those of the project, as texts, without
    secrets."""
    declared = load_yaml(stack.config_file)[0].get("config") if stack.config_file.is_file() else None
    own = declared if isinstance(declared, dict) else {}
    plain = {
        str(key): text_of(value) for key, value in own.items() if value is not None and not isinstance(value, dict)
    }
    found = {**stack.project.config_defaults, **plain}
    return {key: value for key, value in found.items() if key.startswith(NAMESPACE)}


def _find_project(given: Path | None, *, confined: bool = False) -> Path:
    """Returns the folder of the nearest `Pulumi.yaml`. For a confined project, a link of that name counts too."""
    start = (given or Path.cwd()).resolve()
    for folder in (start,) if given else (start, *start.parents):
        if (folder / "Pulumi.yaml").is_file() or (confined and (folder / "Pulumi.yaml").is_symlink()):
            return folder
    raise InvalidInput("no Pulumi.yaml found here or above", where=start, remedy="give the project's folder: --project")
