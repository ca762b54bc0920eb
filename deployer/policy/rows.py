"""The rows that a rule reads: one for each planned change, each declared resource and each declared column."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field

from deployer.errors import Position


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation that a rule found. `column` is a dotted path; `at` is the line of the specs that caused it."""

    address: str
    message: str
    column: str = ""
    at: Position | None = None


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One change of the plan. `change` is its kind as docs/changes.md lists it, such as `DropColumn`.

    `rows` and `bytes` are the rewritten or destroyed data; `sizes_known` is False in `preview --against`. `before` and
    `after` are texts: a name, a type, keys with commas between them, else JSON. `added_at` (UTC) is when a column that
    is dropped was added, None when that is unknown. `tags` are the table's as declared, else as they are live.
    `sends_to` are the catalogs beyond the lake that the change begins to publish to: hosts, or `KIND:PLACE`.
    """

    address: str
    kind: str  #: `table`, `dataset` or `instance`
    database: str
    name: str
    action: str  #: the action on the resource: `create`, `update` or `delete`
    change: str
    risk: str  #: `safe`, `rewrites`, `external` or `destroys`
    summary: str
    column: str = ""
    before: str | None = None
    after: str | None = None
    rows: int = 0
    bytes: int = 0
    sizes_known: bool = True
    added_at: dt.datetime | None = None
    added_at_is_bound: bool = False  #: the column is older than this; its exact age is not kept
    refused: str | None = None
    sends_to: tuple[str, ...] = ()
    token_variables: tuple[str, ...] = ()  #: variables whose tokens are sent there
    tags: Mapping[str, str] = field(default_factory=dict)
    at: Position | None = None

    def violation(self, message: str) -> Finding:
        """Returns the finding that this change breaks the rule."""
        return Finding(self.address, message, self.column, self.at)


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """One declared instance, table or dataset, changed or not. `is_new`: the plan creates it or renames it."""

    address: str
    kind: str  #: `table`, `dataset` or `instance`
    database: str
    name: str
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    row_keys: tuple[str, ...] = ()
    sort_keys: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()  #: names; of a dataset, the components of search indexes
    leaves: int = 1  #: as declared
    online: bool = True
    deletion_protection: bool = True
    action: str = "same"  #: `unreadable` for a table that cannot be read
    is_new: bool = False
    rows: int = 0
    bytes: int = 0
    at: Position | None = None

    def violation(self, message: str) -> Finding:
        """Returns the finding that this resource breaks the rule."""
        return Finding(self.address, message, "", self.at)


@dataclass(frozen=True, slots=True)
class ColumnRow:
    """One declared column, or field of one. `is_new`: the plan adds it or renames it."""

    address: str
    database: str
    table: str
    column: str  #: dotted path
    type: str
    nullable: bool = True
    description: str = ""
    default: str = ""
    is_row_key: bool = False
    is_sort_key: bool = False
    is_new: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)  #: the table's
    at: Position | None = None

    def violation(self, message: str) -> Finding:
        """Returns the finding that this column breaks the rule."""
        return Finding(self.address, message, self.column, self.at)


@dataclass(frozen=True, slots=True)
class PlanView:
    """The plan of one stack, in the form for rules. `now` (UTC) is when it was made; `is_live` is False in `--against`.

    `unreadable` are the addresses of tables that cannot be read, and why: no change to them is planned.
    """

    stack: str
    instance: str
    changes: tuple[ChangeRow, ...]
    resources: tuple[ResourceRow, ...]
    columns: tuple[ColumnRow, ...]
    now: dt.datetime
    is_live: bool = True
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @property
    def tables(self) -> tuple[ResourceRow, ...]:
        """The declared tables."""
        return tuple(resource for resource in self.resources if resource.kind == "table")
