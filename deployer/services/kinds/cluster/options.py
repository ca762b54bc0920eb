"""The options of CLUSTER as values. The schema of specs checks them before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployer.datasets.ordering.clustering import clustering_of, field_of
from deployer.errors import InvalidInput
from deployer.runs.rewriting.tasks import Sizes
from deployer.services.kinds.cluster.curves import Curve
from deployer.services.kinds.cluster.layout import Arrangement
from deployer.specs.declarations.indexes import find_column
from deployer.specs.schema.services import all_options
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.column_names import listed
from deployer.specs.types.types import format_type
from deployer.specs.values.keys import is_key_type
from deployer.specs.yaml.suggestions import nearest
from deployer.tables.open_table import ReadTable

MOST_COLUMNS = 16


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The options of CLUSTER: the files, the columns, and the portions; sizes in bytes. Without `columns`, the table's
    keys are used."""

    columns: tuple[str, ...] = ()
    curve: Curve = "sort"
    incremental: bool = True
    target_file_bytes: int = 256_000_000
    portion_bytes: int = 10_000_000_000
    dry_run: bool = False

    @staticmethod
    def of(declared: Mapping[str, Any]) -> ClusterOptions:
        """Returns the options from canonical form (see `deployer.specs.schema.services`); omitted ones have their
        defaults."""
        options = all_options("CLUSTER", declared)
        return ClusterOptions(**{**options, "columns": tuple(options.get("columns") or ())})

    def sizes(self, table_rows: int) -> Sizes:
        """Returns the sizes for a table whose files have at most `table_rows` rows."""
        return Sizes(self.target_file_bytes, table_rows)

    @property
    def portion(self) -> int:
        """The bytes of a leaf that are arranged at once."""
        return max(self.portion_bytes, self.target_file_bytes)

    def arrangement(self, table: ReadTable) -> Arrangement:
        """Returns the order for rows. Raises InvalidInput for columns that the table lacks or that have no order."""
        order = table.layout().order
        columns = self.columns or order
        if not columns:
            raise InvalidInput(
                "CLUSTER has no columns, and the table has no keys to take instead",
                where=table.address,
                remedy="name some: -o columns=a,b, or `columns:` in the service's options",
            )
        if len(columns) > MOST_COLUMNS:
            raise InvalidInput(
                f"CLUSTER by {len(columns)} columns would find rows by none of them",
                where=table.address,
                remedy=f"name at most {MOST_COLUMNS}, best two to four",
            )
        kinds = tuple(_kind(table, path) for path in columns)
        dataset = table.dataset()
        fields = [int(field.id()) for path in columns if (field := field_of(dataset, path)) is not None]
        rest = tuple(name for name in order if name not in columns) if self.curve == "sort" else ()
        return Arrangement(self.curve, columns, kinds, rest, order, clustering_of(self.curve, fields))


def _kind(table: ReadTable, path: str) -> str:
    columns = columns_of(table.schema)
    column = find_column(columns, path)
    if column is None:
        near = nearest(path, [each.name for each in columns])
        raise InvalidInput(
            f"there is no column {path!r} to cluster by",
            where=table.address,
            remedy=f"did you mean {near!r}?" if near else f"columns: {listed(each.name for each in columns)}",
        )
    if not is_key_type(column.type):
        raise InvalidInput(
            f"column {path!r} of type {format_type(column.type)} has no order to cluster by",
            where=table.address,
            remedy="cluster by numbers, text, binary, dates or times",
        )
    return format_type(column.type)
