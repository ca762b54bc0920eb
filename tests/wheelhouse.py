"""Wheels by the names and versions of the packages that jobs need, with next to nothing in them: what `deployer
package` downloads in tests. Real ones are 200 MB."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

import pytest

from deployer.compute.packaging.requirements import pins

REQUIREMENTS = "requirements.txt"


def make_wheelhouse(folder: Path) -> Path:
    """No wheel has a module by its package's own name, so that nothing hides what is installed.

    The folder is also one of a project whose requirements pin these wheels.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wheels = {pin: make_wheel(folder, *pin.split("==")) for pin in pins()}
    lines = (f"{pin} --hash=sha256:{sha256(wheel)}\n" for pin, wheel in wheels.items())
    (folder / REQUIREMENTS).write_text("".join(lines), encoding="utf-8")
    return folder


def trust_wheelhouse(project: Path) -> None:
    """Lets the project's requirements pin the wheels of the wheelhouse in use: they are not those of the lock."""
    folder = Path(os.environ["PIP_FIND_LINKS"])
    (project / REQUIREMENTS).write_bytes((folder / REQUIREMENTS).read_bytes())


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def make_wheel(folder: Path, name: str, version: str, tag: str = "py3-none-any", **files: str) -> Path:
    """A wheel with the module `packaged_NAME`; `files` are more, by path with `__` for `/`."""
    plain = name.replace("-", "_")
    path = folder / f"{plain}-{version}-{tag}.whl"
    info = f"{plain}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"packaged_{plain}.py", f"VERSION = {version!r}\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        for file, text in files.items():
            wheel.writestr(file.replace("__", "/"), text)
        wheel.writestr(f"{info}/RECORD", "")
    return path


def use_wheelhouse(folder: Path, environment: pytest.MonkeyPatch) -> None:
    """Lets pip find packages in the folder and nowhere else."""
    environment.setenv("PIP_NO_INDEX", "1")
    environment.setenv("PIP_FIND_LINKS", str(folder))
