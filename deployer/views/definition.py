"""The stored definition of a view: the query that defines it, and the versions of its sources that its rows reflect."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deployer.errors import Corrupt
from deployer.platform.sql.select import canonical_select
from deployer.platform.storage.envelope import RECOVERY
from deployer.state.model.entities import JSON, TableProperties

VIEW = "view"  #: the property of a table's declaration that contains the definition of a view


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """The query of a view, in DataFusion's SQL, with its tables by full name: `SELECT carrier FROM nyc.flights`.

    `functions` has the hashes of the packages of functions, by the functions' names in the query. The packages are
    stored below the root, like those of computed columns. `max_staleness` is in milliseconds: a view that reflects an
    older state of its sources is late.
    """

    query: str
    functions: Mapping[str, str] = field(default_factory=dict)
    max_staleness: int | None = None

    @property
    def fingerprint(self) -> str:
        """A hash of the query (in canonical form) and the functions, which determine the rows."""
        told = json.dumps([canonical_select(self.query), dict(self.functions)], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()

    def to_json(self) -> dict[str, JSON]:
        """Returns the stored form; `of_json` reads it."""
        return {"query": self.query, "functions": dict(self.functions), "max_staleness": self.max_staleness}

    @staticmethod
    def of_json(stored: JSON, where: str) -> ViewDefinition:
        """Returns a stored definition. Raises Corrupt, naming `where`, for another value."""
        match stored:
            case {"query": str(query), "functions": Mapping() as functions, "max_staleness": int() | None as most}:
                return ViewDefinition(query, {str(name): str(value) for name, value in functions.items()}, most)
            case _:
                raise Corrupt("the stored definition of the view cannot be read", where=where, remedy=RECOVERY)


def view_definition(properties: TableProperties, where: str = "view") -> ViewDefinition | None:
    """Returns the definition of a view from its declaration; None for a table that is not a view."""
    stored = properties.declared.get(VIEW)
    return None if stored is None else ViewDefinition.of_json(stored, where)


@dataclass(frozen=True, slots=True)
class SourceVersion:
    """The version of a source that a refresh read. `state_version` is the version of its log; `lance_version` is the
    Lance version of the table's dataset number `dataset`."""

    table_id: str
    state_version: int
    dataset: int
    lance_version: int


@dataclass(frozen=True, slots=True)
class ReflectedInputs:
    """The inputs of a view's rows: the query's fingerprint, and its sources at one point in time.

    `log_version` is the version of the instance's log at that point.
    """

    fingerprint: str
    log_version: int
    sources: tuple[SourceVersion, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form that the commit and the job of a refresh store; `of_json` reads it."""
        sources = [[each.table_id, each.state_version, each.dataset, each.lance_version] for each in self.sources]
        return {"fingerprint": self.fingerprint, "log_version": self.log_version, "sources": sources}

    @staticmethod
    def of_json(stored: JSON, where: str) -> ReflectedInputs:
        """Returns the inputs from a commit or a job. Raises Corrupt, naming `where`, for another value."""
        match stored:
            case {"fingerprint": str(fingerprint), "log_version": int(version), "sources": list(sources)}:
                try:
                    return ReflectedInputs(fingerprint, version, tuple(SourceVersion(*each) for each in sources))
                except TypeError:
                    pass
        raise Corrupt("what the view reflects cannot be read", where=where, remedy=RECOVERY)
