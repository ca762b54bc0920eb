"""The result of a run of METASYNC, by catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from deployer.platform.files.json_values import JSON
from deployer.state.model.services import Figures, FinalStatus

Action = Literal["created", "updated", "unchanged", "removed", "left", "failed"]


@dataclass(frozen=True, slots=True)
class PublishedEntry:
    """The change of one entry. `changed_by_others` has the parts that others changed after they were published.

    `version_before` is the version in the entry, if the entry has one. The action `left` means that the entry now
    belongs to another program.
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
    """The result of a run. SKIPPED means that all catalogs were up to date; `why` then names them.

    `why` of a FAILED run has the failure of each target. `why` of a SUCCEEDED run has the changes of others, if there
    are any. `targets` has the entries of the table, including those of former names. `gone` has the entries of deleted
    tables.
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
