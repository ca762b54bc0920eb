"""The verdict of a project's policies on a run that deployer did not plan: a plain `pulumi up`, `preview` or `destroy`.

The verdict is that of `deployer preview`, whose code makes it, from the specs and live state, in a process: planning
is above the provider. It keeps people from mistakes and not from malice: who runs Pulumi may change the project, and
the environment, in which `deployer` says that it has asked the policies itself.
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
    from deployer.provider.resources.declared import Declared

POLICIES = "policies"  #: the folder of policies, beside Pulumi.yaml
MODULE = "deployer.cli.commands.deploy.unplanned"  #: what the process runs


def has_policies(project: Path) -> bool:
    """Returns whether something of that name is there, a broken link included: what hides rules is an error."""
    return os.path.lexists(project / POLICIES)


@dataclass(frozen=True, slots=True)
class Judgement:
    """`refusals` say why the run is refused, one sentence each. `declared` is what was judged, which is all that the
    program may register; None where that is unknown."""

    refusals: tuple[str, ...] = ()
    declared: Declared | None = None


class UnplannedRun:
    """Judges the run that a provider's process serves: once, and only where the project has policies.

    `warn` is given what is advisory.
    """

    def __init__(self, project_dir: Path, warn: Callable[[str], None]) -> None:
        self._project_dir, self._warn = project_dir, warn
        self._lock = threading.Lock()
        self._judgement: Judgement | None = None

    def judgement(self, urn: str, *, deletes: bool = False) -> Judgement:
        """Returns what the policies say, asked when the first resource comes: `urn` says of which stack.

        `deletes`: the resource is to be deleted. Where nothing was registered before, everything of the stack is.
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
        from deployer.provider.resources.declared import Declared  # it loads Arrow, which `has_policies` can do without

        for line in found.get("advice", ()):
            self._warn(line)
        lake = found.get("lake")
        return Judgement(tuple(found["refusals"]), Declared(lake_from_json(lake)) if lake else None)
