"""The verdict of a project's policies on a run that deployer did not plan: a plain `pulumi up`, `preview` or `destroy`.

The code of `deployer preview` makes the verdict from the specs and live state, in a separate process, because planning
is in a layer above the provider. It prevents mistakes, not malice: a user of Pulumi may change the project, and the
environment, in which `deployer` records that it has checked the policies itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deployer.provider.urn import owner_of
from deployer.specs.loading.known import lake_from_json

if TYPE_CHECKING:
    from deployer.provider.resources.declared import DeclaredResources

POLICIES = "policies"  #: the folder of policies, beside Pulumi.yaml
MODULE = "deployer.cli.commands.deploy.unplanned"  #: the module that the process runs


def has_policies(project: Path) -> bool:
    """Returns whether the folder's name exists, also as a broken link: hidden rules are an error."""
    return os.path.lexists(project / POLICIES)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of the policies. `refusals` are the reasons why the run is refused, one sentence each. `declared` are
    the checked resources, which the program may register; None where they are unknown."""

    refusals: tuple[str, ...] = ()
    declared: DeclaredResources | None = None


class UnplannedRun:
    """Checks the run that a provider's process serves, once, and only where the project has policies.

    `warn` gets advisory violations.
    """

    def __init__(self, project_dir: Path, warn: Callable[[str], None]) -> None:
        self._project_dir, self._warn = project_dir, warn
        self._lock = threading.Lock()
        self._judgement: Judgement | None = None

    def judgement(self, urn: str, *, deletes: bool = False) -> Judgement:
        """Returns the verdict of the policies, which are evaluated for the first resource; `urn` has the stack.

        `deletes`: the resource is to be deleted. If nothing was registered before, the run deletes the whole stack.
        """
        with self._lock:
            if self._judgement is None:
                stack = owner_of(urn).rpartition("/")[2]
                judged = has_policies(self._project_dir)
                self._judgement = self._asked(stack, destroys=deletes) if judged else Judgement()
            return self._judgement

    def _asked(self, stack: str, *, destroys: bool) -> Judgement:
        given = [f"--project={self._project_dir}", f"--stack={stack}", *(["--destroy"] if destroys else [])]
        ran = subprocess.run(
            [sys.executable, "-P", "-m", MODULE, *given],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=False,
        )
        try:
            found: Mapping[str, Any] = json.loads(ran.stdout)
        except ValueError:
            what = f"the policies could not be evaluated: the process ended with {ran.returncode}"
            return Judgement((f"{what}; `deployer preview` shows why",))
        from deployer.provider.resources.declared import (
            DeclaredResources,  # it loads Arrow, which `has_policies` does not need
        )

        for line in found.get("advice", ()):
            self._warn(line)
        lake = found.get("lake")
        return Judgement(tuple(found["refusals"]), DeclaredResources(lake_from_json(lake)) if lake else None)
