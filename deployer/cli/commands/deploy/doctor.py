"""`deployer doctor`: reports what is missing or wrong for this project, each with its remedy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deployer.app.operations.doctor import DoctorResult, PoliciesResult

_NAMED = 5  #: the most checks that are named while they run


def doctor(
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Seconds that the checks may take.")
    ] = 30.0,
    write_policy: Annotated[
        Path | None,
        typer.Option(
            "--write-policy",
            metavar="FOLDER",
            help="Write the IAM policies of the roles that deploy and preview, and the boundary of the roles that the "
            "stack makes, to a folder, and check nothing.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Check this machine, the project, the lake and AWS for what is missing or wrong. Each finding has its remedy.

    Checks run side by side. Checks that do not concern the lake are not applicable. Changes nothing, and shows no
    credential. Exits with 1 when something is wrong; warnings do not count.
    """
    from deployer import app
    from deployer.cli.console.activity import show_activity
    from deployer.cli.console.output import print_json
    from deployer.platform.system.progress import Progress

    if write_policy is not None:
        _print_policies(app.write_policies(write_policy, project, stack, specs), as_json)
        return 0
    on_progress = show_activity("checking", as_json=as_json)

    def show_what_is_left(names: Sequence[str]) -> None:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        on_progress(Progress(f"waiting for {', '.join(names[:_NAMED])}{more}", 0, None, ""))

    found = app.doctor(project, stack, specs, timeout=timeout, on_wait=show_what_is_left)
    if as_json:
        print_json(found.to_json())
    else:
        _print(found)
    return 0 if found.is_healthy else 1


def _print_policies(found: PoliciesResult, as_json: bool) -> None:
    from rich.text import Text

    from deployer.cli.console.output import print_json, stdout
    from deployer.compute.iam.policy_files import MOST_CHARACTERS

    if as_json:
        print_json(found.to_json())
        return
    for path, size in found.written.items():
        stdout().print(Text(f"{path}: {size:,} of {MOST_CHARACTERS:,} characters"), soft_wrap=True)


def _print(found: DoctorResult) -> None:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from deployer.app.diagnostics.checks import Status
    from deployer.cli.console.output import stdout

    symbols = {
        Status.OK: ("ok", "green"),
        Status.WARNING: ("warning", "yellow"),
        Status.WRONG: ("wrong", "bold red"),
    }
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    unneeded: dict[str, list[str]] = {}
    for each in found.results:
        if each.finding.status is Status.NOT_APPLICABLE:
            unneeded.setdefault(each.finding.what, []).append(each.name)
            continue
        symbol, style = symbols[each.finding.status]
        lines = [Text(each.finding.what)]
        if each.finding.remedy:
            lines.append(Text(f"→ {each.finding.remedy}", "cyan"))
        table.add_row(Text(symbol, style), each.name, Group(*lines))
    counted = found.counts
    summary = ", ".join(f"{number} {status.value}" for status, number in counted.items() if number)
    stdout().print(table)
    for why, names in unneeded.items():
        stdout().print(Text(f"not applicable: {', '.join(names)} ({why})", "dim"))
    stdout().print(Text("Doctor: ", "bold").append(summary, "bold red" if counted[Status.WRONG] else "not bold"))
