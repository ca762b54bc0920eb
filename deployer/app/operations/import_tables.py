"""`import_table` and `import_tables`: import existing tables, and write their specs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployer.app.importing.copy import copy_rows
from deployer.app.importing.in_place import adopt_all, adopt_one
from deployer.app.importing.outcome import ImportedTable, declared_already
from deployer.app.planning.addresses import split_name
from deployer.app.stack.engine import held
from deployer.app.workspace import Workspace, open_workspace, specs_place
from deployer.errors import InvalidInput, NotFound, Refused
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.platform.text import masking
from deployer.specs.editing.write import instance_to_yaml
from deployer.specs.model import InstanceSpec, Lake
from deployer.tables.importing.adopt import adoptable, is_dataset, location_under, plain_datasets
from deployer.tables.ingest.files.model import ReadOptions

#: the remedy for keys of a table whose rows stay in place
KEYS_LATER = "declare `row_keys` in the spec, and `deployer up` rewrites the table in their order"


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The imported tables, and why other datasets were left out, by the name of their folder."""

    imported: tuple[ImportedTable, ...]
    failed: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """Returns the document that `deployer import --json` prints."""
        return {"imported": [each.to_json() for each in self.imported], "failed": dict(self.failed)}


def import_table(
    address: str,
    source: Path | str | None = None,
    *,
    project: Path | str | None = None,
    stack: str = "dev",
    specs: Path | str | None = None,
    copy: bool = False,
    row_keys: Sequence[str] = (),
    sort_keys: Sequence[str] = (),
    options: ReadOptions | None = None,
    on_progress: OnProgress = no_progress,
) -> ImportResult:
    """Imports one table and writes its spec, or finishes an interrupted import. A plan is empty afterwards.

    `address` is an address such as `table/nyc.flights`. `source` is a Lance dataset, or files to copy from; by default
    the dataset ROOT/NAME.lance or ROOT/DATABASE/NAME.lance. A dataset below the root stays in place, unless `copy` is
    set. Anything else is copied into a new table with these keys, and `options` says how to read it. `on_progress`
    receives the rows that are read and written.

    Raises Conflict where the specs declare the table differently, NotFound without a source, InvalidInput for keys of
    rows that stay in place.
    """
    with masking.scope():
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
                keys = tuple(row_keys), tuple(sort_keys)
                reading = options or ReadOptions()
                done = copy_rows(workspace, lake, database, name, str(path), keys, reading, on_progress)
            elif row_keys or sort_keys:
                remedy = f"add --copy, or {KEYS_LATER}"
                raise InvalidInput("rows that are not copied keep their order", where=path, remedy=remedy)
            else:
                done = adopt_one(workspace, lake, adoptable(root, path, database, name), on_progress)
    return ImportResult((done,), {})


def import_tables(
    folder: Path | str,
    *,
    database: str = "main",
    project: Path | str | None = None,
    stack: str = "dev",
    specs: Path | str | None = None,
    on_progress: OnProgress = no_progress,
) -> ImportResult:
    """Imports every dataset `folder/*.lance` in place, as tables of `database`, or finishes an interrupted import.

    `folder` is the root of the instance. Where there are no specs yet, an instance with that root is declared first.
    Datasets that cannot be imported are left out; the result names them with the reason. `on_progress` receives how
    many datasets are read and imported. Raises NotFound where there is no dataset.
    """
    with masking.scope():
        place = Path(folder).resolve()
        datasets = list(plain_datasets(str(place)))
        if not datasets:
            raise NotFound("there is no *.lance dataset", where=folder, remedy="give the folder of a LanceDB database")
        split_name(f"{database}.x")
        workspace, lake = _declared(project, stack, specs, place)
        if Path(workspace.root(lake)).resolve() != place:
            raise Refused(
                f"the instance's root is {lake.instance.root}",
                where=folder,
                remedy="import its tables one by one, by copy",
            )
        with held(workspace, lake):
            imported, failed = adopt_all(workspace, lake, datasets, database, on_progress)
    return ImportResult(tuple(imported), failed)


def _source(root: str, database: str, name: str, source: Path | str | None) -> Path:
    if "://" in root or (source is not None and "://" in str(source)):
        raise Refused("this release imports from a local disk only", remedy="copy the files here first")
    if source is not None:
        return Path(source)
    places = _places(root, database, name)
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        raise NotFound(f"there is neither {places[0]} nor {places[1]}", remedy="give its place as the second argument")
    return found


def _places(root: str, database: str, name: str) -> list[Path]:
    return [Path(root) / f"{name}.lance", Path(root) / database / f"{name}.lance"]


def _declared(project: Path | str | None, stack: str, specs: Path | str | None, root: Path) -> tuple[Workspace, Lake]:
    """Returns the workspace and its lake; where there are no specs yet, an Instance with that root is declared
    first."""
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
