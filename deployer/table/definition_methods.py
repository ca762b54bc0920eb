"""The methods of a table that add, change and drop columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deployer.columns.jobs import report_ignored
from deployer.table.opened import OpenedTable

if TYPE_CHECKING:
    from deployer.functions.binding import Transforms
    from deployer.tables.inspect.computed import ComputedColumnInfo


class DefinitionMethods(OpenedTable):
    """Definitions of columns, computed ones among them."""

    def add_columns(self, transforms: Transforms, *args: Any, on_load: bool = False, **kwargs: Any) -> None:
        """Adds columns that SQL or functions compute: at once, in one version, and no data file is written.

        `transforms` are `{"name": "SQL"}`, `{"name": udf}`, `{"name": (udf, ["column", …])}`, or, for a function that
        returns `Columns[T]`, `udf` or `UnpackedUDF(udf, prefix="img_")`. The columns are null until a backfill computes
        them; with `on_load`, rows that are loaded or changed from now on get their values at once.

        Raises InvalidFunction, a ValueError, for columns that are there or missing, types that do not fit, and what
        else cannot work; nothing is changed then. Warns (UserWarning) where a parameter has no annotation.
        """
        from deployer.columns.definitions.by_transforms import add_transformed

        report_ignored(**{f"argument {number}": each for number, each in enumerate(args, 2)}, **kwargs)
        add_transformed(self._newest(), transforms, on_load=on_load)

    def alter_columns(self, *alterations: Mapping[str, Any]) -> None:
        """Changes columns, all that are given or none.

        Each alteration is a dict with `path`, the name of a column, and what it gets: `udf` (a function, `(udf,
        ["column", …])` or SQL) computes it in another way, which makes it stale until a backfill; `rename` is a new
        name, which definitions that read the column get too; `nullable`; `data_type`, an Arrow type or a text such as
        `float64`, with SQL for the values as `using` where some may not fit; `on_load`.

        Raises InvalidInput for what cannot be; Refused where the table's rows, keys or legal holds do not allow it;
        Conflict while a run writes the columns. Nothing is changed then.
        """
        from deployer.columns.definitions.by_transforms import alter_transformed

        alter_transformed(self._newest(), alterations)

    def drop_columns(self, columns: Sequence[str]) -> None:
        """Drops columns and the indexes on them. Values stay in versions before until these are cleaned.

        Raises InvalidInput for columns that are not there; Refused for those that something needs, such as keys, and
        columns from which others are computed; Conflict while a run writes them. Nothing is changed then.
        """
        from deployer.columns.definitions.drop import drop_columns

        drop_columns(self._newest(), [columns] if isinstance(columns, str) else columns)

    def list_computed_columns(self) -> list[ComputedColumnInfo]:
        """Returns the computed columns, with their definitions and the rows that each version of them computed."""
        from deployer.tables.inspect.computed import computed_infos

        return list(computed_infos(self._newest()))
