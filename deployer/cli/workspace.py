"""What a command works on: the project found from where the user stands, the stack, and the specs it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from deployer.engine.config import text_of
from deployer.engine.project import Project, StackRef, load_yaml, read_project
from deployer.errors import InvalidInput
from deployer.specs import load_lake
from deployer.specs.model import Lake
from deployer.specs.root import resolve_root

NAMESPACE = "deployer:"
SPECS_KEY = NAMESPACE + "specs"


@dataclass(frozen=True, slots=True)
class Workspace:
    """A project and stack; `specs` is the file or folder of specs, `values` what the stack sets variables to."""

    project: Project
    stack: str
    specs: Path
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def dir(self) -> Path:
        return self.project.dir

    @property
    def owner(self) -> str:
        """Who manages what this stack applies, as the state store records it."""
        return f"{self.project.name}/{self.stack}"

    @property
    def stack_ref(self) -> StackRef:
        return StackRef(self.project, self.stack)

    def lake(self) -> Lake:
        """The lake that this stack declares; InvalidSpecs carries every problem."""
        return load_lake(self.dir, self.specs, self.stack, self.values)

    def root(self, lake: Lake) -> str:
        """The instance's root as an absolute path or URI."""
        return resolve_root(self.dir, lake.instance.root)


def open_workspace(project_dir: Path | None, stack: str, specs: Path | None) -> Workspace:
    """The workspace of a command's `--project`, `--stack` and `--specs`."""
    project, specs, settings = specs_place(project_dir, stack, specs)
    if not specs.exists():
        raise InvalidInput(
            "no such file or folder of specs",
            where=specs,
            remedy=f"give --specs, or set {SPECS_KEY} in Pulumi.{stack}.yaml or Pulumi.yaml",
        )
    values = {key.removeprefix(NAMESPACE): text for key, text in settings.items() if key != SPECS_KEY}
    return Workspace(project, stack, specs.resolve(), values)


def specs_place(project_dir: Path | None, stack: str, specs: Path | None) -> tuple[Project, Path, Mapping[str, str]]:
    """The project, where its specs are or would be, and the `deployer:…` settings of the stack."""
    project = read_project(_find_project(project_dir))
    settings = _settings(StackRef(project, stack))
    return project, specs or project.dir / settings.get(SPECS_KEY, "specs"), settings


def _settings(stack: StackRef) -> dict[str, str]:
    """`deployer:…` of the stack's configuration over that of the project, as texts; secrets are none of them."""
    declared = load_yaml(stack.config_file)[0].get("config") if stack.config_file.is_file() else None
    own = declared if isinstance(declared, dict) else {}
    plain = {
        str(key): text_of(value) for key, value in own.items() if value is not None and not isinstance(value, dict)
    }
    found = {**stack.project.config_defaults, **plain}
    return {key: value for key, value in found.items() if key.startswith(NAMESPACE)}


def _find_project(given: Path | None) -> Path:
    start = (given or Path.cwd()).resolve()
    for folder in (start,) if given else (start, *start.parents):
        if (folder / "Pulumi.yaml").is_file():
            return folder
    raise InvalidInput("no Pulumi.yaml found here or above", where=start, remedy="give the project's folder: --project")
