"""Builds the code of jobs as local files to upload. Files are built when they are missing or outdated."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployer.compute.jobs.code import REMOTE_KINDS, architecture_of
from deployer.compute.packaging.archive import build_archive
from deployer.compute.packaging.lock_file import Hashes, canonical, hashes_of
from deployer.compute.packaging.project_modules import NamedFunction, ProjectModules, project_modules
from deployer.compute.packaging.requirements import REQUIREMENTS, declared_requirements, pins
from deployer.compute.packaging.wheel import NAME, build_wheel, job_programs
from deployer.errors import InvalidInput
from deployer.platform.files.private import make_private_folder, write_private
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.specs.model import Cluster

#: The version of Python that all releases of EMR since 7.1 have, also emr-spark-8.0.0. deployer needs at least it.
PYTHON = "3.11"
FOLDER = "build/jobs"  #: the default folder for the files, in the project
MANIFEST = "package.json"
MODULES = "modules.zip"
_FORMAT = 1  # the version of the archive format; increase it when the same packages give other bytes


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A file with its SHA-256 and its size in bytes. `is_new` states that it was just written."""

    path: Path
    sha256: str
    size: int
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class JobPackage:
    """The code of jobs: the wheel, the programs by job name, and the archive of packages for each architecture."""

    python: str
    wheel: PackagedFile
    scripts: Mapping[str, PackagedFile]
    archives: Mapping[str, PackagedFile]
    modules: PackagedFile | None = None  #: the project's modules that jobs import; None for none
    functions: tuple[str, ...] = ()  #: the project's functions that jobs can import


def architectures(clusters: Iterable[Cluster]) -> list[str]:
    """Returns the architectures of the clusters on AWS, in alphabetical order."""
    return sorted({architecture_of(cluster) for cluster in clusters if cluster.kind in REMOTE_KINDS})


def requirements_of(clusters: Iterable[Cluster]) -> tuple[str, ...]:
    """Returns the packages that the clusters on AWS declare for functions, in alphabetical order."""
    found: set[str] = set()
    for cluster in clusters:
        if cluster.kind in REMOTE_KINDS:
            found |= {canonical(name) for name in declared_requirements(cluster)}
    return tuple(sorted(found))


def build_package(
    folder: Path,
    architectures: Iterable[str],
    python: str = PYTHON,
    on_progress: OnProgress = no_progress,
    *,
    project_dir: Path | None = None,
    functions: Sequence[NamedFunction] = (),
    requirements: Sequence[str] = (),
) -> JobPackage:
    """Builds the package in `folder`, from the present code and the packages that are installed here.

    Only changed files are built again. An archive needs a download. The lock, or the requirements files of the project,
    must trust each wheel. `functions` are the project's functions that jobs import, and `requirements` are packages
    that functions need in addition to the packages of jobs.

    Raises DeployerError when pip does not find a package, and NotFound for a package that is not installed here. Raises
    InvalidInput for an unknown architecture or an invalid version of Python, for a package without a known hash, and
    for a function that jobs on a cluster need but cannot import.
    """
    if not folder.is_dir():
        make_private_folder(folder, folder)
    if not (ignore := folder / ".gitignore").exists():
        write_private(ignore, "*\n")
    modules = project_modules(project_dir, functions, requirements) if project_dir is not None else ProjectModules()
    needed = pins((*REQUIREMENTS.values(), *requirements))
    trusted = hashes_of(needed, project_dir)
    recorded: dict[str, Any] = dict(_manifest(folder).get("archives", {}))
    archives = {}
    for architecture in architectures:
        key = hashlib.sha256(json.dumps([_FORMAT, architecture, python, needed]).encode()).hexdigest()
        about, path = recorded.get(architecture, {}), folder / f"environment-{architecture}.tar.gz"
        if about.get("key") == key and (found := _as_recorded(path, about, trusted)):
            archives[architecture] = found
            continue
        wheels = build_archive(architecture, python, trusted, path, on_progress)
        archives[architecture] = _measured(path, is_new=True)
        recorded[architecture] = {"key": key, **_about(archives[architecture]), "wheels": wheels}
    package = JobPackage(
        python,
        _written(folder / NAME, build_wheel()),
        {job: _written(folder / f"{job}.py", contents) for job, contents in job_programs().items()},
        archives,
        _written(folder / MODULES, modules.contents) if modules.contents else None,
        modules.functions,
    )
    manifest = {
        "python": python,
        "packages": needed,
        "wheel": _about(package.wheel),
        "scripts": {job: _about(file) for job, file in sorted(package.scripts.items())},
        "archives": recorded,
        "modules": _about(package.modules) if package.modules else None,
        "functions": list(package.functions),
    }
    _written(folder / MANIFEST, json.dumps(manifest, indent=1).encode())
    return package


def read_package(folder: Path, architectures: Iterable[str]) -> JobPackage:
    """Returns a package that was built before, without changes. Raises InvalidInput when a file of it is not in
    `folder`."""
    found = _manifest(folder)

    def file(about: Mapping[str, Any]) -> PackagedFile:
        path = folder / about["name"]
        if not path.is_file():
            raise InvalidInput("a file of the jobs' code is gone", where=path, remedy="run `deployer package` again")
        return _measured(path)

    if not found:
        raise InvalidInput("there is no code of jobs here", where=folder, remedy=f"deployer package --out {folder}")
    archives = {}
    for each in architectures:
        if each not in found["archives"]:
            remedy = f"deployer package --out {folder} --architecture {each}"
            raise InvalidInput(f"there are no packages for {each} here", where=folder, remedy=remedy)
        archives[each] = file(found["archives"][each])
    scripts = {job: file(about) for job, about in found["scripts"].items()}
    modules = file(found["modules"]) if found.get("modules") else None
    return JobPackage(
        found["python"], file(found["wheel"]), scripts, archives, modules, tuple(found.get("functions") or ())
    )


def _as_recorded(path: Path, about: Mapping[str, Any], trusted: Hashes) -> PackagedFile | None:
    """Returns the archive if it is unchanged since it was built, and all of its wheels are still trusted; else None."""
    wheels, hashes = about.get("wheels"), frozenset().union(*trusted.values())
    if not wheels or not hashes.issuperset(wheels.values()) or not path.is_file():
        return None
    found = _measured(path)
    return found if found.sha256 == about["sha256"] else None


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _about(file: PackagedFile) -> dict[str, Any]:
    return {"name": file.path.name, "sha256": file.sha256, "size": file.size}


def _measured(path: Path, *, is_new: bool = False) -> PackagedFile:
    with path.open("rb") as file:
        return PackagedFile(path, hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size, is_new)


def _written(path: Path, contents: bytes) -> PackagedFile:
    """Writes the file by a rename, because other runs may read it. An up-to-date file is not written."""
    if is_new := not path.is_file() or path.read_bytes() != contents:
        write_private(path, contents)
    return PackagedFile(path, hashlib.sha256(contents).hexdigest(), len(contents), is_new)
