"""Installs the project and its dependencies into the environment of this Python, as constraints.txt pins them.

    python .ci/install.py [--compile-bytecode] REQUIREMENT…

A requirement that begins with `.` is the project itself, such as `.[dev]`. uv installs them: it downloads several
packages at a time, builds PySpark meanwhile, and shows what it does. uv does not read pip's settings, so it gets those
that say where packages come from.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution

#: Settings of pip, and the variables by which uv takes them.
SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "cert": "SSL_CERT_FILE",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
PIP = (sys.executable, "-m", "pip")


def main(arguments: Sequence[str]) -> None:
    options = [each for each in arguments if each.startswith("--")]
    requirements = [each for each in arguments if not each.startswith("--")]
    own = [part for each in requirements if each.startswith(".") for part in ("--editable", each)]
    others = [each for each in requirements if not each.startswith(".")]
    uninstall_former_name()
    print("Installing uv, which installs the other packages", flush=True)
    subprocess.run(
        [*PIP, "install", "--quiet", "--disable-pip-version-check", "--constraint", "constraints.txt", "uv"], check=True
    )
    command = [sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable]
    environment = uv_settings(pip_settings()) | os.environ
    subprocess.run([*command, "--constraint", "constraints.txt", *options, *own, *others], env=environment, check=True)


def uninstall_former_name() -> None:
    """The distribution was called `deployer` before."""
    try:
        distribution("deployer")
    except PackageNotFoundError:
        return
    subprocess.run([*PIP, "uninstall", "--quiet", "--yes", "deployer"], check=True)


def pip_settings() -> str:
    """The lines of `pip config list`, such as `global.index-url='…'`; those of PIP_ variables begin with `:env:`."""
    ended = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=True)
    return ended.stdout


def uv_settings(listed: str) -> Mapping[str, str]:
    """The variables for uv. A PIP_ variable goes before the section of a command, and that one before `global`."""
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
