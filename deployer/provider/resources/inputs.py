"""Specs as the inputs of Pulumi resources: their JSON form, a table's columns as JSON text, and the instance's root.

Columns are one string because each value in a resource costs Pulumi's SDK about as much time as comparing a whole table
costs deployer; the Pulumi CLI shows such texts as the structures that they hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from deployer.errors import InvalidInput
from deployer.platform.files.json_documents import NotADocument, read_document
from deployer.specs.model import InstanceSpec, TableSpec
from deployer.specs.schema.services import plain
from deployer.specs.serialized.datasets import dataset_from_json, dataset_to_json
from deployer.specs.serialized.specs import instance_to_json, table_from_json, table_to_json
from deployer.specs.types.dataset import DatasetSpec
from deployer.specs.validation.plain_values import text

ROOT = "root"
COLUMNS = "columns"
DATASET_ID = "dataset_id"  #: an output of datasets


def table_inputs(spec: TableSpec, root: Any) -> dict[str, Any]:
    """Returns the inputs that declare `spec`; `root` may be an output of the instance."""
    form = table_to_json(spec)
    form[COLUMNS] = json.dumps(form[COLUMNS], ensure_ascii=False, separators=(",", ":"))
    return {**plain(form), ROOT: root}


def instance_inputs(spec: InstanceSpec) -> dict[str, Any]:
    """Returns the inputs that declare `spec`; `instance_from_json` is the inverse."""
    return dict(plain(instance_to_json(spec)))


def dataset_inputs(spec: DatasetSpec, root: Any) -> dict[str, Any]:
    """Returns the inputs that declare `spec`; `root` may be an output of the instance."""
    return {**plain(dataset_to_json(spec)), ROOT: root}


def dataset_of(inputs: Mapping[str, Any]) -> DatasetSpec:
    """Returns the inverse of `dataset_inputs`, for outputs too. Raises InvalidInput, naming what is wrong, for inputs
    that are not a dataset's."""
    return dataset_from_json({name: value for name, value in inputs.items() if name not in (ROOT, DATASET_ID)})


def table_of(inputs: Mapping[str, Any]) -> TableSpec:
    """Returns the inverse of `table_inputs`. Raises InvalidInput, naming what is wrong, for inputs that are not a
    table's."""
    try:
        columns = read_document(text(inputs, COLUMNS))
    except NotADocument as error:
        raise InvalidInput(f"`{COLUMNS}` cannot be read: {error}") from None
    return table_from_json({**inputs, COLUMNS: columns})
