"""Converts changes of the planner to Pulumi's property paths, for its detailed diffs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from deployer.plan import changes as c
from deployer.provider.resources.kind import DiffKind, Properties
from deployer.specs.serialized.datasets import BLUEPRINT_SHA256


def property_paths(changes: Iterable[c.Change], olds: Properties, news: Properties) -> dict[str, DiffKind]:
    """Returns the path of each change in the resource's inputs; all changes of columns have the path of one string."""
    paths: dict[str, DiffKind] = {}
    for change in changes:
        path, kind = _path(change, olds, news)
        paths.setdefault(path, kind)
    return paths


def _path(change: c.Change, olds: Properties, news: Properties) -> tuple[str, DiffKind]:
    if isinstance(change, c.ServiceChange):
        return _property("services", olds, news)
    match change:
        case (
            c.AddColumn()
            | c.DropColumn()
            | c.RenameColumn()
            | c.WidenColumn()
            | c.ConvertColumn()
            | c.RelaxNullability()
            | c.TightenNullability()
            | c.ChangeColumnDescription()
            | c.ChangeColumnSensitive()
            | c.ChangeColumnDefault()
            | c.ChangeColumnSource()
            | c.ChangeColumnComputed()
            | c.ReorderColumns()
        ):
            return "columns", "update"
        case c.RenameTable():
            return "name", "update"
        case c.ChangeRowKeys():
            return _property("row_keys", olds, news)
        case c.SetUnique():
            return _property("unique", olds, news)
        case c.ChangeSortKeys():
            return _property("sort_keys", olds, news)
        case c.ChangeSplitPoints() | c.ChangeLeafLimit():
            return _property("partitions", olds, news)
        case c.ChangeEmbedding():
            return _property("embedding", olds, news)
        case c.ChangeRetention():
            return _property("retention", olds, news)
        case c.ChangeHolds():
            return _property("holds", olds, news)
        case c.ChangeRetainedChanges():
            return _property("retain_changes", olds, news)
        case c.ChangeViewQuery() | c.ChangeMaxStaleness():
            return _property("view", olds, news)
        case c.ChangeStorage():
            return _property("storage", olds, news)
        case c.CreateIndex() | c.DropIndex() | c.RebuildIndex() | c.RenameIndex():
            return _property("indexes", olds, news)
        case c.SetOnline():
            return _property("online", olds, news)
        case c.SetDeletionProtection():
            return _property("deletion_protection", olds, news)
        case c.ChangeDescription():
            return _property("description", olds, news)
        case c.ChangeTags():
            return _property("tags", olds, news)
        case c.ChangeRoot():
            return "root", "update"
        case c.ChangeStateBackend():
            return _property("state", olds, news)
        case c.ChangeEngine():
            return _property("engine", olds, news)
        case c.ChangeClusters():
            return _property("clusters", olds, news)
        case c.ChangeNotify():
            return _property("notify", olds, news)
        case c.ChangeSources():
            return _property("sources", olds, news)
        case c.ChangeRegister():
            return _property("register", olds, news)
        case c.CreateSearchIndex() | c.DropSearchIndex() | c.RebuildSearchIndex():
            return _property("search_indexes", olds, news)
        case c.ChangeDefaultBlueprint(before=before, after=after):
            same_file = before is not None and after is not None and before.file == after.file
            return _property(BLUEPRINT_SHA256 if same_file else "default_blueprint", olds, news)
        case c.ChangeDatasetServices():
            return _property("services", olds, news)
        case c.ChangeVersionsKept():
            return _property("retention", olds, news)
        case (
            c.CreateInstance()
            | c.DeleteInstance()
            | c.CreateTable()
            | c.DeleteTable()
            | c.CreateDataset()
            | c.DeleteDataset()
        ):
            raise TypeError(f"{type(change).__name__} is not a difference between two resources")
        case _:
            assert_never(change)


def _property(name: str, olds: Properties, news: Properties) -> tuple[str, DiffKind]:
    """Returns the path and kind of a property. Inputs omit defaults, so a property that gets or loses its default is
    deleted or added."""
    if name not in olds:
        return name, "add"
    return name, "update" if name in news else "delete"
