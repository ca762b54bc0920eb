"""Damage to a lake, at random: afterwards every command works or reports what is wrong, and others stay usable."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Deployer, Ran
from tests.security.foreign.lake_damage import location_of

TABLES = ("flights", "notes", "planes")
WAYS = ("remove", "empty", "cut", "overwrite", "move")

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


def damage(project: Path, chance: random.Random) -> tuple[Path, str]:
    """Damages one file or folder of the lake or of Pulumi's state; gives which, and how."""
    places = [project / "lakes", project / ".pulumi"]
    paths = sorted(path for place in places for path in place.rglob("*") if "-turn" not in path.name)
    path = chance.choice(paths)
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


@pytest.mark.parametrize("seed", range(120))
@pytest.mark.thinned(10)
def test_commands_work_or_say_what_is_wrong(project: Path, root: Path, deployer: Deployer, seed: int) -> None:
    datasets = {name: location_of(root, name) for name in TABLES}
    path, way = damage(project, random.Random(seed))  # noqa: S311 (the same damage each time)
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


def _touches(path: Path, place: Path) -> bool:
    return path.is_relative_to(place) or place.is_relative_to(path)
