"""`deployer import`: takes tables that exist already under management, and writes their specs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.cli.workspace import Workspace
    from deployer.errors import DeployerError
    from deployer.specs.model import Lake, TableSpec
    from deployer.tables.import_adopt import Adoptable

_KEYS_LATER = "declare `row_keys` in the spec, and `deployer up` rewrites the table in their order"


def import_table(
    address: Annotated[
        str | None, typer.Argument(help="The table, such as table/nyc.flights.", show_default=False)
    ] = None,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[URI]",
            help="A Lance dataset, or files to copy from; else ROOT/NAME.lance or ROOT/DATABASE/NAME.lance.",
            show_default=False,
        ),
    ] = None,
    all_of: Annotated[
        str | None,
        typer.Option("--all", metavar="ROOT", help="Import every ROOT/*.lance, where they are.", show_default=False),
    ] = None,
    database: Annotated[str, typer.Option(help="With --all: the tables' database.")] = "main",
    copy: Annotated[bool, typer.Option("--copy", help="Copy the rows even from below the root.")] = False,
    row_keys: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Of a copy: its row keys, such as id,at.", show_default=False)
    ] = None,
    sort_keys: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Of a copy: its sort keys.", show_default=False)
    ] = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Take existing tables under management and write their specs; a preview is clean afterwards.

    A Lance dataset below the instance's root stays where it is. Anything else is copied into a new table.
    The same command finishes an import that was cut off.
    """
    from deployer.cli.output import note, print_json, stdout
    from deployer.errors import InvalidInput

    if (address is None) == (all_of is None):
        raise InvalidInput("give an ADDRESS, or --all ROOT", remedy="such as table/nyc.flights data/flights.parquet")
    if all_of is not None and (row_keys or sort_keys):
        raise InvalidInput("--all leaves rows where they are, and so in their order", remedy=_KEYS_LATER)
    keys = (_columns(row_keys), _columns(sort_keys))
    if all_of is not None:
        done, failed = _import_all(project, stack, specs, all_of, database)
    else:
        assert address is not None  # noqa: S101
        done, failed = [_import_one(project, stack, specs, address, source, copy, keys)], {}
    if as_json:
        print_json({"imported": done, "failed": failed})
    else:
        for each in done:
            how = f"{each['rows']:,} rows copied" if each["copied"] else f"{each['rows']:,} rows where they are"
            stdout().print(f"imported {each['address']}: {how}, declared in {each['file']}", soft_wrap=True)
        if any(not each["row_keys"] for each in done):
            note(f"without row keys, rows lie in no order: {_KEYS_LATER}")
        for name, why in failed.items():
            note(f"left out {name}: {why}")
    return 1 if failed else 0


def _columns(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()


def _import_one(
    project: Path | None,
    stack: str,
    specs: Path | None,
    address: str,
    source: str | None,
    copy: bool,
    keys: tuple[tuple[str, ...], tuple[str, ...]],
) -> dict[str, Any]:
    from deployer.cli.infer import split_name
    from deployer.cli.planning import held
    from deployer.cli.workspace import open_workspace
    from deployer.errors import InvalidInput
    from deployer.tables.import_adopt import adoptable, is_dataset, location_under

    database, name = split_name(address.removeprefix("table/"))
    workspace = open_workspace(project, stack, specs)
    lake = workspace.lake()
    root = workspace.root(lake)
    declared = lake.table(f"{database}.{name}")
    if declared and source is None and not any(place.is_dir() for place in _places(root, database, name)):
        raise _declared_already(declared)
    path = _source(root, database, name, source)
    with held(workspace, lake):
        if not is_dataset(path) or copy or not location_under(root, path):
            return _copy(workspace, lake, database, name, str(path), keys)
        if any(keys):
            remedy = f"add --copy, or {_KEYS_LATER}"
            raise InvalidInput("rows that stay where they are stay in their order", where=path, remedy=remedy)
        return _adopt_one(workspace, lake, adoptable(root, path, database, name))


def _adopt_one(workspace: Workspace, lake: Lake, found: Adoptable) -> dict[str, Any]:
    from deployer.cli.planning import read_live
    from deployer.plan.diff import diff

    spec = found.spec
    declared = lake.table(spec.full_name)
    if declared:
        live = read_live(workspace.root(lake)).tables.get(spec.address)
        applied = _is_applied(workspace, lake, spec)
        if live and live.location == found.location and applied:
            return _reported(workspace, [spec], copied=False)[0]  # all was done before
        if live.location != found.location if live else applied or diff(spec, declared):
            raise _declared_already(spec)
    return _adopt(workspace, lake, [found])[0]


def _is_applied(workspace: Workspace, lake: Lake, spec: TableSpec) -> bool:
    from deployer.cli.planning import engine_for
    from deployer.cli.stack_state import applied_resources

    return spec.address in applied_resources(workspace, engine_for(workspace, lake))


def _declared_already(spec: TableSpec) -> DeployerError:
    from deployer.errors import Conflict

    remedy = "choose another name; `deployer up` creates what is declared, and `deployer ingest` loads it"
    return Conflict("the specs declare the table already", where=spec.address, remedy=remedy)


def _source(root: str, database: str, name: str, source: str | None) -> Path:
    from deployer.errors import NotFound, Refused

    if "://" in root or (source and "://" in source):
        raise Refused("this release imports from a local disk only", remedy="copy the files here first")
    if source is not None:
        return Path(source)
    places = _places(root, database, name)
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        raise NotFound(
            f"there is neither {places[0]} nor {places[1]}", remedy="say where it is, as the second argument"
        )
    return found


def _places(root: str, database: str, name: str) -> list[Path]:
    return [Path(root) / f"{name}.lance", Path(root) / database / f"{name}.lance"]


def _import_all(
    project: Path | None, stack: str, specs: Path | None, all_of: str, database: str
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    from deployer.cli.infer import split_name
    from deployer.cli.planning import held
    from deployer.errors import NotFound, Refused
    from deployer.tables.import_adopt import plain_datasets

    folder = Path(all_of).resolve()
    datasets = list(plain_datasets(str(folder)))
    if not datasets:
        raise NotFound("there is no *.lance dataset", where=all_of, remedy="give the folder of a LanceDB database")
    split_name(f"{database}.x")
    workspace, lake = _declared(project, stack, specs, folder)
    root = workspace.root(lake)
    if Path(root).resolve() != folder:
        raise Refused(
            f"the instance's root is {lake.instance.root}", where=all_of, remedy="import its tables one by one, by copy"
        )
    with held(workspace, lake):
        return _adopt_all(workspace, lake, datasets, database)


def _adopt_all(
    workspace: Workspace, lake: Lake, datasets: list[Path], database: str
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    from deployer.cli.import_specs import check_specs
    from deployer.cli.infer import table_name
    from deployer.cli.planning import engine_for, read_live
    from deployer.cli.stack_state import applied_resources
    from deployer.errors import DeployerError, Refused
    from deployer.plan.diff import diff
    from deployer.tables.import_adopt import adoptable, location_under

    root = workspace.root(lake)
    live = {table.location: table.spec.full_name for table in read_live(root).tables.values()}
    applied = applied_resources(workspace, engine_for(workspace, lake))
    found: list[Adoptable] = []
    failed: dict[str, str] = {}
    for path in datasets:
        name = live.get(location_under(root, path) or "") or f"{database}.{table_name(path.name)}"
        declared = lake.table(name)
        if declared and declared.address in applied and location_under(root, path) in live:
            continue  # it is imported; others were cut off half-way
        try:
            one = adoptable(root, path, *name.split("."))
            if (declared and diff(one.spec, declared)) or any(name == other.spec.full_name for other in found):
                raise Refused(
                    f"there is a table {name} already",
                    remedy=f"`deployer import table/{database}.OTHER {shlex.quote(str(path))}`",
                )
            check_specs(workspace, lake, [] if declared else [one.spec])
            found.append(one)
        except DeployerError as error:
            failed[path.name] = str(error)
    return _adopt(workspace, lake, found) if found else [], failed


def _declared(project: Path | None, stack: str, specs: Path | None, root: Path) -> tuple[Workspace, Lake]:
    """The workspace and its lake; where there are no specs yet, an Instance with that root is declared first."""
    import re

    from deployer.cli.workspace import open_workspace, specs_place
    from deployer.specs.model import InstanceSpec
    from deployer.specs.write import instance_to_yaml

    found, folder, _ = specs_place(project, stack, specs)
    if not folder.exists() or (folder.is_dir() and not any(folder.glob("*.y*ml"))):
        workspace_dir = folder.parent if folder.suffix else folder
        workspace_dir.mkdir(parents=True, exist_ok=True)
        home = folder if folder.suffix else folder / "instance.yaml"
        shown = root.relative_to(found.dir).as_posix() if root.is_relative_to(found.dir) else str(root)
        safe = re.sub(r"[^A-Za-z0-9_-]+", "-", found.name).strip("-") or "lake"
        safe = safe if re.match(r"[A-Za-z_]", safe) else f"lake-{safe}"
        home.write_text(instance_to_yaml(InstanceSpec(safe, shown)), encoding="utf-8")
    workspace = open_workspace(project, stack, specs)
    return workspace, workspace.lake()


def _adopt(workspace: Workspace, lake: Lake, found: list[Adoptable]) -> list[dict[str, Any]]:
    """Every step can be repeated: what is registered is protected, and declared once it is whole."""
    from contextlib import closing

    from deployer.cli.import_specs import check_specs, write_specs
    from deployer.cli.stack_state import apply_only
    from deployer.state import open_store
    from deployer.state.failpoints import reached
    from deployer.tables.import_adopt import adopt
    from deployer.tables.instance import create_instance

    root = workspace.root(lake)
    new = [each.spec for each in found if not lake.table(each.spec.full_name)]
    check_specs(workspace, lake, new)
    create_instance(root, lake.instance, workspace.owner)
    reached("cli.import.instance")
    with closing(open_store(root)) as store:
        for each in found:
            adopt(store, root, each, workspace.owner)
            reached("cli.import.adopted")
    write_specs(workspace, new)
    tables = [each.spec for each in found]
    apply_only(workspace, [table.address for table in tables])  # and nothing else that the specs may have changed
    reached("cli.import.applied")
    return _reported(workspace, tables, copied=False)


def _copy(
    workspace: Workspace,
    lake: Lake,
    database: str,
    name: str,
    source: str,
    keys: tuple[tuple[str, ...], tuple[str, ...]],
) -> dict[str, Any]:
    from dataclasses import replace
    from functools import partial

    from deployer.cli.import_specs import check_specs, write_specs
    from deployer.cli.lake_data import instance_of
    from deployer.cli.planning import read_live
    from deployer.cli.stack_state import apply_only
    from deployer.compute.clusters import local_cluster
    from deployer.errors import InvalidInput
    from deployer.plan.diff import diff
    from deployer.specs.model import TableSpec
    from deployer.state.failpoints import reached
    from deployer.tables.import_infer import infer
    from deployer.tables.ingest.job import IngestRequest
    from deployer.tables.ingest.sources import ReadOptions
    from spark_jobs.ingest import run

    row_keys, sort_keys = keys
    found = infer([source], None, ReadOptions())
    for each in found.columns:
        if each.name in row_keys and each.nullable and found.complete:
            raise InvalidInput(
                f"column {each.name} has nulls, and row keys are never null", where=source, remedy="choose other keys"
            )
    columns = tuple(replace(each, nullable=False) if each.name in row_keys else each for each in found.columns)
    spec = TableSpec(database, name, columns, row_keys, sort_keys)
    declared = lake.table(spec.full_name)
    job_id = f"import-{spec.full_name}"  # the same one when it is run again: its rows are added once
    if declared is None:
        check_specs(workspace, lake, [spec])
        write_specs(workspace, [spec])
    else:
        live = read_live(workspace.root(lake)).tables.get(spec.address)
        loaded = live is not None and _has_job(workspace.root(lake), live.table_id, job_id)
        if diff(spec, declared) or (live and live.statistics.rows and not loaded):
            raise _declared_already(spec)
        if loaded and _is_applied(workspace, lake, spec):
            return _reported(workspace, [spec], copied=True)[0]  # all was done before
    apply_only(workspace, [spec.address])
    reached("cli.import.applied")
    root, instance = instance_of(workspace.dir, workspace.stack, workspace.specs)
    cluster = partial(local_cluster, instance.clusters, None, instance.address)
    run(root, spec.full_name, IngestRequest((source,), job_id=job_id), cluster)
    reached("cli.import.loaded")
    return _reported(workspace, [spec], copied=True)[0]


def _has_job(root: str, table_id: str, job_id: str) -> bool:
    from contextlib import closing

    from deployer.state import open_store

    with closing(open_store(root)) as store:
        return job_id in store.table(table_id).jobs


def _reported(workspace: Workspace, tables: list[TableSpec], *, copied: bool) -> list[dict[str, Any]]:
    from deployer.cli.planning import read_live

    lake = workspace.lake()
    live = read_live(workspace.root(lake)).tables
    declared = {table.address: table for table in lake.tables}
    return [
        {
            "address": table.address,
            "rows": live[table.address].statistics.rows,
            "location": live[table.address].location,
            "file": declared[table.address].sources[""].file,
            "copied": copied,
            "row_keys": list(table.row_keys),
        }
        for table in tables
    ]
