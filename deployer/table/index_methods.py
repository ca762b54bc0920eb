"""The methods of a table that create, list and drop indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deployer.table import indexes as of_indexes
from deployer.table.indexes import VECTOR_COLUMN_NAME
from deployer.table.opened import OpenedTable
from deployer.tables.layout.indexes.create import remove_index
from deployer.tables.layout.indexes.listing import IndexConfig, IndexStatistics, index_stats, list_indices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class IndexMethods(OpenedTable):
    """Indexes, with LanceDB's arguments and defaults."""

    def create_index(
        self,
        metric: str = "L2",
        num_partitions: int | None = None,
        num_sub_vectors: int | None = None,
        vector_column_name: str = VECTOR_COLUMN_NAME,
        replace: bool = True,
        accelerator: str | None = None,
        index_cache_size: int | None = None,
        *,
        index_type: str = "IVF_PQ",
        num_bits: int = 8,
        max_iterations: int = 50,
        sample_rate: int = 256,
        m: int = 20,
        ef_construction: int = 300,
        parts: int | None = None,
        spark: SparkSession | None = None,
    ) -> None:
        """Builds an index on vectors: IVF_FLAT, IVF_PQ, IVF_HNSW_SQ or IVF_HNSW_PQ.

        The index replaces the column's index on vectors in one commit. Its `parts` are built at the same time. With a
        session `spark`, they are Spark tasks. Without one, a job on the declared cluster on AWS builds an index of more
        than 20 million rows, or else Spark on the declared local cluster.

        Raises InvalidInput for arguments that do not fit. Raises Refused where the column has an index and `replace` is
        false, where the table has fewer rows than the index learns from, and where the declared cluster on AWS does not
        exist yet. An error means that nothing was changed.
        """
        table = self._newest()
        parameters = {
            "metric": metric,
            "num_partitions": num_partitions,
            "num_sub_vectors": num_sub_vectors,
            "num_bits": num_bits,
            "max_iterations": max_iterations,
            "sample_rate": sample_rate,
            "m": m,
            "ef_construction": ef_construction,
        }
        of_indexes.create_vector_index(
            table,
            vector_column_name,
            index_type,
            parameters,
            replaces=replace,
            plan=of_indexes.build_plan(table, spark, parts),
            accelerator=accelerator,
            index_cache_size=index_cache_size,
        )

    def create_fts_index(
        self,
        field_names: str | Sequence[str],
        *,
        ordering_field_names: str | Sequence[str] | None = None,
        replace: bool = False,
        writer_heap_size: int | None = 1024 * 1024 * 1024,
        tokenizer_name: str | None = None,
        with_position: bool = True,
        base_tokenizer: str = "simple",
        language: str = "English",
        max_token_length: int | None = 40,
        lower_case: bool = True,
        stem: bool = False,
        remove_stop_words: bool = False,
        ascii_folding: bool = False,
        parts: int | None = None,
        spark: SparkSession | None = None,
        **_kwargs: Any,
    ) -> None:
        """Builds an index for full-text search on each of the text columns. Columns to order by need no index.

        The build uses about `writer_heap_size` bytes of memory. `_kwargs` are further parameters that specs have. See
        `create_index` for `replace`, `parts`, `spark` and errors.
        """
        table = self._newest()
        parameters = {
            "with_position": with_position,
            "base_tokenizer": base_tokenizer,
            "language": language,
            "max_token_length": max_token_length,
            "lower_case": lower_case,
            "stem": stem,
            "remove_stop_words": remove_stop_words,
            "ascii_folding": ascii_folding,
        }
        options = of_indexes.memory_options(writer_heap_size, table)
        of_indexes.create_text_indexes(
            table,
            field_names,
            ordering_field_names,
            tokenizer_name,
            parameters,
            _kwargs,
            replaces=replace,
            plan=of_indexes.build_plan(table, spark, parts, options),
        )

    def create_scalar_index(
        self,
        column: str,
        *,
        replace: bool = True,
        index_type: str = "BTREE",
        parts: int | None = None,
        spark: SparkSession | None = None,
    ) -> None:
        """Builds an index for conditions: BTREE, BITMAP, or LABEL_LIST on lists. See `create_index` for arguments and
        errors."""
        table = self._newest()
        plan = of_indexes.build_plan(table, spark, parts)
        of_indexes.create_scalar_index(table, column, index_type, replaces=replace, plan=plan)

    def list_indices(self) -> list[IndexConfig]:
        """Returns the indexes ordered by name, including indexes that wait for rows."""
        return list_indices(self._newest())

    def index_stats(self, index_name: str) -> IndexStatistics | None:
        """Returns the number of rows in an index, and the number of rows that searches scan because the index lacks
        them; None where the index does not exist."""
        return index_stats(self._newest(), index_name)

    def drop_index(self, name: str) -> None:
        """Drops an index. Raises NotFound, which names the nearest index."""
        remove_index(self._newest(), name)
