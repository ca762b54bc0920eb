"""A connection to the tables of one instance."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from deployer.platform.isolation.trusted_functions import NONE_TRUSTED, TrustedFunctions
from deployer.state import open_store
from deployer.state.store import StateStore
from deployer.table.table import Table
from deployer.tables.open_table import find_entry, open_entry

if TYPE_CHECKING:
    from deployer.functions.model import UDF


class Connection:
    """The tables of the instance at `root`. Use it in a `with` block, or close it. Its tables cannot be used after
    that."""

    def __init__(self, root: str, store: StateStore, trusted: TrustedFunctions = NONE_TRUSTED) -> None:
        self.root = root
        self._store = store
        self._trusted = trusted

    def open_table(self, name: str) -> Table:
        """Returns the table `database.name`. A bare `name` suffices if only one table has it.

        Raises NotFound, which names the nearest name, and InvalidInput where several tables have the bare name.
        """
        entry = find_entry(self._store.instance().tables.values(), name)
        return Table(open_entry(self._store, self.root, entry), self._trusted)

    def create_materialized_view(
        self,
        name: str,
        query: str,
        udfs: Mapping[str, UDF] | None = None,
        *,
        row_keys: Sequence[str] | None = None,
        max_staleness: dt.timedelta | None = None,
        description: str = "",
    ) -> Table:
        """Creates the materialized view `database.name` of a query, and returns its table, which has no rows until
        `refresh()`.

        The query is one SELECT in SQL that names tables by their full names, such as `SELECT carrier, count(*) AS n
        FROM nyc.flights GROUP BY carrier`. `udfs` has the functions that it calls, by their names in the query; they
        are packaged and stored with the tables. `row_keys` are columns of the query; by default they are the groups of
        GROUP BY, or the row keys of the source if the query returns them. A view is reported as late if its rows
        reflect a state of the sources that is older than `max_staleness`. If a view with this name and the same query
        exists, it is returned unchanged.

        Raises InvalidInput for a query that cannot be maintained from changes; the error names the unsupported part and
        the supported ones. Raises it also for tables, columns and functions that do not exist, and for a view that
        would read itself. Raises Conflict where a table or another view has the name. An error means that nothing was
        stored.
        """
        from deployer.views.new_views import create

        given = (name, query, udfs, row_keys, max_staleness, description)
        return Table(create(self._store, self.root, self._trusted, *given), self._trusted)

    def table_names(self) -> list[str]:
        """Returns the names `database.name` of all tables, in alphabetical order."""
        entries = self._store.instance().tables.values()
        return sorted(entry.full_name for entry in entries if entry.status == "active")

    def close(self) -> None:
        """Closes the state store. Tables that were opened cannot be used afterwards."""
        self._store.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def connect(
    root: str,
    *,
    trusted_functions: Iterable[str] = (),
    trusted_authors: Iterable[str] = (),
    trust_udfs: bool = False,
) -> Connection:
    """Connects to the instance at `root`, a path or `s3://bucket/prefix`. Raises NotFound where there is none.

    `trusted_functions` has names `package.module:function` of functions that this process may import and call for
    tables, and hashes of packaged functions. Those of the environment variable DEPLOYER_TRUSTED_FUNCTIONS are added.
    `trusted_authors` (DEPLOYER_TRUSTED_AUTHORS) names authors whose packaged functions this process may run.
    `trust_udfs` (DEPLOYER_TRUST_UDFS) allows all packaged functions. Other functions are not run.
    """
    trusted = TrustedFunctions.allowed(trusted_functions, authors=trusted_authors, all_packages=trust_udfs)
    return Connection(root, open_store(root), trusted)
