"""The indexes of a table in LanceDB's terms, in the form of `list_indices` and `index_stats` of its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deployer.datasets.indexes.read import observed_indexes
from deployer.specs.schema.index_kinds import VECTOR_KINDS, all_parameters
from deployer.tables.layout.indexes.build import index_infos

if TYPE_CHECKING:
    from deployer.tables.open_table import ReadTable

#: LanceDB's names of index types in lists of indexes, by kind
_TYPES: Mapping[str, str] = {
    "btree": "BTree",
    "bitmap": "Bitmap",
    "label_list": "LabelList",
    "inverted": "FTS",
    "ivf_flat": "IvfFlat",
    "ivf_pq": "IvfPq",
    "ivf_hnsw_sq": "IvfHnswSq",
    "ivf_hnsw_pq": "IvfHnswPq",
}


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """An index of a table. `index_type` is LanceDB's name of the type. `kind` and `parameters` are in the terms of
    specs, without parameters that equal the defaults of specs. `status` is `ready`, or `pending` for lack of rows."""

    name: str
    index_type: str
    columns: list[str]
    kind: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    status: str = "ready"

    def __getitem__(self, name: str) -> Any:
        """Returns the attribute of that name."""
        return _attribute(self, name)


@dataclass(frozen=True, slots=True)
class IndexStatistics:
    """The progress of an index: the number of rows in it, of rows that searches must scan in addition, and of its parts
    (`num_indices`).

    `distance_type` is set only for an index on vectors.
    """

    num_indexed_rows: int
    num_unindexed_rows: int
    index_type: str
    distance_type: str | None = None
    num_indices: int | None = None

    def __getitem__(self, name: str) -> Any:
        """Returns the attribute of that name."""
        return _attribute(self, name)


def _attribute(of: IndexConfig | IndexStatistics, name: str) -> Any:
    if name not in of.__slots__:
        raise KeyError(name)
    return getattr(of, name)


def list_indices(table: ReadTable) -> list[IndexConfig]:
    """Returns the table's indexes in the order of their names, including those that wait for rows and those that specs
    cannot declare."""
    known = {
        each.name: IndexConfig(
            each.name, _TYPES.get(each.kind, each.kind), list(each.columns), each.kind, each.parameters, each.status
        )
        for each in index_infos(table)
        if each.status != "building"
    }
    dataset = table.dataset()
    observed = observed_indexes(dataset)
    for each in dataset.describe_indices():
        if each.name in known or each.name.startswith("__lance_"):
            continue
        seen = observed[each.name].index if each.name in observed else None
        kind = seen.kind if seen else each.index_type.lower()
        parameters = seen.parameters if seen else {}
        known[each.name] = IndexConfig(
            each.name, _TYPES.get(kind, each.index_type), list(each.field_names), kind, parameters
        )
    return [known[name] for name in sorted(known)]


def index_stats(table: ReadTable, name: str) -> IndexStatistics | None:
    """Returns the statistics of the index of that name; None where it does not exist or waits for rows."""
    dataset = table.dataset()
    described = next((each for each in dataset.describe_indices() if each.name == name), None)
    config = next((each for each in list_indices(table) if each.name == name), None)
    if described is None or config is None:
        return None
    parts = described.segments
    fragments = {number for part in parts for number in part.fragment_ids}
    indexed = sum(file.rows for file in table.state.files if file.fragment_id in fragments)
    metric = all_parameters(config.kind, config.parameters)["metric"] if config.kind in VECTOR_KINDS else None
    index_type = "FTS" if config.kind == "inverted" else config.kind.upper()
    return IndexStatistics(indexed, table.state.files.rows - indexed, index_type, metric, len(parts))
