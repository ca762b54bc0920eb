"""The provider's answers, on real instances and tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.errors import Conflict, DeployerError, InvalidInput, Refused
from deployer.provider.provider import LakeProvider
from deployer.provider.resources.declared import DeclaredResources
from deployer.provider.resources.deletions import DELETIONS_VARIABLE, Deletions
from deployer.provider.resources.inputs import table_inputs
from deployer.provider.resources.kind import UNKNOWN, Difference
from deployer.provider.resources.run_context import Stores
from deployer.provider.urn import address_of, owner_of, type_of
from deployer.specs.model import Lake
from deployer.specs.serialized.specs import instance_to_json
from deployer.specs.types.types import Column, Scalar
from tests.plan.lakes import INSTANCE, with_column, without_column

FLIGHTS = without_column("notes")  # maps need file version 2.2
STACK = "urn:pulumi:dev::lakes::"
INSTANCE_URN = f"{STACK}lake:index:Instance::demo"
TABLE_URN = f"{STACK}lake:index:Table::air.flights"
INSTANCE_INPUTS = instance_to_json(INSTANCE)
TABLE_INPUTS = table_inputs(FLIGHTS, INSTANCE.root)


class Asked:
    """A provider and its stores; answers as tuples."""

    def __init__(self, folder: Path, allow_destroy: tuple[str, ...] = ()) -> None:
        self.stores = Stores(folder, allow_destroy)
        self.provider = LakeProvider(self.stores)

    def check(self, urn: str, inputs: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        found, failures = self.provider.check(urn, inputs)
        return dict(found), [(item.property, item.reason) for item in failures]

    def create(self, urn: str, inputs: dict[str, Any], preview: bool = False) -> tuple[str, dict[str, Any]]:
        made = self.provider.create(urn, inputs, preview=preview)
        return made.id, dict(made.outputs)

    def read(self, urn: str, id: str, inputs: dict[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
        found = self.provider.read(urn, id, inputs)
        return (found.id, dict(found.inputs), dict(found.outputs)) if found else ("", {}, {})

    def diff(self, urn: str, olds: dict[str, Any], news: dict[str, Any]) -> Difference:
        return self.provider.diff(urn, olds, news)

    def update(self, urn: str, id: str, news: dict[str, Any]) -> dict[str, Any]:
        return dict(self.provider.update(urn, id, news).outputs)

    def delete(self, urn: str, id: str, outputs: dict[str, Any]) -> None:
        self.provider.delete(urn, id, outputs)


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    asked = Asked(tmp_path)
    asked.create(INSTANCE_URN, INSTANCE_INPUTS)
    yield asked
    asked.stores.close()


def dataset(tmp_path: Path, outputs: dict[str, Any]) -> lance.LanceDataset:
    return lance.dataset(str(tmp_path / INSTANCE.root / outputs["location"]))


def add_row(table: lance.LanceDataset) -> None:
    rows = [{"carrier": "AA", "flight": 1}]
    lance.write_dataset(pa.Table.from_pylist(rows, table.schema), table.uri, mode="append")


def test_what_is_created_reads_back_as_it_was_declared(asked: Asked) -> None:
    id, outputs = asked.create(TABLE_URN, TABLE_INPUTS)
    assert asked.read(TABLE_URN, id, TABLE_INPUTS) == (id, TABLE_INPUTS, outputs)
    assert not asked.diff(TABLE_URN, outputs, TABLE_INPUTS).changed
    assert asked.read(INSTANCE_URN, "demo", INSTANCE_INPUTS) == ("demo", INSTANCE_INPUTS, INSTANCE_INPUTS)


def test_creating_twice_makes_one_table(asked: Asked) -> None:
    assert asked.create(TABLE_URN, TABLE_INPUTS)[0] == asked.create(TABLE_URN, TABLE_INPUTS)[0]


def test_a_table_of_another_stack_is_not_taken_over(asked: Asked) -> None:
    asked.create(TABLE_URN, TABLE_INPUTS)
    with pytest.raises(Conflict, match="lakes/dev manages it"):
        asked.create(TABLE_URN.replace(":dev:", ":prod:"), TABLE_INPUTS)


def test_an_instance_of_another_stack_is_not_taken_over(asked: Asked) -> None:
    with pytest.raises(Conflict, match="lakes/dev manages"):
        asked.create(INSTANCE_URN.replace(":dev:", ":prod:"), INSTANCE_INPUTS)


def test_a_preview_knows_what_is_declared_and_creates_nothing(asked: Asked, tmp_path: Path) -> None:
    id, outputs = asked.create(TABLE_URN, TABLE_INPUTS, preview=True)
    assert (id, outputs["name"], outputs["location"]) == ("", "flights", UNKNOWN)
    assert not (tmp_path / INSTANCE.root / "air").exists()


def test_import_finds_a_table_by_root_and_name(asked: Asked) -> None:
    id, outputs = asked.create(TABLE_URN, TABLE_INPUTS)
    assert asked.read(TABLE_URN, f"{INSTANCE.root}#air.flights", {}) == (id, TABLE_INPUTS, outputs)
    assert asked.read(INSTANCE_URN, INSTANCE.root, {})[0] == "demo"
    with pytest.raises(InvalidInput, match="write ROOT#DATABASE"):
        asked.read(TABLE_URN, "air.flights", {})


@pytest.mark.parametrize(
    ("urn", "id", "inputs"),
    [
        pytest.param(TABLE_URN, "0" * 32, TABLE_INPUTS, id="no-such-table"),
        pytest.param(TABLE_URN, "0" * 32, {**TABLE_INPUTS, "root": "elsewhere"}, id="no-such-root"),
        pytest.param(TABLE_URN, f"{INSTANCE.root}#air.nothing", {}, id="import-of-nothing"),
        pytest.param(INSTANCE_URN, "demo", {**INSTANCE_INPUTS, "root": "elsewhere"}, id="no-such-instance"),
    ],
)
def test_what_is_gone_reads_as_gone(asked: Asked, urn: str, id: str, inputs: dict[str, Any]) -> None:
    assert asked.read(urn, id, inputs) == ("", {}, {})


def test_an_update_is_all_or_nothing_when_a_part_is_refused(asked: Asked, tmp_path: Path) -> None:
    id, outputs = asked.create(TABLE_URN, TABLE_INPUTS)
    add_row(dataset(tmp_path, outputs))
    converted = with_column("stops", Column("stops", Scalar("string")), FLIGHTS)
    spec = replace(converted, description="New.", online=False)
    with pytest.raises(Refused, match="values may be lost"):
        asked.update(TABLE_URN, id, table_inputs(spec, INSTANCE.root))
    assert asked.read(TABLE_URN, id, TABLE_INPUTS)[1] == TABLE_INPUTS


def test_a_table_of_another_name_is_updated_only_where_a_plan_renamed_it(asked: Asked) -> None:
    """Pulumi's state, which may be anybody's, has the id of another table."""
    id, _ = asked.create(TABLE_URN, TABLE_INPUTS)
    other = table_inputs(replace(FLIGHTS, name="hops", description="New."), INSTANCE.root)
    with pytest.raises(Refused, match="the two differ by more than their name; run `deployer up`, which shows it"):
        asked.update(TABLE_URN, id, other)
    asked.stores.deletions = Deletions(renames=frozenset((id,)))
    asked.update(TABLE_URN, id, other)
    assert asked.read(TABLE_URN, id, other)[1] == other


def test_a_new_resource_takes_over_the_table_of_its_former_name(asked: Asked) -> None:
    id, _ = asked.create(TABLE_URN, TABLE_INPUTS)
    renamed = table_inputs(replace(FLIGHTS, name="hops", renamed_from="flights"), INSTANCE.root)
    assert asked.create(TABLE_URN.replace("flights", "hops"), renamed)[0] == id
    another = table_inputs(replace(FLIGHTS, name="jumps", renamed_from="hops"), INSTANCE.root)
    assert asked.create(f"{TABLE_URN.replace(':dev:', ':prod:')}", another)[0] != id, "another stack's stays"


def test_a_table_is_deleted_only_where_the_plan_of_the_run_does_that(asked: Asked) -> None:
    id, outputs = asked.create(TABLE_URN, TABLE_INPUTS)
    asked.stores.deletions = Deletions(asked.stores.path(INSTANCE.root))
    with pytest.raises(Refused, match="the plan of this run does not delete it"):
        asked.delete(TABLE_URN, id, outputs)
    asked.stores.deletions = replace(asked.stores.deletions, tables=frozenset((id,)))
    asked.delete(TABLE_URN, id, outputs)
    assert asked.read(TABLE_URN, id, TABLE_INPUTS)[0] == ""


def test_what_a_run_may_delete_and_rename_reaches_a_plugin() -> None:
    deletions = Deletions("/lake", frozenset("a"), instance=True, renames=frozenset("bc"))
    assert Deletions.of_environment({DELETIONS_VARIABLE: deletions.as_text()}) == deletions


def test_an_updated_table_reads_back_as_it_is_declared(asked: Asked) -> None:
    id, _ = asked.create(TABLE_URN, TABLE_INPUTS)
    spec = replace(FLIGHTS, online=False, deletion_protection=False, description="", tags={"a": "b"})
    news = table_inputs(spec, INSTANCE.root)
    asked.update(TABLE_URN, id, news)
    assert asked.read(TABLE_URN, id, news)[1] == news


def test_rows_are_deleted_only_when_that_is_allowed(asked: Asked, tmp_path: Path) -> None:
    id, outputs = asked.create(TABLE_URN, TABLE_INPUTS)
    add_row(dataset(tmp_path, outputs))
    with pytest.raises(Refused, match="holds 1 rows and is protected"):
        asked.delete(TABLE_URN, id, outputs)
    allowed = Asked(tmp_path, ("table/air.flights",))
    allowed.delete(TABLE_URN, id, outputs)
    assert allowed.read(TABLE_URN, id, TABLE_INPUTS)[0] == ""
    allowed.stores.close()


def test_an_instance_with_tables_is_not_deleted(asked: Asked, tmp_path: Path) -> None:
    id, outputs = asked.create(TABLE_URN, TABLE_INPUTS)
    with pytest.raises(Refused, match=r"1 table\(s\) .*air.flights"):
        asked.delete(INSTANCE_URN, "demo", INSTANCE_INPUTS)
    asked.delete(TABLE_URN, id, outputs)
    asked.delete(INSTANCE_URN, "demo", INSTANCE_INPUTS)
    assert not (tmp_path / INSTANCE.root).exists()


def test_deleting_what_is_gone_is_done(asked: Asked) -> None:
    id, outputs = asked.create(TABLE_URN, TABLE_INPUTS)
    asked.delete(TABLE_URN, id, outputs)
    asked.delete(TABLE_URN, id, outputs)


@pytest.mark.parametrize(
    ("inputs", "property", "words"),
    [
        pytest.param({}, "root", "a table needs `root`", id="no-root"),
        pytest.param({**TABLE_INPUTS, "columns": ""}, "columns", "a table needs `columns`", id="no-columns"),
        pytest.param(
            {**TABLE_INPUTS, "columns": '[{"name": "a", "type": "int33"}]', "row_keys": [], "partitions": {}},
            "columns",
            "unknown type `int33`",
            id="unknown-type",
        ),
        pytest.param({**TABLE_INPUTS, "columns": "a int32"}, "columns", "cannot be read", id="no-json"),
        pytest.param({**TABLE_INPUTS, "database": "../.."}, "database", "is not a name", id="path-as-name"),
        pytest.param({**TABLE_INPUTS, "name": "a/b"}, "name", "is not a name", id="slash-in-name"),
        pytest.param({**TABLE_INPUTS, "sort_keys": ["nope"]}, "sort_keys", "no column `nope`", id="unknown-key"),
        pytest.param(
            {**TABLE_INPUTS, "row_keys": ["delay"], "partitions": {}}, "row_keys", "may be null", id="nullable-key"
        ),
        pytest.param(
            {**TABLE_INPUTS, "row_keys": [], "partitions": {}, "unique": True}, "unique", "has no row keys", id="unique"
        ),
        pytest.param({**TABLE_INPUTS, "row_keys": ["nope"]}, "row_keys", "no column `nope`", id="unknown-row-key"),
        pytest.param({**TABLE_INPUTS, "sort_keys": ["gate"]}, "sort_keys", "has no order", id="unordered-key"),
    ],
)
def test_inputs_that_cannot_be_are_refused(asked: Asked, inputs: dict[str, Any], property: str, words: str) -> None:
    _, failures = asked.check(TABLE_URN, inputs)
    assert any(name == property and words in reason for name, reason in failures), failures


def test_check_gives_the_canonical_form(asked: Asked) -> None:
    loose = {**TABLE_INPUTS, "online": True, "description": FLIGHTS.description, "storage": {}}
    assert asked.check(TABLE_URN, loose) == (TABLE_INPUTS, [])


def test_an_unknown_type_is_refused_in_words(asked: Asked) -> None:
    with pytest.raises(DeployerError, match="no resource type lake:index:Lake"):
        asked.create(f"{STACK}lake:index:Lake::demo", {})


def test_urns() -> None:
    nested = "urn:pulumi:dev::lakes::my:Component$lake:index:Table::air.flights"
    assert (type_of(nested), owner_of(nested), address_of(nested)) == (
        "lake:index:Table",
        "lakes/dev",
        "table/air.flights",
    )
    assert address_of("urn:pulumi:dev::lakes::aws:s3/bucket:Bucket::data") is None


def test_only_what_is_identical_to_its_declaration_needs_no_other_check() -> None:
    lake = Lake(INSTANCE, (FLIGHTS,), ())
    declared, address = DeclaredResources(lake), FLIGHTS.address
    inputs = table_inputs(FLIGHTS, INSTANCE.root)
    assert declared.canonical(address, dict(inputs)) == inputs
    assert declared.canonical(address, {**inputs, "deletion_protection": 1}) is None
    assert declared.canonical(address, {**inputs, "description": "another"}) is None
    assert declared.canonical("table/air.other", inputs) is None
    keyed = DeclaredResources(Lake(INSTANCE, (replace(FLIGHTS, unique=True),), ()))
    assert keyed.canonical(address, {**inputs, "unique": True}) is not None
    assert keyed.canonical(address, {**inputs, "unique": 1}) is None
