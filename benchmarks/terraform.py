"""The peer: Terraform over as many `terraform_data` resources, which are built in and have nothing behind them.

So its figures are those of its engine alone. Each resource is a block of its own, as a generator would write them.
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
    """Let the user say which Terraform is measured."""
    parser.add_argument("--terraform", metavar="PATH", help="executable of the peer (default: the one on PATH)")


def find(given: str | None) -> str | None:
    """The executable to measure; None, after saying so, when there is none."""
    name = given or "terraform"
    found = shutil.which(name)
    if found is None:
        print(NOT_MEASURED.format(name=name))
    return found and str(Path(found).resolve())


def version(executable: str) -> str:
    """What it calls itself, such as `Terraform v1.11.4`."""
    return run(executable, "version", cwd=Path.cwd()).output.splitlines()[0]


def make_configuration(executable: str, folder: Path, resources: int) -> Path:
    """A configuration of so many resources in a new `folder`, initialised; nothing is applied yet."""
    folder.mkdir()
    blocks = (
        f'resource "terraform_data" "t{number}" {{\n  input = {{\n    name = "table_{number}"\n  }}\n}}\n'
        for number in range(resources)
    )
    (folder / "main.tf").write_text("".join(blocks), encoding="utf-8")
    run(executable, "init", "-no-color", "-input=false", cwd=folder)
    return folder


def apply(executable: str, folder: Path) -> Ran:
    """Plan and apply, as `deployer up --yes` does."""
    return run(executable, "apply", "-auto-approve", "-no-color", "-input=false", cwd=folder)


def plan(executable: str, folder: Path) -> Ran:
    """A plan of what is applied already: `-detailed-exitcode` makes any change fail the run."""
    return run(executable, "plan", "-detailed-exitcode", "-no-color", "-input=false", cwd=folder)


def validate(executable: str, folder: Path) -> Ran:
    """Check the configuration."""
    return run(executable, "validate", "-no-color", cwd=folder)
