"""`preview --against REF`: specs compared with specs. Reads no live state and runs no program, so it fits pull
requests from forks."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from deployer.cli.addresses import check_addresses
from deployer.cli.git_files import extract_specs, resolve_ref
from deployer.cli.monthly import with_cost
from deployer.cli.policies import judged_at_ref
from deployer.cli.workspace import Workspace, open_workspace
from deployer.errors import InvalidSpecs, Position, Problem
from deployer.graph import build_graph
from deployer.live.model import LiveLake, LiveTable, TableStatistics
from deployer.plan import Plan, make_plan
from deployer.specs.json_form import table_from_json, table_to_json
from deployer.specs.model import Lake, TableSpec


def plan_against(workspace: Workspace, ref: str, specs: Path | None, allow_destroy: Collection[str]) -> Plan:
    """What the specs here change of those at `ref`, of the same stack; sizes are unknown.

    `specs` is the command's `--specs`: without it, each side has the specs that its own configuration names. Where the
    project was not there at `ref`, everything is new. Policies are those at `ref`, so that a branch cannot weaken what
    it is judged by; those here are not even run. Raises InvalidSpecs with `REF:file` when they are broken there.
    """
    lake = workspace.lake()
    commit = resolve_ref(workspace.dir, ref)
    with tempfile.TemporaryDirectory(prefix="deployer-") as folder:
        project = Path(folder).resolve()
        extract_specs(workspace.dir, commit, project)
        before = _lake_in(project, workspace, ref, specs)
        live = _as_live(before, workspace.owner) if before else LiveLake(None)
        plan = make_plan(
            lake.instance.name, build_graph(lake), live, owner=workspace.owner, allow_destroy=allow_destroy
        )
        check_addresses("--allow-destroy", allow_destroy, plan)
        return with_cost(workspace, judged_at_ref(workspace, plan, lake, live, project, ref), lake, live)


def _lake_in(project: Path, workspace: Workspace, ref: str, specs: Path | None) -> Lake | None:
    """The lake of the project's files as they were at `ref`; None where it was not there."""
    if not (project / "Pulumi.yaml").is_file():
        return None
    given = None
    if specs is not None:
        relative = workspace.specs.relative_to(workspace.dir) if workspace.specs.is_relative_to(workspace.dir) else None
        given = project / relative if relative is not None else workspace.specs
        if not given.exists():
            return None
    try:
        return open_workspace(project, workspace.stack, given).lake()
    except InvalidSpecs as error:
        raise InvalidSpecs([_at_ref(problem, ref) for problem in error.problems]) from None


def _at_ref(problem: Problem, ref: str) -> Problem:
    at = problem.at
    remedy = f"these are the specs at {ref}: compare with a ref where they are right"
    return replace(problem, at=Position(f"{ref}:{at.file}", at.line, at.column), remedy=problem.remedy or remedy)


def _as_live(lake: Lake, owner: str) -> LiveLake:
    """The lake as if it had been applied."""
    tables = (_applied(table) for table in lake.tables)
    unknown = TableStatistics(known=False)
    return LiveLake(lake.instance, {table.address: LiveTable(table, "", "", owner, unknown) for table in tables})


def _applied(table: TableSpec) -> TableSpec:
    """A table without the names that it and its columns had before: live state remembers none."""
    form = table_to_json(table)
    return table_from_json(
        {key: value for key, value in form.items() if key not in ("renamed_from", "columns")}
        | {"columns": [_without_names_before(column) for column in form["columns"]]}
    )


def _without_names_before(form: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in form.items() if key not in ("renamed_from", "using")}
    if "fields" in kept:
        kept["fields"] = {name: _without_names_before(field) for name, field in kept["fields"].items()}
    return kept
