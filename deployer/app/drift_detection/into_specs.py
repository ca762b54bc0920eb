"""Writes drift into the specs: each difference becomes an edit at the position that declares the property."""

from __future__ import annotations

from typing import Any, assert_never

from deployer.app.drift_detection.columns import edit_column
from deployer.app.drift_detection.datasets import edit_dataset
from deployer.app.drift_detection.find import Drift, DriftItem
from deployer.app.planning.targeting import urns_of
from deployer.app.stack.engine import engine_for
from deployer.app.stack.fast_path import read_recorded
from deployer.app.workspace import Workspace
from deployer.errors import DeployerError, InvalidSpecs, Position, Refused
from deployer.live.model import LiveLake
from deployer.plan import changes as c
from deployer.plan.diff.lakes import diff
from deployer.plan.graph.build import Spec
from deployer.plan.planning.cause import cause
from deployer.plan.render.changes import describe
from deployer.plan.render.services import service_name
from deployer.platform.text.visible import visible
from deployer.specs.declarations.embeddings import embedding_to_json
from deployer.specs.declarations.indexes import index_to_json
from deployer.specs.declarations.ingest import ingest_document
from deployer.specs.editing.edits import SpecEdits
from deployer.specs.editing.nodes import Uneditable
from deployer.specs.editing.write import service_document, table_document
from deployer.specs.model import InstanceSpec, Lake, Storage, TableSpec
from deployer.specs.serialized.specs import instance_to_json
from deployer.specs.types.view import staleness_text, view_document
from deployer.specs.values.root import resolve_root


def take_over(workspace: Workspace, found: Drift) -> list[str]:
    """Edits the specs so that they declare the live state, and refreshes Pulumi's state; returns the edited files.

    Raises Refused, before any file is written, when a difference cannot be an edit; the message lists each with its
    position.
    """
    edits = SpecEdits(workspace.dir)
    refused = []
    for item in found.items:
        try:
            _edit(edits, item, found, workspace)
        except Uneditable as error:
            refused.append(f"{item.address}: {describe(item.change)}: {error}")
    if refused:
        raise Refused(
            f"{len(refused)} of {len(found.items)} differences cannot be edited in place, and nothing was written:\n"
            + "\n".join(map(visible, refused))
        )
    before = edits.write()
    try:
        lake = workspace.lake()
        _check(lake, found)
    except DeployerError as error:
        for path, text in before.items():
            path.write_text(text, encoding="utf-8")
        if isinstance(error, InvalidSpecs):
            problems = "\n".join(visible(str(problem)) for problem in error.problems)
            raise Refused(
                f"nothing was written, because the specs would not be valid (lines as edited):\n{problems}"
            ) from None
        raise
    targets = frozenset[str]()
    if found.targets is not None:
        targets = urns_of(workspace, found.targets.addresses, read_recorded(workspace.stack_ref))
    engine_for(workspace, lake).refresh(workspace.stack_ref, targets=targets)
    return sorted(path.relative_to(workspace.dir).as_posix() for path in before)


def _check(lake: Lake, found: Drift) -> None:
    """Raises Refused when the edited specs still declare a difference, because an overlay or variable also sets the
    property."""
    for item in found.items:
        live: Spec | None
        declared: Spec | None
        if item.address == lake.instance.address:
            live, declared = found.live.instance, lake.instance
        elif item.address.startswith("dataset/"):
            live = found.datasets.get(item.address)
            declared = lake.dataset(item.address.partition("/")[2])
        else:
            live = found.tables.get(item.address)
            declared = lake.table(live.full_name) if live else None
        left = diff(live, declared) if declared and live else ()
        if any(_subject(change) == _subject(item.change) for change in left):
            raise Refused(
                f"{item.address}: {describe(item.change)}: declared in several places; nothing was written",
                where=cause(item.change, declared),
                remedy="edit it by hand",
            )


def _subject(change: c.Change) -> tuple[str, object]:
    """Returns what a change affects: the property of a resource, the column, the index, or the service."""
    match change:
        case (
            c.CreateIndex(index=index)
            | c.DropIndex(index=index)
            | c.RebuildIndex(after=index)
            | c.RenameIndex(after=index)
        ):
            return ("index", index.name)
        case c.CreateSearchIndex(index=search) | c.DropSearchIndex(index=search) | c.RebuildSearchIndex(after=search):
            return ("search index", search.column)
        case c.CreateService() | c.DeleteService() | c.ChangeTrigger() | c.ChangeServiceOptions():
            return ("service", service_name(change))
        case c.MoveServiceToCluster():
            return ("service", service_name(change))
        case _:
            column = getattr(change, "column", None)
            return ("column" if column else change.kind, column)


def _edit(edits: SpecEdits, item: DriftItem, found: Drift, workspace: Workspace) -> None:
    if item.address.startswith("instance/"):
        _edit_instance(edits, item.change, found.lake.instance, found.live, workspace)
        return
    if item.address.startswith("dataset/"):
        edit_dataset(edits, item, found)
        return
    declared = _declared(found.lake, item.address.partition("/")[2])
    live = found.tables.get(item.address)
    if declared is None:
        raise Uneditable("the specs do not declare it any more", remedy="run `up`, or import it")
    if live is None:
        remedy = "remove its document by hand, or run `up` to restore the declared state"
        raise Uneditable("documents are only removed by hand", where=declared.sources[""], remedy=remedy)
    if _is_edited_already(item.change, declared):
        return
    if isinstance(item.change, c.ColumnChange):
        names = {
            other.change.after: other.change.column[0]
            for other in found.items
            if other.address == item.address
            and isinstance(other.change, c.RenameColumn)
            and len(other.change.column) == 1
        }
        edit_column(edits, item.change, declared, live, names)
        return
    if isinstance(item.change, c.ServiceChange):
        _edit_service(edits, item.change, declared, live)
        return
    if isinstance(item.change, c.CreateIndex | c.RebuildIndex | c.RenameIndex | c.DropIndex):
        _edit_index(edits, item.change, declared)
        return
    if isinstance(item.change, c.RenameTable):
        _rename_table(edits, declared, live)
        edits.move_overlays(found.lake.files, declared.address, live.address)
        return
    properties = _properties(item.change, live)
    if properties is None:
        raise Uneditable("this can only be edited by hand", where=declared.sources[""])
    for name, value in properties.items():
        edits.set_property(_place(declared, name), name, value)


def _edit_index(
    edits: SpecEdits, change: c.CreateIndex | c.RebuildIndex | c.RenameIndex | c.DropIndex, declared: TableSpec
) -> None:
    match change:
        case c.DropIndex(index=index):
            name, live = index.name, None
        case c.RenameIndex(before=before, after=index):
            name, live = before.name, index_to_json(index)
        case c.CreateIndex(index=index) | c.RebuildIndex(after=index):
            name, live = index.name, index_to_json(index)
        case _:
            assert_never(change)
    edits.set_index(_index_place(declared, name), name, live)


def _properties(change: c.Change, live: TableSpec) -> dict[str, Any] | None:
    """Returns the values of the properties that the change affects, in the form of a spec of the live table. A value of
    None removes the property. Returns None for a change that no property declares."""
    match change:
        case c.SetOnline(online=online):
            return {"online": None if online else False}
        case c.SetDeletionProtection(protected=protected):
            return {"deletion_protection": None if protected else False}
        case c.ChangeDescription(after=text):
            return {"description": text or None}
        case c.ChangeTags(after=tags):
            return {"tags": dict(tags) or None}
        case c.ChangeRowKeys(after=keys):
            return {"row_keys": list(keys) or None}
        case c.SetUnique(unique=unique):
            return {"unique": unique or None}
        case c.ChangeSortKeys(after=keys):
            return {"sort_keys": list(keys) or None}
        case c.ChangeSplitPoints() | c.ChangeLeafLimit():
            return {"partitions": table_document(live).get("partitions")}
        case c.ChangeEmbedding(after=embedding):
            return {"embedding": embedding_to_json(embedding) if embedding is not None else None}
        case c.ChangeRetention():
            return {"retention": table_document(live).get("retention")}
        case c.ChangeHolds():
            return {"holds": table_document(live).get("holds")}
        case c.ChangeRetainedChanges(after=kept_for):
            return {"retain_changes": kept_for}
        case c.ChangeViewQuery(after=view) if view is not None:
            document = view_document(view)
            return {"functions": document.get("functions"), "query": document["query"]}
        case c.ChangeMaxStaleness(after=most):
            return {"max_staleness": None if most is None else staleness_text(most)}
        case c.ChangeStorage(after=storage):
            usual = Storage()
            changed = {
                key: value for key in Storage.__slots__ if (value := getattr(storage, key)) != getattr(usual, key)
            }
            return {"storage": changed or None}
        case _:
            return None


def _is_edited_already(change: c.Change, declared: TableSpec) -> bool:
    """Returns whether the specs already lack what is gone from the live table, because they were edited by hand."""
    match change:
        case c.DropIndex(index=index):
            return index.name not in {each.name for each in declared.indexes}
        case c.DeleteService(service=service):
            return service.kind not in {each.kind for each in declared.services}
        case c.DropColumn(column=(name,)):
            return name not in {each.name for each in declared.columns}
        case _:
            return False


def _declared(lake: Lake, name: str) -> TableSpec | None:
    """Returns the table that was applied under that name. The specs may declare it under a new name since."""
    return lake.table(name) or next((table for table in lake.tables if table.former_name == name), None)


def _edit_service(edits: SpecEdits, change: c.ServiceChange, declared: TableSpec, live: TableSpec) -> None:
    """Sets the table's own declaration to the whole live service; the instance's declaration stays unchanged."""
    name = service_name(change)
    form: dict[str, Any] | None = next((service_document(each) for each in live.services if each.name == name), None)
    if name == "ingest":  # declared by its own property
        edits.set_property(_place(declared, name), name, None if form is None else ingest_document(form))
        return
    implied = name == "expire" and declared.retention is not None
    if form is None and (implied or _of_instance(declared, name)):
        form = {"enabled": False}
    edits.set_service(_place(declared, "services"), name, form)


def _of_instance(declared: TableSpec, name: str) -> bool:
    """Returns whether the service is declared by the instance, for all of its tables, and not by this table."""
    services, service = declared.sources.get("services"), declared.sources.get(f"services.{name}")
    return service is not None and (services is None or service.file != services.file or service < services)


def _rename_table(edits: SpecEdits, declared: TableSpec, live: TableSpec) -> None:
    """Sets the document's name to the live name, and `renamed_from` to the name in Pulumi's state."""
    for name in ("database", "name"):
        if getattr(declared, name) != getattr(live, name):
            edits.set_property(_place(declared, name), name, getattr(live, name))
    edits.set_property(_place(declared, "renamed_from"), "renamed_from", declared.full_name)


def _edit_instance(
    edits: SpecEdits, change: c.Change, declared: InstanceSpec, live: LiveLake, workspace: Workspace
) -> None:
    whole = declared.sources[""]
    after: Any
    match change:
        case c.ChangeDescription(after=text):
            property_name, after = "description", text or None
        case c.ChangeTags(after=tags):
            property_name, after = "tags", dict(tags) or None
        case c.ChangeEngine(after=engine):
            property_name, after = "engine", engine
        case c.ChangeClusters() if live.instance is not None:
            property_name, after = "clusters", instance_to_json(live.instance).get("clusters")
        case c.ChangeRoot(before=before, after=root):
            if resolve_root(workspace.dir, root) != resolve_root(workspace.dir, before):
                what = f"this lake was applied as root {root}, which is another place than {before}"
                remedy = f"write `root: {root}` if the lake was moved there, or run `up` to restore the declared state"
                raise Uneditable(what, where=declared.sources.get("root", whole), remedy=remedy)
            property_name, after = "root", root
        case c.DeleteInstance():
            raise Uneditable("documents are only removed by hand", where=whole, remedy="run `up` to make it again")
        case _:
            raise Uneditable("this can only be edited by hand", where=whole)
    edits.set_property(declared.sources.get(property_name, whole), property_name, after)


def _place(declared: TableSpec, path: str) -> Position:
    return declared.sources.get(path) or declared.sources[""]


def _index_place(declared: TableSpec, name: str) -> Position:
    return declared.sources.get(f"indexes.{name}") or _place(declared, "indexes")
