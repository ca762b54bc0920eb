"""Builds the archive of the packages that jobs need on a cluster: pip downloads them, and a tar file has them as one
folder.

Files are sorted by name and have the same time and owner, so that the same packages give the same bytes. A wheel whose
SHA-256 is not trusted is never packed.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from deployer.compute.packaging.lock_file import Hashes
from deployer.errors import DeployerError, InvalidInput
from deployer.platform.files.temporary import temporary_folder
from deployer.platform.system.progress import OnProgress, Progress, no_progress

#: The minor versions of glibc 2 whose wheels run on EMR 7 and 8, which use Amazon Linux 2023 with glibc 2.34.
NEWEST_GLIBC, OLDEST_GLIBC = 34, 17
MACHINES = {"arm64": "aarch64", "x86_64": "x86_64"}
EPOCH = 315532800  #: 1980-01-01 in seconds since 1970, the first time that zip files can have

_BEGINS = re.compile(r"(?:Collecting |Processing (?:\S*/)?)([A-Za-z0-9._]+)")  # from an index, or from a folder
_PYTHON = re.compile(r"3\.\d+")
_MISMATCH = "DO NOT MATCH THE HASHES"
_MISMATCHED = re.compile(r"(\S+==\S+) from ")


def build_archive(
    architecture: str, python: str, packages: Hashes, file: Path, on_progress: OnProgress = no_progress
) -> dict[str, str]:
    """Writes `file` (.tar.gz) with exactly these packages, built for the architecture and the version of Python.

    Returns the SHA-256 of each wheel by its file name. Raises InvalidInput for an unknown architecture or an invalid
    version of Python, and DeployerError when pip does not find a package, or finds a file that is not trusted.
    """
    platforms = platforms_of(architecture)
    if not _PYTHON.fullmatch(python):
        raise InvalidInput(f"{python!r} is not a valid version of Python", remedy="write it as 3.11")
    with temporary_folder("download", file.parent) as wheels:
        _download(platforms, python, packages, wheels, on_progress)
        digests = {wheel.name: _checked(wheel, packages) for wheel in sorted(wheels.glob("*.whl"))}
        unfinished = wheels / file.name
        pack(sorted(wheels.glob("*.whl")), unfinished, on_progress)
        unfinished.chmod(0o600)
        unfinished.replace(file)
    return digests


def platforms_of(architecture: str) -> list[str]:
    """Returns the platform tags of wheels that run on the architecture, newest first. Raises InvalidInput for an
    unknown architecture."""
    if architecture not in MACHINES:
        raise InvalidInput(f"{architecture!r} is not an architecture of clusters", remedy="use arm64 or x86_64")
    machine = MACHINES[architecture]
    newest_first = range(NEWEST_GLIBC, OLDEST_GLIBC - 1, -1)
    return [*(f"manylinux_2_{version}_{machine}" for version in newest_first), f"manylinux2014_{machine}"]


def _download(platforms: Sequence[str], python: str, packages: Hashes, folder: Path, on_progress: OnProgress) -> None:
    requirements = folder / "requirements.txt"
    lines = (" ".join([pin, *(f"--hash=sha256:{each}" for each in sorted(hashes))]) for pin, hashes in packages.items())
    requirements.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [
        *(sys.executable, "-P", "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--no-deps"),
        *("--only-binary=:all:", "--implementation=cp", f"--python-version={python}", "--progress-bar=off"),
        *(f"--platform={platform}" for platform in platforms),
        *("--require-hashes", f"--dest={folder}", f"--requirement={requirements}"),
    ]
    output: list[str] = []
    begun = 0
    on_progress(Progress("downloading", 0, len(packages), "packages"))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        try:
            assert pip.stdout is not None  # noqa: S101
            for line in pip.stdout:
                output.append(line.strip())
                if match := _BEGINS.match(line):
                    on_progress(Progress(f"downloading {match[1]}", begun, len(packages), "packages"))
                    begun += 1
        except BaseException:
            pip.terminate()
            raise
    if pip.returncode:
        raise _failure(output, python, platforms)


def _failure(lines: Sequence[str], python: str, platforms: Sequence[str]) -> DeployerError:
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    if any("No module named pip" in line for line in lines):
        return DeployerError("jobs' packages are downloaded by pip, which is not installed", remedy="install pip")
    if missing := [line for line in errors if line.startswith("No matching distribution found for ")]:
        name = missing[0].removeprefix("No matching distribution found for ")
        return DeployerError(
            f"there is no wheel of {name} for Python {python} on {platforms[-1]}",
            remedy="install another version of it here, which the clusters then get; or choose another Python or "
            "architecture",
        )
    if any(_MISMATCH in line for line in lines):
        names = [match[1] for line in lines if (match := _MISMATCHED.match(line))]
        return _untrusted(", ".join(names) or "a package")
    return DeployerError(
        f"pip did not download the jobs' packages: {(errors or list(lines) or ['no output'])[-1]}",
        remedy="check whether pip reaches its index, then try again",
    )


def _checked(wheel: Path, packages: Hashes) -> str:
    """Returns the SHA-256 of a downloaded wheel. Raises DeployerError for a wheel that is not trusted, even if pip
    accepted it."""
    try:
        name, version, _, _ = parse_wheel_filename(wheel.name)
    except InvalidWheelFilename:
        raise _untrusted(wheel.name) from None
    with wheel.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest not in packages.get(f"{name}=={version}", ()):
        raise _untrusted(wheel.name)
    return digest


def _untrusted(what: str) -> DeployerError:
    return DeployerError(
        f"the package index has a different file of {what} than the trusted ones: the SHA-256 differs",
        remedy="do not use it; ask the operator of the index, or pin its hash in requirements.txt once you trust it",
    )


def pack(wheels: Sequence[Path], file: Path, on_progress: OnProgress = no_progress) -> None:
    """Writes the packages of the wheels to the tar file `file`, as one folder of modules."""
    members = {name: (wheel, inner) for wheel in reversed(wheels) for name, inner in _members(wheel)}
    opened = {wheel: zipfile.ZipFile(wheel) for wheel in wheels}
    total = sum(opened[wheel].getinfo(inner).file_size for wheel, inner in members.values()) // 2**20
    done = reported = 0
    try:
        with (
            file.open("wb") as raw,
            gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=6, mtime=0) as zipped,
            tarfile.open(fileobj=zipped, mode="w", format=tarfile.GNU_FORMAT) as tar,
        ):
            for name in sorted(members):
                wheel, inner = members[name]
                entry = tarfile.TarInfo(name)
                entry.size, entry.mtime, entry.mode = opened[wheel].getinfo(inner).file_size, EPOCH, 0o644
                with opened[wheel].open(inner) as contents:
                    tar.addfile(entry, contents)
                done += entry.size
                if done >= reported + 2**20:
                    reported = done
                    on_progress(Progress("packing", done // 2**20, total, "MiB"))
    finally:
        for each in opened.values():
            each.close()


def _members(wheel: Path) -> Iterator[tuple[str, str]]:
    """Yields the files of a wheel as pairs of their path in the archive and their name in the wheel. Leaves out tests
    of packages, scripts and headers.

    https://packaging.python.org/en/latest/specifications/binary-distribution-format/
    """
    with zipfile.ZipFile(wheel) as opened:
        names = [info.filename for info in opened.infolist() if not info.is_dir()]
    for name in names:
        parts = PurePosixPath(name).parts
        if ".." in parts or PurePosixPath(name).is_absolute():
            raise DeployerError(f"{wheel.name} has a file outside of it: {name}", remedy="do not use this package")
        if parts[0].endswith(".data"):
            if len(parts) < 3 or parts[1] not in ("purelib", "platlib"):
                continue
            parts = parts[2:]
        if "tests" not in parts and not name.endswith(".pyc"):
            yield "/".join(parts), name
