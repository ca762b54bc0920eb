"""Writes grammar.json from Typer's commands."""

from __future__ import annotations

import json
import sys
from typing import Any

#: The kinds of names that parameters take, by the parameter's name.
_KINDS = {
    "table": "table",
    "tables": "table",
    "target": "address",
    "allow_destroy": "address",
    "columns": "columns",
    "text_columns": "columns",
    "vector_column": "column",
    "column": "column",
    "on": "column",
    "service": "service",
    "stack": "stack",
    "project": "project",
    "specs": "specs",
}
#: Parameters that differ from this in some commands.
_OTHERWISE = {
    ("schema", "infer", "table"): "",
    ("service", "create", "service"): "new-service",
    ("view", "plan", "name"): "table",
    ("view", "refresh", "name"): "table",
    ("restore", "name"): "table",
    ("catalog", "search", "column"): "",
    ("table", "add", "table"): "",
    ("table", "add", "column"): "",
    ("column", "add", "column"): "",
    ("column", "add", "inputs"): "columns",
}


def command_grammar() -> dict[str, Any]:
    """Returns the grammar of all commands."""
    from deployer.cli.main import _command
    from deployer.services.registry import SERVICES

    return {**_node(_command(), ()), "services": sorted(SERVICES)}


def _node(command: Any, path: tuple[str, ...]) -> dict[str, Any]:
    options: dict[str, str | None] = {}
    arguments: list[str] = []
    for each in command.params:
        kind = _OTHERWISE.get((*path, each.name), _KINDS.get(each.name, ""))
        if each.param_type_name == "option":
            takes_none = getattr(each, "is_flag", False) or getattr(each, "count", False)
            options |= dict.fromkeys((*each.opts, *each.secondary_opts), None if takes_none else kind)
        else:
            arguments.append(kind + ("…" if each.nargs != 1 else ""))
    found: dict[str, Any] = {"options": options}
    if hasattr(command, "commands"):
        found["commands"] = {name: _node(each, (*path, name)) for name, each in command.commands.items()}
    else:
        found["arguments"] = arguments
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(command_grammar(), ensure_ascii=False, indent=1) + "\n")
