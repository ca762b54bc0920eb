"""`deployer import`: takes tables that exist already under management, and writes their specs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.cli.workspace import Workspace
    from deployer.specs.model import Lake, TableSpec
    from deployer.tables.import_adopt import Adoptable


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
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Take existing tables under management and write their specs; a preview is clean afterwards.

    A Lance dataset below the instance's root stays where it is. Anything else is copied into a new table.
    """
    from deployer.cli.output import note, print_json, stdout
    from deployer.errors import InvalidInput

    if (address is None) == (all_of is None):
        raise InvalidInput("give an ADDRESS, or --all ROOT", remedy="such as table/nyc.flights data/flights.parquet")
    if all_of is not None:
        done, failed = _import_all(project, stack, specs, all_of, database)
    else:
        assert address is not None  # noqa: S101
        done, failed = [_import_one(project, stack, specs, address, source, copy)], {}
    if as_json:
        print_json({"imported": done, "failed": failed})
    else:
        for each in done:
            how = f"{each['rows']:,} rows copied" if each["copied"] else f"{each['rows']:,} rows where they are"
            stdout().print(f"imported {each['address']}: {how}, declared in {each['file']}")
        for name, why in failed.items():
            note(f"left out {name}: {why}")
    return 1 if failed else 0


def _import_one(
    project: Path | None, stack: str, specs: Path | None, address: str, source: str | None, copy: bool
) -> dict[str, Any]:
    from deployer.cli.infer import split_name
    from deployer.cli.planning import held
    from deployer.cli.workspace import open_workspace
    from deployer.errors import Conflict
    from deployer.tables.import_adopt import adoptable, is_dataset, location_under

    database, name = split_name(address.removeprefix("table/"))
    workspace = open_workspace(project, stack, specs)
    lake = workspace.lake()
    root = workspace.root(lake)
    if lake.table(f"{database}.{name}"):
        raise Conflict("the specs declare the table already", where=address, remedy="choose another name, or run `up`")
    path = _source(root, database, name, source)
    with held(workspace, lake):
        if is_dataset(path) and not copy and location_under(root, path):
            found = adoptable(root, path, database, name)
            return _adopt(workspace, lake, [found])[0]
        return _copy(workspace, lake, database, name, str(path))


def _source(root: str, database: str, name: str, source: str | None) -> Path:
    from deployer.errors import NotFound, Refused

    if "://" in root or (source and "://" in source):
        raise Refused("this release imports from a local disk only", remedy="copy the files here first")
    if source is not None:
        return Path(source)
    places = [Path(root) / f"{name}.lance", Path(root) / database / f"{name}.lance"]
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        raise NotFound(
            f"there is neither {places[0]} nor {places[1]}", remedy="say where it is, as the second argument"
        )
    return found


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
    from deployer.cli.infer import table_name
    from deployer.cli.planning import read_live
    from deployer.errors import DeployerError, Refused
    from deployer.tables.import_adopt import adoptable, location_under

    root = workspace.root(lake)
    live = read_live(root).tables.values()
    known = {table.location for table in live if lake.table(table.spec.full_name)}  # others were cut off half-way
    found: list[Adoptable] = []
    failed: dict[str, str] = {}
    for path in datasets:
        if location_under(root, path) in known:
            continue
        try:
            spec = adoptable(root, path, database, table_name(path.name))
            if lake.table(spec.spec.full_name) or any(spec.spec.full_name == one.spec.full_name for one in found):
                raise Refused(f"there is a table {spec.spec.full_name} already", remedy="import it by another name")
            found.append(spec)
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
    from contextlib import closing

    from deployer.state import open_store
    from deployer.tables.import_adopt import adopt
    from deployer.tables.instance import create_instance

    root = workspace.root(lake)
    with _written(workspace, [each.spec for each in found]) as files:
        create_instance(root, lake.instance, workspace.owner)
        with closing(open_store(root)) as store:
            for each in found:
                adopt(store, root, each, workspace.owner)
    return _applied(workspace, [each.spec for each in found], files, copied=False)


def _copy(workspace: Workspace, lake: Lake, database: str, name: str, source: str) -> dict[str, Any]:
    from functools import partial

    from deployer.cli.lake_data import instance_of
    from deployer.compute.clusters import local_cluster
    from deployer.specs.model import TableSpec
    from deployer.tables.import_infer import infer
    from deployer.tables.ingest.job import IngestRequest
    from deployer.tables.ingest.sources import ReadOptions
    from spark_jobs.ingest import run

    spec = TableSpec(database, name, infer([source], None, ReadOptions()).columns)
    with _written(workspace, [spec]) as files:
        pass
    _applied(workspace, [spec], files, copied=True)
    root, instance = instance_of(workspace.dir, workspace.stack, workspace.specs)
    cluster = partial(local_cluster, instance.clusters, None, instance.address)
    run(root, spec.full_name, IngestRequest((source,)), cluster)
    return _reported(workspace, [spec], files, copied=True)[0]


class _written:  # noqa: N801 -- used as a context
    """The tables' spec files, written and valid; removed again when the block fails. Gives the files in order."""

    def __init__(self, workspace: Workspace, tables: list[TableSpec]) -> None:
        self.workspace, self.tables = workspace, tables
        self.before: dict[Path, str | None] = {}

    def __enter__(self) -> list[str]:
        from deployer.specs.write import table_to_yaml

        files = []
        try:
            for table in self.tables:
                file = self._place(table)
                text = self.before[file] = file.read_text(encoding="utf-8") if file.exists() else None
                document = table_to_yaml(table)
                joined = f"{text.rstrip()}\n---\n{document}" if text else document
                file.write_text(joined, encoding="utf-8")
                files.append(file.relative_to(self.workspace.dir).as_posix())
            self.workspace.lake()
        except BaseException:
            self._undo()
            raise
        return files

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._undo()

    def _place(self, table: TableSpec) -> Path:
        from deployer.errors import Conflict

        specs = self.workspace.specs
        if specs.is_file():
            return specs
        file = specs / f"{table.name}.yaml"
        if file.exists():
            file = specs / f"{table.database}.{table.name}.yaml"
        if file.exists():
            raise Conflict("a file of that name is there already", where=file, remedy="rename it")
        return file

    def _undo(self) -> None:
        for file, text in self.before.items():
            if text is None:
                file.unlink(missing_ok=True)
            else:
                file.write_text(text, encoding="utf-8")


def _applied(workspace: Workspace, tables: list[TableSpec], files: list[str], *, copied: bool) -> list[dict[str, Any]]:
    """Lets Pulumi's state know of the tables, and of nothing else that the specs may have changed."""
    from deployer.cli.stack_state import apply_only

    apply_only(workspace, [table.address for table in tables])
    return _reported(workspace, tables, files, copied=copied)


def _reported(workspace: Workspace, tables: list[TableSpec], files: list[str], *, copied: bool) -> list[dict[str, Any]]:
    from deployer.cli.planning import read_live

    live = read_live(workspace.root(workspace.lake())).tables
    return [
        {
            "address": table.address,
            "rows": live[table.address].statistics.rows,
            "location": live[table.address].location,
            "file": file,
            "copied": copied,
        }
        for table, file in zip(tables, files, strict=True)
    ]
