"""Live datasets in the model of the specs.

A dataset's record stores the declaration of its spec:

- `owner`: the stack that manages the dataset.
- `spec`: the spec, without the parts that the record has itself.
- `blueprint`: the blueprint that was set, with its file and segment.
- `pending`: search indexes whose component has no values yet.
- `places`: the locations of the sources' prefixes. Folders are relative to the project that declared them.
- `ran`: when an agent last started each service, or else when the service was declared, in ms since 1970.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from deployer.catalog.datasets.model.record import DatasetRecord, SearchIndex, records_of
from deployer.errors import Corrupt, InvalidInput, Refused
from deployer.live.model import LiveDataset, LiveLake
from deployer.platform.storage.envelope import FORGED
from deployer.platform.text.units import parse_duration
from deployer.specs.serialized.datasets import dataset_from_json, search_index_from_json
from deployer.specs.types.dataset import BlueprintFile, DatasetSpec, SearchIndexSpec, defaults_of
from deployer.specs.validation.plain_values import mapping, objects, text, text_map
from deployer.state.model.entities import InstanceState

OWNER, SPEC, BLUEPRINT, PENDING, PLACES, RAN = "owner", "spec", "blueprint", "pending", "places", "ran"
#: The name of an index setting in the record, by its name in specs.
_SETTINGS: Mapping[str, str] = {
    "tokenizer": "tokenizer",
    "store_position": "with_position",
    "num_sub_vectors": "sub_vectors",
    "target_partition_num_rows": "partition_rows",
}


def with_datasets(live: LiveLake, instance: InstanceState, only: Collection[str] | None = None) -> LiveLake:
    """Returns the lake with its datasets, or only with the datasets at the addresses `only`. Raises Corrupt for invalid
    records."""
    read = (live_of(record) for record in records_of(instance) if record.kind == "dataset")
    found = {each.spec.address: each for each in read}
    if only is not None:
        found = {address: each for address, each in found.items() if address in only}
    return replace(live, datasets=found) if found else live


def live_of(record: DatasetRecord) -> LiveDataset:
    """Returns the live dataset of a record. Raises Corrupt for an invalid declaration."""
    declared = record.declared or {}
    try:
        spec = dataset_from_json({"name": "dataset", **mapping(declared, SPEC, {})})
        built = {each.column: each for each in map(_search_index, record.searches)}
        pending = {each.column: each for each in pending_of(record)}
        indexes = {**pending, **built}
        spec = replace(
            spec,
            name=record.name,
            search_indexes=tuple(indexes[column] for column in sorted(indexes)),
            default_blueprint=_blueprint(record, mapping(declared, BLUEPRINT, {})),
        )
        return LiveDataset(spec, record.dataset_id, text(declared, OWNER, ""), record.layers.rows)
    except InvalidInput as error:
        raise Corrupt(
            f"the log's entry of the dataset's declaration is not valid: {error}", where=record.name, remedy=FORGED
        ) from None


def refuse_managed(record: DatasetRecord, what: str, remedy: str) -> None:
    """Raises Refused for a dataset that a stack manages. `what` is the refused action, as a participle."""
    owner = str((record.declared or {}).get(OWNER) or "")
    if owner:
        raise Refused(
            f"the dataset is managed by {owner} and cannot be {what} here",
            where=f"dataset/{record.name}",
            remedy=remedy,
        )


def pending_of(record: DatasetRecord) -> list[SearchIndexSpec]:
    """Returns the declared search indexes whose component has no values yet. Raises InvalidInput for an invalid
    record."""
    return [search_index_from_json(each) for each in objects(record.declared or {}, PENDING, ())]


def _search_index(search: SearchIndex) -> SearchIndexSpec:
    settings: dict[str, Any] = {**search.settings, "metric": search.metric}
    defaults = defaults_of(search.kind)
    values = {name: settings.get(_SETTINGS.get(name, name), default) for name, default in defaults.items()}
    parameters = {name: value for name, value in values.items() if value != defaults[name]}
    return SearchIndexSpec(f"{search.entity}:{search.component}", search.timeline, search.kind, parameters)


def _blueprint(record: DatasetRecord, declared: Mapping[str, Any]) -> BlueprintFile | None:
    if record.default_blueprint is None:
        return None
    if declared and text(declared, "segment") == record.default_blueprint:
        return BlueprintFile(text(declared, "file"), text(declared, "sha256", ""))
    return BlueprintFile(f"blueprint {record.default_blueprint}")  # a client set it


def kept_for(record: DatasetRecord) -> dt.timedelta | None:
    """Returns how long replaced versions are kept; None where the spec does not declare it."""
    retention = live_of(record).spec.retention
    return None if retention is None else parse_duration(retention)


def declared_places(record: DatasetRecord) -> dict[str, str]:
    """Returns the locations of the prefixes of the dataset's sources, by prefix."""
    return text_map(record.declared or {}, PLACES)


def declaration(
    spec: DatasetSpec, owner: str, places: Mapping[str, str], now: int, before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Returns the form in which a record stores a declaration, with the blueprint and the pending indexes of `before`.
    `now` is in milliseconds since 1970."""
    from deployer.specs.serialized.datasets import dataset_to_json

    form = dataset_to_json(replace(spec, search_indexes=(), default_blueprint=None))
    form.pop("name")
    ran = mapping(before or {}, RAN, {})
    found = {**(before or {}), OWNER: owner, SPEC: form, PLACES: dict(places)}
    found.pop(RAN, None)
    return found | ({RAN: {each.name: ran.get(each.name, now) for each in spec.services}} if spec.services else {})
