"""Wheels by the names and versions of the packages that jobs need, with next to nothing in them: what `deployer
package` downloads in tests. Real ones are 200 MB."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from deployer.compute.job_requirements import pins


def make_wheelhouse(folder: Path) -> Path:
    """No wheel has a module by its package's own name, so that nothing hides what is installed."""
    folder.mkdir(parents=True, exist_ok=True)
    for pin in pins():
        make_wheel(folder, *pin.split("=="))
    return folder


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
