"""A table with a column for each kind of index, and rows for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from deployer.live.reader import read_table
from deployer.plan.changes import Change
from deployer.plan.diff.lakes import diff
from deployer.specs.model import IndexSpec, Storage, TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.tables.admin.tables import create_table, update_table
from deployer.tables.layout.indexes.build import IndexInfo, index_infos
from tests.tables.lakes import Lake

SIZE = 16
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("carrier", pa.string()),
        pa.field("stops", pa.list_(pa.string())),
        pa.field("remark", pa.string()),
        pa.field("embedding", pa.list_(pa.float32(), SIZE)),
        pa.field("gate", pa.struct([pa.field("hall", pa.string()), pa.field("number", pa.int16())])),
    ]
)
WORDS = ("delayed", "cancelled", "boarding", "diverted", "landed", "delays")
TREE = IndexSpec("id_btree", ("id",), "btree")
BITMAP = IndexSpec("carrier_bitmap", ("carrier",), "bitmap")
LABELS = IndexSpec("stops_label_list", ("stops",), "label_list")
TEXT = IndexSpec("remark_inverted", ("remark",), "inverted", {"stem": False, "with_position": True})
NESTED = IndexSpec("gate_number_btree", ("gate.number",), "btree")
PQ = IndexSpec("embedding_ivf_pq", ("embedding",), "ivf_pq", {"num_partitions": 4, "num_sub_vectors": 8})
GRAPH = IndexSpec("graph", ("embedding",), "ivf_hnsw_sq", {"m": 16, "ef_construction": 100})


def rows(count: int, start: int = 0) -> pa.Table:
    """Clustered vectors, and values that each index finds some of."""
    random = np.random.default_rng(start)
    places = range(start, start + count)
    centers = np.random.default_rng(7).normal(size=(20, SIZE)) * 5
    vectors = centers[[i % 20 for i in places]] + random.normal(size=(count, SIZE))
    columns = [
        pa.array(places, pa.int64()),
        pa.array([f"c{i % 7}" if i % 11 else None for i in places], pa.string()),
        pa.array([[f"s{i % 5}", f"s{i % 3}"] for i in places], SCHEMA.field("stops").type),
        pa.array([f"{WORDS[i % 6]} by fog {i % 40}" for i in places], pa.string()),
        pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1), pa.float32()), SIZE),
        pa.array([{"hall": f"h{i % 4}", "number": i % 90} for i in places], SCHEMA.field("gate").type),
    ]
    return pa.table(columns, schema=SCHEMA)


class Indexed:
    """The table of SCHEMA in a lake, with the indexes that it is given."""

    def __init__(self, lake: Lake, indexes: Sequence[IndexSpec], storage: str = "2.1", keyed: bool = True) -> None:
        self.lake = lake
        self.spec = self.with_indexes(
            TableSpec(
                "air",
                "flights",
                columns_of(SCHEMA),
                ("id",) if keyed else (),
                storage=Storage(data_storage_version=storage),
            ),
            indexes,
        )
        self.id = create_table(lake.store, lake.root, self.spec, "tests/dev")

    @staticmethod
    def with_indexes(spec: TableSpec, indexes: Sequence[IndexSpec]) -> TableSpec:
        from dataclasses import replace

        return replace(spec, indexes=tuple(sorted(indexes, key=lambda index: index.name)))

    def declare(self, *indexes: IndexSpec) -> None:
        """Change the declared indexes and apply that, as `up` does."""
        self.spec = self.with_indexes(self.spec, indexes)
        self.apply()

    def apply(self) -> None:
        update_table(self.lake.store, self.lake.root, self.id, self.spec)

    def changes(self) -> tuple[Change, ...]:
        """What a preview would plan."""
        entry = self.lake.store.instance().tables[self.id]
        return diff(read_table(self.lake.store, self.lake.root, entry).spec, self.spec)

    def add(self, count: int, start: int = 0, **request: Any) -> Any:
        return self.lake.ingest(self.lake.file(rows(count, start)), **request)

    @property
    def dataset(self) -> Any:
        """The dataset as plain Lance has it."""
        return self.lake.open().opened.dataset()

    def infos(self) -> dict[str, IndexInfo]:
        return {info.name: info for info in index_infos(self.lake.open().opened)}
