"""An open table: the common state of all methods of `Table`.

`Table` has more than twenty methods. Each subject has a class with its methods, and `deployer.table.table.Table`
combines these classes.
"""

from __future__ import annotations

import pyarrow as pa

from deployer.platform.isolation.trusted_functions import NONE_TRUSTED, TrustedFunctions
from deployer.tables.open_table import OpenTable


class OpenedTable:
    """A table of an instance. Each call works on the newest version, and its result belongs to one version."""

    _trusted: TrustedFunctions = NONE_TRUSTED  #: functions that may run in this process

    def __init__(self, opened: OpenTable) -> None:
        self._opened = opened

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

    def _newest(self) -> OpenTable:
        self._opened = self._opened.refreshed()
        return self._opened
