"""`drift`: differences between live state and what was last applied, and writing them into the specs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployer.app.drift_detection.find import DriftItem, Undeclared, find_drift
from deployer.app.drift_detection.into_specs import take_over
from deployer.app.stack.engine import held
from deployer.app.workspace import open_workspace
from deployer.live.model import Unreadable
from deployer.plan.render.changes import describe
from deployer.plan.targeting.targets import Targets, targets_as_json
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.platform.text import masking
from deployer.state.model.times import iso_utc


@dataclass(frozen=True, slots=True)
class DriftResult:
    """The differences between live state and what stack `stack` last applied.

    `items` are the differences by address, each with its change and, where known, its author and time. `undeclared` are
    resources of the lake that were never declared. Whether `unreadable` tables differ is unknown. `targets` is what was
    compared; None for everything. `taken_over`: the differences were written into the spec files `written`, and count
    as applied now.
    """

    stack: str
    items: tuple[DriftItem, ...]
    undeclared: tuple[Undeclared, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    targets: Targets | None = None
    taken_over: bool = False
    written: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Returns whether no difference is left, and nothing is undeclared or unreadable."""
        return not (self.undeclared or self.unreadable) and (self.taken_over or not self.items)

    def to_json(self) -> dict[str, Any]:
        """Returns the document that `deployer drift --json` prints."""
        return {
            **({"targets": targets_as_json(self.targets)} if self.targets else {}),
            "drift": [
                {
                    "address": item.address,
                    "kind": item.change.kind,
                    "summary": describe(item.change),
                    "who": item.origin.who if item.origin else None,
                    "at": iso_utc(item.origin.at) if item.origin else None,
                    "version": item.origin.version if item.origin else None,
                }
                for item in self.items
            ],
            "undeclared": [{"what": each.what, "why": each.why} for each in self.undeclared],
            "unreadable": [each.as_row() for each in self.unreadable],
            "written": list(self.written),
        }


def drift(
    project: Path | str | None = None,
    stack: str = "dev",
    specs: Path | str | None = None,
    *,
    targets: Sequence[str] = (),
    write_specs: bool = False,
    on_progress: OnProgress = no_progress,
) -> DriftResult:
    """Finds the differences between live state and what the stack last applied, with authors and times.

    `project`, `stack`, `specs` and `targets` are those of `plan`. With `write_specs` the specs are edited so that they
    declare what is live, and the differences count as applied. `on_progress` receives how many tables are read and
    compared.

    Raises NotFound where the stack never applied anything, Refused for another stack's lake and for a difference that
    cannot be an edit; then no file is written.
    """
    with masking.scope():
        workspace = open_workspace(project, stack, specs)
        with held(workspace, workspace.lake()) if write_specs else nullcontext():
            found = find_drift(workspace, targets, on_progress)
            taken_over = write_specs and bool(found.items)
            written = tuple(take_over(workspace, found)) if taken_over else ()
    return DriftResult(
        stack, found.items, found.undeclared, found.unreadable, found.targets, taken_over=taken_over, written=written
    )
