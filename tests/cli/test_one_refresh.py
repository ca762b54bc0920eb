"""`up` and `destroy` read live state once: what they do starts from what was planned with, or is refused where that
moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import lance
import pytest

from deployer.live import reader
from deployer.provider.provider import LakeProvider
from deployer.provider.resources.kind import Properties, Resource
from deployer.state import open_store
from tests.cli.conftest import Deployer
from tests.projects import table

Change = Callable[[Path], None]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each table's live state was read from the lake, by its address."""
    found: Counter[str] = Counter()
    real = reader.read_table

    def read_table(store: object, root: str, entry: object, state: object = None) -> object:
        found[entry.address] += 1  # type: ignore[attr-defined]
        return real(store, root, entry, state)  # type: ignore[arg-type]

    monkeypatch.setattr(reader, "read_table", read_table)
    return found


def edit(project: Path) -> None:
    (project / "specs" / "flights.yaml").write_text(table("flights", "delay: int32", "late: bool"), encoding="utf-8")


def own_program(project: Path) -> None:
    """With another file beside the program, every plan asks the engine."""
    (project / "stacks" / "more.py").write_text("", encoding="utf-8")


@pytest.mark.parametrize("prepare", [lambda _: None, own_program], ids=["the-packaged-program", "an-own-program"])
def test_up_reads_each_table_once(prepare: Change, project: Path, deployer: Deployer, reads: Counter[str]) -> None:
    prepare(project)
    assert deployer("up", "--yes").code == 0
    edit(project)
    reads.clear()
    assert deployer("up", "--yes").code == 0
    assert reads == {"table/air.flights": 1, "table/air.planes": 1}
    reads.clear()
    assert deployer("preview", "--out", "demo.plan").code == 0
    reads.clear()
    assert deployer("up", "demo.plan").code == 0
    assert reads == {"table/air.flights": 1, "table/air.planes": 1}


def new_column(project: Path) -> None:
    [dataset] = (project / "lakes" / "demo" / "air").glob("flights-*.lance")
    lance.dataset(str(dataset)).add_columns({"others": "1"})


def new_tag(project: Path) -> None:
    from deployer.state.log.updates import SetTableProperties

    with closing(open_store(str(project / "lakes" / "demo"))) as store:
        entry = store.instance().by_name("air.flights")
        assert entry is not None
        store.commit(entry.table_id, [SetTableProperties({"tags": {"of": "others"}})])


def rows(project: Path) -> None:
    import pyarrow as pa

    [dataset] = (project / "lakes" / "demo" / "air").glob("flights-*.lance")
    there = lance.dataset(str(dataset))
    lance.write_dataset(pa.Table.from_pylist([{"id": 1, "delay": 2}], there.schema), there, mode="append")


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("prepare", [lambda _: None, own_program], ids=["the-packaged-program", "an-own-program"])
@pytest.mark.parametrize(
    ("move", "said"),
    [
        pytest.param(new_column, "add column others", id="a-column"),
        pytest.param(new_tag, "of", id="a-tag"),
        pytest.param(rows, "", id="rows"),
    ],
)
def test_a_table_that_moved_since_the_plan_is_left_alone(
    prepare: Change, move: Change, said: str, project: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are loaded meanwhile are no change of the table."""
    prepare(project)
    assert deployer("up", "--yes").code == 0
    edit(project)
    real = LakeProvider.update

    def update(self: LakeProvider, urn: str, id: str, news: Properties, *, preview: bool = False) -> Resource:
        if not preview:
            move(project)
        return real(self, urn, id, news, preview=preview)

    monkeypatch.setattr(LakeProvider, "update", update)
    ran = deployer("up", "--yes")
    monkeypatch.setattr(LakeProvider, "update", real)
    found = deployer("describe", "air.flights").out
    if not said:
        assert (ran.code, "late" in found) == (0, True)
        return
    assert (ran.code, "late" in found) == (1, False)
    assert "the table was changed since it was planned" in ran.err and said in ran.err
    assert ("others" in found) is True  # what somebody else did stays until a plan shows that it goes
    assert "air.flights" in deployer("preview").out


def test_destroy_reads_each_table_once(project: Path, deployer: Deployer, reads: Counter[str]) -> None:
    assert deployer("up", "--yes").code == 0
    reads.clear()
    assert deployer("destroy", "--yes").code == 0
    assert reads == {"table/air.flights": 1, "table/air.planes": 1}
    assert "stack dev manages nothing" in deployer("destroy", "--yes").err


@pytest.mark.parametrize(
    ("move", "said"),
    [pytest.param(new_column, "add column others", id="a-column"), pytest.param(new_tag, "of", id="a-tag")],
)
def test_destroy_leaves_a_table_alone_that_moved_since_the_plan(
    move: Change, said: str, project: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert deployer("up", "--yes").code == 0
    real, moved = LakeProvider.delete, list[str]()

    def delete(self: LakeProvider, urn: str, id: str, outputs: Properties) -> None:
        if "air.flights" in urn:
            moved.append(urn)
            move(project)
        real(self, urn, id, outputs)

    monkeypatch.setattr(LakeProvider, "delete", delete)
    ran = deployer("destroy", "--yes")
    monkeypatch.setattr(LakeProvider, "delete", real)
    assert len(moved) == 1 and ran.code == 1
    assert "the table was changed since it was planned" in ran.err and said in ran.err
    assert "others" in deployer("describe", "air.flights").out
    assert deployer("destroy", "--yes").code == 0  # planned again, with what others did
