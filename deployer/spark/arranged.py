"""DataFrames arranged for a write, so that each task writes into few leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployer.tables.read.table import open_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def arranged(frame: DataFrame, root: str, table: str, partitions: int | None = None) -> DataFrame:
    """Returns the DataFrame with its rows in ranges of the table's row keys, one for each of its partitions.

    Spark writes a DataFrame in the partitions that it has. Where the rows of each are spread over all leaves, every
    task writes a file into every leaf. `partitions` is their number; Spark chooses it by default, by the size of the
    rows. For a table without row keys, the DataFrame is unchanged. Raises NotFound for a table that does not exist.
    """
    opened = open_table(root, table).opened
    try:
        keys = opened.row_keys
    finally:
        opened.store.close()
    if not keys:
        return frame
    columns = [frame[f"`{name.replace('`', '``')}`"] for name in keys]
    return frame.repartitionByRange(partitions, *columns) if partitions else frame.repartitionByRange(*columns)
