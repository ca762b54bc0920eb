"""METASYNC to AWS Glue (moto's): entries as Lance's own client for Glue opens them, and the calls that are made."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import botocore.client
import lance
import pyarrow as pa
import pytest
from lance_namespace import DescribeTableRequest, ListTablesRequest
from lance_namespace_impls.glue import GlueNamespace

from deployer.compute.schedules.schedules import glue_policy
from deployer.services.kinds.metasync import NotPublished
from deployer.services.kinds.metasync.targets.glue_types import comment, glue_columns
from deployer.specs.model import InstanceSpec, TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.tables.admin.deletion import delete_table
from deployer.tables.admin.instance import create_instance
from deployer.tables.admin.naming import rename_table
from deployer.tables.admin.tables import create_table, update_table
from deployer.tables.evolution.rewrite.truncate import reinitialise_table
from tests.services.metasync.conftest import sync, sync_all
from tests.tables.lakes import FLIGHTS, SPLITS, Lake, flights, sorted_rows

GLUE = {"type": "glue"}


@pytest.fixture
def glue(bucket: str, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of moto's Glue; the lake is an instance of a name of its own, and its Glue database is there."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3")
    if endpoint is None:
        pytest.skip("needs a server that stands in for Glue")
    monkeypatch.setenv("AWS_ENDPOINT_URL_GLUE", endpoint)
    name = f"nyc-{uuid.uuid4().hex[:8]}"
    create_instance(lake.root, InstanceSpec(name, lake.root), "tests/dev")
    client = boto3.client("glue")
    client.create_database(DatabaseInput={"Name": f"{name.replace('-', '_')}_air"})
    yield client
    client.delete_database(Name=f"{name.replace('-', '_')}_air")


def database(lake: Lake) -> str:
    spec: Any = lake.store.instance().properties["spec"]
    return f"{spec['name'].replace('-', '_')}_air"


def entry(glue: Any, lake: Lake, name: str = "flights") -> dict[str, Any]:
    table: dict[str, Any] = glue.get_table(DatabaseName=database(lake), Name=name)["Table"]
    return table


def names(glue: Any, lake: Lake) -> list[str]:
    return sorted(each["Name"] for each in glue.get_tables(DatabaseName=database(lake))["TableList"])


def change(glue: Any, lake: Lake, **changes: Any) -> None:
    """What somebody does in the console."""
    table = entry(glue, lake)
    kept: dict[str, Any] = {key: table[key] for key in ("Name", "TableType", "Parameters", "StorageDescriptor")}
    glue.update_table(DatabaseName=database(lake), TableInput={**kept, **changes})


def test_lances_client_for_glue_opens_the_table(lake: Lake, glue: Any) -> None:
    assert sync(lake, GLUE).action == "created"
    namespace = GlueNamespace(region="eu-central-1")
    assert namespace.list_tables(ListTablesRequest(id=[database(lake)])).tables == ["flights"]
    found = lance.dataset(namespace_client=namespace, table_id=[database(lake), "flights"])
    assert sorted_rows(found.to_table()) == sorted_rows(flights(20))
    reported = namespace.describe_table(DescribeTableRequest(id=[database(lake), "flights"])).properties
    assert reported["deployer.version"] == "2"
    assert json.loads(reported["deployer.partitions"])["split_points"] == [["B6"], ["DL", 500], ["UA"]]


def test_columns_comments_and_versions_are_told_and_kept_up(lake: Lake, glue: Any) -> None:
    columns = (replace(columns_of(FLIGHTS)[0], description="Two\nletters."), *columns_of(FLIGHTS)[1:])
    spec = TableSpec("air", "told", columns, ("carrier", "flight"), (), SPLITS, description="All of them.")
    create_table(lake.store, lake.root, spec, "tests/dev")
    sync(lake, GLUE, "told")
    found = entry(glue, lake, "told")
    assert (found["Description"], found["TableType"]) == ("All of them.", "EXTERNAL_TABLE")
    reported = found["StorageDescriptor"]["Columns"]
    assert reported[0] == {
        "Name": "carrier",
        "Type": "string",
        "Comment": "Two letters.",
        "Parameters": {"arrow.type": "string"},
    }
    assert [each["Type"] for each in reported[1:]] == ["int", "smallint", "timestamp", "decimal(8,2)"]
    lake.ingest(lake.file(flights(20)), table="told")
    live = replace(spec, columns=(*columns, replace(columns[2], name="late")), description="")
    update_table(lake.store, lake.root, lake.open("told").opened.entry.table_id, live)
    done = sync(lake, GLUE, "told")
    assert (done.action, done.version_before, done.changed_by_others) == ("updated", 1, ())
    found = entry(glue, lake, "told")
    assert [each["Name"] for each in found["StorageDescriptor"]["Columns"]][-1] == "late"
    assert not found.get("Description") and found["Parameters"]["deployer.version"] == str(done.version_after)
    reinitialise_table(lake.store, lake.root, lake.open("told").opened.entry.table_id, allow_destroy=True)
    sync(lake, GLUE, "told")
    assert entry(glue, lake, "told")["StorageDescriptor"]["Location"].endswith("-g2.lance")


@pytest.mark.parametrize("what", ["removed", "moved", "columns", "described", "emptied"])
def test_what_others_changed_is_told_and_mended(lake: Lake, glue: Any, what: str) -> None:
    sync(lake, GLUE)
    before = entry(glue, lake)
    storage = before["StorageDescriptor"]
    match what:
        case "removed":
            glue.delete_table(DatabaseName=database(lake), Name="flights")
        case "moved":
            change(glue, lake, StorageDescriptor={**storage, "Location": "s3://elsewhere/flights.lance"})
        case "columns":
            change(glue, lake, StorageDescriptor={**storage, "Columns": storage["Columns"][1:]})
        case "described":
            change(glue, lake, Description="Mine.", Owner="me", Parameters={**before["Parameters"], "mine": "kept"})
        case _:
            change(glue, lake, Parameters={"table_type": "lance"})
    done = sync(lake, GLUE)
    reported = {
        "removed": ("removed",),
        "moved": ("location",),
        "columns": ("columns",),
        "described": ("description",),
        "emptied": ("properties",),
    }
    assert done.changed_by_others == reported[what]
    after = entry(glue, lake)
    kept = {"mine": "kept"} if what == "described" else {}
    assert after["Parameters"] == {**before["Parameters"], **kept}
    assert after["StorageDescriptor"] == storage
    assert after.get("Owner") == ("me" if kept else None) and not after.get("Description")
    assert sync_all(lake, GLUE).status == "SKIPPED"


def test_tables_that_deployer_did_not_publish_are_left(lake: Lake, glue: Any) -> None:
    theirs = {"Name": "flights", "StorageDescriptor": {"Location": "s3://elsewhere/t"}, "Parameters": {"a": "b"}}
    glue.create_table(DatabaseName=database(lake), TableInput=theirs)
    with pytest.raises(NotPublished, match="flights exists already and was not published from this lake"):
        sync(lake, GLUE)
    assert entry(glue, lake)["Parameters"] == {"a": "b"}
    glue.delete_table(DatabaseName=database(lake), Name="flights")
    sync(lake, GLUE)
    glue.delete_table(DatabaseName=database(lake), Name="flights")
    glue.create_table(DatabaseName=database(lake), TableInput=theirs)  # under the name that ours had
    with pytest.raises(NotPublished, match="was not published from this lake: it is at s3://elsewhere/t"):
        sync(lake, GLUE)
    rename_table(lake.store, lake.open().opened.entry, "air", "departures")
    assert [each.action for each in sync_all(lake, GLUE, table="departures").targets] == ["created", "left"]
    assert names(glue, lake) == ["departures", "flights"]
    assert entry(glue, lake)["Parameters"] == {"a": "b"}


def test_tables_whose_names_differ_in_case_alone_are_told(lake: Lake, glue: Any) -> None:
    lake.table(name="Flights")
    sync(lake, GLUE)
    with pytest.raises(NotPublished, match=r"_air\.flights is where table air\.flights is published; rename one"):
        sync(lake, GLUE, "Flights")


def test_old_names_old_targets_and_deleted_tables_go(lake: Lake, glue: Any) -> None:
    lake.table(name="gone")
    sync(lake, GLUE)
    sync(lake, {**GLUE, "region": "eu-central-1"}, "gone")
    rename_table(lake.store, lake.open().opened.entry, "air", "departures")
    delete_table(lake.store, lake.root, lake.open("gone").opened.entry.table_id, allow_destroy=True)
    done = sync_all(lake, {**GLUE, "region": "eu-central-1"}, table="departures")
    assert [each.action for each in done.targets] == ["created", "removed"]
    assert [each.action for each in done.gone] == ["removed"]
    assert names(glue, lake) == ["departures"]
    assert sync_all(lake, GLUE, table="departures").status == "SKIPPED"  # the same catalog, declared otherwise


def test_a_database_that_is_missing_is_said(lake: Lake, glue: Any) -> None:
    with pytest.raises(NotPublished, match=r"glue nowhere\.flights: glue: CreateTable found nothing there"):
        sync(lake, {**GLUE, "database": "nowhere"})


def test_the_calls_are_those_that_the_clusters_role_may_make(
    lake: Lake, glue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: set[str] = set()
    call = botocore.client.BaseClient._make_api_call  # type: ignore[attr-defined]

    def noted(self: Any, operation: str, parameters: Any) -> Any:
        if self.meta.service_model.service_name == "glue":
            made.add(f"glue:{operation}")
        return call(self, operation, parameters)

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", noted)
    sync(lake, GLUE)
    lake.ingest(lake.file(flights(5, 20)))
    sync(lake, GLUE)
    rename_table(lake.store, lake.open().opened.entry, "air", "departures")
    sync_all(lake, GLUE, table="departures")
    [statement] = glue_policy([f"arn:aws:glue:eu-central-1:123456789012:database/{database(lake)}"])["Statement"]
    assert made == set(statement["Action"])


def test_types_that_hive_does_not_have_are_told_exactly_beside() -> None:
    fields = {
        "vector": pa.list_(pa.float32(), 4),
        "large": pa.uint64(),
        "tags": pa.map_(pa.string(), pa.list_(pa.int8())),
        "place": pa.struct([("lat", pa.float64()), ("at", pa.time64("us"))]),
        "code": pa.dictionary(pa.int32(), pa.string()),
        "exact": pa.decimal256(60, 4),
        "Total, net": pa.struct([("Post Code", pa.int64()), ("Größe_2", pa.int8())]),
        "ratio": pa.list_(pa.struct([("a:b", pa.int64())])),
    }
    reported = {each["Name"]: each for each in glue_columns(pa.schema(list(fields.items())))}
    assert {name: each["Type"] for name, each in reported.items()} == {
        "vector": "array<float>",
        "large": "decimal(20,0)",
        "tags": "map<string,array<tinyint>>",
        "place": "struct<lat:double,at:bigint>",
        "code": "string",
        "exact": "string",
        "Total, net": "struct<Post Code:bigint,Größe_2:tinyint>",
        "ratio": "array<string>",
    }
    assert reported["vector"]["Parameters"] == {"arrow.type": "fixed_size_list<float32, 4>"}
    assert comment("a\tb\n" + "x" * 300) == "a b " + "x" * 250 + "…"
