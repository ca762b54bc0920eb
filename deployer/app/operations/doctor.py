"""`doctor`: what is missing or wrong for a project, and the IAM policies that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployer.app.diagnostics.checks import Result, Status, counts, run_checks
from deployer.app.diagnostics.project import read_place
from deployer.app.diagnostics.selection import checks_of
from deployer.platform.text import masking

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class DoctorResult:
    """The findings of the checks for stack `stack`, in the order in which they are shown."""

    stack: str
    results: tuple[Result, ...]

    @property
    def counts(self) -> Mapping[Status, int]:
        """Returns the number of checks by status."""
        return counts(self.results)

    @property
    def is_healthy(self) -> bool:
        """Returns whether nothing is wrong. Warnings count as healthy."""
        return not self.counts[Status.WRONG]

    def to_json(self) -> dict[str, Any]:
        """Returns the document that `deployer doctor --json` prints."""
        return {
            "format": FORMAT_VERSION,
            "stack": self.stack,
            "counts": {status.value: number for status, number in self.counts.items()},
            "checks": [
                {
                    "group": each.group,
                    "check": each.name,
                    "status": each.finding.status.value,
                    "what": each.finding.what,
                    "remedy": each.finding.remedy or None,
                    "details": dict(each.finding.details),
                }
                for each in self.results
            ],
        }


@dataclass(frozen=True, slots=True)
class PoliciesResult:
    """The files of IAM policies that were written, with the number of characters of each."""

    written: Mapping[Path, int]

    def to_json(self) -> dict[str, Any]:
        """Returns the document that `deployer doctor --write-policy --json` prints."""
        return {"format": FORMAT_VERSION, "policies": {str(path): size for path, size in self.written.items()}}


def doctor(
    project: Path | str | None = None,
    stack: str = "dev",
    specs: Path | str | None = None,
    *,
    timeout: float = 30.0,
    on_wait: Callable[[Sequence[str]], None] = lambda _checks: None,
) -> DoctorResult:
    """Looks for what is missing or wrong on this machine, in the project, in the lake and in AWS. Changes nothing.

    The checks run in parallel, for at most `timeout` seconds. `on_wait` is called with the names of the checks that
    still run. A project that cannot be read is a finding too.
    """
    with masking.scope():
        return DoctorResult(stack, tuple(run_checks(checks_of(read_place(project, stack, specs)), timeout, on_wait)))


def write_policies(
    folder: Path | str, project: Path | str | None = None, stack: str = "dev", specs: Path | str | None = None
) -> PoliciesResult:
    """Writes the IAM policies of the roles that deploy and preview to a folder, and the boundary of the stack's roles.

    Raises NotFound without a project. Raises Refused without readable specs, for a lake that is not on S3, without
    credentials, and for files that cannot be written.
    """
    from deployer.app.diagnostics import policies

    with masking.scope():
        return PoliciesResult(policies.write_policies(read_place(project, stack, specs), Path(folder)))
