"""`preview --against REF`: compares the specs with those at a Git ref. It reads no live state and runs no program, so
it is safe for pull requests from forks."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deployer.app.planning.addresses import check_addresses
from deployer.app.planning.cost_estimate import with_cost
from deployer.app.planning.policies import judged_at_ref
from deployer.app.reporter import Reporter
from deployer.app.spec_diff.git_files import extract_specs, left_out, projects_at
from deployer.app.spec_diff.git_repository import Repository, find_repository
from deployer.app.workspace import Workspace, open_workspace
from deployer.errors import InvalidInput, InvalidSpecs, Position, Problem
from deployer.live.model import LiveDataset, LiveLake, LiveTable, TableStatistics
from deployer.plan import Plan, make_plan
from deployer.plan.graph import build_graph
from deployer.plan.targeting.targets import needs_instance, resolve_targets, restricted
from deployer.platform.files.temporary import temporary_folder
from deployer.specs.model import Lake, TableSpec
from deployer.specs.serialized.specs import table_from_json, table_to_json


@dataclass(frozen=True, slots=True)
class Comparison:
    """The request of a comparison: the values of the options `--project`, `--stack`, `--specs`, `--against` and
    `--target`."""

    project: Path | None
    stack: str
    specs: Path | None
    ref: str
    targets: tuple[str, ...] = ()


def plan_against(comparison: Comparison, allow_destroy: Collection[str], reporter: Reporter) -> tuple[Workspace, Plan]:
    """Returns the changes from the specs at the ref to those in the work tree, of the same stack; sizes are unknown.

    Without `--specs`, each side uses the specs that its own configuration names. Where the project did not exist at the
    ref, everything is new. Policies are those at the ref, so that a branch cannot weaken the rules that judge it; those
    in the work tree do not run. The branch's files are not trusted: neither they nor the files that they name may be
    outside of the project, and the project at the ref is the one at the user's location, whatever the branch has put
    there. Raises InvalidSpecs with positions `REF:file` when the specs at the ref are not valid.
    """
    workspace = open_workspace(comparison.project, comparison.stack, comparison.specs, confined=True)
    repository = find_repository(workspace.dir)
    commit = repository.resolve(comparison.ref)
    specs = _specs_inside(workspace, repository, comparison.specs) if comparison.specs is not None else None
    _require_same_project(repository, commit, workspace.dir, comparison)
    lake = workspace.lake()
    with temporary_folder("against") as folder:
        project = folder.resolve() / "project"
        project.mkdir()
        extract_specs(repository, commit, workspace.dir, project)
        before = _lake_before(repository, commit, project, workspace, comparison.ref, specs)
        live = _as_live(before, workspace.owner) if before else LiveLake(None)
        plan = make_plan(
            lake.instance.name, build_graph(lake), live, owner=workspace.owner, allow_destroy=allow_destroy
        )
        if comparison.targets:
            plan = _of_targets(plan, comparison.targets, lake, live)
        check_addresses("--allow-destroy", allow_destroy, plan)
        judged = judged_at_ref(workspace, plan, lake, live, project, comparison.ref, reporter)
        return workspace, with_cost(workspace, judged, lake, live)


def _of_targets(plan: Plan, given: Sequence[str], lake: Lake, live: LiveLake) -> Plan:
    """Returns the plan with only the targets, and the number of other resources that differ: both sides are read
    whole."""
    before = {address: address for address in live.tables}
    targets = resolve_targets(given, lake, before, before)
    instance = lake.instance.address
    taking_part = targets.addresses | {instance}
    changes = (change.change for each in plan.resources if each.address in taking_part for change in each.changes)
    if needs_instance(changes, restricted(lake, targets), live):
        targets = targets.needing(instance)
    mine = tuple(each for each in plan.resources if each.address in targets.addresses)
    differ = sum(bool(each.changes) for each in plan.resources) - sum(bool(each.changes) for each in mine)
    return replace(plan, resources=mine, targets=replace(targets, differ=differ))


def _specs_inside(workspace: Workspace, repository: Repository, specs: Path) -> Path:
    """Returns the path of `--specs`: relative to the project if it is inside, otherwise absolute and outside of the
    repository.

    The option names the same place on both sides; a link that the branch put there is refused.
    """
    named = Path(os.path.normpath(Path.cwd() / specs))
    above = next((place for place in (named, *named.parents) if place.resolve() == workspace.dir), None)
    if above is not None and workspace.dir / named.relative_to(above) == workspace.specs:
        return named.relative_to(above)
    if above is not None:
        raise _linked(specs)
    if workspace.specs.is_relative_to(repository.top):
        raise InvalidInput(
            "--against compares what the project's folder holds, and these specs are outside of it",
            where=specs,
            remedy="give --project the folder that holds both Pulumi.yaml and the specs",
        )
    return workspace.specs


def _require_same_project(repository: Repository, commit: str, project: Path, comparison: Comparison) -> None:
    """Raises InvalidInput when files of the branch decide which project is compared.

    A link instead of the project's folder, or another `Pulumi.yaml` nearer to the user's location, would make deployer
    compare another project, and would hide everything that the branch changes in this one.
    """
    if comparison.project is not None:
        named = Path(os.path.normpath(Path.cwd() / comparison.project))
        for place in (named, *named.parents):
            if place.is_symlink() and place.parent.resolve().is_relative_to(repository.top):
                raise _linked(place)
    before = projects_at(repository, commit)
    for folder in before:
        if os.path.realpath(folder) != str(folder):
            raise _linked(folder)
    start = project if comparison.project is not None else Path.cwd()
    above = (start,) if comparison.project is not None else (start, *start.parents)
    found = next((folder for folder in above if folder in before), None)
    gone = [folder for folder in before if not (folder / "Pulumi.yaml").is_file()]
    if found is None and gone:
        raise InvalidInput(
            f"{comparison.ref} has no project here, and this branch removes or moves the project {gone[0]}",
            where=project,
            remedy="move a project in a change of its own, which is compared by hand",
        )
    if found is not None and found != project:
        raise InvalidInput(
            f"the project here is {found} at {comparison.ref}, and {project} in this branch",
            where=start,
            remedy="name the project: --project FOLDER",
        )


def _linked(place: Path) -> InvalidInput:
    return InvalidInput(
        "is a link in this branch, and --against does not follow links to a project or its specs",
        where=place,
        remedy="replace the link by the folder itself",
    )


def _lake_before(
    repository: Repository, commit: str, project: Path, workspace: Workspace, ref: str, specs: Path | None
) -> Lake | None:
    """Returns the lake of the project's files at `ref`; None where the project did not exist there."""
    if not (project / "Pulumi.yaml").is_file():
        return None
    if specs is not None and not (project / specs).exists():
        for path in left_out(repository, commit, workspace.dir):
            if specs.is_relative_to(path):
                raise InvalidInput(
                    "is a link or a submodule at that commit, and --against does not follow links or submodules",
                    where=path,
                    remedy="commit the files themselves",
                )
        return None
    try:
        given = None if specs is None else project / specs
        return open_workspace(project, workspace.stack, given, confined=True).lake()
    except InvalidSpecs as error:
        raise InvalidSpecs([_at_ref(problem, ref) for problem in error.problems]) from None


def _at_ref(problem: Problem, ref: str) -> Problem:
    at = problem.at
    remedy = f"these are the specs at {ref}: compare with a ref where they are right"
    return replace(problem, at=Position(f"{ref}:{at.file}", at.line, at.column), remedy=problem.remedy or remedy)


def _as_live(lake: Lake, owner: str) -> LiveLake:
    """Returns the declared lake in the form of live state, as if it had been applied."""
    tables = (_applied(table) for table in lake.tables)
    unknown = TableStatistics(known=False)
    datasets = {each.address: LiveDataset(each, "", owner) for each in lake.datasets}
    found = {table.address: LiveTable(table, "", "", owner, unknown) for table in tables}
    return LiveLake(lake.instance, found, datasets=datasets)


def _applied(table: TableSpec) -> TableSpec:
    """Returns a table without the former names of itself and its columns, because live state has none."""
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
