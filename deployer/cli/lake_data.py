"""What the commands on data share: the instance's root and cluster, and how rows are shown."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from deployer.cli.workspace import Workspace
    from deployer.errors import InvalidSpecs
    from deployer.specs.model import InstanceSpec

WIDEST = 60  #: characters of a value in a table for people


def instance_of(project: Path | None, stack: str, specs: Path | None) -> tuple[str, InstanceSpec]:
    """The root of the declared instance, and its spec."""
    from deployer.cli.workspace import open_workspace

    workspace = open_workspace(project, stack, specs)
    lake = workspace.lake()
    return workspace.root(lake), lake.instance


def root_to_read(project: Path | None, stack: str, specs: Path | None) -> str:
    """The root of the declared instance, for a command that reads what is live: other problems of the specs are noted.

    Raises InvalidSpecs when those may concern the root, and the stack applied nothing that would tell.
    """
    from deployer.cli.workspace import open_workspace
    from deployer.errors import InvalidSpecs

    workspace = open_workspace(project, stack, specs)
    try:
        return workspace.root(workspace.lake())
    except InvalidSpecs as problems:
        return root_despite(workspace, problems, "reads")


def root_despite(workspace: Workspace, problems: InvalidSpecs, verb: str) -> str:
    """The root of the declared instance although the specs have problems, which are noted.

    `verb` is what the command does: `reads` or `changes`. Raises the problems when they may concern the root, and the
    stack applied nothing that would tell.
    """
    from deployer.cli.output import note
    from deployer.plan.words import count
    from deployer.specs import declared_root
    from deployer.specs.root import resolve_root

    declared = declared_root(workspace.dir, workspace.specs, workspace.stack, workspace.values)
    root = declared or _applied_root(workspace)
    if root is None:
        raise problems
    where = "what is live" if declared else f"what stack {workspace.stack} applied"
    note(f"the specs have {count(len(problems.problems), 'problem')} (see `deployer validate`); this {verb} {where}")
    return resolve_root(workspace.dir, root)


def _applied_root(workspace: Workspace) -> str | None:
    """The root that the stack's state tells, where this process can read it."""
    from deployer.engine.backend import read_checkpoint, stack_files
    from deployer.errors import DeployerError
    from deployer.provider.urn import INSTANCE_TYPE, type_of

    try:
        deployment = read_checkpoint(stack_files(workspace.stack_ref)).deployment
    except DeployerError:
        return None
    resources = (deployment or {}).get("resources") or ()
    roots = ((each.get("inputs") or {}).get("root") for each in resources if type_of(each["urn"]) == INSTANCE_TYPE)
    return next((root for root in roots if isinstance(root, str) and root), None)


def print_rows(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> int:
    """Rows as an aligned table for people, types under the names; gives how many they were."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from deployer.cli.output import stdout
    from deployer.specs.arrow import column_of
    from deployer.specs.types import format_type
    from deployer.tables.export import plain_values

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for field in schema:
        number = _is_number(field.type)
        head = Group(field.name, Text(_type_text(field, column_of, format_type), "dim"))
        table.add_column(head, justify="right" if number else "left", overflow="fold")
    count = 0
    for batch in batches:
        columns = [plain_values(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            table.add_row(*(_cell(value) for value in row))
        count += batch.num_rows
    stdout().print(table)
    return count


def _type_text(field: Any, column_of: Any, format_type: Any) -> str:
    from deployer.errors import InvalidInput

    try:
        return str(format_type(column_of(field).type))
    except InvalidInput:  # a query can make types that tables cannot have
        return str(field.type)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _cell(value: Any) -> Any:
    from rich.text import Text

    from deployer.visible import visible

    if value is None:
        return Text("null", "dim")
    text = visible(str(value)[: WIDEST + 1].replace("\n", "⏎"))  # before it is measured
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def limited(batches: Iterator[pa.RecordBatch], rows: int | None) -> Iterator[pa.RecordBatch]:
    """The first rows only; the source is not read further."""
    for batch in batches:
        if rows is not None:
            batch = batch.slice(0, rows)
            rows -= batch.num_rows
        yield batch
        if rows == 0:
            return


def rows_as_json(batches: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    """All rows as JSON objects."""
    from deployer.tables.export import plain_values

    found: Iterator[dict[str, Any]] = chain.from_iterable(
        (
            dict(zip(batch.schema.names, row, strict=True))
            for row in zip(*(plain_values(column) for column in batch.columns), strict=True)
        )
        for batch in batches
    )
    return list(found)
