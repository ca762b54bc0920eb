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
    """A table of an instance. Each call works on the newest version; what it returns is of one version.

    It is not safe for several threads at once; open one for each.
    """

    def __init__(self, opened: OpenTable, trusted: TrustedFunctions = NONE_TRUSTED) -> None:
        super().__init__(opened)
        self._trusted = trusted
        self._searched: SearchTarget | None = None

    def count_rows(self, where: str | None = None) -> int:
        """Returns the number of rows for which the SQL condition is true; without a condition, nothing is read."""
        return Reader(self._newest()).count_where(where)

    def to_arrow(self, columns: Sequence[str] | None = None, where: str | None = None) -> pa.Table:
        """Returns the rows for which the SQL condition is true, in memory. Raises InvalidInput for unknown columns and
        SQL."""
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
        columns of the newest version, or those named, and `_change` (`insert`, `update` with the new values, `delete`
        with the old ones), `_commit_version` and `_commit_time`. `batches()` of what is returned reads them as they
        come, `to_table()` all at once. With `where`, a row that begins to hold it is inserted, and one that no longer
        does is deleted.

        Raises InvalidInput for what does not fit the table, NotFound for versions that do not exist or that CLEAN
        removed; that error names the oldest version that changes can be read since.
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
        """Returns a search of the newest version; the methods of the builder that it returns say more, and give rows.

        `query` is a vector (a list, a NumPy or Arrow array) or a text; without one, rows are read. `query_type` is
        `vector`, `fts` (full-text search), `hybrid` (both) or `auto`: a vector for a vector, and for a text a vector
        where the table declares an embedding function, else the words. `vector_column_name` may be left out where it is
        clear. `fts_columns` are the columns whose words are searched: by default, all with a full-text index; rows of
        a full-text search come in the order of `ordering_field_name`, highest first, instead of their score.

        Raises InvalidInput for what does not fit the table, Refused for an embedding function that is not trusted.
        """
        self._searched = SearchTarget.of(self._newest(), self._trusted, self._searched)
        return search(self._searched, query, vector_column_name, query_type, ordering_field_name, fts_columns)

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

        It keeps what savepoints, read leases, tags and commits in progress need; the result lists what stays and why.
        With `delete_unverified`, files that no version has go although they are younger than 7 days, unless work is
        known to be in progress. Raises Conflict while a run of CLEAN or RESTORE is running.
        """
        from deployer.table.optimize import cleanup

        return cleanup(self._newest(), older_than, delete_unverified=delete_unverified)
