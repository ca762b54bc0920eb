"""The result of a run of INGEST."""

from __future__ import annotations

from dataclasses import dataclass

from deployer.runs.rewriting.run import TableStats
from deployer.state.model.services import Figures, FinalStatus


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A file that was not loaded, with the reason."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class IngestFilesResult:
    """The result of a run. `why` is the reason of a SKIPPED or CANCELLED run; otherwise it names files not loaded.

    `files` counts the loaded files, which have `rows` rows and `bytes` bytes, in `commits` commits. `set_aside` and
    `changed` count all files of the place that are not loaded. `problems` has the first of those that this run found.

    `messages` counts messages from the queue; of these, `outside` name no file of the place. `gone` counts files that
    were named and no longer exist. `unknown` counts messages that are not notifications; they stay in the queue.
    """

    table: str
    run_id: str
    status: FinalStatus
    why: str
    place: str
    files: int
    rows: int
    bytes: int
    commits: int
    set_aside: int
    changed: int
    problems: tuple[FileProblem, ...]
    messages: int
    outside: int
    gone: int
    unknown: int
    before: TableStats
    after: TableStats
    seconds: float

    @property
    def figures(self) -> Figures:
        """The figures of the run record."""
        counts = {"files_loaded": self.files, "set_aside": self.set_aside, "changed": self.changed}
        return Figures(
            self.before.rows,
            self.after.rows,
            self.bytes,
            max(0, self.after.bytes - self.before.bytes),
            lance_version_before=self.before.lance_version,
            lance_version_after=self.after.lance_version,
            before=self.before.as_json(),
            after={**self.after.as_json(), **counts},
        )
