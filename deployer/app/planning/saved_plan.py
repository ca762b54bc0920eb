"""`preview --out` and `up PLAN`: a plan in a file, and the facts that must still hold when it is applied."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from deployer import __version__
from deployer.app.planning.plan import Planned, plan_lake
from deployer.app.reporter import SILENT, Reporter
from deployer.app.workspace import Workspace, open_workspace
from deployer.errors import Corrupt, InvalidInput, Refused
from deployer.plan.graph.build import Spec
from deployer.plan.render.json_form import plan_as_json
from deployer.plan.saved.file import MovedFact, SavedPlan, facts, moved, read_plan, write_plan
from deployer.plan.saved.seal import PlanSigner, SavedAs, checking_key, expected_digest
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.platform.text import masking
from deployer.provider.resources.checks import check_table
from deployer.specs.loading.datasets import problems_of_dataset
from deployer.specs.model import Lake

PROGRAM = "program"  #: the address under which a plan pins the files of the Pulumi program and its configuration


def write_saved_plan(
    workspace: Workspace, planned: Planned, path: Path, signer: PlanSigner | None, secrets: masking.KnownSecrets
) -> SavedAs:
    """Writes the plan. Raises Refused for a plan that `up` would refuse or that contains one of the `secrets`,
    InvalidInput where the file cannot be written."""
    if planned.plan.refused or planned.plan.refused_removals:
        raise Refused(
            "the plan has changes that are refused, so it was not saved",
            where=path,
            remedy="undo them in the specs, or allow them",
        )
    if planned.plan.denied:
        raise Refused(
            "the plan breaks mandatory rules, so it was not saved",
            where=path,
            remedy="fix the specs, or approve the change in policies/",
        )
    saved = as_saved_plan(workspace, planned)
    if known := secrets.name_in(json.dumps(saved.changes)):
        # a mask would be applied literally, and reviewers get the file
        raise Refused(
            f"the plan holds the value of {known} in clear, so it was not saved",
            where=path,
            remedy="take the secret out of the specs: a lake stores its specs without encryption",
        )
    return write_plan(path, saved, signer)


def as_saved_plan(workspace: Workspace, planned: Planned) -> SavedPlan:
    """Returns the plan in its saved form: what it applies, and everything that it read."""
    specs = workspace.specs
    inside = specs.is_relative_to(workspace.dir)
    return SavedPlan(
        deployer=__version__,
        stack=workspace.owner,
        specs=specs.relative_to(workspace.dir).as_posix() if inside else str(specs),
        allow_destroy=tuple(sorted(planned.allow_destroy)),
        desired=planned.lake,
        read=_read(workspace, planned),
        changes=plan_as_json(planned.plan),
        targets=planned.plan.targets,
        delete_savepoints=workspace.delete_savepoints,
    )


def open_plan(path: Path, project: Path | None, stack: str | None, expect: str | None) -> tuple[Workspace, SavedPlan]:
    """Returns the saved plan and its workspace.

    Raises Refused for a plan of another project or stack, with another digest than `expect`, or without the signature
    that the environment requires. Raises Corrupt for a plan with an unexpected structure.
    """
    expected = None if expect is None else expected_digest(expect)
    saved = read_plan(path, deployer=__version__, expect=expected, key=checking_key())
    if (fault := next(_faults(saved.desired), None)) is not None:
        raise Corrupt(
            f"the plan has a table that no specs declare: {fault}", where=path, remedy="preview again with --out"
        )
    name, of_stack = saved.stack.rsplit("/", 1)
    if stack is not None and stack != of_stack:
        raise Refused(f"the plan is for stack {of_stack}, not {stack}", where=path, remedy="leave out --stack")
    # The program reads the specs of the plan. Their path is relative to the project, wherever that is checked out.
    workspace = open_workspace(project, of_stack, None)
    workspace = Workspace(
        workspace.project,
        of_stack,
        (workspace.dir / saved.specs).resolve(),
        workspace.values,
        delete_savepoints=saved.delete_savepoints,
    )
    if workspace.project.name != name:
        raise Refused(
            f"the plan is for project {name}, this is {workspace.project.name}",
            where=path,
            remedy="give the folder of its project: --project",
        )
    return workspace, saved


def _faults(lake: Lake) -> Iterator[str]:
    """Yields what the rules of specs refuse in a plan's tables and datasets. The file of a plan is not trusted."""
    seen = set[str]()
    for table in lake.tables:
        yield from (f"{table.address}: {found.reason}" for found in check_table(table))
        if table.address in seen:
            yield f"{table.address} occurs twice"
        seen.add(table.address)
    for dataset in lake.datasets:
        yield from (f"{dataset.address}: {found.what}" for found in problems_of_dataset(dataset))
        if dataset.address in seen:
            yield f"{dataset.address} occurs twice"
        seen.add(dataset.address)


def plan_again(
    workspace: Workspace, saved: SavedPlan, reporter: Reporter = SILENT, on_progress: OnProgress = no_progress
) -> tuple[Planned, list[MovedFact]]:
    """Returns what the saved plan would do now, and the facts that changed since it was made."""
    planned = plan_lake(
        workspace,
        saved.desired,
        saved.allow_destroy,
        chosen=saved.targets or (),
        reporter=reporter,
        on_progress=on_progress,
    )
    # datasets that were left since then stay for now
    removals = tuple(each for each in planned.plan.removals if each.name in saved.removals)
    planned = replace(planned, plan=replace(planned.plan, removals=removals))
    found = moved(saved.read, _read(workspace, planned), planned.live)
    if (
        not found
        and _reads_specs_itself(planned)
        and _applied(workspace.lake(), saved) != _applied(saved.desired, saved)
    ):
        raise Refused(
            "the specs are not those of the plan, and the Pulumi CLI applies the specs that it finds",
            where=workspace.specs,
            remedy="check out the commit that the plan was made from, or preview again with --out",
        )
    return planned, found


def _reads_specs_itself(planned: Planned) -> bool:
    """Returns whether the program reads the specs itself. With the embedded engine, the program gets the plan's
    lake."""
    from deployer.engine.embedded import EmbeddedEngine

    return not isinstance(planned.engine(), EmbeddedEngine)


def _applied(lake: Lake, saved: SavedPlan) -> list[Spec]:
    """Returns the declared specs that the plan applies: all, or its targets."""
    tables = sorted(lake.tables, key=lambda table: table.address)
    specs: tuple[Spec, ...] = (lake.instance, *tables, *sorted(lake.datasets, key=lambda dataset: dataset.address))
    return [each for each in specs if saved.targets is None or each.address in saved.targets.addresses]


def _read(workspace: Workspace, planned: Planned) -> dict[str, dict[str, Any]]:
    read = facts(planned.plan, planned.live, planned.lake, workspace.owner)
    folder = workspace.project.program_folder
    try:
        files = [*_program_files(folder), workspace.dir / "Pulumi.yaml", workspace.stack_ref.config_file]
        read[PROGRAM] = {
            (
                file.relative_to(workspace.dir) if file.is_relative_to(workspace.dir) else file
            ).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()[:16]
            for file in files
            if file.is_file()
        }
    except OSError as error:
        raise InvalidInput(f"the program cannot be read: {error}", where=folder, remedy="check its files") from error
    return read


def _program_files(folder: Path) -> list[Path]:
    """Returns every file beside the program that the program could import. Bytecode is excluded, because Python does
    not load it from there."""
    return sorted(
        file
        for file in folder.rglob("*")
        if not any(part == "__pycache__" or part.startswith(".") for part in file.relative_to(folder).parts)
    )
