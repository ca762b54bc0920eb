"""Builds the search indexes that specs declare, in the same way as those that clients create."""

from __future__ import annotations

from collections.abc import Mapping

from deployer.catalog.datasets.reads.index import DatasetIndex
from deployer.catalog.datasets.search.searches import NewSearch, Searches
from deployer.catalog.protocol.messages import cloud, enum_value
from deployer.datasets.indexes.instances import TextIndex, VectorIndex
from deployer.errors import DeployerError, InvalidInput
from deployer.specs.types.dataset import SearchIndexSpec, defaults_of
from deployer.specs.yaml.suggestions import nearest

_METRICS: Mapping[object, str] = {"L2": "L2", "cosine": "COSINE", "dot": "DOT"}


def build_index(searches: Searches, dataset_id: str, index: SearchIndexSpec) -> None:
    """Builds an index, which replaces an index of the same component. Raises InvalidInput for values and settings that
    do not fit, and NotFound where no value has a time on the index's timeline."""
    wanted = NewSearch(index.entity, index.component, index.timeline, _settings(index), _config(index))
    try:
        searches.create(dataset_id, wanted)
    except DeployerError as error:
        error.where = error.where or f"search index {index.column}"
        raise


def has_component(found: DatasetIndex, index: SearchIndexSpec, dataset: str) -> None:
    """Raises InvalidInput where no recording of the dataset has the component of the index."""
    known = set[str]()
    for field in found.schema:
        metadata = field.metadata or {}
        if (component := metadata.get(b"rerun:component")) is not None:
            known.add(f"{metadata.get(b'rerun:entity_path', b'').decode()}:{component.decode()}")
    if index.column in known:
        return
    near = nearest(index.column, tuple(sorted(known)))
    raise InvalidInput(
        f"no recording of dataset {dataset} has the component {index.column}, which a search index names",
        where=f"dataset/{dataset}",
        remedy=f"did you mean {near}?" if near else "name a component that its recordings have",
    )


def _settings(index: SearchIndexSpec) -> TextIndex | VectorIndex:
    values = {**defaults_of(index.kind), **index.parameters}
    if index.kind == "text":
        return TextIndex(str(values["tokenizer"]), bool(values["store_position"]))
    sizes = int(str(values["num_sub_vectors"])), int(str(values["target_partition_num_rows"]))
    match values["metric"]:
        case "L2":
            return VectorIndex("L2", *sizes)
        case "dot":
            return VectorIndex("dot", *sizes)
        case _:
            return VectorIndex("cosine", *sizes)


def _config(index: SearchIndexSpec) -> bytes:
    """Returns the description of the index for clients: a serialized IndexConfig."""
    values = {**defaults_of(index.kind), **index.parameters}
    config = cloud.IndexConfig()
    config.column.entity_path.path = index.entity
    config.column.component.component = index.component
    config.time_index.timeline.name = index.timeline
    if index.kind == "text":
        config.properties.inverted.base_tokenizer = values["tokenizer"]
        config.properties.inverted.store_position = values["store_position"]
    else:
        vector = config.properties.vector
        vector.num_sub_vectors = values["num_sub_vectors"]
        vector.target_partition_num_rows = values["target_partition_num_rows"]
        vector.distance_metrics = enum_value(
            "VectorDistanceMetric", f"VECTOR_DISTANCE_METRIC_{_METRICS[values['metric']]}"
        )
    result: bytes = config.SerializeToString()
    return result
