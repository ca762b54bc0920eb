"""Damage to a lake, at random: afterwards every command works or reports what is wrong, and others stay usable."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import Deployer, Ran
from tests.security.foreign.lake_damage import location_of
from tests.security.foreign.test_readers_write_nothing import WITHOUT_ROOTS_RIGHTS, python

pytestmark = pytest.mark.full

TABLES = ("flights", "notes", "planes")
WAYS = ("remove", "empty", "cut", "overwrite", "move")
LINKS = ("to where it was moved", "to nothing", "to itself", "to another path of the lake")

READING: tuple[tuple[str, ...], ...] = (
    ("tables",),
    ("preview",),
    ("drift",),
    ("doctor",),
    ("service", "list"),
    ("service", "check"),
    ("savepoint", "list"),
    ("state", "verify"),
    ("report", "--html", "page.html"),
    *((command, name) for name in TABLES for command in ("describe", "history", "query")),
)
CHANGING: tuple[tuple[str, ...], ...] = (
    ("savepoint", "create", "x"),
    ("table", "gc"),
    ("up", "--yes"),
    ("state", "repair"),
)


def paths_of(project: Path) -> list[Path]:
    """The files and folders of the lake and of Pulumi's state."""
    places = [project / "lakes", project / ".pulumi"]
    return sorted(path for place in places for path in place.rglob("*") if "-turn" not in path.name)


def damage(project: Path, chance: random.Random) -> tuple[Path, str]:
    """Damages one file or folder of the lake or of Pulumi's state; gives which, and how."""
    path = chance.choice(paths_of(project))
    way = chance.choice(WAYS)
    if way == "move":
        path.rename(path.with_name(f"{path.name}.aside"))
    elif path.is_dir():
        shutil.rmtree(path)
        if way != "remove":
            path.write_bytes(chance.randbytes(100) if way == "overwrite" else b"")
    elif way == "remove":
        path.unlink()
    else:
        whole = path.read_bytes()
        path.write_bytes(
            {"empty": b"", "cut": whole[: len(whole) // 2], "overwrite": chance.randbytes(len(whole))}[way]
        )
    return path, way


def put_link(project: Path, chance: random.Random) -> tuple[Path, str]:
    """Puts a link in the place of one file or folder of the lake or of Pulumi's state; gives where, and to what."""
    paths = paths_of(project)
    path, way = chance.choice(paths), chance.choice(LINKS)
    aside = project.parent / "aside"
    path.rename(aside)
    target = {
        "to where it was moved": aside,
        "to nothing": project / "nowhere",
        "to itself": path,
        "to another path of the lake": chance.choice([each for each in paths if not each.is_relative_to(path)]),
    }[way]
    path.symlink_to(target)
    return path, f"link {way}"


@pytest.mark.parametrize("seed", range(120))
@pytest.mark.thinned(10)
def test_commands_work_or_say_what_is_wrong(project: Path, root: Path, deployer: Deployer, seed: int) -> None:
    datasets = {name: location_of(root, name) for name in TABLES}
    path, way = damage(project, random.Random(seed))  # noqa: S311 (the same damage each time)
    check(root, deployer, datasets, path, way)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.thinned(10)
def test_links_are_followed_or_named(project: Path, root: Path, deployer: Deployer, seed: int) -> None:
    datasets = {name: location_of(root, name) for name in TABLES}
    path, way = put_link(project, random.Random(seed))  # noqa: S311 (the same damage each time)
    check(root, deployer, datasets, path, way)


def check(root: Path, deployer: Deployer, datasets: Mapping[str, Path], path: Path, way: str) -> None:
    """Every command works or says what is wrong, and the tables that the damage does not touch stay usable."""
    healthy = [name for name, dataset in datasets.items() if not _touches(path, dataset)]
    state_is_whole = not _touches(path, root / "_state") and root.exists()

    def run(*command: str) -> Ran:
        ran = deployer(*command)
        assert ran.code in (0, 1, 2, 3), (path, way, command, ran)
        assert "Traceback" not in ran.err + ran.out, (path, way, command, ran)
        said = any(word in ran.err + ran.out for word in ("error: ", '"error": ', ": unreadable: ", "wrong "))
        assert ran.code in (0, 2) or said, (path, way, command, ran)
        return ran

    for command in (*READING, *CHANGING):
        run(*command)
    for name in TABLES:
        ran = run("query", name, "--json")
        if ran.code == 0:
            assert len(ran.json["rows"]) == 3, (path, way, name)
        elif state_is_whole:
            assert name not in healthy, (path, way, name, ran)
    if state_is_whole:
        listed = run("tables", "--json").json
        assert {f"air.{name}" for name in healthy} <= {each["name"] for each in listed["tables"]}, (path, way)
        for name in healthy:
            assert run("ingest", name, f"{name}.csv").code == 0, (path, way, name)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.thinned(10)
def test_what_may_not_be_written_to_is_read(project: Path, root: Path, seed: int) -> None:
    """A file, a folder with all that is in it, or the whole lake, for a process that rights of files hold for."""
    chance = random.Random(seed)  # noqa: S311 (the same each time)
    path = chance.choice([project / "lakes", root, root / "_state", *paths_of(project)])
    inside = [path, *(each for each in path.rglob("*") if path.is_dir())]
    try:
        for each in inside:
            each.chmod(0o555 if each.is_dir() else 0o444)
        ran = in_a_process(project, [*READING, *(("query", name, "--json") for name in TABLES)])
        changed = in_a_process(project, [("savepoint", "create", "x"), ("up", "--yes")])
    finally:
        for each in inside:
            each.chmod(0o755 if each.is_dir() else 0o644)
    for command, code, out in ran:
        may_warn = command[0] == "doctor"
        assert code == 0 or (may_warn and code == 1), (path, command, code)
        if command[-1] == "--json":
            assert len(json.loads(out)["rows"]) == 3, (path, command)
    assert {code for _, code, _ in changed} <= {0, 1}, (path, changed)


RUN = """
import contextlib, io, json, sys
from deployer.cli.main import run
done = []
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = run(command)
    done.append([command, code, out.getvalue()])
print(json.dumps(done))
"""


def in_a_process(project: Path, commands: Sequence[Sequence[str]]) -> list[tuple[list[str], int, str]]:
    """Commands, their exit codes and what they print, in a process without root's right to pass over rights of files.

    None prints a traceback.
    """
    ran = subprocess.run(
        python(RUN, json.dumps(commands), after=WITHOUT_ROOTS_RIGHTS if os.getuid() == 0 else ""),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=project,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in ran.stderr, ran.stderr
    return [(command, code, out) for command, code, out in json.loads(ran.stdout)]


def _touches(path: Path, place: Path) -> bool:
    return path.is_relative_to(place) or place.is_relative_to(path)
