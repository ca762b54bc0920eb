"""A table for programs that change, index and search it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.columns.jobs import JobFuture, report_ignored, run_load, start_load
from deployer.columns.load.request import checked_request
from deployer.platform.isolation.trusted_functions import NONE_TRUSTED, TrustedFunctions
from deployer.search import SearchBuilder, SearchTarget, search
from deployer.table import indexes as of_indexes
from deployer.table.indexes import VECTOR_COLUMN_NAME
from deployer.tables.append import Appendable, Appender
from deployer.tables.indexes.create import remove_index
from deployer.tables.indexes.listing import IndexConfig, IndexStatistics, index_stats, list_indices
from deployer.tables.ingest.commit.append import AppendResult
from deployer.tables.open_table import OpenTable
from deployer.tables.read.table import Table as Reader
from deployer.tables.rows.change import RowChange
from deployer.tables.rows.delete import delete_rows
from deployer.tables.rows.merge import MergeRules, WhenMatched, WhenNotMatched, WhenNotMatchedBySource, merge_rows
from deployer.tables.rows.update import update_rows

if TYPE_CHECKING:
    import datetime as dt

    import pandas as pd
    from pyspark.sql import SparkSession

    from deployer.services.erasure.results import ErasureResult
    from deployer.table.optimize import CleanupResult, OptimizeResult


class Table:
    """A table of an instance. Each call works on the newest version; what it returns is of one version.

    Not for several threads at once; open one for each.
    """

    def __init__(self, opened: OpenTable, trusted: TrustedFunctions = NONE_TRUSTED) -> None:
        self._opened = opened
        self._appender: Appender | None = None
        self._trusted = trusted
        self._searched: SearchTarget | None = None

    @property
    def name(self) -> str:
        """The name `database.name`."""
        return self._opened.entry.full_name

    @property
    def schema(self) -> pa.Schema:
        """The columns of the newest version, with descriptions in the fields' metadata."""
        return self._newest().schema

    @property
    def version(self) -> int:
        """The newest version of the Lance dataset."""
        return self._newest().state.lance_version

    @property
    def row_keys(self) -> tuple[str, ...]:
        """The names of the row keys; none for a table without them."""
        return self._newest().row_keys

    def count_rows(self, where: str | None = None) -> int:
        """The number of rows for which the SQL condition is true; without a condition, nothing is read."""
        return Reader(self._newest()).count_where(where)

    def to_arrow(self, columns: Sequence[str] | None = None, where: str | None = None) -> pa.Table:
        """The rows for which the SQL condition is true, in memory. Raises InvalidInput for unknown columns and SQL."""
        return Reader(self._newest()).scan(where, columns).to_table()

    def to_pandas(self, columns: Sequence[str] | None = None, where: str | None = None) -> pd.DataFrame:
        """As `to_arrow`, as a DataFrame of pandas."""
        rows: pd.DataFrame = self.to_arrow(columns, where).to_pandas()
        return rows

    def search(
        self,
        query: Any = None,
        vector_column_name: str | None = None,
        query_type: str = "auto",
        ordering_field_name: str | None = None,
        fts_columns: str | Sequence[str] | None = None,
    ) -> SearchBuilder:
        """A search of the newest version; the methods of the builder that it returns say more, and give rows.

        `query` is a vector (a list, a NumPy or Arrow array) or a text; without one, rows are read. `query_type` is
        `vector`, `fts` (full-text search), `hybrid` (both) or `auto`: a vector for a vector, and for a text a vector
        where the table declares an embedding function, else the words. `vector_column_name` may be left out where it is
        clear. `fts_columns` are the columns whose words are searched: unless given, all with a full-text index; rows of
        a full-text search come in the order of `ordering_field_name`, highest first, instead of their score.

        Raises InvalidInput for what does not fit the table, Refused for an embedding function that is not trusted.
        """
        self._searched = SearchTarget.of(self._newest(), self._trusted, self._searched)
        return search(self._searched, query, vector_column_name, query_type, ordering_field_name, fts_columns)

    def add(self, rows: Appendable, *, job_id: str | None = None) -> AppendResult:
        """Adds all rows as one version, or none. With the id of a job that is done, nothing is added.

        `rows` are an Arrow table or batch, a DataFrame of pandas or polars, or a list of dicts. Raises Refused for rows
        that do not fit, InvalidInput for columns that do not; Conflict when the table was changed meanwhile.
        """
        if self._appender is None:
            self._appender = Appender(self._newest())
        else:
            self._appender.refresh()
        return self._appender.append(rows, job_id)

    def load_columns(
        self,
        source: str | list[str],
        pk: str,
        columns: list[str],
        *,
        source_format: str | None = None,
        on_missing: str = "carry",
        concurrency: int = 8,
        task_size: int | None = None,
        checkpoint_size: int | None = None,
        min_checkpoint_size: int | None = None,
        max_checkpoint_size: int | None = None,
        checkpoint_interval_seconds: float | None = None,
        _loader_cpus: float | None = None,
        _loader_memory: int | None = None,
        commit_granularity: int | None = None,
        refresh_status_secs: float = 2.0,
        enable_job_tracker_saves: bool = True,
        job_id: str | None = None,
    ) -> str:
        """As `load_columns_async`, in this thread; returns the job's id. Ctrl-C cancels the job.

        Logs the progress every `refresh_status_secs`.
        """
        report_ignored(
            task_size=task_size, _loader_cpus=_loader_cpus, _loader_memory=_loader_memory,
            enable_job_tracker_saves=None if enable_job_tracker_saves else False,
        )  # fmt: skip
        request = checked_request(
            source,
            pk,
            columns,
            source_format=source_format,
            on_missing=on_missing,
            concurrency=concurrency,
            task_size=task_size,
            checkpoint_size=checkpoint_size,
            min_checkpoint_size=min_checkpoint_size,
            max_checkpoint_size=max_checkpoint_size,
            checkpoint_interval_seconds=checkpoint_interval_seconds,
            commit_granularity=commit_granularity,
        )
        return run_load(self._newest(), request, job_id, refresh_status_secs)

    def load_columns_async(
        self,
        source: str | list[str],
        pk: str,
        columns: list[str],
        *,
        source_format: str | None = None,
        on_missing: str = "carry",
        concurrency: int = 8,
        task_size: int | None = None,
        checkpoint_size: int | None = None,
        min_checkpoint_size: int | None = None,
        max_checkpoint_size: int | None = None,
        checkpoint_interval_seconds: float | None = None,
        _loader_cpus: float | None = None,
        _loader_memory: int | None = None,
        commit_granularity: int | None = None,
        enable_job_tracker_saves: bool = True,
        job_id: str | None = None,
    ) -> JobFuture:
        """Loads columns of Parquet, Lance or IPC files into the rows with the same `pk`; adds columns that are not
        there.

        `source` is a file, folder, glob or s3:// address, or a list of files. Rows without a match keep what they have
        (`on_missing="carry"`), get null, or are an error. At most `concurrency` fragments are written at the same time,
        `checkpoint_size` rows at a time. Each `commit_granularity` fragments are a version; if omitted, all are one.
        A `job_id` resumes the job that was cut off, and does nothing when that job is done.

        Raises InvalidInput for arguments that cannot be. The job raises as `deployer.columns.load.load` says.
        """
        report_ignored(
            task_size=task_size, _loader_cpus=_loader_cpus, _loader_memory=_loader_memory,
            enable_job_tracker_saves=None if enable_job_tracker_saves else False,
        )  # fmt: skip
        request = checked_request(
            source,
            pk,
            columns,
            source_format=source_format,
            on_missing=on_missing,
            concurrency=concurrency,
            task_size=task_size,
            checkpoint_size=checkpoint_size,
            min_checkpoint_size=min_checkpoint_size,
            max_checkpoint_size=max_checkpoint_size,
            checkpoint_interval_seconds=checkpoint_interval_seconds,
            commit_granularity=commit_granularity,
        )
        return start_load(self._newest(), request, job_id)

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

        It takes the place of the column's index on vectors in one commit. `parts` are built at the same time, with a
        session as Spark tasks. Raises InvalidInput for arguments that do not fit, Refused when `replace` is false and
        there is one, and for fewer rows than it learns from; nothing changes then.
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
        """Builds an index for full-text search on each of the columns of text. Columns to order by need none.

        The build uses about `writer_heap_size` bytes. `_kwargs` are parameters that the specs have besides. See
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
        """Builds an index for conditions: BTREE, BITMAP, or LABEL_LIST on lists. See `create_index` for the rest."""
        table = self._newest()
        plan = of_indexes.build_plan(table, spark, parts)
        of_indexes.create_scalar_index(table, column, index_type, replaces=replace, plan=plan)

    def list_indices(self) -> list[IndexConfig]:
        """The indexes by name, also those that wait for rows."""
        return list_indices(self._newest())

    def index_stats(self, index_name: str) -> IndexStatistics | None:
        """How many rows an index has, and how many searches scan beside it; None where there is no such index."""
        return index_stats(self._newest(), index_name)

    def drop_index(self, name: str) -> None:
        """Drops an index. Raises NotFound with the nearest name."""
        remove_index(self._newest(), name)

    def delete(
        self, where: str | None = None, *, job_id: str | None = None, dry_run: bool = False, allow_destroy: bool = False
    ) -> RowChange:
        """Deletes the rows for which the SQL condition is true, as one version; without a condition, all rows.

        With the id of a job that is done, nothing is deleted; `dry_run` only counts. Raises InvalidInput for a
        condition that cannot be used; Refused where no row would be left of a table that is protected from deletion,
        unless `allow_destroy`; Conflict where others change the same rows without end.
        """
        return delete_rows(self._newest(), where, job_id=job_id, dry_run=dry_run, allow_destroy=allow_destroy)

    def update(
        self,
        where: str | None = None,
        values: Mapping[str, Any] | None = None,
        *,
        values_sql: Mapping[str, str] | None = None,
        job_id: str | None = None,
        dry_run: bool = False,
    ) -> RowChange:
        """Gives columns other values in the rows for which the SQL condition is true (None: in all), as one version.

        `values` are Python values by column, `values_sql` SQL expressions over the row as it was. Rows whose row keys
        change move to the leaf of their new key. Raises as `delete`, and Refused for values that do not fit.
        """
        return update_rows(self._newest(), where, values, values_sql=values_sql, job_id=job_id, dry_run=dry_run)

    def merge(
        self,
        rows: Appendable,
        on: str | Sequence[str] | None = None,
        *,
        when_matched: WhenMatched = "update",
        when_not_matched: WhenNotMatched = "insert",
        when_not_matched_by_source: WhenNotMatchedBySource = "keep",
        where: str | None = None,
        job_id: str | None = None,
        dry_run: bool = False,
        allow_destroy: bool = False,
    ) -> RowChange:
        """Merges rows by the columns `on`, which are the row keys unless given, as one version.

        Rows with a key that the table has take its place ("update"), delete it, or are left out ("ignore"); others are
        inserted or left out. Rows of the table whose key `rows` do not have are kept, or deleted: with `where` those
        for which it is true. A key with a null matches nothing. Columns that `rows` do not have keep their values.

        Raises Refused, with examples, where two of `rows` have one key; else as `update`.
        """
        rules = MergeRules(when_matched, when_not_matched, when_not_matched_by_source, where)
        newest = self._newest()
        return merge_rows(newest, rows, on, rules, job_id=job_id, dry_run=dry_run, allow_destroy=allow_destroy)

    def erase(self, where: str, *, delete_savepoints: bool = False) -> ErasureResult:
        """Erases the rows for which the SQL condition is true from every version, replaced dataset and index.

        The result says what could not be reached, and proves the rest by reading it. Raises Refused for rows under a
        legal hold, and for rows of a savepoint unless `delete_savepoints`.
        """
        from deployer.services.erasure.erase import erase  # it loads the services

        return erase(self._newest(), where, delete_savepoints=delete_savepoints)

    def optimize(
        self, *, cleanup_older_than: dt.timedelta | None = None, delete_unverified: bool = False
    ) -> OptimizeResult:
        """Runs COMPACT, brings indexes up to date and removes old versions, as `cleanup_old_versions`."""
        from deployer.table.optimize import optimize

        return optimize(self._newest(), cleanup_older_than, delete_unverified=delete_unverified)

    def cleanup_old_versions(
        self, older_than: dt.timedelta | None = None, *, delete_unverified: bool = False
    ) -> CleanupResult:
        """Removes versions older than that, by default as the table's CLEAN says, else 7 days.

        Never what savepoints, read leases, tags and commits in progress need; the result says what stays and why. With
        `delete_unverified`, files that no version has go although they are younger than 7 days, unless work is known to
        be in progress. Raises Conflict while a run of CLEAN or RESTORE is running.
        """
        from deployer.table.optimize import cleanup

        return cleanup(self._newest(), older_than, delete_unverified=delete_unverified)

    def _newest(self) -> OpenTable:
        self._opened = self._opened.refreshed()
        return self._opened
