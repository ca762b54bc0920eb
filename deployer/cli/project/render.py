"""`deployer render`: the specs of one stack, after includes, schemas, variables and overlays."""

from __future__ import annotations

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName


def render(
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Print what a stack declares as one YAML file, which declares the same lake."""
    from deployer.app.workspace import open_workspace
    from deployer.console.output import print_data, print_json

    workspace = open_workspace(project, stack, specs)
    lake = workspace.lake()
    if as_json:
        from deployer.specs.serialized.specs import instance_to_json, table_to_json

        tables = [table_to_json(table) for table in sorted(lake.tables, key=lambda table: table.full_name)]
        print_json({"stack": stack, "instance": instance_to_json(lake.instance), "tables": tables})
        return 0
    from deployer.specs.editing.write import lake_to_yaml

    print_data(lake_to_yaml(lake))
    return 0
