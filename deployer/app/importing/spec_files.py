"""The spec files of imported tables: their paths, the check before the import, and writing them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from secrets import token_hex

from deployer.app.workspace import Workspace
from deployer.errors import Conflict, DeployerError, InvalidInput, InvalidSpecs
from deployer.platform.files.temporary import temporary_folder
from deployer.platform.system.failpoints import reached
from deployer.specs import load_lake
from deployer.specs.editing.write import lake_to_yaml, table_to_yaml
from deployer.specs.model import Lake, TableSpec


def check_specs(workspace: Workspace, lake: Lake, tables: Sequence[TableSpec]) -> None:
    """Raises InvalidInput, before anything changes, when the specs could not declare these tables beside the others.

    Raises Conflict when a file with the table's name exists already.
    """
    for table in tables:
        _place(workspace, table)
    with temporary_folder("specs") as folder:
        spec = folder / "lake.yaml"
        spec.write_text(lake_to_yaml(Lake(lake.instance, (*lake.tables, *tables))), encoding="utf-8")
        try:
            load_lake(folder, spec)
        except InvalidSpecs as error:
            problems = "; ".join(f"{problem.what}; {problem.remedy}" for problem in error.problems)
            raise InvalidInput(f"it cannot be declared: {problems}", where=tables[0].address) from None


def write_specs(workspace: Workspace, tables: Sequence[TableSpec]) -> list[str]:
    """Declares each table in a spec file, which is replaced in one step; returns the files in order.

    Restores the files when the project's specs are not valid with one of the tables.
    """
    before: dict[Path, str | None] = {}
    files = []
    try:
        for table in tables:
            file = _place(workspace, table)
            text = before[file] = file.read_text(encoding="utf-8") if file.exists() else None
            document = table_to_yaml(table)
            _replace(file, f"{text.rstrip()}\n---\n{document}" if text else document)
            files.append(file.relative_to(workspace.dir).as_posix())
            reached("cli.import.declared")
        workspace.lake()
    except DeployerError:
        for file, text in before.items():
            if text is None:
                file.unlink(missing_ok=True)
            else:
                _replace(file, text)
        raise
    return files


def _replace(file: Path, text: str) -> None:
    beside = file.with_name(f".{file.name}.{token_hex(8)}")
    with beside.open("x", encoding="utf-8") as written:  # mode "x" never follows a link
        written.write(text)
    beside.replace(file)


def _place(workspace: Workspace, table: TableSpec) -> Path:
    specs = workspace.specs
    if specs.is_file():
        return specs
    file = specs / f"{table.name}.yaml"
    if file.exists():
        file = specs / f"{table.database}.{table.name}.yaml"
    if file.exists():
        raise Conflict("a file of that name exists already", where=file, remedy="rename it")
    return file
