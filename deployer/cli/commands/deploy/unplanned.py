"""The process that applies the policies to a run that deployer did not plan. The provider of a plain `pulumi up` starts
`python -m deployer.cli.commands.deploy.unplanned` (`deployer.provider.unplanned`).

The process prints one JSON document: `refusals`, `advice`, and the `lake` that was judged. It runs no engine and no
program.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deployer.cli.console.output import print_json
from deployer.cli.console.reporter import ConsoleReporter
from deployer.errors import DeployerError, InvalidSpecs
from deployer.platform.text import masking
from deployer.platform.text.masked_streams import masked_streams

if TYPE_CHECKING:
    from deployer.app.planning.plan import Planned
    from deployer.plan.verdict import Violation

REMEDY = "fix the specs, or have the change approved in policies/"


def main(argv: Sequence[str]) -> int:
    """Prints the verdict of the policies on the run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--project", type=Path, required=True)
    parser.add_argument("--stack", required=True)
    parser.add_argument("--destroy", action="store_true")
    given = parser.parse_args(argv)
    with masking.scope(), masked_streams():
        try:
            found = _judged(given.project, given.stack, destroy=given.destroy)
        except InvalidSpecs as error:
            found = {"refusals": [str(problem) for problem in error.problems]}
        except DeployerError as error:
            found = {"refusals": [f"the policies could not be evaluated: {error}"]}
        print_json(found)
    return 0


def _judged(project: Path, stack: str, *, destroy: bool) -> dict[str, Any]:
    from deployer.app.workspace import open_workspace
    from deployer.provider.resources.run_context import ALLOW_DESTROY_VARIABLE, NEW_STATE_VARIABLE
    from deployer.specs.loading.known import lake_as_json

    new_state = os.environ.get(NEW_STATE_VARIABLE) == "1"
    workspace = replace(open_workspace(project, stack, None), new_state=new_state)
    allowed = [address for address in os.environ.get(ALLOW_DESTROY_VARIABLE, "").split(",") if address]
    lake = workspace.lake()
    if destroy:
        from deployer.app.planning.plan import plan_destroy

        planned = plan_destroy(workspace, lake, allowed, ConsoleReporter())
        return {"refusals": [*_refusals(planned)], "advice": [*_advice(planned)]}
    from deployer.app.planning.plan import plan_lake

    planned = plan_lake(workspace, lake, allowed, ask_engine=False, reporter=ConsoleReporter())
    return {"refusals": [*_refusals(planned)], "advice": [*_advice(planned)], "lake": lake_as_json(lake)}


def _refusals(planned: Planned) -> Iterator[str]:
    for each in planned.plan.denied:
        yield f"{_describe(each)}; {REMEDY}"


def _advice(planned: Planned) -> Iterator[str]:
    verdict = planned.plan.verdict
    for each in verdict.of("advisory") if verdict else ():
        yield f"{_describe(each)} (advisory)"


def _describe(violation: Violation) -> str:
    where = f" ({violation.at})" if violation.at else ""
    return f"the policy {violation.rule} is broken: {violation.address}: {violation.message}{where}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
