"""A connection to the tables of one instance."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType

from deployer.platform.isolation.trusted_functions import NONE_TRUSTED, TrustedFunctions
from deployer.state import open_store
from deployer.state.store import StateStore
from deployer.table.table import Table
from deployer.tables.open_table import find_entry, open_entry


class Connection:
    """The tables of the instance at `root`. Use it in a `with` block, or close it; its tables end with it."""

    def __init__(self, root: str, store: StateStore, trusted: TrustedFunctions = NONE_TRUSTED) -> None:
        self.root = root
        self._store = store
        self._trusted = trusted

    def open_table(self, name: str) -> Table:
        """Returns the table `database.name`, or of that bare name when only one has it.

        Raises NotFound with the nearest name, InvalidInput when several tables have the bare name.
        """
        entry = find_entry(self._store.instance().tables.values(), name)
        return Table(open_entry(self._store, self.root, entry), self._trusted)

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

    `trusted_functions` are names `package.module:function` of functions that tables may name and that this process may
    import and call, and hashes of packaged functions, beside those of the environment variable
    DEPLOYER_TRUSTED_FUNCTIONS. `trusted_authors` (DEPLOYER_TRUSTED_AUTHORS) are those whose packaged functions this
    process may run, `trust_udfs` (DEPLOYER_TRUST_UDFS) allows all packaged functions. No other is run.
    """
    trusted = TrustedFunctions.allowed(trusted_functions, authors=trusted_authors, all_packages=trust_udfs)
    return Connection(root, open_store(root), trusted)
