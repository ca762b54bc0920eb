"""Loads the rules and approvals of a project's `policies/` folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from deployer.errors import InvalidInput, InvalidSpecs, Position, Problem
from deployer.platform.files.reading import read_limited
from deployer.platform.isolation.process import OnLine
from deployer.platform.text.formatting import count
from deployer.policy.declared import read_declared, repeated_name, unknown_rule
from deployer.policy.isolated_rules import PythonRules
from deployer.policy.model import Approval, Policies, Policy
from deployer.policy.sql_rules import read_sql_rule
from deployer.specs.yaml.nodes import MAX_BYTES

FOLDER = "policies"  #: beside Pulumi.yaml
MAX_FILES = 1_000
SUFFIXES = (".yaml", ".yml", ".py", ".sql")


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"policies: {line}\n")


def load_policies(project: Path, ref: str = "", on_line: OnLine = _to_stderr) -> Policies:
    """Returns the rules and approvals of the files directly in `policies/`, in the order of the files' names.

    Python files run in a separate process, which the result's `close` ends. `on_line` gets each line of their output.
    `ref` is the Git ref of the project's files, and positions begin with it; empty for files on disk.

    Raises InvalidSpecs with every problem: invalid shapes, repeated names, approvals of unknown rules, links out of the
    project, and files that cannot be read or run. Raises InvalidInput where `policies` is not a folder of the project
    or has more than MAX_FILES files.
    """
    project = project.resolve()
    folder = project / FOLDER
    if not folder.is_dir() or not folder.resolve().is_relative_to(project):
        raise InvalidInput("this is not a folder in the project", where=folder, remedy="put rules into a folder there")
    problems: list[Problem] = []
    read: list[tuple[Path, str, bytes]] = []
    paths = sorted(folder.iterdir())
    if len(paths) > MAX_FILES:
        raise InvalidInput(
            f"there are more than {count(MAX_FILES, 'file')}", where=folder, remedy="put rules into fewer files"
        )
    for path in paths:
        if path.suffix not in SUFFIXES or path.name.startswith("."):
            continue
        file = f"{ref}:{FOLDER}/{path.name}" if ref else f"{FOLDER}/{path.name}"
        if not Path(os.path.realpath(path)).is_relative_to(project):
            what = "the file is a link that leads out of the project's folder"
            problems.append(Problem(Position(file), what, "copy the file here", "include-outside"))
            continue
        if path.is_dir():
            continue
        try:
            data = read_limited(path, MAX_BYTES)
        except OSError as error:
            what = f"the file cannot be read: {error.strerror}"
            problems.append(Problem(Position(file), what, "check that it is there and may be read", "unreadable-file"))
            continue
        read.append((path, file, data))
    in_python = [(path, file) for path, file, _ in read if path.suffix == ".py"]
    python = PythonRules(on_line) if in_python else None
    try:
        written = python.load(in_python, problems) if python else {}
        rules, approvals = _in_order(read, written, problems)
        _check_names(rules, approvals, problems)
        if problems:
            raise InvalidSpecs(problems, of="the policies")
    except BaseException:
        if python is not None:
            python.close()
        raise
    return Policies(tuple(rules), tuple(approvals), python.close if python else lambda: None)


def _in_order(
    read: Sequence[tuple[Path, str, bytes]], in_python: Mapping[str, Sequence[Policy]], problems: list[Problem]
) -> tuple[list[Policy], list[Approval]]:
    """Returns the rules and approvals in the order of the files. `in_python` has the rules of Python files by file."""
    rules: list[Policy] = []
    approvals: list[Approval] = []
    for path, file, data in read:
        match path.suffix:
            case ".py":
                rules += in_python.get(file, ())
            case ".sql":
                found = read_sql_rule(data, file, problems)
                rules += [found] if found else []
            case _:
                for each in read_declared(data, file, problems):
                    if isinstance(each, Policy):
                        rules.append(each)
                    else:
                        approvals.append(each)
    return rules, approvals


def _check_names(rules: Sequence[Policy], approvals: Sequence[Approval], problems: list[Problem]) -> None:
    broken = bool(problems)  # rules may be missing then, so approvals of unknown rules are not reported
    first: dict[str, Position] = {}
    for rule in rules:
        if rule.name in first:
            problems.append(repeated_name(rule.name, rule.at, first[rule.name]))
        first.setdefault(rule.name, rule.at)
    if not broken:
        problems += [unknown_rule(each, tuple(first)) for each in approvals if each.rule not in first]
