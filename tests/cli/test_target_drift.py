"""`drift --target`: only the targets are read, told, and written into specs and Pulumi's state."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from deployer.state import open_store
from deployer.state.log.updates import SetTableProperties
from deployer.tables.admin.deletion import delete_table
from tests.cli.conftest import Deployer
from tests.cli.target_project import untouched
from tests.security.foreign.lake_damage import entry_is_rubbish, folder_is_gone


@pytest.fixture
def drifted(four_applied: Path) -> Path:
    """Somebody described three of the four tables."""
    with closing(open_store(str(four_applied / "lakes" / "demo"))) as store:
        for name in ("air.flights", "air.planes", "geo.lakes"):
            entry = store.instance().by_name(name)
            assert entry is not None
            store.commit(entry.table_id, [SetTableProperties({"description": f"New of {name}."})], author="ann@night")
    return four_applied


# name: (targets, the addresses that differ)
CASES: dict[str, tuple[list[str], list[str]]] = {
    "one": (["table/air.flights"], ["table/air.flights"]),
    "glob": (["table/air.*"], ["table/air.flights", "table/air.planes"]),
    "several": (["table/geo.*", "table/air.planes"], ["table/air.planes", "table/geo.lakes"]),
    "one_that_is_as_applied": (["table/geo.airports"], []),
    "instance": (["instance/demo"], []),
}


@pytest.mark.parametrize("name", CASES)
def test_only_the_targets_are_told_and_written(name: str, drifted: Path, deployer: Deployer) -> None:
    given, addresses = CASES[name]
    options = [part for each in given for part in ("--target", each)]
    ran = deployer("drift", "--json", *options)
    assert ran.code == (2 if addresses else 0)
    assert [each["address"] for each in ran.json["drift"]] == addresses
    assert ran.json["targets"]["given"] == given

    before, specs = untouched(drifted, *addresses), {file: file.read_text() for file in Path("specs").iterdir()}
    written = deployer("drift", "--write-spec", *options)
    assert written.code == 0 and f"Targeted: {', '.join(given)}; " in written.out
    edited = {file.stem for file, text in specs.items() if file.read_text() != text}
    assert edited == {address.rpartition(".")[2] for address in addresses}
    assert untouched(drifted, *addresses) == before
    left = {"table/air.flights", "table/air.planes", "table/geo.lakes"} - set(addresses)
    assert {each["address"] for each in deployer("drift", "--json").json["drift"]} == left


def test_nothing_is_read_of_other_tables(drifted: Path, deployer: Deployer) -> None:
    root = drifted / "lakes" / "demo"
    folder_is_gone(root, "planes")
    entry_is_rubbish(root, "lakes")
    ran = deployer("drift", "--write-spec", "--target", "table/air.flights", "--target", "table/geo.airports")
    assert ran.code == 0 and "unreadable" not in ran.out + ran.err and "edited specs/flights.yaml" in ran.out
    told = deployer("drift", "--target", "table/air.planes")
    assert told.code == 2 and "table/air.planes" in told.out and "unreadable" in told.out


def test_tables_that_are_gone_or_that_nobody_declared_are_targets_too(four_applied: Path, deployer: Deployer) -> None:
    assert deployer("table", "add", "air.more", "--column", "id:int64").code == 0
    root = str(four_applied / "lakes" / "demo")
    with closing(open_store(root)) as store:
        entry = store.instance().by_name("air.planes")
        assert entry is not None
        delete_table(store, root, entry.table_id, allow_destroy=False)
    ran = deployer("drift", "--json", "--target", "table/air.more")
    assert (ran.code, [each["what"] for each in ran.json["undeclared"]]) == (2, ["table/air.more"])
    ran = deployer("drift", "--json", "--target", "table/air.planes")
    assert (ran.code, [each["kind"] for each in ran.json["drift"]]) == (2, ["DeleteTable"])
    ran = deployer("drift", "--json", "--target", "table/air.flights")
    assert (ran.code, ran.json["drift"], ran.json["undeclared"]) == (0, [], [])
    assert deployer("up", "--yes", "--target", "table/air.more").code == 0  # the specs do not declare it
    assert deployer("up", "--yes", "--target", "table/air.planes").code == 0
    assert deployer("drift").code == 0
