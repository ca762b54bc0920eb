"""The spec files of a project: one file or the files of a folder, and the files that they include. Each file is read
once."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from deployer.errors import Position, Problem
from deployer.platform.files.reading import read_limited
from deployer.specs.rules import Rule
from deployer.specs.sources.include_paths import WILD, LeadsOut, matching_files
from deployer.specs.sources.limits import SubstitutedText, check_files
from deployer.specs.sources.overlays import applies, apply_overlays
from deployer.specs.sources.variables import Environment, read_variables, substitute
from deployer.specs.validation.validate import check_shape, sound_part
from deployer.specs.yaml.nodes import MAX_BYTES, Node, parse_yaml
from deployer.specs.yaml.suggestions import nearest

SUFFIXES = (".yaml", ".yml")


@dataclass(slots=True)
class Document:
    """A document whose shape was checked.

    `invalid` are the properties that cannot be used unchanged. `unresolved` are the invalid properties whose values
    have variables that could not be resolved.
    """

    node: Node
    kind: str
    invalid: frozenset[str]
    unresolved: frozenset[str] = frozenset()

    def get(self, name: str) -> Node | None:
        """Returns a property; None where it is missing or invalid."""
        value = self.node.value
        return value.get(name) if isinstance(value, dict) and name not in self.invalid else None

    def valid(self, name: str) -> Node | None:
        """Returns a property without its invalid items and fields, so that later checks find problems of the others."""
        value = self.node.value
        if name not in self.invalid or name in self.unresolved or not isinstance(value, dict) or name not in value:
            return self.get(name)
        return sound_part(self.kind, name, value[name])


@dataclass(slots=True)
class Sources:
    """The documents that were read, and their files and problems.

    `incomplete`: a file or document could not be read, so declarations may be missing.
    """

    documents: list[Document] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    incomplete: bool = False
    over_limit: bool = False  #: the files exceed a limit of their number or size


def read_sources(project: Path, path: Path, environment: Environment) -> Sources:
    """Reads a file, or every spec file directly in a folder, and the files that these include.

    `project` and `path` are absolute. The files must be in the project's folder after links are followed; only `path`
    itself may be elsewhere. Variables are resolved and overlays applied for `environment` before the shapes of the
    documents are checked.
    """
    reader = _Reader(project.resolve(), path, environment)
    if path.is_dir():
        with os.scandir(path) as entries:
            found = sorted(entry.name for entry in entries if _is_spec(entry))
        if not found:
            at = Position(reader.label(path))
            reader.problem(at, "no spec files in this folder", "add one that ends in .yaml", Rule.NO_SPECS)
            reader.sources.incomplete = True
        for name in found:
            reader.read(path / name, ())
    else:
        reader.read(path, ())
    reader.resolve()
    return reader.sources


def _shapes_others(node: Node) -> bool:
    """Returns whether a document controls how other documents are read: an Include, Variables or an Overlay."""
    if not isinstance(node.value, dict):
        return False
    kind = node.value.get("kind")
    return "include" in node.value if kind is None else kind.value in ("Variables", "Overlay")


def _holds(node: Node, places: Collection[Position]) -> bool:
    """Returns whether the node, or a value inside it, is at one of the places."""
    if isinstance(node.value, dict):
        return any(_holds(child, places) for child in node.value.values())
    if isinstance(node.value, list):
        return any(_holds(child, places) for child in node.value)
    return node.at in places


def _is_spec(entry: os.DirEntry[str]) -> bool:
    """Returns whether an entry of a folder is read as a spec file. Pulumi's project and stack files in the same folder
    are not.

    A link counts as a file without a look at its target, so that no message shows whether a file outside exists.
    """
    named = entry.name.endswith(SUFFIXES) and not entry.name.startswith((".", "Pulumi."))
    return named and not entry.is_dir(follow_symlinks=False)


class _Place(NamedTuple):
    """The place of a file after links are followed, its name in positions, whether it may be read, and whether it is a
    link."""

    real: Path
    label: str
    allowed: bool
    is_link: bool = False


class _Reader:
    def __init__(self, project: Path, start: Path, environment: Environment) -> None:
        self.project = project
        outside = start.resolve() if start.is_dir() else start.resolve().parent
        self.allowed = (project, outside)
        self.environment = environment
        self.sources = Sources()
        self.bytes = self.values = 0  # of all files
        self.declared: list[Node] = []
        self.variables: list[Node] = []
        self.overlays: list[Node] = []
        self.refers: set[str] = set()  # files in which some value may refer to a variable
        self.done: set[str] = set()  # labels
        self.folders: dict[Path, _Place] = {}  # by path; `label` is the start of its files' labels

    def label(self, path: Path) -> str:
        """Returns a file's name in positions: relative to the project for a file in the project, else the path."""
        return path.relative_to(self.project).as_posix() if path.is_relative_to(self.project) else str(path)

    def may_read(self, path: Path) -> bool:
        return any(path.is_relative_to(folder) for folder in self.allowed)

    def place(self, path: Path) -> _Place:
        """Returns the place of a file. The real path of a folder is looked up once for all of its files."""
        if path.is_symlink():
            real = Path(os.path.realpath(path))
            return _Place(real, self.label(real), self.may_read(real), is_link=True)
        parent, name = path.parent, path.name
        folder = self.folders.get(parent)
        if folder is None:
            real = Path(os.path.realpath(parent))
            start = self.label(real / name).removesuffix(name)
            folder = self.folders[parent] = _Place(real, start, self.may_read(real))
        real = folder.real / name
        return _Place(real, folder.label + name, folder.allowed or self.may_read(real))

    def problem(self, at: Position, what: str, remedy: str, rule: Rule) -> None:
        self.sources.problems.append(Problem(at, what, remedy, rule))

    def read(self, path: Path, parents: tuple[Path, ...]) -> None:
        real, file, allowed, is_link = self.place(path)
        if file in self.done:
            return
        self.done.add(file)
        if not allowed:
            what = "the file is a link that leads out of the project's folder"
            self.problem(Position(self.label(path)), what, "copy the file here", Rule.INCLUDE_OUTSIDE)
            self.sources.incomplete = True
            return
        if is_link and real.is_dir():  # a link to a folder is skipped like other folders among the specs
            return
        sources = self.sources
        sources.files.append(file)
        try:
            data = read_limited(real, MAX_BYTES)
        except OSError as error:
            what = f"the file cannot be read: {error.strerror}"
            self.problem(Position(file), what, "check that it is there and that you may read it", Rule.UNREADABLE_FILE)
            sources.incomplete = True
            return
        self.bytes += len(data)
        if (problem := check_files(len(sources.files), self.bytes, self.values, file)) is not None:
            if not sources.over_limit:
                sources.problems.append(problem)
            sources.over_limit = sources.incomplete = True
            return
        parsed = parse_yaml(data, file)
        self.values += parsed.values
        sources.problems += parsed.problems
        sources.incomplete |= parsed.truncated
        if b"${" in data:
            self.refers.add(file)
        for node in parsed.documents:
            if not _shapes_others(node):
                self.declared.append(node)
                continue
            found: list[Problem] = []
            checked = check_shape(node, found)
            sources.problems += found
            if checked is None or checked[1]:
                sources.incomplete = True
            elif checked[0] == "Variables":
                self.variables.append(node)
            elif checked[0] == "Overlay":
                self.overlays.append(node)
            elif applies(node, self.environment.stack):
                self.include(node, real, (*parents, real))

    def resolve(self) -> None:
        """Resolves variables, applies overlays and checks the shapes of the resulting documents."""
        sources, stack = self.sources, self.environment.stack
        variables = read_variables(self.variables, self.environment, sources.problems)
        counted = SubstitutedText()
        unresolved: set[Position] = set()

        def resolved(node: Node) -> Node:
            if node.file not in self.refers:
                return node
            found = substitute(node, variables, stack, sources.problems, counted)
            unresolved.update(found.unresolved)
            return found.node

        documents, overlays = [resolved(node) for node in self.declared], [resolved(node) for node in self.overlays]
        if overlays:
            documents = apply_overlays(documents, overlays, stack, sources.incomplete, sources.problems)
        for node in documents:
            found: list[Problem] = []
            checked = check_shape(node, found)
            sources.problems += [problem for problem in found if problem.at not in unresolved]
            if checked is None:
                sources.incomplete = True
                continue
            kind, invalid = checked
            open_ = frozenset[str]()
            if unresolved and isinstance(node.value, dict):
                open_ = frozenset(key for key, child in node.value.items() if _holds(child, unresolved))
            sources.documents.append(Document(node, kind, invalid | open_, open_))

    def include(self, node: Node, file: Path, chain: tuple[Path, ...]) -> None:
        assert isinstance(node.value, dict)  # noqa: S101
        patterns = node.value["include"].value
        assert isinstance(patterns, list)  # noqa: S101
        for pattern in patterns:
            for found in self.matching(pattern, file):
                real = Path(os.path.realpath(found))
                if real not in chain:
                    self.read(found, chain)
                elif real != file or not WILD & set(str(pattern.value)):  # `*.yaml` means the other files
                    cycle = " → ".join(self.label(path) for path in (*chain[chain.index(real) :], real))
                    what = f"includes form a cycle: {cycle}"
                    self.problem(pattern.at, what, "remove one of them", Rule.INCLUDE_CYCLE)

    def matching(self, pattern: Node, file: Path) -> Iterator[Path]:
        text = str(pattern.value)
        try:
            found = matching_files(file.parent, text, self.may_read)
        except LeadsOut as error:
            by = f" by the link {self.label(error.link)}" if error.link else ""
            what = f"`{text}` leads out of the project's folder{by}"
            remedy = "move the file into the project and include it by a relative path"
            self.problem(pattern.at, what, remedy, Rule.INCLUDE_OUTSIDE)
            self.sources.incomplete = True
            return
        except ValueError as error:
            what = f"`{text}` is not a path or glob: {error}"
            self.problem(pattern.at, what, "write a path such as tables/*.yaml or **/*.yaml", Rule.BAD_TEXT)
            self.sources.incomplete = True
            return
        if not found:
            self.sources.incomplete = True
            folder = (file.parent / text).is_dir()
            what = f"`{text}` is a folder" if folder else f"`{text}` matches no file"
            remedy = (
                f"include the files in it: {text.rstrip('/')}/*.yaml" if folder else _nearest_path(file.parent, text)
            )
            self.problem(pattern.at, what, remedy, Rule.INCLUDE_MATCHES_NOTHING)
        yield from found


def _nearest_path(folder: Path, text: str) -> str:
    """Returns advice for a path that does not exist: the path with its first wrong part corrected, where a similar
    name exists."""
    parts = Path(text).parts
    for index, part in enumerate(parts):
        if WILD & set(part) or not folder.is_dir():
            break
        if not (folder / part).exists():
            near = nearest(part, sorted(entry.name for entry in folder.iterdir()))
            if near:
                return f"did you mean {Path(*parts[:index], near, *parts[index + 1 :]).as_posix()}?"
            break
        folder /= part
    return "correct the path, which is relative to this file, or remove it"
