"""`deployer table …`: each command's effect, its drift, and the specs that say the same afterwards."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

from deployer.datasets.storage.function_packages import package_path
from deployer.functions import udf
from deployer.functions.packages.stored import save_function
from deployer.state import open_store
from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, applied_project, run, table

GOLDEN = Path(__file__).parent / "golden" / "table"
FLIGHTS = """\
# Who may change this: the night shift.
kind: Table
database: air
name: flights   # as in the source
columns:
  - { name: carrier, type: string, nullable: false }   # two letters
  - { name: flight, type: int32, nullable: false }
  - { name: delay, type: int16 }
row_keys: [carrier, flight]
partitions:   # by carrier
  split_points: [DL]   # half of them
# belongs to nobody
tags: { owner: ops }
"""


SPECS = {"demo.yaml": INSTANCE, "flights.yaml": FLIGHTS, "more.yaml": table("planes") + "---\n" + table("crews")}


def load() -> None:
    carriers = [("AA", "B6", "DL", "UA")[i % 4] for i in range(40)]
    columns = {"carrier": carriers, "flight": pa.array(range(40), pa.int32()), "delay": pa.array(range(40), pa.int16())}
    pq.write_table(pa.table(columns), "flights.parquet")
    run("ingest", "flights", "flights.parquet")


@pytest.fixture
def applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with three tables, applied, 40 flights in one of them; the current folder."""
    monkeypatch.delenv("COLUMNS", raising=False)  # tables are drawn as wide as they are
    folder = applied_project(tmp_path / "project", SPECS, load)
    monkeypatch.chdir(folder)
    return folder


def ok(deployer: Deployer, *arguments: str) -> str:
    ran = deployer(*arguments)
    assert ran.code == 0, ran.out + ran.err
    return ran.out


def nothing_to_do(deployer: Deployer) -> None:
    """Neither drift nor a change to apply, before and after it is applied."""
    for command in (("drift",), ("preview", "--exit-code"), ("up", "--yes"), ("preview", "--exit-code"), ("drift",)):
        ran = deployer(*command)
        assert ran.code == 0, (command, ran.out, ran.err)


def nothing_changed(deployer: Deployer) -> None:
    """Neither drift nor a change to apply."""
    for command in (("drift",), ("preview", "--exit-code")):
        ran = deployer(*command)
        assert ran.code == 0, (command, ran.out, ran.err)


def spec(name: str = "flights.yaml") -> str:
    return (Path("specs") / name).read_text(encoding="utf-8")


Edit = Callable[[str], str]
CHANGES: dict[str, tuple[tuple[str, ...], str, Edit]] = {  # the command, the drift it makes, the spec it writes
    "renamed": (
        ("rename", "flights", "hops"),
        "rename table air.flights → air.hops",
        lambda text: text.replace("name: flights ", "name: hops    ") + "renamed_from: air.flights\n",
    ),
    "moved": (
        ("rename", "air.flights", "sky.flights"),
        "rename table air.flights → sky.flights",
        lambda text: text.replace("database: air", "database: sky") + "renamed_from: air.flights\n",
    ),
    "offline": (("offline", "flights"), "take table offline", lambda text: text + "online: false\n"),
    "another tree": (
        ("reinitialise", "flights", "--force", "--delete-partitions", "--split-points", "points.txt"),
        "partitions 2 → 3 leaves",
        lambda text: text.replace("[DL]  ", "[B6, [UA, 7]]"),
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_an_effect_is_drift_until_the_spec_says_it_too(case: str, deployer: Deployer, applied: Path) -> None:
    command, drift, edited = CHANGES[case]
    Path("points.txt").write_text('B6\n["UA", 7]\n', encoding="utf-8")
    before = spec()
    ok(deployer, "table", *command)
    told = deployer("drift")
    assert told.code == 2 and drift in told.out and "1 difference" in told.out
    assert deployer("preview", "--exit-code").code == 2
    ok(deployer, "drift", "--write-spec")
    assert spec() == edited(before)
    nothing_to_do(deployer)


@pytest.mark.parametrize("case", CHANGES)
def test_write_spec_leaves_nothing_to_do(case: str, deployer: Deployer, applied: Path) -> None:
    command, _, edited = CHANGES[case]
    Path("points.txt").write_text('B6\n["UA", 7]\n', encoding="utf-8")
    before = spec()
    written = json.loads(ok(deployer, "table", *command, "--write-spec", "--json"))["written"]
    assert (written, spec()) == (["specs/flights.yaml"], edited(before))
    nothing_to_do(deployer)


def test_commands_follow_each_other_without_up_between(deployer: Deployer, applied: Path) -> None:
    ok(deployer, "table", "rename", "flights", "hops", "--write-spec")
    ok(deployer, "table", "offline", "hops", "--write-spec")
    ok(deployer, "table", "split", "hops", "--max-rows", "10", "--write-spec")
    assert "online: false" in spec() and "split_points: [[B6," in spec()
    nothing_to_do(deployer)


def test_up_undoes_what_no_spec_says(deployer: Deployer, applied: Path) -> None:
    ok(deployer, "table", "offline", "flights")
    ok(deployer, "table", "rename", "planes", "jets")
    assert json.loads(ok(deployer, "table", "offline", "flights", "--json"))["changed"] is False
    ok(deployer, "table", "rename", "jets", "planes")
    ok(deployer, "up", "--yes")
    nothing_to_do(deployer)


def test_leaves_that_were_split_are_no_drift_and_can_be_declared(deployer: Deployer, applied: Path) -> None:
    before = spec()
    dry = json.loads(ok(deployer, "table", "split", "flights", "--max-rows", "10", "--dry-run", "--json"))
    done = json.loads(ok(deployer, "table", "split", "flights", "--max-rows", "10", "--json"))
    assert [each["points"] for each in dry["split"]] == [each["points"] for each in done["split"]]
    assert (dry["leaves"], done["leaves"], done["max_rows"]) == (4, 4, 10)
    nothing_to_do(deployer)
    assert spec() == before
    ok(deployer, "table", "split", "flights", "--max-rows", "10", "--write-spec")
    assert spec() == before.replace("[DL]  ", "[[B6, 1], DL, [UA, 3]]")
    nothing_to_do(deployer)


def test_a_declared_limit_splits_after_a_load(deployer: Deployer, applied: Path) -> None:
    Path("specs/flights.yaml").write_text(
        FLIGHTS.replace("  split_points", "  max_rows_per_leaf: 15\n  split_points"), encoding="utf-8"
    )
    assert "most rows of a leaf none → 15" in deployer("preview").out
    ok(deployer, "up", "--yes")
    said = ok(deployer, "ingest", "flights", "flights.parquet")
    assert "2 leaves with more than 15 rows split: there are 8 now" in said
    nothing_to_do(deployer)


def anonymous(text: str) -> str:
    """Without ids, by the order in which they come."""
    ids = dict.fromkeys(re.findall(r"\b[0-9a-f]{12}\b", text))
    for number, each in enumerate(ids, 1):
        text = text.replace(each, f"partition-{number:02}")
    return "\n".join(re.sub(r" +$", "", line) for line in text.splitlines()) + "\n"


def check(name: str, text: str) -> None:
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == text


def test_the_tree_and_the_files_are_drawn(deployer: Deployer, applied: Path) -> None:
    check("partitions", anonymous(sizeless(ok(deployer, "table", "partitions", "flights"))))
    ok(deployer, "table", "split", "flights", "--max-rows", "10")
    ok(deployer, "ingest", "flights", "flights.parquet")
    ran = deployer("table", "partitions", "flights")
    check("partitions-split", anonymous(sizeless(ran.out + ran.err)))
    check("files", anonymous(sizeless(ok(deployer, "table", "files", "flights"))))
    check("partitions-json", anonymous(sizeless(ok(deployer, "table", "partitions", "flights", "--json"))))
    document = json.loads(ok(deployer, "table", "files", "flights", "--json"))
    assert sum(file["rows"] for file in document["files"]) == 80
    tree = json.loads(ok(deployer, "table", "partitions", "flights", "--json"))
    leaf = next(node for node in tree["partitions"] if node["leaf"])
    found = json.loads(ok(deployer, "table", "files", "flights", "--partition", leaf["partition"], "--json"))["files"]
    assert [file["rows"] for file in found] == [leaf["sizes"]["rows"]]


def sizeless(text: str) -> str:
    """Bytes of files are Lance's own matter."""
    text = re.sub(r'"bytes": [0-9]+', '"bytes": N', text)
    return re.sub(r" +[0-9.]+ (kB|bytes)", lambda found: "N bytes".rjust(len(found[0])), text)


def test_reinitialise_keeps_the_tree_and_the_rows_of_before_for_a_while(deployer: Deployer, applied: Path) -> None:
    ok(deployer, "table", "split", "flights", "--max-rows", "10")
    done = json.loads(ok(deployer, "table", "reinitialise", "flights", "--force", "--json"))
    assert (done["rows"], done["files"], done["leaves"]) == (40, 2, 4) and done["kept_until"].endswith("+00:00")
    assert json.loads(ok(deployer, "query", "flights", "--json"))["rows"] == []
    assert len(json.loads(ok(deployer, "query", "flights", "--at", "1:2", "--json", "--limit", "0"))["rows"]) == 40
    nothing_to_do(deployer)
    done = json.loads(ok(deployer, "table", "reinitialise", "flights", "--force", "--delete-partitions", "--json"))
    assert done["leaves"] == 2
    nothing_to_do(deployer)


def test_a_deleted_table_is_drift_and_comes_back_empty_unless_its_document_goes(
    deployer: Deployer, applied: Path
) -> None:
    done = json.loads(ok(deployer, "table", "delete", "flights", "--force", "--json"))
    assert (done["rows"], done["written"]) == (40, []) and done["bytes"] > 1000 and done["files"] > 2
    assert "delete table and its data" in deployer("drift").out
    ok(deployer, "up", "--yes")
    nothing_to_do(deployer)
    assert json.loads(ok(deployer, "query", "flights", "--json"))["rows"] == []
    ok(deployer, "table", "delete", "flights", "--force", "--write-spec")
    assert not Path("specs/flights.yaml").exists()
    before = spec("more.yaml")
    ok(deployer, "table", "delete", "planes", "--force", "--write-spec")
    assert spec("more.yaml") == before.partition("---\n")[2]
    nothing_to_do(deployer)
    assert [each["name"] for each in json.loads(ok(deployer, "tables", "--json"))["tables"]] == ["air.crews"]
    assert not list((applied / "lakes/demo/air").glob("flights*"))


def test_a_document_that_others_need_is_not_taken_out(deployer: Deployer, applied: Path) -> None:
    overlay = "kind: Overlay\nstack: dev\ntarget: table/air.flights\nset: {description: Flights.}\n"
    Path("specs/overlay.yaml").write_text(overlay, encoding="utf-8")
    ok(deployer, "up", "--yes")
    ran = deployer("table", "delete", "flights", "--force", "--write-spec")
    assert ran.code == 3 and "would not be valid without it" in ran.err
    assert spec() == FLIGHTS
    nothing_to_do(deployer)


ADDED = ("--column", "id:int64", "--column", "seats:int16 not null", "--row-key", "id")


def test_an_added_table_is_drift_and_goes_unless_its_spec_is_written(deployer: Deployer, applied: Path) -> None:
    ok(deployer, "table", "add", "air.gates", *ADDED)
    told = deployer("drift")
    assert told.code == 2 and "1 thing without a declaration" in told.out
    ok(deployer, "up", "--yes")
    nothing_to_do(deployer)
    assert deployer("table", "partitions", "gates").code == 1
    ok(deployer, "table", "add", "air.gates", *ADDED)
    assert deployer("destroy", "--yes", "--allow-destroy", "table/air.flights").code == 0
    assert not (applied / "lakes").exists() or not list((applied / "lakes").rglob("*.lance"))
    ok(deployer, "up", "--yes")
    ok(deployer, "table", "add", "air.gates", *ADDED, "--description", "Gates.", "--write-spec")
    assert "- name: seats\n    type: int16\n    nullable: false" in spec("gates.yaml")
    nothing_to_do(deployer)


def test_tables_are_added_from_a_file(deployer: Deployer, applied: Path) -> None:
    Path("new.yaml").write_text(table("gates") + "---\n" + table("halls", "area: int32"), encoding="utf-8")
    done = json.loads(ok(deployer, "table", "add", "--file", "new.yaml", "--write-spec", "--json"))
    assert done["created"] == ["table/air.gates", "table/air.halls"] and len(done["written"]) == 2
    nothing_to_do(deployer)


def test_split_points_come_from_files_and_go_into_specs(deployer: Deployer, applied: Path) -> None:
    estimate = ("table", "split-points", "estimate", "--leaves", "4", "flights.parquet")
    shown = ok(deployer, *estimate, "--row-key", "flight")
    assert shown == "partitions:\n  split_points:\n    - 10\n    - 20\n    - 30\n"
    ok(deployer, *estimate, "--table", "flights", "--write-spec")
    assert spec() == FLIGHTS.replace("[DL]  ", "[[B6, 1], [DL, 2], [UA, 3]]")
    ok(deployer, "up", "--yes")
    ok(deployer, *estimate, "--table", "flights", "--out", "points.txt", "--base64")
    same = ("table", "reinitialise", "flights", "--force", "--delete-partitions", "--split-points", "points.txt")
    ok(deployer, *same, "--base64")
    nothing_to_do(deployer)


def test_gc_says_how_much(deployer: Deployer, applied: Path) -> None:
    [folder] = (applied / "lakes/demo/air").glob("flights*")
    stray = folder / "data" / "stray.lance"
    stray.write_bytes(b"x" * 1000)
    assert "1 file stays until the grace period is over" in deployer("table", "gc", "flights").err
    os.utime(stray, (0, 0))
    assert ok(deployer, "table", "gc", "flights", "--dry-run") == "air.flights: would remove 1 file with 1.0 kB\n"
    done = json.loads(ok(deployer, "table", "gc", "--json"))["tables"]
    assert [(each["table"], each["files"]) for each in done] == [
        ("air.crews", 0),
        ("air.flights", 1),
        ("air.planes", 0),
    ]
    assert not stray.exists()
    nothing_to_do(deployer)


def test_gc_removes_packages_of_functions(deployer: Deployer, applied: Path) -> None:
    root = applied / "lakes/demo"
    package = root / package_path(save_function(str(root), udf(data_type="int64")(lambda a: a), "ana"))
    assert "package" not in ok(deployer, "table", "gc")
    os.utime(package, (0, 0))
    assert "package" not in ok(deployer, "table", "gc", "flights")
    removed = "1 package of a function that no column uses, with "
    assert f"would remove {removed}" in ok(deployer, "table", "gc", "--dry-run")
    assert package.exists()
    assert json.loads(ok(deployer, "table", "gc", "--json"))["functions"]["removed"] == [package.name]
    assert not package.exists()
    nothing_to_do(deployer)


REFUSED: dict[str, tuple[tuple[str, ...], int, str]] = {
    "an unknown table": (("offline", "flihgts"), 1, "there is no table 'flihgts'; did you mean 'flights'?"),
    "a taken name": (("rename", "flights", "planes"), 1, "the name air.planes belongs to table"),
    "no name": (("rename", "flights", "a-b"), 1, "'air.a-b' is not the name of a table; write database.name"),
    "nobody to ask": (("delete", "flights"), 1, "stdin is not a terminal, so nothing can be confirmed; pass --force"),
    "nobody to ask about rows": (("reinitialise", "flights"), 1, "nothing can be confirmed; pass --force"),
    "points that keep the tree": (("reinitialise", "flights", "--split-points", "x"), 1, "give --delete-partitions"),
    "base64 of nothing": (("reinitialise", "flights", "--base64"), 1, "--base64 is about --split-points"),
    "no such file": (
        ("reinitialise", "flights", "--force", "--delete-partitions", "--split-points", "none.txt"),
        1,
        "none.txt: it cannot be read: No such file or directory",
    ),
    "no limit": (("split", "flights"), 1, "the number of rows that a leaf may hold is not given; give --max-rows"),
    "two things at once": (("split", "flights", "--dry-run", "--write-spec"), 1, "give one of them"),
    "no partition": (("files", "flights", "--partition", "x"), 1, "there is no partition 'x'"),
    "too short a grace": (("gc", "--grace", "0h"), 1, "--grace 0h is too short"),
    "no length of time": (("gc", "--grace", "soon"), 1, "--grace: 'soon' is not a valid duration"),
    "versions younger than the grace": (("gc", "--versions-older-than", "1d"), 3, "for the grace period at least"),
    "a table that is there": (("add", "air.planes", "--column", "id:int64"), 1, "the specs declare it already"),
    "no such type": (("add", "air.x", "--column", "id:int65"), 1, "unknown type `int65`; did you mean int64?"),
    "no column": (("add", "air.x", "--column", "id"), 1, "'id' is not a column; write NAME:TYPE"),
    "no columns": (("add", "air.x"), 1, "a table needs columns"),
    "no file": (("add", "--file", "none.yaml"), 1, "none.yaml: it cannot be read"),
    "a file without tables": (("add", "--file", "specs/demo.yaml"), 1, "it declares no table"),
    "neither": (("add",), 1, "give a name and columns, or --file"),
    "whose keys": (("split-points", "estimate", "-n", "2", "flights.parquet"), 1, "give --table, or --row-key"),
    "no such key": (
        ("split-points", "estimate", "-n", "2", "--row-key", "x", "flights.parquet"),
        1,
        "no column 'x' in the files; there are carrier, flight, delay",
    ),
}


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("case", REFUSED)
def test_mistakes_are_told_in_words_and_change_nothing(case: str, deployer: Deployer, applied: Path) -> None:
    arguments, code, words = REFUSED[case]
    ran = deployer("table", *arguments)
    assert (ran.code, words in ran.err) == (code, True), ran.err
    as_json = deployer("table", *arguments, "--json")
    assert as_json.code == code and as_json.json["error"]["what"]
    nothing_changed(deployer)
    assert len(json.loads(ok(deployer, "query", "flights", "--json", "--limit", "0"))["rows"]) == 40


CHANGING = {
    "rename": ("rename", "flights", "x"),
    "online": ("online", "flights"),
    "offline": ("offline", "flights"),
    "delete": ("delete", "flights", "--force"),
    "reinitialise": ("reinitialise", "flights", "--force"),
    "split": ("split", "flights", "--max-rows", "5"),
    "gc": ("gc", "flights"),
}


@pytest.mark.parametrize("command", CHANGING)
def test_a_table_of_another_stack_is_refused(command: str, deployer: Deployer, applied: Path) -> None:
    ran = deployer("table", *CHANGING[command], "--stack", "prod")
    assert ran.code == 3 and "stack lakes/dev manages the table, not lakes/prod" in ran.err
    nothing_changed(deployer)
    assert ok(deployer, "table", "files", "flights", "--stack", "prod")


@pytest.mark.parametrize("typed", ["air.flights", "flights"], ids=["its name", "another"])
def test_deleting_asks_for_the_name(
    typed: str, deployer: Deployer, applied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def prompt(text: str, **_: Any) -> str:
        asked.append(text)
        return typed

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(typer, "prompt", prompt)
    ran = deployer("table", "delete", "flights")
    assert len(asked) == 1
    assert re.fullmatch(
        r"This deletes air\.flights with 40 rows, 8 files with [\d.]+ kB on storage, forever\. "
        r"Type its name \(air\.flights\) to continue",
        asked[0],
    )
    with closing(open_store(str(applied / "lakes/demo"))) as store:
        gone = store.instance().by_name("air.flights") is None
    assert (ran.code, gone) == ((0, True) if typed == "air.flights" else (130, False))
