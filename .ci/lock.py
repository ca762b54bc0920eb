"""Writes deployer/compute/lock/: the packages that deployer needs, pinned as in constraints.txt, with their SHA-256.

`make lock` runs it. uv asks the package index for the files of each version. No written file contains the index's
address.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.markers import Marker, default_environment
from packaging.tags import Tag
from packaging.utils import parse_wheel_filename

REPOSITORY = Path(__file__).resolve().parent.parent
FOLDER = REPOSITORY / "deployer" / "compute" / "lock"
PYTHONS = ("3.11", "3.12", "3.13")
MACHINES = ("x86_64", "aarch64", "arm64", "universal2", "intel")
#: The index has only the source of PySpark. pip builds it with setuptools, which is pinned too.
FROM_SOURCE = {"pyspark"}
BUILD = "setuptools\n"

Package = Mapping[str, Any]


def main() -> None:
    plain, aws, build = resolved(), resolved("--extra", "aws"), resolved(given=BUILD)
    names = {each["name"] for each in plain}
    write("packages.txt", plain)
    write("packages-aws.txt", [each for each in aws if each["name"] not in names])
    write("packages-build.txt", build)


def resolved(*options: str, given: str = "") -> list[Package]:
    """Returns the packages of pyproject.toml, or of `given`, for all platforms, in the order of their names."""
    with tempfile.TemporaryDirectory() as folder:
        requirements, lock = Path(folder, "requirements.in"), Path(folder, "pylock.toml")
        requirements.write_text(given, encoding="utf-8")
        source = requirements if given else REPOSITORY / "pyproject.toml"
        command = [
            *(sys.executable, "-m", "uv", "pip", "compile", str(source), *options, "--quiet", "--universal"),
            *("--python-version", PYTHONS[0], "--constraint", str(REPOSITORY / "constraints.txt")),
            *("--format", "pylock.toml", "--output-file", str(lock)),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found: list[Package] = tomllib.loads(lock.read_text(encoding="utf-8"))["packages"]
    return [each for each in found if is_needed(each)]


def write(name: str, packages: Iterable[Package]) -> None:
    lines = [line for package in packages for line in requirement(package)]
    FOLDER.joinpath(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def requirement(package: Package) -> Iterator[str]:
    """Yields the lines of a requirement in pip's form, with a line for each hash."""
    files = package.get("wheels", []) if package["name"] not in FROM_SOURCE else [package["sdist"]]
    hashes = sorted(
        {each["hashes"]["sha256"] for each in files if package["name"] in FROM_SOURCE or runs_here(file_name(each))}
    )
    if not hashes:
        raise SystemExit(f"{package['name']} {package['version']} has no wheel for Linux or macOS")
    yield f"{package['name']}=={package['version']} \\"
    yield from (f"    --hash=sha256:{each} \\" for each in hashes[:-1])
    yield f"    --hash=sha256:{hashes[-1]}"


def file_name(file: Mapping[str, Any]) -> str:
    return str(file.get("name") or file["url"].rsplit("/", 1)[1])


def is_needed(package: Package) -> bool:
    """Returns whether CPython on Linux or macOS needs the package. Raises SystemExit for a package that only some of
    these platforms need."""
    marker = Marker(package["marker"]) if "marker" in package else None
    if marker is None:
        return True
    found = {marker.evaluate(environment) for environment in environments()}
    if len(found) > 1:
        raise SystemExit(f"{package['name']} is needed on some machines only ({marker}): the lock has no form for that")
    return found == {True}


def environments() -> Iterator[Mapping[str, str]]:
    for python in PYTHONS:
        for system, machine in (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"), ("darwin", "x86_64")):
            yield {
                **default_environment(),  # type: ignore[dict-item]
                "python_version": python,
                "python_full_version": f"{python}.9",
                "implementation_name": "cpython",
                "platform_python_implementation": "CPython",
                "sys_platform": system,
                "platform_system": "Linux" if system == "linux" else "Darwin",
                "platform_machine": machine,
                "os_name": "posix",
            }


def runs_here(wheel: str) -> bool:
    """Returns whether the wheel is for a CPython that deployer supports, on Linux or macOS."""
    return any(_python_fits(tag) and _platform_fits(tag.platform) for tag in parse_wheel_filename(wheel)[3])


def _python_fits(tag: Tag) -> bool:
    if tag.interpreter.startswith("py3"):
        return tag.abi == "none"
    if not tag.interpreter.startswith("cp3"):
        return False
    if tag.abi == "abi3":
        return True
    return tag.abi in ("none", tag.interpreter) and tag.interpreter in {
        f"cp{each.replace('.', '')}" for each in PYTHONS
    }


def _platform_fits(platform: str) -> bool:
    if platform == "any":
        return True
    return platform.startswith(("manylinux", "musllinux", "macosx")) and platform.endswith(MACHINES)


if __name__ == "__main__":
    main()
