"""Titles of commands that do not report progress: a terminal shows the title when a command takes over a second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_TABLE, _SERVICES, _CATALOG = "reading the table", "reading the services", "reading the catalog"

#: By the words of the command. A command's own progress replaces its title.
ACTIVITIES: Mapping[tuple[str, ...], str] = {
    ("validate",): "reading the specs",
    ("render",): "reading the specs",
    ("graph",): "reading the specs",
    ("schema", "infer"): "reading the files",
    ("tables",): "reading the lake",
    ("describe",): _TABLE,
    ("history",): "reading the history",
    ("restore",): _TABLE,
    ("rows", "update"): "looking for the rows",
    ("rows", "delete"): "looking for the rows",
    ("rows", "merge"): "reading the rows",
    ("rows", "erase"): "looking for the rows",
    ("table", "add"): "applying the table",
    ("table", "rename"): "applying the name",
    ("table", "delete"): _TABLE,
    ("table", "reinitialise"): _TABLE,
    ("table", "online"): "applying the change",
    ("table", "offline"): "applying the change",
    ("table", "partitions"): "reading the partitions",
    ("table", "files"): "reading the files",
    ("table", "split"): _TABLE,
    ("table", "split-points"): "reading the keys",
    ("column", "list"): "reading the columns",
    ("column", "add"): "applying the column",
    ("column", "load"): "planning the load",
    ("column", "backfill"): "planning the backfill",
    ("column", "plan"): "planning the backfill",
    ("column", "errors"): "reading the errors",
    ("view", "list"): "reading the views",
    ("view", "plan"): "planning the refresh",
    ("view", "refresh"): "planning the refresh",
    ("catalog", "entries"): _CATALOG,
    ("catalog", "tables"): _CATALOG,
    ("catalog", "datasets"): _CATALOG,
    ("catalog", "segments"): _CATALOG,
    ("catalog", "layers"): _CATALOG,
    ("catalog", "manifest"): _CATALOG,
    ("catalog", "search"): "searching",
    ("catalog", "runs"): _CATALOG,
    ("catalog", "inspect"): "reading the recording",
    ("job", "list"): "reading the jobs",
    ("job", "show"): "reading the job",
    ("job", "cancel"): "cancelling",
    ("savepoint", "create"): "creating the savepoint",
    ("savepoint", "list"): "reading the savepoints",
    ("savepoint", "delete"): "deleting the savepoint",
    ("service", "create"): "applying the service",
    ("service", "alter"): "applying the service",
    ("service", "move"): "applying the service",
    ("service", "delete"): "applying the service",
    ("service", "list"): _SERVICES,
    ("service", "describe"): _SERVICES,
    ("service", "check"): _SERVICES,
    ("service", "pause"): "applying the change",
    ("service", "resume"): "applying the change",
    ("service", "cancel"): "cancelling",
    ("service", "runs"): "reading the runs",
    ("service", "files"): "reading the files",
    ("service", "retry-files"): "reading the files",
    ("state", "log"): "reading the log",
    ("state", "show"): "reading the state",
    ("stack", "export"): "reading the stack",
    ("stack", "import"): "writing the stack",
    ("stack", "change-secrets-provider"): "writing the stack",
}


def activity_of(arguments: Sequence[str]) -> str | None:
    """Returns the title of the command in a command line; None for a command that is short or reports its own
    progress."""
    words = tuple(each for each in arguments if each != "--trust-udfs")
    return next((ACTIVITIES[words[:length]] for length in (1, 2) if words[:length] in ACTIVITIES), None)
