"""What a command works on: the project found from where the user stands, the stack, and the specs it names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from deployer.engine.project import Project, StackRef, load_yaml, read_project
from deployer.errors import InvalidInput
from deployer.specs import load_lake
from deployer.specs.model import Lake
from deployer.specs.root import resolve_root

SPECS_KEY = "deployer:specs"


@dataclass(frozen=True, slots=True)
class Workspace:
    """A project and stack; `specs` is the file or folder of specs."""

    project: Project
    stack: str
    specs: Path

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
        """The declared lake; InvalidSpecs carries every problem."""
        return load_lake(self.dir, self.specs)

    def root(self, lake: Lake) -> str:
        """The instance's root as an absolute path or URI."""
        return resolve_root(self.dir, lake.instance.root)


def open_workspace(project_dir: Path | None, stack: str, specs: Path | None) -> Workspace:
    """The workspace of a command's `--project`, `--stack` and `--specs`."""
    project = read_project(_find_project(project_dir))
    if specs is None:
        specs = project.dir / _configured_specs(StackRef(project, stack))
    if not specs.exists():
        raise InvalidInput(
            "no such file or folder of specs",
            where=specs,
            remedy=f"give --specs, or set {SPECS_KEY} in Pulumi.{stack}.yaml or Pulumi.yaml",
        )
    return Workspace(project, stack, specs.resolve())


def _configured_specs(stack: StackRef) -> str:
    declared = load_yaml(stack.config_file)[0].get("config") if stack.config_file.is_file() else None
    own = declared.get(SPECS_KEY) if isinstance(declared, dict) else None
    return str(own or stack.project.config_defaults.get(SPECS_KEY) or "specs")


def _find_project(given: Path | None) -> Path:
    start = (given or Path.cwd()).resolve()
    for folder in (start,) if given else (start, *start.parents):
        if (folder / "Pulumi.yaml").is_file():
            return folder
    raise InvalidInput("no Pulumi.yaml found here or above", where=start, remedy="give the project's folder: --project")
