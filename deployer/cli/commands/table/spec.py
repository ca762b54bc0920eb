"""Tables in the specs: removing a document, and reading tables from a command's options or from a separate file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deployer.app.workspace import Workspace
from deployer.cli.inputs.table import Target
from deployer.errors import DeployerError, InvalidInput, InvalidSpecs, Refused
from deployer.platform.files.temporary import temporary_folder
from deployer.platform.text.visible import visible
from deployer.specs import load_lake
from deployer.specs.editing.documents import remove_document
from deployer.specs.editing.write import instance_to_yaml, to_yaml
from deployer.specs.model import InstanceSpec, TableSpec

_COLUMN = re.compile(
    r'\s*(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<name>[^\s":][^:]*?))\s*:\s*(?P<type>.+?)(?P<never>\s+not\s+null)?\s*',
    re.IGNORECASE,
)


def take_out(target: Target, declared: TableSpec) -> list[str]:
    """Removes the table's document; returns the file. Raises Refused, with the specs unchanged, when they would not be
    valid without the document."""
    path, before = remove_document(target.workspace.dir, declared.sources[""])
    try:
        left = target.workspace.lake()
        if left.table(declared.full_name) is not None:
            raise Refused("the table is declared in several places", where=declared.sources[""], remedy="edit by hand")
    except DeployerError as error:
        path.write_text(before, encoding="utf-8")
        if isinstance(error, InvalidSpecs):
            problems = "\n".join(visible(str(problem)) for problem in error.problems)
            raise Refused(f"the specs would not be valid without it, and nothing was done:\n{problems}") from None
        raise
    return [path.relative_to(target.workspace.dir).as_posix()]


def tables_in(workspace: Workspace, instance: InstanceSpec, file: Path) -> tuple[TableSpec, ...]:
    """Returns the tables that a single spec file declares. Raises InvalidSpecs, and InvalidInput for a file that cannot
    be read or declares no table."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"it cannot be read: {error}", where=file, remedy="give a spec file with a Table") from None
    tables = _loaded(workspace, instance, file.name, text)
    if not tables:
        raise InvalidInput("it declares no table", where=file, remedy="write a document with `kind: Table`")
    return tables


def table_of_options(
    workspace: Workspace,
    instance: InstanceSpec,
    name: tuple[str, str],
    columns: Sequence[str],
    more: Mapping[str, Any],
) -> TableSpec:
    """Returns the table with columns such as `id:int64` and other properties. Raises InvalidInput for a column or a
    table that is not valid."""
    keys = more.get("row_keys") or ()
    forms = []
    for text in columns:
        match = _COLUMN.fullmatch(text)
        if match is None:
            remedy = "write NAME:TYPE, such as 'id:int64 not null', and a name with a colon in double quotes"
            raise InvalidInput(f"{text!r} is not a column", remedy=remedy)
        column = match["name"] or match["quoted"].replace('""', '"')
        never_null = bool(match["never"]) or column in keys
        forms.append({"name": column, "type": match["type"]} | ({"nullable": False} if never_null else {}))
    document = {"kind": "Table", "database": name[0], "name": name[1], "columns": forms}
    try:
        (table,) = _loaded(workspace, instance, "table.yaml", to_yaml(document | {k: v for k, v in more.items() if v}))
    except InvalidSpecs as error:
        problems = "; ".join(f"{each.what}; {each.remedy}" for each in error.problems)
        raise InvalidInput(f"it cannot be declared: {problems}", where=f"table/{name[0]}.{name[1]}") from None
    return table


def _loaded(workspace: Workspace, instance: InstanceSpec, name: str, text: str) -> tuple[TableSpec, ...]:
    with temporary_folder("specs") as specs:
        (specs / f"of-{name}").write_text(text, encoding="utf-8")
        if not re.search(r"^kind:\s*Instance\b", text, re.MULTILINE):
            (specs / "instance.yaml").write_text(instance_to_yaml(instance), encoding="utf-8")
        (specs / f"of-{name}").rename(specs / name)
        return load_lake(specs, specs, workspace.stack, workspace.values).tables
