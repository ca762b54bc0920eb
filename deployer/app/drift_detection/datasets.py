"""Drift of datasets as edits of the specs."""

from __future__ import annotations

from typing import Any

from deployer.app.drift_detection.find import Drift, DriftItem
from deployer.plan import changes as c
from deployer.specs.editing.edits import SpecEdits
from deployer.specs.editing.nodes import Uneditable
from deployer.specs.serialized.datasets import dataset_document
from deployer.specs.types.dataset import DatasetSpec


def edit_dataset(edits: SpecEdits, item: DriftItem, found: Drift) -> None:
    """Edits the document of a dataset so that it declares the live state. Raises Uneditable for what no edit can
    express."""
    declared = found.lake.dataset(item.address.partition("/")[2])
    live = found.datasets.get(item.address)
    if declared is None:
        raise Uneditable("the specs no longer declare it", remedy="run `up`")
    whole = declared.sources[""]
    if live is None:
        remedy = "remove its document by hand, or run `up` to restore the declared dataset"
        raise Uneditable("`drift` removes no document", where=whole, remedy=remedy)
    name = _property(item.change, declared)
    form: dict[str, Any] = dataset_document(live)
    edits.set_property(declared.sources.get(name, whole), name, form.get(name))


def _property(change: c.Change, declared: DatasetSpec) -> str:
    """Returns the property of the spec that the change affects."""
    match change:
        case c.ChangeSources():
            return "sources"
        case c.ChangeRegister():
            return "register"
        case c.ChangeVersionsKept():
            return "retention"
        case c.ChangeDatasetServices():
            return "services"
        case c.SetDeletionProtection():
            return "deletion_protection"
        case c.ChangeDescription():
            return "description"
        case c.CreateSearchIndex() | c.DropSearchIndex() | c.RebuildSearchIndex():
            return "search_indexes"
        case c.ChangeDefaultBlueprint(after=None):
            return "default_blueprint"
        case c.ChangeDefaultBlueprint(after=blueprint) if blueprint is not None:
            raise Uneditable(
                f"a client set {blueprint.file}, but specs name the file of a blueprint",
                where=declared.sources[""],
                remedy="save it as a file and name that file, or run `up` to restore the declared blueprint",
            )
        case _:
            raise Uneditable("this can only be edited by hand", where=declared.sources[""])
