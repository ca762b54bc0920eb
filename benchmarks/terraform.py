"""Runs the peer Terraform with as many `terraform_data` resources, which are built in and manage nothing.

Therefore its figures are those of its engine alone. Each resource has its own block, as a generator would write it.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from benchmarks.processes import Ran, run

NOT_MEASURED = """\
Terraform was not measured: no {name} here. It is one executable, from
https://developer.hashicorp.com/terraform/install: put it on PATH or give it with --terraform PATH."""


def add_option(parser: argparse.ArgumentParser) -> None:
    """Adds the option that names the executable of Terraform."""
    parser.add_argument("--terraform", metavar="PATH", help="executable of the peer (default: the one on PATH)")


def find(given: str | None) -> str | None:
    """Returns the executable to measure; prints a message and returns None when there is none."""
    name = given or "terraform"
    found = shutil.which(name)
    if found is None:
        print(NOT_MEASURED.format(name=name))
    return found and str(Path(found).resolve())


def version(executable: str) -> str:
    """Returns the name and version that the executable prints, such as `Terraform v1.11.4`."""
    return run(executable, "version", cwd=Path.cwd()).output.splitlines()[0]


def make_configuration(executable: str, folder: Path, resources: int) -> Path:
    """Makes and initializes a configuration of `resources` resources in the new `folder`; it is not applied yet."""
    folder.mkdir()
    blocks = (
        f'resource "terraform_data" "t{number}" {{\n  input = {{\n    name = "table_{number}"\n  }}\n}}\n'
        for number in range(resources)
    )
    (folder / "main.tf").write_text("".join(blocks), encoding="utf-8")
    run(executable, "init", "-no-color", "-input=false", cwd=folder)
    return folder


def apply(executable: str, folder: Path) -> Ran:
    """Runs a plan and an apply, as `deployer up --yes` does."""
    return run(executable, "apply", "-auto-approve", "-no-color", "-input=false", cwd=folder)


def plan(executable: str, folder: Path) -> Ran:
    """Runs a plan of an applied configuration. With `-detailed-exitcode`, the run fails if the plan has changes."""
    return run(executable, "plan", "-detailed-exitcode", "-no-color", "-input=false", cwd=folder)


def validate(executable: str, folder: Path) -> Ran:
    """Checks the configuration."""
    return run(executable, "validate", "-no-color", cwd=folder)
