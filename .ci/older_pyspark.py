"""Runs tests with another release of PySpark: `python .ci/older_pyspark.py VERSION [PYTEST'S ARGUMENTS…]`.

An environment below build/ has only that release. It gets all other packages from the environment of this Python, which
a line in a .pth file names. So making it takes only the time to download PySpark's source, and leaves this environment
unchanged.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

from install import BUILDS, pip_command, pip_settings, uv_settings

REPOSITORY = Path(__file__).resolve().parent.parent
TESTS = ("tests/spark", "tests/tables/changes")


def main(version: str, arguments: Sequence[str]) -> int:
    python = environment(version)
    command = [str(python), "-m", "pytest", *(arguments or ("-n", "2", "--tier", "all", *TESTS))]
    return subprocess.run(command, cwd=REPOSITORY, check=False).returncode


def environment(version: str) -> Path:
    """Returns the Python of the environment, which is made unless an earlier call completed it."""
    folder = REPOSITORY / "build" / f"pyspark-{version}"
    python, ready = folder / "bin" / "python", folder / ".ready"
    if ready.exists():
        return python
    venv.create(folder, with_pip=False, clear=True)
    own = sysconfig.get_path("purelib", vars={"base": str(folder)})
    (Path(own) / "others.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    settings = {"DIST_EXTRA_CONFIG": str(BUILDS), **uv_settings(pip_settings(pip_command())), **os.environ}
    install = [sys.executable, "-m", "uv", "pip", "install", "--python", str(python), "--no-deps"]
    subprocess.run([*install, f"pyspark=={version}"], env=settings, check=True)
    ready.touch()
    return python


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
