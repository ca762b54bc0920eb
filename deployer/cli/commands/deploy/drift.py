"""`deployer drift`: shows the differences between live state and what was last applied, with their authors, and writes
them into the specs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName, Target

if TYPE_CHECKING:
    from deployer.app import DriftResult


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
    """Show how live state differs from what was last applied, who changed it and when.

    With `--target` nothing is read of other tables, and `--write-spec` edits and takes over nothing else.

    Exit codes: 0 there is no difference; 1 an error; 2 there are differences, or a table cannot be read.
    """
    from deployer import app
    from deployer.cli.console.activity import show_progress
    from deployer.cli.console.output import print_json

    found = app.drift(
        project,
        stack,
        specs,
        targets=target or (),
        write_specs=write_spec,
        on_progress=show_progress("looking for drift", as_json=as_json),
    )
    print_json(found.to_json()) if as_json else _print(found)
    return 0 if found.is_empty else 2


def _print(found: DriftResult) -> None:
    from deployer.plan.render.changes import describe
    from deployer.platform.text.formatting import count

    if found.targets is not None:
        from deployer.plan.targeting.targets import describe_targets

        _line(f"Targeted: {describe_targets(found.targets)}")
    for table in found.unreadable:
        _line(table.address, "bold")
        _line(f"  unreadable, so whether it differs is unknown: {table.why}", "red")
    if not found.items and not found.undeclared:
        if found.unreadable:
            _line("")
            _line("no difference in what can be read")
            return
        whose = "live state" if found.targets is None else "what is targeted"
        _line(f"no drift: {whose} is what stack {found.stack} last applied")
        return
    address = ""
    for item in found.items:
        if item.address != address:
            address = item.address
            _line(address, "bold")
        origin = item.origin
        by = f"  {origin.who}, {origin.at:%Y-%m-%d %H:%M:%S} UTC" if origin else "  by an unknown author"
        version = f" (version {origin.version})" if origin and origin.version else ""
        _line(f"  {describe(item.change)}{by}{version}")
    for each in found.undeclared:
        _line(each.what, "bold")
        _line(f"  {each.why}")
    total = count(len(found.items), "difference")
    more = f", {count(len(found.undeclared), 'thing')} without a declaration" if found.undeclared else ""
    _line("")
    _line(f"{total}{more}")
    for file in found.written:
        _line(f"edited {file}")
    if found.taken_over and not found.written:
        _line("the specs declare it already; it counts as applied now")


def _line(text: str, style: str | None = None) -> None:
    from deployer.cli.console.output import stdout

    stdout().print(text, style=style, soft_wrap=True)
