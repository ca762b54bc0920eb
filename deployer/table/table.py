"""A table for programs that change, index and search it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.platform.isolation.trusted_functions import NONE_TRUSTED, TrustedFunctions
from deployer.search import SearchBuilder, SearchTarget, search
from deployer.table.backfill_methods import BackfillMethods
from deployer.table.column_methods import ColumnMethods
from deployer.table.definition_methods import DefinitionMethods
from deployer.table.index_methods import IndexMethods
from deployer.table.row_methods import RowMethods
from deployer.table.view_methods import ViewMethods
from deployer.tables.changes.feed import ChangeFeed, open_feed
from deployer.tables.open_table import OpenTable
from deployer.tables.read.table import Table as Reader

if TYPE_CHECKING:
    import datetime as dt

    import pandas as pd

    from deployer.table.optimize import CleanupResult, OptimizeResult


class Table(RowMethods, ColumnMethods, DefinitionMethods, BackfillMethods, IndexMethods, ViewMethods):
    """A table of an instance. Each call works on the newest version, and its result belongs to one version.

    A table must not be used by several threads at the same time; open one for each thread.
    """

    def __init__(self, opened: OpenTable, trusted: TrustedFunctions = NONE_TRUSTED) -> None:
        super().__init__(opened)
        self._trusted = trusted
        self._searched: SearchTarget | None = None

    def count_rows(self, where: str | None = None) -> int:
        """Returns the number of rows for which the SQL condition is true. Without a condition, reads no rows."""
        return Reader(self._newest()).count_where(where)

    def to_arrow(self, columns: Sequence[str] | None = None, where: str | None = None) -> pa.Table:
        """Returns the rows for which the SQL condition is true, in memory. Raises InvalidInput for unknown columns and
        invalid SQL."""
        return Reader(self._newest()).scan(where, columns).to_table()

    def to_pandas(self, columns: Sequence[str] | None = None, where: str | None = None) -> pd.DataFrame:
        """Returns the rows as a DataFrame of pandas."""
        rows: pd.DataFrame = self.to_arrow(columns, where).to_pandas()
        return rows

    def changes(
        self,
        since: str | int | dt.datetime,
        until: str | int | dt.datetime | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
    ) -> ChangeFeed:
        """Returns the rows that the commits after `since` and up to `until` (the newest version by default) inserted,
        updated and deleted.

        Both are versions that `deployer history` lists, or times; 0 is before the first commit. The rows have the
        columns of the newest version, or the named `columns`, and `_change` (`insert`, `update` with the new values,
        `delete` with the old ones), `_commit_version` and `_commit_time`. `batches()` of the result reads them in
        batches, and `to_table()` all at once. With `where`, a row that begins to meet the condition counts as inserted,
        and one that no longer meets it as deleted.

        Raises InvalidInput for arguments that do not fit the table, and NotFound for versions that do not exist or that
        CLEAN removed. That error names the oldest version from which changes can be read.
        """
        return open_feed(self._newest(), since, until, columns, where)

    def search(
        self,
        query: Any = None,
        vector_column_name: str | None = None,
        query_type: str = "auto",
        ordering_field_name: str | None = None,
        fts_columns: str | Sequence[str] | None = None,
    ) -> SearchBuilder:
        """Returns a search of the newest version. Methods of the returned builder refine the search and return rows.

        `query` is a vector (a list, a NumPy or Arrow array) or a text; without one, rows are read. `query_type` is
        `vector`, `fts` (full-text search), `hybrid` (both) or `auto`. With `auto`, a vector means `vector`; a text
        means `vector` if the table declares an embedding function, otherwise `fts`. `vector_column_name` may be
        omitted if it is clear. `fts_columns` are the columns for full-text search; by default, all with a full-text
        index. With `ordering_field_name`, rows of a full-text search are ordered by this column, highest first, instead
        of by their score.

        Raises InvalidInput for arguments that do not fit the table, and Refused for an embedding function that is not
        trusted.
        """
        self._searched = SearchTarget.of(self._newest(), self._trusted, self._searched)
        return search(self._searched, query, vector_column_name, query_type, ordering_field_name, fts_columns)

    def optimize(
        self, *, cleanup_older_than: dt.timedelta | None = None, delete_unverified: bool = False
    ) -> OptimizeResult:
        """Runs COMPACT, brings indexes up to date and removes old versions as `cleanup_old_versions` does."""
        from deployer.table.optimize import optimize

        return optimize(self._newest(), cleanup_older_than, delete_unverified=delete_unverified)

    def cleanup_old_versions(
        self, older_than: dt.timedelta | None = None, *, delete_unverified: bool = False
    ) -> CleanupResult:
        """Removes versions older than `older_than`; by default, the age of the table's own CLEAN, or 7 days.

        Versions that savepoints, read leases, tags and commits in progress need are kept; the result lists the kept
        versions with the reasons. With `delete_unverified`, files that no version has are removed even if they are
        younger than 7 days, unless work is known to be in progress. Raises Conflict while a run of CLEAN or RESTORE is
        running.
        """
        from deployer.table.optimize import cleanup

        return cleanup(self._newest(), older_than, delete_unverified=delete_unverified)
