"""`drift --write-spec`: whatever another checkout or plain Lance changed, as an edit of the YAML in place.

Each case has a golden file: what `drift` says, and the difference of the specs. Afterwards nothing is left to do.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.services.api.attachments import alter_service, create_service, remove_service
from deployer.state import open_store
from deployer.state.log.updates import RenameTable, SetInstanceProperties
from deployer.state.model.services import Service, ServiceKind
from deployer.tables.admin import deletion as admin
from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, make_project

GOLDEN = Path(__file__).parent / "golden" / "drift"

FLIGHTS = """\
# Who may change this: the night shift.
kind: Table
database: air
name: flights   # as in the source
columns:
  # the key
  - { name: id, type: int64, nullable: false }
  - name: origin   # FAA code
    type: string
    description: "From where."

  - { name: delay, type: int32, default: "0" }
  - name: place    # of the plane
    type:
      struct:
        - { name: lat, type: float32 }  # north
        # east
        - name: lon
          type: float32
          description: East.
  - { name: crew, type: "struct<pilot: string, mate: string>" }  # names
  - name: legs
    type:
      list:
        struct:
          - { name: gate, type: string }
          - { name: minutes, type: int16 }   # in the air

row_keys: [ id ]   # never null
sort_keys: [origin, delay]
indexes:
  - { kind: bitmap, columns: [origin] }   # few values
  # many values
  - kind: btree
    columns: [delay]
tags:
  owner: ops
services:
  compact: { cluster: nightly, options: { portion_bytes: 2GB, min_files: 3 } }   # at night
  clean:
    trigger: { commits: 100 }   # often
"""
PLANES = """\
kind: Table
database: air
name: planes
columns: [{name: id, type: int64, nullable: false}, {name: seats, type: int16}]
row_keys: [id]
"""


@pytest.fixture
def applied(deployer: Deployer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two tables, applied; the current folder."""
    instance = INSTANCE.replace("lakes/demo", str(tmp_path / "lake")) + "clusters: {nightly: {kind: local}}\n"
    folder = make_project(tmp_path / "project", {"demo.yaml": instance, "flights.yaml": FLIGHTS, "planes.yaml": PLANES})
    monkeypatch.chdir(folder)
    assert deployer("up", "--yes").code == 0
    return folder


Change = Callable[[Path, Deployer], None]


def by_client(kind: ServiceKind, change: Callable[[Service], Service | None], table: str = "flights") -> Change:
    """Somebody attaches, changes or detaches a service through the state store, as the client does."""

    def changed(folder: Path, deployer: Deployer) -> None:
        with closing(open_store(str(folder.parent / "lake"))) as store:
            entry = store.instance().by_name(f"air.{table}")
            assert entry is not None
            before = store.table(entry.table_id).services.get(kind)
            after = change(before or Service(kind))
            if after is None:
                remove_service(store, entry.table_id, kind)
            elif before is None:
                create_service(store, entry.table_id, after)
            else:
                alter_service(store, entry.table_id, before, after)

    return changed


def elsewhere(*edits: tuple[str, str], file: str = "flights.yaml") -> Change:
    """Another checkout of the project, whose specs have these edits, is applied."""

    def change(folder: Path, deployer: Deployer) -> None:
        other = folder.parent / "other"
        shutil.copytree(folder, other)
        text = (other / "specs" / file).read_text(encoding="utf-8")
        for before, after in edits:
            assert before in text, before
            text = text.replace(before, after, 1)
        (other / "specs" / file).write_text(text, encoding="utf-8")
        ran = deployer("up", "--yes", "--project", str(other), "--allow-destroy", "table/air.flights")
        assert ran.code == 0, ran.out + ran.err

    return change


def here(*edits: tuple[str, str]) -> Change:
    """The specs of flights have these edits, and are applied."""

    def change(folder: Path, deployer: Deployer) -> None:
        file = folder / "specs" / "flights.yaml"
        text = file.read_text(encoding="utf-8")
        for before, after in edits:
            text = text.replace(before, after, 1)
        file.write_text(text, encoding="utf-8")
        assert deployer("up", "--yes").code == 0

    return change


def by_lance(change: Callable[[Any], None], table: str = "flights") -> Change:
    """Plain Lance changes the dataset of the table."""

    def changed(folder: Path, deployer: Deployer) -> None:
        change(lance.dataset(str(next((folder.parent / "lake" / "air").glob(f"{table}-*.lance")))))

    return changed


def several(*changes: Change) -> Change:
    def change(folder: Path, deployer: Deployer) -> None:
        for each in changes:
            each(folder, deployer)

    return change


def renamed(path: str, name: str) -> Change:
    return by_lance(lambda dataset: dataset.alter_columns({"path": path, "name": name}))


CREW = '  - { name: crew, type: "struct<pilot: string, mate: string>" }  # names\n'
LON = "        # east\n        - name: lon\n          type: float32\n          description: East.\n"
CASES: dict[str, Change] = {
    "column-renamed": renamed("origin", "start"),
    "columns-renamed": several(renamed("delay", "late"), renamed("crew", "people")),
    "column-renamed-and-widened": by_lance(  # Lance gives it another field id then, so it is another column
        lambda dataset: dataset.alter_columns({"path": "seats", "name": "places", "data_type": pa.int64()}), "planes"
    ),
    "column-dropped-first": by_lance(lambda dataset: dataset.drop_columns(["crew"])),
    "column-dropped-last": by_lance(lambda dataset: dataset.drop_columns(["legs"])),
    "column-added-and-renamed": several(
        by_lance(lambda dataset: dataset.add_columns(pa.schema([pa.field("tail", pa.string())]))),
        renamed("crew", "people"),
    ),
    "column-added-in-the-middle": elsewhere((CREW, "  - { name: tail, type: string, description: Tail. }\n" + CREW)),
    "column-order": elsewhere((CREW, ""), ("columns:\n", "columns:\n" + CREW)),
    "default": elsewhere(('default: "0"', 'default: "1 + 1"')),
    "default-gone": elsewhere((', default: "0"', "")),
    "source": elsewhere(("name: delay, type: int32", 'name: delay, type: int32, source: "Delay (min.)"')),
    "source-empty": elsewhere(("name: delay, type: int32", 'name: delay, type: int32, source: ""')),
    "field-renamed": renamed("place.lon", "east"),
    "field-renamed-in-text": renamed("crew.mate", "second"),
    "struct-and-field-renamed": several(renamed("place.lat", "north"), renamed("place", "position")),
    "field-added": elsewhere((LON, "        - { name: height, type: float32 }\n" + LON)),
    "field-added-in-text": elsewhere(("mate: string>", "mate: string, third: string>")),
    "field-added-in-list": elsewhere(("in the air\n", "in the air\n          - {name: carrier, type: string}\n")),
    "field-dropped": elsewhere((LON, "")),
    "field-widened": elsewhere(("lat, type: float32", "lat, type: float64")),
    "field-described": elsewhere(("description: East.", "description: West is negative.")),
    "field-described-in-text": elsewhere(
        (
            'type: "struct<pilot: string, mate: string>"',
            "type: {struct: [{name: pilot, type: string, description: P.}, {name: mate, type: string}]}",
        )
    ),
    "fields-order": elsewhere((LON, ""), ("      struct:\n", "      struct:\n" + LON)),
    "index-added": elsewhere(("    columns: [delay]\n", "    columns: [delay]\n  - {kind: bitmap, columns: [id]}\n")),
    "index-added-with-parameters": elsewhere(
        (
            "    columns: [delay]\n",
            "    columns: [delay]\n  - {kind: inverted, columns: [origin], name: words, with_position: true}\n",
        )
    ),
    "index-dropped": elsewhere(("  - { kind: bitmap, columns: [origin] }   # few values\n", "")),
    "index-of-another-kind": elsewhere(
        ("{ kind: bitmap, columns: [origin] }", "{ kind: btree, columns: [origin], name: origin_bitmap }")
    ),
    "first-index": elsewhere(
        ("row_keys: [id]\n", "row_keys: [id]\nindexes: [{kind: btree, columns: [seats]}]\n"), file="planes.yaml"
    ),
    "no-index": elsewhere((FLIGHTS[FLIGHTS.index("indexes:") : FLIGHTS.index("tags:")], "")),
    "index-of-plain-lance": by_lance(lambda dataset: dataset.create_scalar_index("id", "BTREE", name="by_id")),
    "index-dropped-by-plain-lance": by_lance(lambda dataset: dataset.drop_index("delay_btree")),
    "keys": elsewhere(("sort_keys: [origin, delay]", "sort_keys: [delay]\npartitions: {split_points: [100, 200]}")),
    "storage": elsewhere(("tags:\n", "storage: {max_rows_per_file: 1000}\ntags:\n")),
    "table-renamed": elsewhere(("name: flights   #", "name: hops\nrenamed_from: flights   #")),
    "table-moved": elsewhere(("database: air\n", "database: sky\nrenamed_from: air.flights\n")),
    "table-renamed-and-changed": elsewhere(
        ("name: flights   #", "name: hops\nrenamed_from: flights   #"),
        ("owner: ops", "owner: night"),
        ("sort_keys: [origin, delay]\n", "sort_keys: [origin, delay]\ndescription: Hops.\n"),
    ),
    "service-attached": by_client(
        "CLUSTER",
        lambda each: replace(each, trigger_mode="AUTOMATIC", trigger={"rows": 5}, options={"columns": ["delay"]}),
    ),
    "service-attached-to-a-table-without": by_client("CLEAN", lambda each: each, "planes"),
    "service-detached": by_client("CLEAN", lambda _: None),
    "service-changed": several(
        by_client("COMPACT", lambda each: replace(each, options={**each.options, "portion_bytes": 10**9 // 2})),
        by_client("CLEAN", lambda each: replace(each, trigger_mode="ON_DEMAND", trigger={})),
    ),
    "service-moved": by_client("COMPACT", lambda each: replace(each, cluster=None, options={})),
    "service-options-raw": by_client("CLEAN", lambda each: replace(each, unsafe_raw=True, options={"new": "on"})),
    "services-elsewhere": elsewhere(("{ commits: 100 }   # often", "{schedule: 0 3 * * *, timezone: Asia/Tokyo}")),
    "clusters": elsewhere(("nightly: {kind: local}", "nightly: {kind: local}, large: {kind: local}"), file="demo.yaml"),
    "instance-words": elsewhere(("name: demo\n", "name: demo\ndescription: Of all.\ntags: {a: b}\n"), file="demo.yaml"),
}


@pytest.mark.thinned(8, to="full")
@pytest.mark.parametrize("name", CASES)
def test_it_becomes_an_edit(deployer: Deployer, applied: Path, name: str) -> None:
    before = specs_of(applied)
    CASES[name](applied, deployer)
    told = deployer("drift")
    assert told.code == 2
    ran = deployer("drift", "--write-spec")
    assert ran.code == 0, ran.out + ran.err
    golden = GOLDEN / f"{name}.diff"
    found = f"{timeless(told.out)}\n{difference(before, specs_of(applied))}"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(found, encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == found
    assert deployer("drift").code == 0
    preview = deployer("preview", "--exit-code")
    assert preview.code == 0, preview.out
    assert deployer("up", "--yes").code == 0  # which moves what Pulumi's state calls a renamed table
    assert deployer("preview", "--exit-code").code == 0
    assert deployer("drift").code == 0


@pytest.mark.parametrize(
    ("drifted", "edit"),
    [
        pytest.param(
            by_lance(lambda dataset: dataset.drop_index("origin_bitmap")),
            ("  - { kind: bitmap, columns: [origin] }   # few values\n", ""),
            id="index",
        ),
        pytest.param(by_lance(lambda dataset: dataset.drop_columns(["crew"])), (CREW, ""), id="column"),
    ],
)
def test_what_was_mended_by_hand_is_taken_over(
    deployer: Deployer, applied: Path, drifted: Change, edit: tuple[str, str]
) -> None:
    drifted(applied, deployer)
    file = applied / "specs" / "flights.yaml"
    fixed = file.read_text(encoding="utf-8").replace(*edit)
    assert fixed != file.read_text(encoding="utf-8")
    file.write_text(fixed, encoding="utf-8")
    ran = deployer("drift", "--write-spec")
    assert (ran.code, "the specs declare it already; it counts as applied now" in ran.out) == (0, True), ran.err
    assert file.read_text(encoding="utf-8") == fixed
    assert deployer("drift").code == 0
    assert deployer("preview", "--exit-code").code == 0


OVERLAYS = """\
# for all
kind: Overlay
stack: [dev, prod]
target: table/air.flights
set: {tags: {tier: gold}}
---
kind: Overlay
stack: prod
target: "table/air.flights"
set: {online: false}
---
kind: Overlay
stack: prod
target: table/air.planes
set: {online: false}
"""


def test_overlays_follow_a_renamed_table(deployer: Deployer, applied: Path) -> None:
    file = applied / "specs" / "overlays.yaml"
    file.write_text(OVERLAYS, encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    with closing(open_store(str(applied.parent / "lake"))) as store:
        entry = store.instance().by_name("air.flights")
        assert entry is not None
        store.commit("instance", [RenameTable(entry.table_id, "air", "hops")])
    ran = deployer("drift", "--write-spec")
    assert ran.code == 0, ran.out + ran.err
    assert file.read_text(encoding="utf-8") == OVERLAYS.replace("table/air.flights", "table/air.hops")
    assert deployer("up", "--yes").code == 0
    assert deployer("drift").code == 0
    assert deployer("validate", "--stack", "prod").code == 0


def delete_table(folder: Path, deployer: Deployer) -> None:
    root = str(folder.parent / "lake")
    with closing(open_store(root)) as store:
        entry = store.instance().by_name("air.planes")
        assert entry is not None
        admin.delete_table(store, root, entry.table_id, allow_destroy=True)


def move_root(folder: Path, deployer: Deployer) -> None:
    with closing(open_store(str(folder.parent / "lake"))) as store:
        spec: Any = store.instance().properties["spec"]
        store.commit("instance", [SetInstanceProperties({"spec": {**spec, "root": "/elsewhere"}})])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            by_lance(lambda dataset: dataset.drop_columns(["id"])),
            "would not be valid (lines as edited):\n  | specs/flights.yaml:28:13: no column `id`",
            id="key-dropped",
        ),
        pytest.param(
            several(here(('default: "0"', 'default: "length(origin)"')), renamed("origin", "start")),
            "specs/flights.yaml:12:5: an expression of column delay names it: length(origin)",
            id="default-names-it",
        ),
        pytest.param(delete_table, "specs/planes.yaml:1:1: documents are only removed by hand", id="table-deleted"),
        pytest.param(move_root, "specs/demo.yaml:3:1: this lake was applied as root /elsewhere", id="root-moved"),
    ],
)
def test_what_cannot_be_written_is_said_with_its_place(
    deployer: Deployer, applied: Path, change: Change, said: str
) -> None:
    change(applied, deployer)
    before = specs_of(applied)
    ran = deployer("drift", "--write-spec")
    assert ran.code == 3, ran.out + ran.err
    assert said in ran.err
    assert specs_of(applied) == before


def timeless(text: str) -> str:
    """What `drift` says, without times and without who runs the tests."""
    known = re.sub(r"  (plain Lance|somebody), [-\d]+ [:\d]+ UTC", r"  \1, TIME", text)
    return re.sub(r"  \S+, [-\d]+ [:\d]+ UTC", "  AUTHOR, TIME", known)


def specs_of(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text(encoding="utf-8") for file in sorted((folder / "specs").iterdir())}


def difference(before: dict[str, str], after: dict[str, str]) -> str:
    lines: list[str] = []
    for name, text in after.items():
        lines += difflib.unified_diff(before[name].splitlines(), text.splitlines(), name, name, n=1, lineterm="")
    return "\n".join(lines) + "\n"
