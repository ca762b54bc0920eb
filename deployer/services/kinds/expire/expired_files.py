"""The files of a table that hold expired rows, by their recorded bounds. No file is opened or read."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deployer.datasets.ordering.clustering import clustered_fields
from deployer.errors import Refused
from deployer.live.reader import retention_of
from deployer.platform.text.units import parse_duration
from deployer.specs.declarations.retention import is_age_column
from deployer.specs.model import Retention
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.types import Column, Scalar, format_type
from deployer.specs.values.key_times import PER_SECOND
from deployer.state.model.entities import File, TableState
from deployer.state.model.keys import encode_nullable, encode_value

if TYPE_CHECKING:
    import pyarrow as pa

DAY = 86_400  #: seconds


@dataclass(frozen=True, slots=True)
class Cutoff:
    """The time before which rows of a table are expired, for the `column` that has the age of the rows.

    `at` is in whole seconds since 1970; `value` is the same time as Arrow stores it in the column.
    """

    column: str
    kind: str
    at: int
    value: int
    zoned: bool

    @staticmethod
    def of(retention: Retention, column: Column, now: float) -> Cutoff:
        """Returns the cutoff of a retention at `now` (seconds since 1970). A date expires when the end of its day
        does."""
        assert isinstance(column.type, Scalar)  # noqa: S101 -- is_age_column
        name, args = column.type.name, column.type.args
        at = int(now - parse_duration(retention.keep).total_seconds())
        if name == "timestamp":
            value = at * PER_SECOND[str(args[0])]
        else:
            at = at // DAY * DAY
            value = at // DAY if name == "date32" else at * 1000
        return Cutoff(column.name, format_type(column.type), at, value, name == "timestamp" and bool(args[1:]))

    @property
    def where(self) -> str:
        """The SQL condition of expired rows. It is not true for rows in which the column is null."""
        moment = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(seconds=self.at)
        if not self.kind.startswith("timestamp"):
            return f"`{self.column}` < DATE '{moment:%Y-%m-%d}'"
        return f"`{self.column}` < TIMESTAMP '{moment:%Y-%m-%dT%H:%M:%S}{'Z' if self.zoned else ''}'"


@dataclass(frozen=True, slots=True)
class ExpiredFiles:
    """The files with expired rows. In `whole` files all rows are expired; in `mixed` files some rows may be."""

    whole: tuple[File, ...] = ()
    mixed: tuple[File, ...] = ()

    @property
    def rows(self) -> int:
        """The rows of the files that are expired as a whole."""
        return sum(file.rows for file in self.whole)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.whole)


def cutoff_of(state: TableState, schema: pa.Schema, where: str, now: float) -> Cutoff:
    """Returns the cutoff of the table's own retention at `now` (seconds since 1970).

    Raises Refused where the table declares no retention, or names a column that is not a date or timestamp of the
    table.
    """
    retention = retention_of(state)
    if retention is None:
        raise Refused(
            "the table declares no retention, so no row expires",
            where=where,
            remedy="declare `retention: {column: …, keep: …}` and run `deployer up`",
        )
    column = next((each for each in columns_of(schema) if each.name == retention.column), None)
    if column is None or not is_age_column(column):
        raise Refused(
            f"retention goes by column {retention.column}, which the table does not have as a date or timestamp",
            where=where,
            remedy="name another column in `retention`, and run `deployer up`",
        )
    return Cutoff.of(retention, column, now)


def expired_files(state: TableState, cutoff: Cutoff, field: int | None = None) -> ExpiredFiles:
    """Returns the table's files with expired rows, by the bounds that the state records for row keys and for columns
    that CLUSTER uses.

    `field` is Lance's id of the column, by which the bounds of CLUSTER are found. It is None where it is unknown.
    """
    keys = state.properties.row_keys
    place = keys.index(cutoff.column) if cutoff.column in keys else None
    key, nullable = encode_value(cutoff.kind, cutoff.value), encode_nullable(cutoff.kind, cutoff.value)
    whole, mixed = [], []
    for file in state.files:
        if place is not None and len(file.column_max) == len(keys):
            low, high, limit = file.column_min[place], file.column_max[place], key
        elif field is not None and field in (fields := clustered_fields(file.clustering)):
            at = fields.index(field)
            low, high, limit = file.cluster_min[at], file.cluster_max[at], nullable
        else:
            mixed.append(file)
            continue
        if high < limit:
            whole.append(file)
        elif low < limit:
            mixed.append(file)
    return ExpiredFiles(tuple(whole), tuple(mixed))
