"""The request and the result of a refresh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from deployer.errors import InvalidInput, Refused
from deployer.state.model.services import Figures, FinalStatus

#: the kind of a refresh: no refresh, one from the changes of the sources, or one that computes all rows again
RefreshMode = Literal["none", "incremental", "full"]


class NoStableRowIds(Refused, RuntimeError):
    """A view cannot be refreshed to another version of a source whose rows have neither row keys nor stable row ids."""

    kind = "NoStableRowIds"


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """The request of a refresh. `src_version` is a version of the view's only source; None reads the newest versions.

    `where` is a condition on the view's columns: only the rows that match it are computed again, from the source
    versions that the view reflects. `full` computes all rows again. `max_rows_per_fragment` is the largest number of
    rows in a written file.
    """

    src_version: int | str | None = None
    where: str | None = None
    max_rows_per_fragment: int | None = None
    full: bool = False

    def __post_init__(self) -> None:
        most = _untyped(self.max_rows_per_fragment)
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
            raise InvalidInput(
                f"max_rows_per_fragment is {most!r}", where="refresh", remedy="give a number above 0, or leave it out"
            )
        version, condition = _untyped(self.src_version), _untyped(self.where)
        if version is not None and (not isinstance(version, int | str) or isinstance(version, bool)):
            raise InvalidInput(
                f"src_version is {version!r}",
                where="refresh",
                remedy="give a version that `deployer history` lists, such as 3",
            )
        if condition is not None and not isinstance(condition, str):
            raise InvalidInput(
                f"where is {condition!r}", where="refresh", remedy='give an SQL condition such as "delay > 10"'
            )
        if self.where is not None and (self.src_version is not None or self.full):
            other = "full" if self.src_version is None else "src_version"
            raise InvalidInput(
                f"`where` and `{other}` are both given: `where` computes rows again of the versions that the view "
                "reflects",
                where="refresh",
                remedy=f"leave one of them out; `{other}` alone refreshes all rows",
            )


def _untyped(given: object) -> object:
    """Returns an argument with the type `object`, because callers without type checks may pass any value."""
    return given


@dataclass(frozen=True, slots=True)
class RefreshJobResult:
    """The result of a refresh. `mode` is its kind, and `reason` says why it was a full one or did nothing.
    `already_done` says that the job was already done before this call.

    `rows_read` counts rows of the sources or of their changes; the other numbers count rows of the view. `errors`
    counts rows of the sources for which a function failed and that its policy skips; `get_errors` lists them. `sources`
    has the versions `DATASET:VERSION` that the view now reflects, by table name. `why` is the reason for the status
    SKIPPED.
    """

    job_id: str
    table: str
    mode: RefreshMode
    reason: str = ""
    run_id: str = ""
    rows_read: int = 0
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    errors: int = 0
    fragments: int = 0
    bytes: int = 0
    sources: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    already_done: bool = False
    lance_version_before: int = 0
    lance_version_after: int = 0
    status: FinalStatus = "SUCCEEDED"
    why: str = ""

    @property
    def figures(self) -> Figures:
        """The figures for the record of the run."""
        return Figures(
            rows_in=self.rows_read,
            rows_out=self.rows_inserted + self.rows_updated,
            bytes_out=self.bytes,
            lance_version_before=self.lance_version_before,
            lance_version_after=self.lance_version_after,
            after={
                "mode": self.mode,
                "reason": self.reason,
                "deleted": self.rows_deleted,
                "errors": self.errors,
                "fragments": self.fragments,
                "sources": dict(self.sources),
                "seconds": self.seconds,
            },
        )
