"""Writes a new project into an empty folder."""

from __future__ import annotations

import os
import re
import sys
from importlib.resources import files
from pathlib import Path

from deployer import __version__
from deployer.errors import InvalidInput, Refused

#: Where each file of the package goes.
FILES = {
    "Pulumi.yaml.txt": "Pulumi.yaml",
    "README.md.txt": "README.md",
    "policies/rules.yaml.txt": "policies/rules.yaml",
    "gitignore.txt": ".gitignore",
    "requirements.txt.txt": "requirements.txt",
    "specs/instance.yaml.txt": "specs/instance.yaml",
    "specs/trips.yaml.txt": "specs/trips.yaml",
    "stacks/aws.py.txt": "stacks/aws.py",
    "stacks/aws_clusters.py.txt": "stacks/aws_clusters.py",
    "stacks/aws_alarms.py.txt": "stacks/aws_alarms.py",
    "stacks/aws_bucket.py.txt": "stacks/aws_bucket.py",
    "stacks/aws_roles.py.txt": "stacks/aws_roles.py",
    "stacks/aws_jobs.py.txt": "stacks/aws_jobs.py",
    "stacks/aws_services.py.txt": "stacks/aws_services.py",
    "stacks/aws_emr.py.txt": "stacks/aws_emr.py",
    "stacks/aws_key.py.txt": "stacks/aws_key.py",
    "stacks/local.py.txt": "stacks/local.py",
    "stacks/main.py.txt": "stacks/__main__.py",
    "workflows/deploy.yaml.txt": ".github/workflows/deploy.yaml",
    "workflows/preview.yaml.txt": ".github/workflows/preview.yaml",
}
#: The files of the program in its folder, and of the package. They hold nothing of a single project.
PROGRAM = {
    "__main__.py": "stacks/main.py.txt",
    "aws.py": "stacks/aws.py.txt",
    "aws_clusters.py": "stacks/aws_clusters.py.txt",
    "aws_alarms.py": "stacks/aws_alarms.py.txt",
    "aws_bucket.py": "stacks/aws_bucket.py.txt",
    "aws_roles.py": "stacks/aws_roles.py.txt",
    "aws_jobs.py": "stacks/aws_jobs.py.txt",
    "aws_services.py": "stacks/aws_services.py.txt",
    "aws_emr.py": "stacks/aws_emr.py.txt",
    "aws_key.py": "stacks/aws_key.py.txt",
    "local.py": "stacks/local.py.txt",
}
_IGNORED = (".git",)


def write_project(folder: Path, name: str | None = None) -> list[Path]:
    """The files written. `name` is that of the project; else the folder's.

    Refused for a folder that holds anything but .git; InvalidInput for a name that no project can have.
    """
    if folder.exists() and not folder.is_dir():
        raise Refused("there is a file of that name", where=folder, remedy="name another folder")
    if folder.exists() and (found := sorted(path.name for path in folder.iterdir() if path.name not in _IGNORED)):
        raise Refused(f"the folder is not empty: {', '.join(found[:3])}", where=folder, remedy="name a new one")
    name = _checked(name) if name else _name_of(folder.resolve().name)
    values = {"NAME": name, "PLUGINS": _plugins(folder.resolve()), "VERSION": __version__}
    written = []
    for source, target in FILES.items():
        text = packaged(source).decode()
        for key, value in values.items():
            text = text.replace(f"@{key}@", value)
        path = folder / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def packaged(source: str) -> bytes:
    """A file of the package, as it is before a project's values are put in."""
    return files("deployer.starter").joinpath("files", *source.split("/")).read_bytes()


def _plugins(folder: Path) -> str:
    """The folder of this environment's commands, where the provider's plugin is; relative when it is in the project."""
    commands = Path(sys.executable).absolute().parent
    return os.path.relpath(commands, folder) if commands.is_relative_to(folder) else _quoted(str(commands))


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_./-]+", text) else "'" + text.replace("'", "''") + "'"


def _name_of(folder: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", folder).strip("-")
    return name if re.match(r"[A-Za-z_]", name) else f"lake-{name}".strip("-")


def _checked(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,99}", name):
        raise InvalidInput(f"{name!r} is no name of a project", remedy="use letters, digits, _ and -")
    return name
