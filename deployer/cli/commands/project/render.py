"""`deployer render`: prints the specs of one stack, after includes, schemas, variables and overlays."""

from __future__ import annotations

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName


def render(
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Print what a stack declares as one YAML file, which declares the same lake."""
    from deployer import app
    from deployer.cli.console.output import print_data, print_json

    found = app.render(project, stack, specs)
    print_json(found.to_json()) if as_json else print_data(found.to_yaml())
    return 0
