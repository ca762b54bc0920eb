"""The result of a run of METASYNC, by catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from deployer.platform.files.json_values import JSON
from deployer.state.model.services import Figures, FinalStatus

Action = Literal["created", "updated", "unchanged", "removed", "left", "failed"]


@dataclass(frozen=True, slots=True)
class PublishedEntry:
    """The change of one entry. `changed_by_others` are the parts that were not as they had been published.

    `version_before` is the version in the entry, where it has one. `left`: the entry belongs to another program now.
    """

    target: str
    action: Action
    version_before: int | None = None
    version_after: int | None = None
    changed_by_others: tuple[str, ...] = ()
    failure: str = ""

    def as_json(self) -> dict[str, JSON]:
        form: dict[str, JSON] = {"action": self.action}
        if self.version_after is not None:
            form["version"] = self.version_after
        if self.changed_by_others:
            form["changed_by_others"] = list(self.changed_by_others)
        if self.failure:
            form["failure"] = self.failure
        return form


@dataclass(frozen=True, slots=True)
class MetasyncResult:
    """The result of a run. SKIPPED: all catalogs are up to date, and `why`. FAILED: `why` has what failed where.
    SUCCEEDED: `why` has what others had changed, if anything.

    `targets` are the entries of the table, of former names too; `gone` those of tables that are deleted.
    """

    table: str
    run_id: str
    status: FinalStatus
    why: str
    targets: tuple[PublishedEntry, ...]
    gone: tuple[PublishedEntry, ...]
    lance_version: int
    seconds: float

    @property
    def figures(self) -> Figures:
        """The figures of the run record. A failed run has published no version, so it is due again."""
        version = None if self.status == "FAILED" else self.lance_version
        every = (*self.targets, *self.gone)
        return Figures(
            lance_version_before=version,
            lance_version_after=version,
            before={each.target: {"version": each.version_before} for each in every},
            after={each.target: each.as_json() for each in every},
        )
