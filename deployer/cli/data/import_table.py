"""`deployer import`: takes tables that exist already under management, and writes their specs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployer.cli.inputs.text_options import DateFormats, Delimiter, Encoding, NoHeader, NullValues, read_options
from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.app.workspace import Workspace
    from deployer.specs.model import Lake
    from deployer.tables.ingest.files.model import ReadOptions

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
    null_value: NullValues = None,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    no_header: NoHeader = False,
    date_format: DateFormats = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Take existing tables under management and write their specs; a preview is clean afterwards.

    A Lance dataset below the instance's root stays where it is. Anything else is copied into a new table.
    The same command finishes an import that was cut off.
    """
    from deployer.console.output import note, print_json, stdout
    from deployer.errors import InvalidInput

    if (address is None) == (all_of is None):
        raise InvalidInput("give an ADDRESS, or --all ROOT", remedy="such as table/nyc.flights data/flights.parquet")
    if all_of is not None and (row_keys or sort_keys):
        raise InvalidInput("--all leaves rows where they are, and so in their order", remedy=_KEYS_LATER)
    keys = (_columns(row_keys, "--row-keys"), _columns(sort_keys, "--sort-keys"))
    options = read_options(null_value, delimiter, encoding, no_header, date_format)
    if all_of is not None:
        done, failed = _import_all(project, stack, specs, all_of, database)
    else:
        assert address is not None  # noqa: S101
        done, failed = [_import_one(project, stack, specs, address, source, copy, keys, options)], {}
    if as_json:
        print_json({"imported": done, "failed": failed})
    else:
        for each in done:
            if each["managed"]:
                where = f"{each['rows']:,} rows, declared in {each['file']}"
                stdout().print(f"{each['address']} is managed already: {where}; nothing was done", soft_wrap=True)
                continue
            how = f"{each['rows']:,} rows copied" if each["copied"] else f"{each['rows']:,} rows where they are"
            stdout().print(f"imported {each['address']}: {how}, declared in {each['file']}", soft_wrap=True)
        for text in dict.fromkeys(text for each in done for text in each.get("notes", ())):
            note(text)
        if any(not each["row_keys"] and not each["managed"] for each in done):
            note(f"without row keys, rows lie in no order: {_KEYS_LATER}")
        for name, why in failed.items():
            note(f"left out {name}: {why}")
    return 1 if failed else 0


def _columns(text: str | None, option: str) -> tuple[str, ...]:
    from deployer.specs.types.column_names import split_names

    return split_names(text, option) if text else ()


def _import_one(
    project: Path | None,
    stack: str,
    specs: Path | None,
    address: str,
    source: str | None,
    copy: bool,
    keys: tuple[tuple[str, ...], tuple[str, ...]],
    options: ReadOptions,
) -> dict[str, Any]:
    from deployer.app.importing.copy import copy_rows
    from deployer.app.importing.in_place import adopt_one
    from deployer.app.importing.outcome import declared_already
    from deployer.app.planning.addresses import split_name
    from deployer.app.stack.engine import held
    from deployer.app.workspace import open_workspace
    from deployer.errors import InvalidInput
    from deployer.tables.importing.adopt import adoptable, is_dataset, location_under

    database, name = split_name(address.removeprefix("table/"))
    workspace = open_workspace(project, stack, specs)
    lake = workspace.lake()
    root = workspace.root(lake)
    declared = lake.table(f"{database}.{name}")
    if declared and source is None and not any(place.is_dir() for place in _places(root, database, name)):
        raise declared_already(declared)
    path = _source(root, database, name, source)
    with held(workspace, lake):
        if not is_dataset(path) or copy or not location_under(root, path):
            return copy_rows(workspace, lake, database, name, str(path), keys, options)
        if any(keys):
            remedy = f"add --copy, or {_KEYS_LATER}"
            raise InvalidInput("rows that stay where they are stay in their order", where=path, remedy=remedy)
        return adopt_one(workspace, lake, adoptable(root, path, database, name))


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
    from deployer.app.importing.in_place import adopt_all
    from deployer.app.planning.addresses import split_name
    from deployer.app.stack.engine import held
    from deployer.errors import NotFound, Refused
    from deployer.tables.importing.adopt import plain_datasets

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
        return adopt_all(workspace, lake, datasets, database)


def _declared(project: Path | None, stack: str, specs: Path | None, root: Path) -> tuple[Workspace, Lake]:
    """The workspace and its lake; where there are no specs yet, an Instance with that root is declared first."""
    import re

    from deployer.app.workspace import open_workspace, specs_place
    from deployer.specs.editing.write import instance_to_yaml
    from deployer.specs.model import InstanceSpec

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
