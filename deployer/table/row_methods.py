"""The methods of a table that add, change and erase rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deployer.table.opened import OpenedTable
from deployer.table.row_arguments import check_names, check_values, check_where
from deployer.tables.append import Appendable, Appender
from deployer.tables.ingest.commit.append import AppendResult
from deployer.tables.ingest.rows.load_functions import trusting
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.change import RowChange
from deployer.tables.rows.delete import delete_rows
from deployer.tables.rows.merging.merge import merge_rows
from deployer.tables.rows.merging.rules import MergeRules, WhenMatched, WhenNotMatched, WhenNotMatchedBySource
from deployer.tables.rows.update import update_rows

if TYPE_CHECKING:
    from deployer.services.erasure.results import ErasureResult


class RowMethods(OpenedTable):
    """Changes of rows. Each change is one version."""

    def __init__(self, opened: OpenTable) -> None:
        super().__init__(opened)
        self._appender: Appender | None = None

    def add(self, rows: Appendable, *, job_id: str | None = None) -> AppendResult:
        """Adds all rows as one version, or none. Adds nothing if the job `job_id` is already done.

        `rows` is an Arrow table or batch, a DataFrame of pandas or polars, or a list of dicts. Raises Refused for rows
        that do not fit, InvalidInput for columns that do not fit, and Conflict where the table was changed meanwhile.
        """
        if self._appender is None:
            self._appender = Appender(self._newest())
        else:
            self._appender.refresh()
        with trusting(self._trusted):
            return self._appender.append(rows, job_id)

    def delete(
        self, where: str | None = None, *, job_id: str | None = None, dry_run: bool = False, allow_destroy: bool = False
    ) -> RowChange:
        """Deletes the rows for which the SQL condition is true, as one version; without a condition, all rows.

        Deletes nothing if the job `job_id` is already done. `dry_run` only counts the rows. Raises InvalidInput for an
        invalid condition. Raises Refused where a table that is protected from deletion would have no row left, unless
        `allow_destroy`. Raises Conflict where others change the same rows continuously.
        """
        newest = self._newest()
        check_where(where, newest.address)
        return delete_rows(newest, where, job_id=job_id, dry_run=dry_run, allow_destroy=allow_destroy)

    def update(
        self,
        where: str | None = None,
        values: Mapping[str, Any] | None = None,
        *,
        values_sql: Mapping[str, str] | None = None,
        job_id: str | None = None,
        dry_run: bool = False,
        indexes: bool = True,
    ) -> RowChange:
        """Sets columns in the rows for which the SQL condition is true (None: in all rows), as one version.

        `values` has Python values by column; `values_sql` has SQL expressions over the row before the change. Rows with
        changed row keys move to the leaf of their new key. Then the table's indexes are brought up to date, unless
        `indexes` is False; failures of that are in the result. Raises the errors of `delete`, and Refused for values
        that do not fit.
        """
        newest = self._newest()
        check_where(where, newest.address)
        check_values(values, values_sql, newest.address)
        with trusting(self._trusted):
            return update_rows(
                newest, where, values, values_sql=values_sql, job_id=job_id, dry_run=dry_run, indexes=indexes
            )

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
        indexes: bool = True,
    ) -> RowChange:
        """Merges rows by the columns `on`, which are the row keys by default, as one version.

        `rows` has a form that `add` accepts, or is a RecordBatchReader. More than a million rows, or 128 MiB, go
        through temporary files, so that memory does not limit their number.

        `when_matched` decides about rows whose key the table has: they replace the table's row ("update"), delete it,
        or are left out ("ignore"). `when_not_matched` decides whether other rows are inserted or left out.
        `when_not_matched_by_source` decides whether rows of the table whose key `rows` lacks are kept or deleted; with
        `where`, only those for which the condition is true are deleted. A key with a null matches nothing. Columns that
        `rows` lacks keep their values. Then the table's indexes are brought up to date, as by `update`.

        Raises Refused, with examples, where two of the `rows` have the same key, and the errors of `update`.
        """
        newest = self._newest()
        check_where(where, newest.address)
        check_names("on", on, newest.address)
        rules = MergeRules(when_matched, when_not_matched, when_not_matched_by_source, where)
        with trusting(self._trusted):
            return merge_rows(
                newest, rows, on, rules, job_id=job_id, dry_run=dry_run, allow_destroy=allow_destroy, indexes=indexes
            )

    def erase(self, where: str, *, delete_savepoints: bool = False, allow_destroy: bool = False) -> ErasureResult:
        """Erases the rows for which the SQL condition is true from every version, replaced dataset and index.

        The result names places that could not be reached; the erasure from all others is proved by reading them. Raises
        Refused for rows under a legal hold, for rows of a savepoint unless `delete_savepoints`, and for all rows of a
        table that is protected from deletion unless `allow_destroy`.
        """
        from deployer.services.erasure.erase import erase  # it loads the services

        newest = self._newest()
        check_where(where, newest.address, needed=True)
        return erase(newest, where, delete_savepoints=delete_savepoints, allow_destroy=allow_destroy)
