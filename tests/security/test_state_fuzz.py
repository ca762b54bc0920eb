"""Whatever somebody writes into a lake's state: nothing outside is touched, nothing goes that was not shown, and every
command ends with words."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from deployer.state.model.entities import TableEntry
from tests.projects import folder_of_example

from . import forge
from .strategies import NUMBERS, atoms_of, entries, texts

pytestmark = pytest.mark.full

EXAMPLES = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking takes longer than reading a large example
)


@dataclass(frozen=True)
class Lake:
    """A copy of the lake that is thrown away, and a folder that nobody may touch."""

    project: Path
    root: Path
    outside: Path

    def datasets(self) -> set[str]:
        """The folders below the root that hold data or look as if."""
        return {
            path.parent.relative_to(self.root).as_posix()
            for path in self.root.rglob("*")
            if path.name in ("_versions", "data") and "_state" not in path.parts
        }

    def run(self, *arguments: str) -> tuple[int, str]:
        from deployer.cli.main import run

        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run(arguments)
        assert code in (0, 1, 2, 3), (arguments, code)
        return code, out.getvalue()


@contextmanager
def thrown_away(made: Path) -> Iterator[Lake]:
    with folder_of_example() as folder:
        project = Path(folder) / "project"
        shutil.copytree(made, project, symlinks=True)
        outside = Path(folder) / "outside"
        (outside / "deep" / "keep.lance" / "data").mkdir(parents=True)
        for path in ("keep.txt", "deep/keep.txt", "deep/keep.lance/data/keep.lance"):
            (outside / path).write_text("keep")
        root = project / "lakes" / "demo"
        for number in (2, 9):  # of somebody who keeps datasets of his own there
            shutil.copytree(root / forge.table(root, "flights").location, root / "air" / f"plain-g{number}.lance")
        with chdir(project):
            yield Lake(project, root, outside)


def shown(document: str) -> set[str]:
    """What a plan in JSON says that goes: the locations of removals, and the addresses of tables that are deleted."""
    plan = json.loads(document)
    gone = {each["location"] for each in plan.get("removals", ())}
    return gone | {each["address"] for each in plan.get("resources", ()) if each["action"] == "delete"}


def check(lake: Lake, tables: Sequence[TableEntry]) -> None:
    """Runs the commands that remove data, and compares what went with what was shown before.

    `tables` are those that the lake had before anything was forged.
    """
    sentinel, plain = forge.tree(lake.outside), forge.tree(lake.root / "air" / "plain-g9.lance")
    here: dict[str, TableEntry] = {entry.location: entry for entry in tables}
    (flights,) = (entry for entry in tables if entry.name == "flights")
    before = forge.tree(lake.root / flights.location)
    all_before = lake.datasets()
    code, document = lake.run("preview", "--format", "json")
    allowed = shown(document) if code == 0 else set()
    lake.run("up", "--yes")
    for gone in all_before - lake.datasets():
        whole = gone.partition(".lance")[0] + ".lance"
        owner = here.get(whole)
        assert whole in allowed or (owner is not None and owner.address in allowed), (gone, allowed)
    for command in (
        ("table", "gc", "planes", "--json"),
        ("service", "run", "planes", "CLEAN", "--json"),
        ("table", "delete", "planes", "--force", "--json"),
    ):
        existing = lake.datasets()
        code, document = lake.run(*command)
        for gone in existing - lake.datasets():
            assert code == 0 and gone in document, (command, gone, document)
    lake.run("state", "verify")
    lake.run("state", "repair")
    assert forge.tree(lake.outside) == sentinel
    assert (lake.root / "_state" / "state.db").is_file()
    assert forge.tree(lake.root / "air" / "plain-g9.lance") == plain
    if not allowed & {flights.address, flights.location}:
        after = forge.tree(lake.root / flights.location)
        assert {name: after.get(name) for name in before} == before  # nothing of it went or changed


def tables_of(made: Path) -> list[TableEntry]:
    return list(forge.instance(made / "lakes" / "demo").tables.values())


@pytest.fixture(scope="module")
def lived_in(made_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake that has something to remove: a replaced dataset whose time is over, and an unfinished rewrite."""
    from contextlib import closing

    from deployer.services.savepoints.savepoints import take_savepoint
    from deployer.state import open_store
    from deployer.state.model.location import rewrite_location
    from deployer.tables.evolution.rewrite.truncate import reinitialise_table

    folder = tmp_path_factory.mktemp("lived") / "project"
    shutil.copytree(made_once, folder, symlinks=True)
    root = folder / "lakes" / "demo"
    planes, flights = forge.table(root, "planes"), forge.table(root, "flights")
    with closing(open_store(root)) as store:
        take_savepoint(store, [flights.table_id], "kept")
        reinitialise_table(store, str(root), planes.table_id, allow_destroy=True)
    forge.age(root, planes.table_id, forge.LONG_AGO)
    own = rewrite_location(planes.location, planes.table_id, 3)
    shutil.copytree(root / planes.location, root / own)
    forge.append(root, planes.table_id, {"type": "rewrite-started", "number": 3, "location": own, "target": "x"})
    return folder


@pytest.fixture(scope="module")
def atoms(lived_in: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    return atoms_of(lived_in / "lakes" / "demo", tmp_path_factory.mktemp("nowhere"))


def test_what_is_to_go_is_shown_where_nothing_is_forged(lived_in: Path) -> None:
    """F2: the two datasets of the lake that the fuzzer begins with, so that it has something to confuse."""
    with thrown_away(lived_in) as lake:
        _, document = lake.run("preview", "--format", "json")
        assert len(shown(document)) == 2
        check(lake, tables_of(lived_in))


@EXAMPLES
@given(data=st.data())
def test_nothing_goes_that_was_not_shown_whatever_an_entry_says(
    lived_in: Path, atoms: tuple[str, ...], data: st.DataObject
) -> None:
    """F2, F25: random and adversarial entries of the instance's log and of tables' logs."""
    tables = tables_of(lived_in)
    ids = [entry.table_id for entry in tables]
    found = data.draw(st.lists(entries(atoms, ["instance", *ids]), min_size=1, max_size=3))
    with thrown_away(lived_in) as lake:
        for log, updates, at in found:
            forge.append(lake.root, log, *updates, aged=at)
        check(lake, tables)


@EXAMPLES
@given(data=st.data())
def test_nothing_goes_that_was_not_shown_whatever_a_snapshot_says(
    lived_in: Path, atoms: tuple[str, ...], data: st.DataObject
) -> None:
    """F2, F25: snapshots with right checksums in the place of a log, their values changed."""
    tables = tables_of(lived_in)
    ids = [entry.table_id for entry in tables]
    log = data.draw(st.sampled_from(["instance", *ids]))

    def change(parts: dict[str, pa.Table]) -> dict[str, pa.Table]:
        name = data.draw(st.sampled_from(sorted(parts)))
        table = parts[name]
        column = data.draw(st.sampled_from(table.column_names))
        values = table[column].to_pylist()
        at = data.draw(st.integers(0, len(values) - 1))
        odd = data.draw(st.sampled_from(NUMBERS[:8]) if isinstance(values[at], int) else texts(atoms) | st.none())
        if isinstance(values[at], str) and values[at].startswith(("{", "[")):
            document = json.loads(values[at])
            if isinstance(document, dict) and document:
                document[data.draw(st.sampled_from(sorted(document)))] = odd
                odd = json.dumps(document)
        if isinstance(values[at], bytes):
            odd = str(odd).encode()
        values[at] = odd
        try:
            changed = pa.array(values, table.schema.field(column).type)
        except (pa.ArrowException, TypeError, OverflowError):
            changed = pa.array([str(each) for each in values])
        return {**parts, name: table.set_column(table.column_names.index(column), column, changed)}

    with thrown_away(lived_in) as lake:
        forge.put_snapshot(lake.root, log, change)
        check(lake, tables)
