"""`deployer drift`: what live state has otherwise than it was last applied, by whom, and into the specs with it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName, Target

if TYPE_CHECKING:
    from deployer.app.drift.find import Drift


def drift(
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    target: Target = None,
    write_spec: Annotated[
        bool, typer.Option("--write-spec", help="Edit the specs so that they declare what is live.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Show what live state has otherwise than it was last applied, by whom and when.

    With `--target` nothing is read of other tables, and `--write-spec` edits and takes over nothing else.

    Exit codes: 0 there is no difference; 1 an error; 2 there are differences, or a table cannot be read.
    """
    from deployer.app.drift.find import find_drift
    from deployer.app.drift.into_specs import take_over
    from deployer.app.stack.engine import held
    from deployer.app.workspace import open_workspace
    from deployer.console.output import print_json

    workspace = open_workspace(project, stack, specs)
    written: list[str] = []
    taken_over = False
    with held(workspace, workspace.lake()) if write_spec else nullcontext():
        found = find_drift(workspace, target or ())
        if write_spec and found.items:
            written, taken_over = take_over(workspace, found), True
    if as_json:
        print_json({**_as_json(found), "written": written})
    else:
        _print(found, stack)
        for file in written:
            _line(f"edited {file}")
        if taken_over and not written:
            _line("the specs declare it already; it counts as applied now")
    if found.unreadable:
        return 2
    return 0 if taken_over and not found.undeclared else 2 if found.items or found.undeclared else 0


def _as_json(found: Drift) -> dict[str, Any]:
    from deployer.cli.summaries.unreadable import as_json_rows
    from deployer.plan.render.changes import describe
    from deployer.plan.targets import targets_as_json
    from deployer.state.model.times import iso_utc

    return {
        **({"targets": targets_as_json(found.targets)} if found.targets else {}),
        "drift": [
            {
                "address": item.address,
                "kind": item.change.kind,
                "summary": describe(item.change),
                "who": item.origin.who if item.origin else None,
                "at": iso_utc(item.origin.at) if item.origin else None,
                "version": item.origin.version if item.origin else None,
            }
            for item in found.items
        ],
        "undeclared": [{"what": each.what, "why": each.why} for each in found.undeclared],
        "unreadable": as_json_rows(found.unreadable),
    }


def _print(found: Drift, stack: str) -> None:
    from deployer.plan.render.changes import describe
    from deployer.text.formatting import count

    if found.targets is not None:
        from deployer.plan.targets import describe_targets

        _line(f"Targeted: {describe_targets(found.targets)}")
    for table in found.unreadable:
        _line(table.address, "bold")
        _line(f"  unreadable, so whether it differs is not known: {table.why}", "red")
    if not found.items and not found.undeclared:
        if found.unreadable:
            _line("")
            _line("no difference in what can be read")
            return
        whose = "live state" if found.targets is None else "what is targeted"
        _line(f"no drift: {whose} is what stack {stack} last applied")
        return
    address = ""
    for item in found.items:
        if item.address != address:
            address = item.address
            _line(address, "bold")
        origin = item.origin
        by = f"  {origin.who}, {origin.at:%Y-%m-%d %H:%M:%S} UTC" if origin else "  by whom is not known"
        version = f" (version {origin.version})" if origin and origin.version else ""
        _line(f"  {describe(item.change)}{by}{version}")
    for each in found.undeclared:
        _line(each.what, "bold")
        _line(f"  {each.why}")
    total = count(len(found.items), "difference")
    more = f", {count(len(found.undeclared), 'thing')} that nobody declared" if found.undeclared else ""
    _line("")
    _line(f"{total}{more}")


def _line(text: str, style: str | None = None) -> None:
    from deployer.console.output import stdout

    stdout().print(text, style=style, soft_wrap=True)
