"""Takes drift over into the specs: each difference becomes an edit where the property is declared."""

from __future__ import annotations

from typing import Any

from deployer.cli.drift_found import Drift, DriftItem
from deployer.cli.planning import engine_for
from deployer.cli.workspace import Workspace
from deployer.errors import DeployerError, Position, Refused
from deployer.live.model import LiveLake
from deployer.plan import changes as c
from deployer.plan.cause import cause
from deployer.plan.diff import diff
from deployer.plan.words import describe
from deployer.specs.edit import SpecEdits, Uneditable
from deployer.specs.model import InstanceSpec, Lake, Storage, TableSpec
from deployer.specs.write import column_document, table_document, type_document


def take_over(workspace: Workspace, found: Drift) -> list[str]:
    """Edits the specs so that they declare what is live, and brings Pulumi's state up to it; gives the files edited.

    Refused, before anything is written, when a difference cannot be an edit; the message says each with its place.
    """
    edits = SpecEdits(workspace.dir)
    refused = []
    for item in found.items:
        try:
            _edit(edits, item, found)
        except Uneditable as error:
            refused.append(f"{item.address}: {describe(item.change)}: {error}")
    if refused:
        raise Refused(
            f"{len(refused)} of {len(found.items)} differences cannot be edited in place, and nothing was written:\n  "
            + "\n  ".join(refused)
        )
    before = edits.write()
    try:
        lake = workspace.lake()
        _check(lake, found)
    except DeployerError:
        for path, text in before.items():
            path.write_text(text, encoding="utf-8")
        raise
    engine_for(workspace, lake).refresh(workspace.stack_ref)
    return sorted(path.relative_to(workspace.dir).as_posix() for path in before)


def _check(lake: Lake, found: Drift) -> None:
    """Raises Refused when the edited specs declare a difference still, because an overlay or variable has a part."""
    for item in found.items:
        declared, live = lake.table(item.address.partition("/")[2]), found.live.tables.get(item.address)
        left = diff(live.spec, declared) if declared and live else ()
        if any(_subject(change) == _subject(item.change) for change in left):
            assert declared is not None  # noqa: S101
            raise Refused(
                f"{item.address}: {describe(item.change)}: declared in several places; nothing was written",
                where=cause(item.change, declared),
                remedy="edit it by hand",
            )


def _subject(change: c.Change) -> tuple[str, object]:
    """What a change is about: the property of a resource, or the column."""
    column = getattr(change, "column", None)
    return ("column" if column else type(change).__name__, column)


def _edit(edits: SpecEdits, item: DriftItem, found: Drift) -> None:
    name = item.address.partition("/")[2]
    if item.address.startswith("instance/"):
        _edit_instance(edits, item.change, found.lake.instance, found.live)
        return
    declared = found.lake.table(name)
    live = found.live.tables.get(item.address)
    if declared is None:
        raise Uneditable("the specs declare it no more", remedy="run `up`, or import it")
    if live is None:
        remedy = "remove or rename its document by hand, or run `up` to have it as declared"
        raise Uneditable("a document is not removed or renamed by itself", where=declared.sources[""], remedy=remedy)
    if isinstance(item.change, c.ColumnChange):
        _edit_column(edits, item.change, declared, live.spec)
        return
    after: Any
    match item.change:
        case c.SetOnline(online=online):
            property_name, after = "online", online
        case c.SetDeletionProtection(protected=protected):
            property_name, after = "deletion_protection", protected
        case c.ChangeDescription(after=text):
            property_name, after = "description", text or None
        case c.ChangeTags(after=tags):
            property_name, after = "tags", dict(tags) or None
        case c.ChangeRowKeys(after=keys):
            property_name, after = "row_keys", list(keys) or None
        case c.ChangeSortKeys(after=keys):
            property_name, after = "sort_keys", list(keys) or None
        case c.ChangeSplitPoints():
            property_name, after = "partitions", table_document(live.spec).get("partitions")
        case c.ChangeStorage(after=storage):
            kept = {
                key: value for key in Storage.__slots__ if (value := getattr(storage, key)) != getattr(Storage(), key)
            }
            property_name, after = "storage", kept or None
        case _:
            raise Uneditable("this is edited by hand only", where=declared.sources[""])
    edits.set_property(_place(declared, property_name), property_name, after)


def _edit_instance(edits: SpecEdits, change: c.Change, declared: InstanceSpec, live: LiveLake) -> None:
    after: Any
    match change:
        case c.ChangeDescription(after=text):
            property_name, after = "description", text or None
        case c.ChangeTags(after=tags):
            property_name, after = "tags", dict(tags) or None
        case c.ChangeEngine(after=engine):
            property_name, after = "engine", engine
        case _:
            raise Uneditable("this is edited by hand only", where=declared.sources[""])
    edits.set_property(declared.sources.get(property_name, declared.sources[""]), property_name, after)


def _edit_column(edits: SpecEdits, change: Any, declared: TableSpec, live: TableSpec) -> None:
    path = change.column
    if len(path) > 1 or (not path and not isinstance(change, c.ReorderColumns)):
        raise Uneditable("a nested field is edited by hand only", where=_place(declared, f"columns.{path[0]}"))
    whole = declared.sources[""]
    if isinstance(change, c.ReorderColumns):
        edits.order_columns(whole, change.after)
        return
    name = path[0]
    if isinstance(change, c.AddColumn):
        edits.add_column(_place(declared, "columns"), column_document(change.definition), change.after)
        return
    at = _place(declared, f"columns.{name}")
    column = next((column for column in live.columns if column.name == name), None)
    if isinstance(change, c.DropColumn):
        edits.drop_column(at, name)
        return
    assert column is not None  # noqa: S101 -- what is neither added nor dropped is live
    match change:
        case c.WidenColumn() | c.ConvertColumn():
            edits.set_column(_place(declared, f"columns.{name}.type"), name, "type", type_document(column.type))
        case c.RelaxNullability() | c.TightenNullability():
            nullable = None if column.nullable else False
            edits.set_column(_place(declared, f"columns.{name}.nullable", at), name, "nullable", nullable)
        case c.ChangeColumnDescription(after=text):
            place = _place(declared, f"columns.{name}.description", at)
            edits.set_column(place, name, "description", text or None)
        case _:
            raise Uneditable("this is edited by hand only", where=at)


def _place(declared: TableSpec, path: str, otherwise: Position | None = None) -> Position:
    return declared.sources.get(path) or otherwise or declared.sources[""]
