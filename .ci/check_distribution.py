"""Builds the sdist and the wheel, installs the wheel into an empty environment, and uses it there.

`make distribution` runs it. It checks three conditions. The wheel has exactly the files of the packages that Git has.
The wheel that is built from the sdist has the same files with the same contents. With only the wheel and its
dependencies, a new project can be created, applied, loaded and queried.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from install import pip_command, pip_settings, uv_settings

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = ("deployer", "spark_jobs")
UV = (sys.executable, "-m", "uv")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        python = install(wheel, Path(folder, "environment"))
        use(python, Path(folder, "elsewhere"))
    print(f"{wheel.name} has all files and works without the repository")


def build(folder: Path) -> Path:
    """Builds the wheel from the files that Git has; returns its path. Raises SystemExit where the wheel lacks a file or
    differs from the wheel of the sdist."""
    source, names = folder / "source", git_files()
    for name in names:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, source / name)
    run(*UV, "build", "--quiet", "--sdist", "--out-dir", str(folder / "sdist"), str(source))
    run(*UV, "build", "--quiet", "--wheel", "--out-dir", str(folder / "tree"), str(source))
    sdist = next((folder / "sdist").glob("*.tar.gz"))
    run(*UV, "build", "--quiet", "--wheel", "--out-dir", str(folder / "again"), str(sdist))
    wheel, again = (next((folder / each).glob("*.whl")) for each in ("tree", "again"))
    if differ := sorted(name for name, _ in contents(wheel).items() ^ contents(again).items()):
        raise SystemExit(f"the wheel of the sdist differs from the wheel of the tree: {', '.join(differ)}")
    packed = {name for name in contents(wheel) if name.split("/")[0] in PACKAGES}
    if differ := sorted(packed ^ {name for name in names if name.split("/")[0] in PACKAGES}):
        raise SystemExit(f"only the wheel or only Git has {', '.join(differ)}; see package-data in pyproject.toml")
    return wheel


def git_files() -> list[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (REPOSITORY / name).is_file()]


def contents(wheel: Path) -> dict[str, int]:
    """Returns the files of a wheel and their checksums, without the file RECORD, which follows from them."""
    with zipfile.ZipFile(wheel) as archive:
        return {each.filename: each.CRC for each in archive.infolist() if not each.filename.endswith("/RECORD")}


def install(wheel: Path, environment: Path) -> Path:
    """Installs the wheel and its dependencies into a new environment; returns its Python."""
    run(*UV, "venv", "--quiet", "--python", sys.executable, str(environment))
    python = environment / "bin" / "python"
    constraints = str(REPOSITORY / "constraints.txt")
    run(*UV, "pip", "install", "--python", str(python), "--constraint", constraints, str(wheel))
    return python


def use(python: Path, folder: Path) -> None:
    """Creates and uses a lake in `folder`, with a home and an environment that have nothing of the repository."""
    project = folder / "lake"
    folder.mkdir()
    environment = {"PATH": os.defpath, "HOME": str(folder), "LANG": "C.UTF-8"}

    def deployer(*arguments: str, where: Path = project) -> str:
        print("$ deployer", *arguments, flush=True)
        command = [str(python.with_name("deployer")), *arguments]
        ended = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise SystemExit(f"exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")
        return ended.stdout

    deployer("init", str(project), where=folder)
    expect("create table", deployer("preview"))
    expect("Done: 2 created", deployer("up", "--yes"))
    rows = len((project / "data" / "trips.csv").read_text(encoding="utf-8").splitlines()) - 1
    expect(f"{rows} rows added", deployer("ingest", "demo.trips", "data/trips.csv"))
    expect(f'"rows": {rows}', deployer("tables", "--json"))
    expect("trip_id", deployer("query", "demo.trips"))


def expect(text: str, output: str) -> None:
    if text not in output:
        raise SystemExit(f"{text!r} is not in the output:\n{output}")


def run(*command: str) -> None:
    subprocess.run(command, cwd=REPOSITORY, env=uv_settings(pip_settings(pip_command())) | os.environ, check=True)


if __name__ == "__main__":
    main()
