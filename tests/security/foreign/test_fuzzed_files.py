"""F12, F18, F25: exports, saved plans and checkpoints that anybody may have written.

Whatever they say, commands end with an error message or do what they announced: nothing outside the lake's root and
the backend changes, no row of a table is lost, and no exception gets through.
"""

from __future__ import annotations

import json
import shutil
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deployer.plan.saved.file import _checksum
from deployer.platform.storage.envelope import digest
from tests.cli.conftest import Deployer, Ran
from tests.security.foreign.photograph import differences, photograph
from tests.security.mutations import mutated, mutated_bytes, nested, written

#: The examples are the same each time (tests/conftest.py), and others in the long form.
FEW = settings(
    max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], database=None
)
CHECKPOINT = Path(".pulumi/stacks/lakes/dev.json")
MOVABLE = ("lakes/demo", ".pulumi")  #: folders of a project that a command may change
MADE = "evil."  #: what the files begin with that these tests make in it

_WORDS_OF_EXCEPTIONS = ("Traceback", "Internal", "Exception")


def check_words(ran: Ran) -> None:
    assert ran.code in (0, 1, 2, 3), ran
    assert ran.code in (0, 2) or "error" in ran.err + ran.out, ran
    assert not any(word in ran.err + ran.out for word in _WORDS_OF_EXCEPTIONS), ran.err


def surroundings(project: Path) -> dict[str, Any]:
    """All that is not the lake's or the backend's, without the times of folders."""
    found = photograph(project.parent, without=[project / name for name in MOVABLE])
    return {
        path: seen for path, seen in found.items() if stat.S_ISREG(seen.mode) and not Path(path).name.startswith(MADE)
    }


def rows_of(project: Path) -> set[str]:
    """The files that hold the tables' rows."""
    return {str(file) for file in (project / "lakes" / "demo").rglob("*.lance")}


@contextmanager
def nothing_else_changes(project: Path) -> Iterator[None]:
    """The project as it was at first, and a neighbour of it; both are the same afterwards but for what may change."""
    for name in MOVABLE:
        shutil.rmtree(project / name, ignore_errors=True)
        shutil.copytree(project.parent / "first" / name, project / name)
    before, rows = surroundings(project), rows_of(project)
    assert rows
    yield
    assert not differences(before, surroundings(project))
    assert sorted(file.name for file in project.parent.iterdir()) == ["first", "outside", "project"]
    assert rows <= rows_of(project)


@pytest.fixture
def guarded(project: Path) -> Path:
    """The project with a copy to restore it from, and a folder beside it that paths in files lead to."""
    shutil.copytree(project, project.parent / "first")
    shutil.copytree(project / "lakes" / "demo", project.parent / "outside")
    (project.parent / "outside" / "kept").write_text("kept")
    return project


def test_checkpoints(guarded: Path, deployer: Deployer) -> None:
    """F12, F25: a checkpoint in the backend, and one to import."""
    content = CHECKPOINT.read_bytes()
    document = json.loads(content)

    @FEW
    @given(mutated(document["checkpoint"]["latest"]).map(lambda latest: _with(document, latest)))
    def tried(data: bytes) -> None:
        check(data)

    @settings(FEW, max_examples=6)
    @given(mutated_bytes(content))
    def tried_bytes(data: bytes) -> None:
        check(data)

    def check(data: bytes) -> None:
        with nothing_else_changes(guarded):
            CHECKPOINT.write_bytes(data)
            check_words(deployer("up", "--yes"))

    tried()
    tried_bytes()


def _with(document: Mapping[str, Any], latest: Any) -> bytes:
    return written({**document, "checkpoint": {**document["checkpoint"], "latest": latest}})


def test_exports_of_a_stack(guarded: Path, deployer: Deployer) -> None:
    """F12, F25: `stack import` of a file that somebody hands over; a preview follows where it is taken."""
    assert deployer("stack", "export", "evil.json").code == 0
    content = Path("evil.json").read_bytes()

    @FEW
    @given(mutated(json.loads(content)).map(written) | mutated_bytes(content))
    def tried(data: bytes) -> None:
        with nothing_else_changes(guarded):
            before = CHECKPOINT.read_bytes()
            Path("evil.json").write_bytes(data)
            ran = deployer("stack", "import", "evil.json", "--yes")
            check_words(ran)
            if ran.code:
                assert CHECKPOINT.read_bytes() == before
            else:
                check_words(deployer("preview"))

    tried()


def test_saved_plans(guarded: Path, deployer: Deployer) -> None:
    """F25: a plan whose checksum fits; the plan that is applied is shown, and loses no rows."""
    specs = guarded / "specs" / "planes.yaml"
    specs.write_text(specs.read_text().replace("row_keys:", "  - {name: seats, type: int32}\nrow_keys:"))
    assert deployer("preview", "--out", "evil.plan").code == 0
    content = Path("evil.plan").read_bytes()

    def sealed(document: Any) -> bytes:
        if isinstance(document, dict):
            document = json.loads(json.dumps({**document, "checksum": ""}))
            document["checksum"] = _checksum(document)
        return written(document)

    @FEW
    @given(mutated(json.loads(content)).map(sealed) | mutated_bytes(content))
    def tried(data: bytes) -> None:
        with nothing_else_changes(guarded):
            Path("evil.plan").write_bytes(data)
            check_words(deployer("up", "evil.plan"))

    tried()


def _twice(plan: dict[str, Any]) -> None:
    plan["desired"]["tables"].append(plan["desired"]["tables"][0])


def _column_twice(plan: dict[str, Any]) -> None:
    plan["desired"]["tables"][0]["columns"].append(plan["desired"]["tables"][0]["columns"][0])


ODD_PLANS: Mapping[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "table_twice": (_twice, "occurs twice"),
    "column_twice": (_column_twice, "column `id` is already in table `air.flights`"),
    "name_is_a_path": (lambda plan: plan["desired"]["tables"][0].update(name="../../x"), "plan"),
    "key_is_not_there": (lambda plan: plan["desired"]["tables"][0].update(row_keys=["x"]), "no column `x`"),
    "stack_is_a_path": (lambda plan: plan.update(stack="lakes/../../x"), "`stack` is"),
    "stack_is_missing": (lambda plan: plan.pop("stack"), "`stack` is missing"),
    "read_is_a_list": (lambda plan: plan.update(read=[1]), "`read` is a list"),
    "specs_has_a_null": (lambda plan: plan.update(specs="a\0b"), "`specs` is not a path"),
    "specs_lead_out": (lambda plan: plan.update(specs="../../x"), "`specs` has the part `..`"),
    "format_is_a_flag": (lambda plan: plan.update(format=True), "this is not a valid plan"),
    "format_is_negative": (lambda plan: plan.update(format=-1), "this is not a valid plan"),
    "format_is_a_fraction": (lambda plan: plan.update(format=1.0), "this is not a valid plan"),
    "tables_are_texts": (lambda plan: plan["desired"].update(tables=["x"]), "`tables` is a list"),
    "desired_is_null": (lambda plan: plan.update(desired=None), "`desired` is none"),
    "nested": (lambda plan: plan.update(changes=nested(150)), "nested more than"),
}


@pytest.mark.parametrize("odd", ODD_PLANS)
def test_an_odd_plan_ends_in_words(project: Path, deployer: Deployer, odd: str) -> None:
    """F25: its checksum fits."""
    assert deployer("preview", "--out", "evil.plan").code == 0
    plan = json.loads(Path("evil.plan").read_bytes())
    change, words = ODD_PLANS[odd]
    change(plan)
    plan["checksum"] = _checksum(plan)
    Path("evil.plan").write_bytes(written(plan))
    ran = deployer("up", "evil.plan")
    assert ran.code == 1 and ran.err.startswith("error: evil.plan: ") and words in ran.err, ran.err


def _another_member(members: dict[str, bytes]) -> None:
    members["../../evil.sh"] = b"x"


def _another_listed_member(members: dict[str, bytes]) -> None:
    _another_member(members)
    manifest = json.loads(members["manifest.json"])
    manifest["digests"]["../../evil.sh"] = digest(b"x").hex()
    members["manifest.json"] = written(manifest)


def _format(value: Any) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        members["manifest.json"] = written({**json.loads(members["manifest.json"]), "format": value})

    return change


ODD_EXPORTS: Mapping[str, tuple[Callable[[dict[str, bytes]], None], str]] = {
    "another_member": (_another_member, "it has the member '../../evil.sh', which no export has"),
    "another_listed_member": (_another_listed_member, "it has the member '../../evil.sh', which no export has"),
    "format_is_a_flag": (_format(True), "it is not a valid export of a state store"),
    "format_is_negative": (_format(-1), "it is not a valid export of a state store"),
    "format_is_a_fraction": (_format(1.0), "it is not a valid export of a state store"),
}


@pytest.mark.parametrize("odd", ODD_EXPORTS)
def test_an_odd_export_is_not_imported(project: Path, deployer: Deployer, odd: str) -> None:
    """F25: its checksums fit."""
    assert deployer("state", "export", "evil.zip").code == 0
    with zipfile.ZipFile("evil.zip") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change, words = ODD_EXPORTS[odd]
    change(members)
    with zipfile.ZipFile("evil.zip", "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    shutil.rmtree("lakes/demo/_state")
    ran = deployer("state", "import", "evil.zip")
    assert (ran.code, words in ran.err) == (1, True), ran.err
    assert not Path("lakes/demo/_state").exists()


def test_exports_of_the_state(guarded: Path, deployer: Deployer) -> None:
    """F25: `state import` of an archive whose checksums fit; the commands that follow show what cannot be read."""
    assert deployer("state", "export", "evil.zip").code == 0
    with zipfile.ZipFile("evil.zip") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    logs = {name: data.splitlines() for name, data in members.items() if name.endswith(".jsonl")}
    by_length = sorted(logs, key=lambda name: (len(logs[name]), len(members[name])))  # ids of logs are random
    entries = [(name, place) for name in by_length for place in range(len(logs[name]))]

    @st.composite
    def archives(draw: st.DrawFn) -> dict[str, bytes]:
        if draw(st.booleans()):
            return {**members, "manifest.json": written(draw(mutated(manifest)))}
        name, place = draw(st.sampled_from(entries))
        lines = list(logs[name])
        as_json = mutated(json.loads(lines[place])).map(written)
        lines[place] = draw(as_json | mutated_bytes(lines[place]))
        changed = b"".join(line + b"\n" for line in lines)
        fitting = {**manifest, "digests": {**manifest["digests"], name: digest(changed).hex()}}
        return {**members, name: changed, "manifest.json": written(fitting)}

    @FEW
    @given(archives())
    def tried(changed: Mapping[str, bytes]) -> None:
        with nothing_else_changes(guarded):
            with zipfile.ZipFile("evil.zip", "w") as archive:
                for name, data in changed.items():
                    archive.writestr(name, data)
            shutil.rmtree("lakes/demo/_state")
            ran = deployer("state", "import", "evil.zip")
            check_words(ran)
            if ran.code:
                assert not Path("lakes/demo/_state").exists()
            else:
                check_words(deployer("tables"))
                check_words(deployer("preview"))

    tried()
