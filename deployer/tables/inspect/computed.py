"""The computed columns of a table, and the versions of their definitions by which its rows were computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from deployer.datasets.dataset import field_ids
from deployer.specs.types.arrow import column_of, computed_of
from deployer.specs.types.computed import ComputedBySql, ComputedByUdf, version_of
from deployer.specs.types.types import format_type
from deployer.state.model.files.computed_by import rows_by_definition

if TYPE_CHECKING:
    import pyarrow as pa

    from deployer.specs.types.computed import Computed
    from deployer.state.model.entities import TableState
    from deployer.tables.open_table import ReadTable


@dataclass(frozen=True, slots=True)
class VersionShare:
    """The number of rows in files that one version of a definition computed. `is_current`: this is the current version.

    An empty version has the rows of all other files: they are not computed yet, have several versions after a merge of
    files, or were written by other programs.
    """

    version: str
    rows: int
    is_current: bool


@dataclass(frozen=True, slots=True)
class ComputedColumnInfo:
    """A computed column: its definition (`sql`, or `udf` and the hash of its package), and how much is computed.

    `computed` has the rows by version, the current one first. `rows` are those of the table.
    """

    name: str
    type: str
    sql: str
    udf: str
    function: str
    inputs: tuple[str, ...]
    version: str
    on_load: bool
    rows: int
    computed: tuple[VersionShare, ...]

    @property
    def is_stale(self) -> bool:
        """Returns whether some rows have values of another definition."""
        return any(each.version and not each.is_current for each in self.computed)

    @property
    def definition(self) -> str:
        """The definition in one line."""
        return self.sql or f"{self.udf}({', '.join(self.inputs)})"

    @property
    def summary(self) -> str:
        """Returns the versions that the rows have: `82% by version 3, 18% by version 2`."""
        return ", ".join(_share(each, self.rows) for each in self.computed) or "no rows"


def computed_infos(table: ReadTable) -> tuple[ComputedColumnInfo, ...]:
    """Returns the computed columns of a table, in its order. The dataset is opened only where there are some."""
    found = [(field, computed) for field in table.schema if (computed := computed_of(field)) is not None]
    if not found:
        return ()
    names = [field.name for field, _ in found]
    ids = dict(zip(names, field_ids(table.dataset(), names), strict=True))
    return tuple(_info(field, computed, table.state, ids[field.name]) for field, computed in found)


def _info(field: pa.Field, computed: Computed, state: TableState, field_id: int) -> ComputedColumnInfo:
    match computed:
        case ComputedBySql(sql=sql):
            udf = function = ""
        case ComputedByUdf(udf=udf, function=function):
            sql = ""
        case _:
            assert_never(computed)
    return ComputedColumnInfo(
        name=field.name,
        type=format_type(column_of(field).type),
        sql=sql,
        udf=udf,
        function=function,
        inputs=computed.inputs,
        version=computed.version,
        on_load=computed.on_load,
        rows=state.files.rows,
        computed=_shares(computed, fill_shares(state, field_id)),
    )


def fill_shares(state: TableState, field_id: int) -> dict[str, int]:
    """Returns the number of rows in files that one definition computed, by its identity; "" has those of all others."""
    found = Counter[str]()
    for identities, rows in rows_by_definition(state.files, field_id).items():
        found[identities[0] if len(identities) == 1 else ""] += rows
    return dict(found)


def _shares(computed: Computed, rows: Mapping[str, int]) -> tuple[VersionShare, ...]:
    shares = (
        VersionShare(version_of(identity) if identity else "", number, identity == computed.identity)
        for identity, number in rows.items()
        if number
    )
    return tuple(sorted(shares, key=lambda each: (not each.is_current, not each.version, -each.rows, each.version)))


def _share(share: VersionShare, rows: int) -> str:
    percent = 100 if share.rows == rows else min(max(round(100 * share.rows / rows), 1), 99)
    if not share.version:
        return f"{percent}% not computed"
    return f"{percent}% by version {share.version}" + ("" if share.is_current else " (stale)")
