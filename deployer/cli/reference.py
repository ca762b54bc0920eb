"""The pages of the command reference, made from the commands. `make reference` writes them to docs/."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from deployer.cli.main import app

GENERATED = "<!-- Made by `make reference` from the code. Do not edit. -->"


def reference() -> Mapping[str, str]:
    """Returns the Markdown of every command that is not hidden, by the page's path below docs/.

    `cli.md` has the options before a command and lists the pages. `commands/` has a page for each group of the help and
    one for each command that has subcommands.
    """
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)  # noqa: S101 -- an app with several commands is a group
    context = typer.Context(group, info_name="deployer")
    own = [
        row for parameter in group.params if isinstance(parameter, TyperOption) and (row := _row(parameter, context))
    ]
    overview = [
        *("# Commands", "", GENERATED, "", (group.epilog or "").strip(), ""),
        *("Before the name of a command:", "", "| option | meaning |", "|---|---|", *own, ""),
    ]
    pages: dict[str, str] = {}
    for title, names in groups(group, context).items():
        overview += [f"## {title}", "", "| command | what it does |", "|---|---|"]
        path, single, nested = f"commands/{slug(title)}.md", list[str](), dict[str, str]()
        for name in names:
            command = group.get_command(context, name)
            if isinstance(command, TyperCommand):
                overview.append(_listed(command, name, path))
                single += _command(command, typer.Context(command, info_name=name, parent=context))
            elif isinstance(command, TyperGroup):
                own_path = f"commands/{name}.md"
                overview.append(_listed(command, name, own_path))
                nested[own_path] = _text(
                    [f"# deployer {name}", "", GENERATED, "", *[*_group(command, name, context)][2:]]
                )
        pages |= {path: _text([f"# {title}", "", GENERATED, "", *single]), **nested} if single else nested
        overview.append("")
    return {"cli.md": _text(overview), **pages}


def slug(title: str) -> str:
    """Returns the file name of a page without its suffix: `plan-and-apply` for `Plan and apply`."""
    return title.lower().replace(" ", "-")


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"


def _listed(command: TyperCommand | TyperGroup, name: str, path: str) -> str:
    return f"| [`deployer {name}`]({path}#deployer-{name}) | {_first_line(command)} |"


def _first_line(command: TyperCommand | TyperGroup) -> str:
    """Returns the first sentence of a command's help."""
    text = " ".join((command.help or "").split("\n\n")[0].split())
    return text.partition(". ")[0].rstrip(".") + "."


def groups(group: TyperGroup, context: typer.Context) -> Mapping[str, Sequence[str]]:
    """Returns the names of the commands that are not hidden, by the group in which `deployer --help` shows them."""
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
    yield from (f"## deployer {context.info_name}", "", f"`deployer {context.info_name} {usage}`", "")
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
