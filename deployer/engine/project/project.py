"""Pulumi.yaml: the program, the plugins and the place of the state."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deployer.errors import InvalidInput, NotFound, Refused
from deployer.platform.files.reading import read_limited
from deployer.specs.rules import Rule
from deployer.specs.yaml.nodes import parse_yaml

MAX_BYTES = 1024 * 1024  #: limit for Pulumi.yaml and Pulumi.STACK.yaml

_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,100}")
_RUNTIMES = ("python",)


@dataclass(frozen=True)
class Project:
    """A Pulumi project that one of the engines can run.

    `main` is the program: a file, or a folder with `__main__.py`. `config_defaults` maps full keys (`deployer:specs`)
    to text. `plugins` maps a provider's name to the folder that holds its `pulumi-resource-NAME`.
    """

    dir: Path
    name: str
    main: Path
    config_defaults: Mapping[str, str] = field(default_factory=dict)
    plugins: Mapping[str, Path] = field(default_factory=dict)
    backend_url: str = "file://."

    @property
    def program_folder(self) -> Path:
        """The folder that the program runs in, to which its paths are relative."""
        return self.main if self.main.is_dir() else self.main.parent


@dataclass(frozen=True)
class StackRef:
    """One stack of a project, such as `dev`."""

    project: Project
    name: str

    def __post_init__(self) -> None:
        check_name("stack", self.name)

    @property
    def config_file(self) -> Path:
        return self.project.dir / f"Pulumi.{self.name}.yaml"


def check_name(kind: str, name: str) -> None:
    """Raises the errors that Pulumi raises for a name: names become file names of the state."""
    if not _NAME.fullmatch(name) or name in {".", ".."}:
        raise InvalidInput(
            f"{name!r} is not a valid name for a {kind}",
            remedy="use up to 100 letters, digits, hyphens, underscores and full stops",
        )


def read_project(directory: Path) -> Project:
    """Reads `directory/Pulumi.yaml`. Errors name the file and line."""
    directory = directory.resolve()
    file = next((path for path in (directory / "Pulumi.yaml", directory / "Pulumi.yml") if path.is_file()), None)
    if file is None:
        raise NotFound("no Pulumi.yaml here", where=directory, remedy="run the command in the project's folder")
    doc, lines = load_yaml(file)

    def wrong(key: str, what: str, remedy: str) -> InvalidInput:
        return InvalidInput(what, where=f"{file}:{lines.get(key, 1)}", remedy=remedy)

    name = doc.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in {".", ".."}:
        raise wrong(
            "name", "`name` is missing or not a valid project name", "give the project a name, such as `name: lake`"
        )
    runtime = doc.get("runtime")
    runtime_name = runtime.get("name") if isinstance(runtime, dict) else runtime
    if runtime_name not in _RUNTIMES:
        raise wrong("runtime", f"runtime {runtime_name!r} is not supported", "set `runtime: python`")
    main_text = doc.get("main") or "."
    if not isinstance(main_text, str):
        raise wrong("main", "`main` is not a path", "name the program's file or folder, such as `main: stacks`")
    main = (directory / main_text).resolve()
    if not main.is_relative_to(directory):
        raise wrong("main", f"`main` leaves the project's folder: {main_text}", "name a path inside the project")
    entry = main / "__main__.py" if main.is_dir() else main
    if not Path(os.path.realpath(entry)).is_relative_to(directory):
        raise wrong("main", f"the program {entry} is a link out of the project's folder", "copy the program here")
    if not entry.is_file():
        raise wrong("main", f"there is no program at {entry}", "name a Python file, or a folder with `__main__.py`")
    return Project(
        dir=directory,
        name=name,
        main=main,
        config_defaults=_config_defaults(doc.get("config"), name, wrong),
        plugins=_plugins(doc.get("plugins"), directory, wrong),
        backend_url=_backend_url(doc.get("backend"), wrong),
    )


def load_yaml(file: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """Returns the mapping in a YAML file of Pulumi's, and the line of each of its top-level keys.

    The file is read like specs: by YAML 1.2's core schema, as Pulumi reads it, and with the same limits.
    """
    try:
        data = read_limited(file, MAX_BYTES)
    except OSError as error:
        raise InvalidInput(f"it cannot be read: {error.strerror}", where=file, remedy="check the file") from None
    parsed = parse_yaml(data, str(file))
    for problem in parsed.problems:
        if problem.rule != Rule.TAB or parsed.truncated:
            raise InvalidInput(problem.what, where=problem.at, remedy=problem.remedy)
    if not parsed.documents:
        return {}, {}
    [first, *others] = parsed.documents
    if others:
        raise InvalidInput("a second document", where=others[0].at, remedy="keep one, without `---`")
    if not isinstance(first.value, dict):
        raise InvalidInput("not a mapping", where=f"{file}:1", remedy="write `key: value` lines")
    document = first.plain()
    if "\\u0000" in json.dumps(document, default=str):  # most of the texts become paths
        raise InvalidInput("a text has a null character", where=file, remedy="remove it")
    return document, {key: child.key_line for key, child in first.value.items()}


def _config_defaults(config: Any, project: str, wrong: Any) -> dict[str, str]:
    if config is None:
        return {}
    if not isinstance(config, dict):
        raise wrong("config", "`config` is not a mapping", "write `config:` with `namespace:key: value` lines below it")

    defaults = {}
    for key, value in config.items():
        if isinstance(value, dict) and (value.keys() & {"default", "value", "type", "secret"}):
            value = value.get("value", value.get("default"))
        if value is not None:
            defaults[full_key(str(key), project)] = text_of(value)
    return defaults


def _plugins(plugins: Any, directory: Path, wrong: Any) -> dict[str, Path]:
    if plugins is None:
        return {}
    if not isinstance(plugins, dict):
        raise wrong("plugins", "`plugins` is not a mapping", "write `plugins:` with `providers:` below it")
    for other in ("languages", "analyzers"):
        if plugins.get(other):
            raise Refused(
                f"`plugins.{other}` needs the official Pulumi CLI",
                where="Pulumi.yaml",
                remedy="install `pulumi`, or remove the entry",
            )
    found = {}
    for entry in plugins.get("providers") or []:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry.get("path"):
            raise wrong("plugins", "a provider plugin needs `name` and `path`", "write `- name: lake` and `path: bin`")
        found[entry["name"]] = (directory / str(entry["path"])).resolve()
    return found


def _backend_url(backend: Any, wrong: Any) -> str:
    if chosen := os.environ.get("PULUMI_BACKEND_URL"):
        return chosen
    if backend is None:
        return "file://."
    url = backend.get("url") if isinstance(backend, dict) else None
    if not isinstance(url, str):
        raise wrong("backend", "`backend` has no `url`", "write `backend:` with `url: file://.` below it")
    return url


def full_key(key: str, project: str) -> str:
    """Returns a full key: `specs` becomes `PROJECT:specs`; `aws:config:region`, the older form, becomes
    `aws:region`."""
    parts = key.split(":")
    if len(parts) == 1:
        return f"{project}:{key}"
    return f"{parts[0]}:{parts[2]}" if len(parts) == 3 and parts[1] == "config" else key


def text_of(value: Any) -> str:
    """Returns a YAML value as the text that programs and providers receive."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value) if isinstance(value, dict | list) else str(value)
