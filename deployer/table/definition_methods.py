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
    """Definitions of columns, including computed columns."""

    def add_columns(self, transforms: Transforms, *args: Any, on_load: bool = False, **kwargs: Any) -> None:
        """Adds columns that SQL or functions compute, in one version. Writes no data file.

        `transforms` are `{"name": "SQL"}`, `{"name": udf}`, `{"name": (udf, ["column", …])}`, or, for a function that
        returns `Columns[T]`, `udf` or `UnpackedUDF(udf, prefix="img_")`. The columns are null until a backfill computes
        them. With `on_load`, rows that are loaded or changed from now on get their values immediately.

        Raises InvalidFunction, a ValueError, for columns that already exist, missing inputs, types that do not fit, and
        other invalid definitions; then nothing is changed. Issues a UserWarning where a parameter has no annotation.
        """
        from deployer.columns.definitions.by_transforms import add_transformed

        report_ignored(**{f"argument {number}": each for number, each in enumerate(args, 2)}, **kwargs)
        add_transformed(self._newest(), transforms, on_load=on_load)

    def alter_columns(self, *alterations: Mapping[str, Any]) -> None:
        """Changes all given columns, or none.

        Each alteration is a dict with `path`, the name of a column, and its changes. `udf` is a new definition (a
        function, `(udf, ["column", …])` or SQL); the column is then stale until a backfill. `rename` is a new name,
        which definitions that read the column get too. `data_type` is an Arrow type or a text such as `float64`; where
        some values may not fit, `using` is SQL for the new values. Further keys are `nullable` and `on_load`.

        Raises InvalidInput for invalid alterations, Refused where the table's rows, keys or legal holds do not allow
        the change, and Conflict while a run writes the columns. An error means that nothing was changed.
        """
        from deployer.columns.definitions.by_transforms import alter_transformed

        alter_transformed(self._newest(), alterations)

    def drop_columns(self, columns: Sequence[str]) -> None:
        """Drops columns and the indexes on them. Values stay in earlier versions until these are removed.

        Raises InvalidInput for columns that do not exist, Refused for columns that are needed, such as keys and inputs
        of computed columns, and Conflict while a run writes them. An error means that nothing was changed.
        """
        from deployer.columns.definitions.drop import drop_columns

        drop_columns(self._newest(), [columns] if isinstance(columns, str) else columns)

    def list_computed_columns(self) -> list[ComputedColumnInfo]:
        """Returns the computed columns, with their definitions and the rows that each version of a definition
        computed."""
        from deployer.tables.inspect.computed import computed_infos

        return list(computed_infos(self._newest()))
