"""Installs the project and its dependencies into the environment of this Python, as constraints.txt pins them.

    python .ci/install.py [--compile-bytecode] REQUIREMENT…

A requirement that begins with `.` is the project itself, such as `.[dev]`. uv installs the packages: it downloads
several at a time, builds PySpark meanwhile, and shows its progress. uv does not read pip's settings, so it receives the
settings for the sources of packages. pip itself is one of the packages, because `deployer package` runs it. In an
environment without pip, the pip of the Python that made the environment installs uv, which is faster than setting up
pip first.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

#: Settings of pip, and the variables with the same meaning for uv.
SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "cert": "SSL_CERT_FILE",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
#: Settings of setuptools for packages that are built here. One of them is PySpark: 430 MB of jars, which are compressed
#: already.
BUILDS = Path(__file__).resolve().with_name("builds.cfg")
_HAS_PIP = "import pip, sys; sys.exit(int(pip.__version__.split('.')[0]) < 23)"


def main(arguments: Sequence[str]) -> None:
    options = [each for each in arguments if each.startswith("--")]
    requirements = [each for each in arguments if not each.startswith("--")]
    own = [part for each in requirements if each.startswith(".") for part in ("--editable", each)]
    others = [each for each in requirements if not each.startswith(".")]
    pip = pip_command()
    uninstall_former_name(pip)
    print("Installing uv, which installs the other packages", flush=True)
    subprocess.run(
        [*pip, "install", "--quiet", "--disable-pip-version-check", "--constraint", "constraints.txt", "uv"], check=True
    )
    command = [sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable]
    environment = {"DIST_EXTRA_CONFIG": str(BUILDS), **uv_settings(pip_settings(pip)), **os.environ}
    subprocess.run(
        [*command, "--constraint", "constraints.txt", *options, *own, *others, "pip"], env=environment, check=True
    )


def pip_command() -> Sequence[str]:
    """Returns the command of a pip that installs into this environment: its own pip, that of the Python that made the
    environment, or one that is set up now."""
    own = (sys.executable, "-m", "pip")
    if importlib.util.find_spec("pip"):
        return own
    base = getattr(sys, "_base_executable", sys.executable)
    if subprocess.run([base, "-c", _HAS_PIP], capture_output=True, check=False).returncode == 0:
        return base, "-m", "pip", "--python", sys.executable
    if subprocess.run([sys.executable, "-m", "ensurepip"], stdout=subprocess.DEVNULL, check=False).returncode:
        sys.exit("error: this Python has neither pip nor ensurepip; install one (Debian: the package python3-venv)")
    return own


def uninstall_former_name(pip: Sequence[str]) -> None:
    """Uninstalls the distribution `deployer`, which is the former name of this one."""
    try:
        distribution("deployer")
    except PackageNotFoundError:
        return
    subprocess.run([*pip, "uninstall", "--quiet", "--yes", "deployer"], check=True)


def pip_settings(pip: Sequence[str]) -> str:
    """Returns the lines of `pip config list`, such as `global.index-url='…'`; those of PIP_ variables begin with
    `:env:`."""
    ended = subprocess.run([*pip, "config", "list"], capture_output=True, text=True, check=True)
    return ended.stdout


def uv_settings(listed: str) -> Mapping[str, str]:
    """Returns the variables for uv. A PIP_ variable takes precedence over the section of a command, and that section
    over `global`."""
    found: dict[str, tuple[int, str]] = {}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        rank = {":env:": 0, "install": 1, "global": 2}.get(section)
        if rank is not None and name in SETTINGS:
            found[name] = min(found.get(name, (9, "")), (rank, str(ast.literal_eval(value))))
    settings = {SETTINGS[name]: " ".join(value.split()) for name, (_, value) in found.items()}
    if "UV_FIND_LINKS" in settings:
        settings["UV_FIND_LINKS"] = settings["UV_FIND_LINKS"].replace(" ", ",")
    return settings


if __name__ == "__main__":
    main(sys.argv[1:])
