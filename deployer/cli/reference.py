"""Writes docs/cli.md from the commands themselves: `python -m deployer.cli.reference > docs/cli.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from deployer.cli.main import app


def reference() -> str:
    """Returns the Markdown of every command that is not hidden, in the groups of the help: usage, arguments and
    options."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)  # noqa: S101 -- an app with several commands is a group
    context = typer.Context(group, info_name="deployer")
    lines = ["# Commands", "", "Made from the code by `python -m deployer.cli.reference`.", ""]
    lines += [(group.epilog or "").strip(), ""]
    own = [
        row for parameter in group.params if isinstance(parameter, TyperOption) and (row := _row(parameter, context))
    ]
    lines += ["Before the name of a command:", "", "| option | meaning |", "|---|---|", *own, ""]
    for title, names in groups(group, context).items():
        lines += [f"## {title}", ""]
        for name in names:
            command = group.get_command(context, name)
            if isinstance(command, TyperCommand):
                lines += _command(command, typer.Context(command, info_name=name, parent=context))
            elif isinstance(command, TyperGroup):
                lines += _group(command, name, context)
    return "\n".join(lines).rstrip() + "\n"


def groups(group: TyperGroup, context: typer.Context) -> Mapping[str, Sequence[str]]:
    """Returns the names of the commands that are not hidden, by the group that `deployer --help` shows them in."""
    found: dict[str, list[str]] = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, TyperCommand | TyperGroup) and not command.hidden:
            found.setdefault(str(command.rich_help_panel), []).append(name)
    return found


def _group(group: TyperGroup, name: str, context: typer.Context) -> Iterator[str]:
    inner = typer.Context(group, info_name=name, parent=context)
    yield from _command(group, inner)
    for inner_name in group.list_commands(inner):
        nested, path = group.get_command(inner, inner_name), f"{name} {inner_name}"
        if isinstance(nested, TyperGroup):
            yield from _group(nested, path, context)
        elif isinstance(nested, TyperCommand) and not nested.hidden:
            yield from _command(nested, typer.Context(nested, info_name=path, parent=context))


def _command(command: TyperCommand | TyperGroup, context: typer.Context) -> Iterator[str]:
    usage = " ".join(piece for piece in command.collect_usage_pieces(context))
    yield from (f"### deployer {context.info_name}", "", f"`deployer {context.info_name} {usage}`", "")
    yield from ((command.help or "").strip(), "")
    for title, kind in (("argument", TyperArgument), ("option", TyperOption)):
        rows = [
            row for parameter in command.params if isinstance(parameter, kind) and (row := _row(parameter, context))
        ]
        if rows:
            yield from (f"| {title} | meaning |", "|---|---|", *rows, "")


def _row(parameter: TyperArgument | TyperOption, context: typer.Context) -> str | None:
    record = parameter.get_help_record(context)
    if record is None:
        return None
    name, text = (" ".join(part.split()).replace("|", "\\|") for part in record)
    return f"| `{name.replace(chr(92), '')}` | {text} |" if "|" not in name else f"| `{name}` | {text} |"


if __name__ == "__main__":
    sys.stdout.write(reference())
