"""What `preview` says is what the engine does, whatever somebody did to the lake by hand and whatever specs changed.

A property over random pairs of live state and specs: the plan has the same resources, operations and changes as the
engine's events and the provider's calls, and nothing is left to do afterwards. `--long` tries many more.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from deployer.errors import InvalidSpecs
from deployer.plan.render.changes import describe
from deployer.plan.stages import Stage
from deployer.specs.editing.write import lake_to_yaml
from deployer.specs.loading.lake import load_lake
from deployer.specs.model import Cluster, InstanceSpec, TableSpec
from deployer.specs.model import Lake as LakeSpec
from deployer.specs.types.arrow import arrow_schema
from deployer.tables.admin import tables as admin
from tests.cli.console import ran
from tests.cli.manual_changes import CHANGES, dataset, live_tables
from tests.plan.edits import EDITS, MORE, TABLE, Edit
from tests.projects import folder_of_example, make_project

INSTANCE = InstanceSpec("demo", "lakes/demo", clusters=(Cluster("small", "local", {"cores": 2}),), engine="embedded")
NAMES = ("flights", "planes", "crews")
ROWS = [
    {
        "carrier": carrier,
        "flight": number,
        "delay": number,
        "late": None,
        "gate": {"hall": "A", "number": 1},
        "note": None,
    }
    for number, carrier in enumerate(("AA", "DL", "UA", "UA"))
]
SCHEMA = arrow_schema(TABLE.columns)
GOLDEN = Path(__file__).parent / "golden" / "manual_changes.txt"
CHOICES = {"column dropped": 5, "column renamed": 5, "column of another type": 3, "restored": 1}
SPEC_EDITS: list[tuple[Edit, ...]] = [
    (),
    *((edit,) for edits in EDITS.values() for edit in edits if "renamed from flights" not in edit.name),
    *MORE.values(),
]


@dataclass(frozen=True)
class Round:
    """What happens before one `up`: changes by hand, then what the specs declare.

    `manual` are names of changes with the number of the table and another number; `wanted` are edits of the tables'
    specs by their numbers, and `undeclared` and `renamed` those tables of which the specs say so. `moved`: the lake
    gets another root, in the specs too.
    """

    manual: list[tuple[str, int, int]]
    wanted: list[int]
    undeclared: frozenset[int]
    renamed: frozenset[int]
    moved: bool = False


SOME = st.frozensets(st.integers(0, len(NAMES) - 1), max_size=1)
ROUNDS = st.builds(
    Round,
    st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), st.integers(0, 5), st.integers(0, 11)), max_size=5),
    st.lists(st.integers(0, len(SPEC_EDITS) - 1), min_size=len(NAMES), max_size=len(NAMES)),
    SOME,
    SOME,
    st.integers(0, 7).map(lambda number: number == 7),
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of three tables with rows, applied; examples work on copies."""
    folder = make_project(tmp_path_factory.mktemp("plan") / "project", {})
    with inside(folder):
        declare([replace(TABLE, name=name) for name in NAMES])
        applied = ran("up", "--yes")
        assert applied.code == 0, applied.err
        for entry in live_tables(folder / "lakes" / "demo")[:2]:  # the third has no rows
            rows = pa.Table.from_pylist(ROWS, SCHEMA)
            lance.write_dataset(rows, dataset(folder / "lakes" / "demo", entry).uri, mode="append")
        assert ran("up", "--yes").code == 0
    return folder


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def declare(tables: list[TableSpec], root: str = INSTANCE.root) -> None:
    Path("specs").mkdir(exist_ok=True)
    text = lake_to_yaml(LakeSpec(replace(INSTANCE, root=root), tuple(tables)))
    Path("specs/lake.yaml").write_text(text, encoding="utf-8")


def edited(number: int, name: str) -> TableSpec:
    """The table with these edits; as it is where they make no valid spec."""
    spec = TABLE
    for edit in SPEC_EDITS[number]:
        spec = edit.of(spec)
    spec = replace(spec, name=name)
    with folder_of_example() as folder:
        (Path(folder) / "lake.yaml").write_text(lake_to_yaml(LakeSpec(INSTANCE, (spec,))), encoding="utf-8")
        try:
            load_lake(Path(folder), Path("lake.yaml"))
        except InvalidSpecs:
            return replace(TABLE, name=name)
    return spec


class Project:
    """The project of one example: what its specs say, and what the provider was seen to change."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = Path(INSTANCE.root).absolute()
        self.plans: list[dict[str, Any]] = []
        self.names = list(NAMES)
        self.applied: list[tuple[str, str]] = []
        real = admin._execute

        def execute(stage: Stage, *more: Any) -> None:
            real(stage, *more)
            self.applied += [(change.address, describe(change)) for change in stage.changes]

        monkeypatch.setattr(admin, "_execute", execute)

    def play(self, each: Round) -> None:
        for name, number, choice in each.manual:
            tables = live_tables(self.root)
            if tables:
                CHANGES[name](self.root, tables[number % len(tables)], choice)
        if each.moved:
            self.root = self.root.rename(f"{self.root}_moved")
        specs = []
        for number, edits in enumerate(each.wanted):
            if number in each.undeclared:
                continue
            before = self.names[number]
            if number in each.renamed:
                self.names[number] = f"{before}_{number}"
            spec = edited(edits, self.names[number])
            specs.append(replace(spec, renamed_from=before) if number in each.renamed else spec)
        self.up(specs)

    def up(self, specs: list[TableSpec]) -> None:
        """Plan and apply; tables whose changes are refused are not declared any more."""
        for _ in range(len(NAMES) + 1):
            declare(specs, self.root.relative_to(Path.cwd()).as_posix())
            plan, allowed = self.plan()
            self.plans.append(plan)
            refused = {each["address"] for each in plan["resources"] if any(c["refused"] for c in each["changes"])}
            print(f"refused: {sorted(refused)}")
            if not refused:
                break
            tried = ran("up", "--yes", "--json", *allowed)
            assert tried.code == 3 and not events(tried.err), tried.err
            specs = [spec for spec in specs if spec.address not in refused]
        self.applied.clear()
        done = ran("up", "--yes", "--json", *allowed)
        print(done.err)
        assert done.code == 0, done.err
        assert done.json["plan"] == plan
        assert self.operations(plan, done.err) == sorted(events(done.err))
        self.check_changes(plan)
        left = ran("preview", "--exit-code")
        assert left.code == 0, left.out + left.err

    def plan(self) -> tuple[dict[str, Any], list[str]]:
        """The plan with everything allowed that it destroys, and the options that allow it."""
        first = ran("preview", "--json")
        assert first.code == 0, first.err
        changes = [(each["address"], change) for each in first.json["resources"] for change in each["changes"]]
        removed = {each["address"] for each in first.json.get("removals", ())}
        allowed = sorted({address for address, change in changes if change["risk"] == "destroys"} | removed)
        options = [option for address in allowed for option in ("--allow-destroy", address)]
        plan = ran("preview", "--json", *options).json
        print("\n".join(f"{each['address']} {[c['summary'] for c in each['changes']]}" for each in plan["resources"]))
        print(plan["foreign"])
        return plan, options

    @staticmethod
    def operations(plan: dict[str, Any], said: str) -> list[tuple[str, str]]:
        """What the engine is to do as the plan says it: a table that Pulumi's state does not have is created there, or
        deleted without the engine."""
        created = {each["address"] for each in plan["foreign"] if each["action"] == "create"}
        found = [(each["address"], each["action"]) for each in (*plan["resources"], *plan["foreign"])]
        return sorted(
            (address, action)
            for address, action in found
            if not (action == "delete" and f"deleted {address}, which Pulumi's state" in said)
            and not (action == "update" and address in created)
        )

    def check_changes(self, plan: dict[str, Any]) -> None:
        """The provider made the planned changes of tables, in their order. Of a table without rows some are made at
        once by another empty dataset, whose indexes are built again."""
        for each in plan["resources"]:
            if each["action"] != "update" or not each["address"].startswith("table/"):
                continue
            planned = [change["summary"] for change in each["changes"]]
            made = [words for address, words in self.applied if address == each["address"]]
            if each["rows"]:
                assert made == planned, each["address"]
            else:
                made = [
                    words
                    for words in made
                    if words in planned or not words.startswith(("create index", "rebuild index"))
                ]
                assert [words for words in planned if words in made] == made, each["address"]


def events(said: str) -> list[tuple[str, str]]:
    """The steps of the lake's resources that the engine finished."""
    lines = (json.loads(line) for line in said.splitlines() if line.startswith("{"))
    return [(line["address"], line["op"]) for line in lines if line["event"] == "finished"]


def check(base: Path, rounds: list[Round]) -> None:
    with folder_of_example() as folder, pytest.MonkeyPatch.context() as patch:
        project = shutil.copytree(base, Path(folder) / "project")
        with inside(project):
            played = Project(patch)
            for each in rounds:
                played.play(each)


@pytest.mark.full
def test_each_change_by_hand_is_planned_as_the_engine_undoes_it(tmp_path: Path, update_golden: bool) -> None:
    """A table for each change; the golden file has what the plan says of it."""
    names = {name: name.replace(" ", "_").lower() for name in CHANGES}
    specs = [replace(TABLE, name=name) for name in names.values()]
    kept = tuple(each for each in TABLE.columns if each.name != "note")
    without_note = [replace(each, columns=kept) if each.name == "restored" else each for each in specs]
    with inside(make_project(tmp_path / "project", {})), pytest.MonkeyPatch.context() as patch:
        for declared in (without_note, specs):
            declare(declared)
            assert ran("up", "--yes").code == 0
        played = Project(patch)
        entries = {entry.name: entry for entry in live_tables(played.root)}
        for entry in entries.values():
            lance.write_dataset(pa.Table.from_pylist(ROWS, SCHEMA), dataset(played.root, entry).uri, mode="append")
        for name, change in CHANGES.items():
            change(played.root, entries[names[name]], CHOICES.get(name, 2))
        played.up(specs)
    text = "\n".join(told(played.plans[0], names)) + "\n"
    if update_golden:
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def told(plan: dict[str, Any], names: dict[str, str]) -> Iterator[str]:
    """What a plan says: of each change by hand what becomes of its table, then of other tables, and the rest."""
    found = {each["address"]: each for each in plan["resources"]}
    addresses = {name: f"table/air.{table}" for name, table in names.items()}
    for name, address in (addresses | {each: each for each in found.keys() - {*addresses.values()}}).items():
        resource = found.get(address, {"action": "same", "changes": []})
        yield f"{name}: {resource['action']}"
        for change in resource["changes"]:
            yield f"  {change['summary']}" + (f", refused: {change['refused']}" if change["refused"] else "")
    for each in plan["foreign"]:
        yield f"{each['action']} {each['address']}: {each['detail']}"
    for each in plan["removals"]:
        yield f"removes the dataset of {each['address']}: {each['why']}"


def test_a_deletion_that_was_cut_off_is_told_once(base: Path) -> None:
    """Of a table that is not declared any more: `up` ends it before the engine runs."""
    check(base, [Round([("deletion cut off", 1, 0)], [0, 0, 0], frozenset({1}), frozenset())])


@settings(max_examples=8, phases=[Phase.generate])  # smaller examples would take minutes to find
@given(st.lists(ROUNDS, min_size=1, max_size=2))
def test_the_plan_is_what_the_engine_does(base: Path, rounds: list[Round]) -> None:
    check(base, rounds)


@pytest.mark.slow
@settings(max_examples=200, phases=[Phase.generate])
@given(st.lists(ROUNDS, min_size=1, max_size=4))
def test_the_plan_is_what_the_engine_does_in_many_rounds(base: Path, rounds: list[Round]) -> None:
    check(base, rounds)
