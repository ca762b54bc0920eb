"""Services of tables: what a declaration means, alone and over the instance's, and options that come as texts."""

from __future__ import annotations

import datetime as dt
import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from deployer.errors import InvalidInput, InvalidSpecs
from deployer.platform.text.units import exact_size, parse_size
from deployer.specs import load_lake
from deployer.specs.editing.write import lake_to_yaml
from deployer.specs.model import Hold, Lake, Retention, ServiceSpec, Trigger
from deployer.specs.schema.services import KINDS, all_options, default_trigger, kind_named
from deployer.specs.serialized.service_options import options_from_text
from deployer.specs.serialized.services import service_from_json, service_to_json
from deployer.specs.serialized.specs import table_from_json, table_to_json
from deployer.specs.values.schedules import firing_times


def lake(folder: Path, services: str, of_all: str = "{}", more: str = "") -> Lake:
    (folder / "lake.yaml").write_text(
        f"""
kind: Instance
name: demo
root: lakes/demo
clusters: {{nightly: {{kind: local}}, small: {{kind: local}}}}
services: {of_all}
---
kind: Table
database: air
name: flights
columns:
  - {{name: carrier, type: string, nullable: false}}
  - {{name: delay, type: int32}}
  - {{name: day, type: date32}}
row_keys: [carrier]
{more}services: {services}
""",
        encoding="utf-8",
    )
    return load_lake(folder, folder)


def services(folder: Path, own: str, of_all: str = "{}") -> dict[str, ServiceSpec]:
    return {service.name: service for service in lake(folder, own, of_all).tables[0].services}


def test_a_service_that_says_nothing_has_its_kinds_trigger_and_options(tmp_path: Path) -> None:
    found = services(tmp_path, "{compact: {}, cluster: {}, clean: {}, autosavepoint: {}}")
    assert [each.kind for each in found.values()] == ["COMPACT", "CLUSTER", "CLEAN", "AUTOSAVEPOINT"]
    for each in found.values():
        assert each.trigger == Trigger(**default_trigger(each.kind))
        assert each.options == {}
    assert all_options("COMPACT", {})["target_file_bytes"] == 256_000_000


def test_sizes_and_times_are_the_same_however_they_are_written(tmp_path: Path) -> None:
    one = services(tmp_path, "{compact: {options: {portion_bytes: 2GiB}}, clean: {options: {older_than: 48h}}}")
    two = services(tmp_path, "{compact: {options: {portion_bytes: 2147483648}}, clean: {options: {older_than: 2d}}}")
    assert one == two
    assert one["compact"].options == {"portion_bytes": 2**31}


def test_what_equals_a_default_is_left_out(tmp_path: Path) -> None:
    found = services(tmp_path, "{compact: {options: {strategy: size, target_file_bytes: 0.256GB, min_files: 3}}}")
    assert found["compact"].options == {"min_files": 3}


def test_a_tables_service_goes_over_the_instances_property_by_property(tmp_path: Path) -> None:
    of_all = "{compact: {cluster: nightly, trigger: {commits: 5}, options: {strategy: tiered, min_files: 4}}}"
    found = services(tmp_path, "{compact: {cluster: small, options: {min_files: 9}}}", of_all)["compact"]
    assert found == ServiceSpec("COMPACT", Trigger(commits=5), "small", {"strategy": "tiered", "min_files": 9})


def test_a_table_can_do_without_a_service_of_its_instance(tmp_path: Path) -> None:
    assert services(tmp_path, "{compact: {enabled: false}}", "{compact: {}, clean: {}}").keys() == {"clean"}


def test_a_mode_of_the_tables_own_leaves_the_instances_trigger_out(tmp_path: Path) -> None:
    found = services(tmp_path, "{compact: {trigger_mode: ON_DEMAND}}", "{compact: {trigger: {commits: 5}}}")
    assert found["compact"].trigger is None


def test_options_that_are_not_checked_are_not_mixed_with_those_that_are(tmp_path: Path) -> None:
    of_all = "{compact: {cluster: nightly, options: {min_files: 4}}}"
    found = services(tmp_path, "{compact: {unsafe_raw: true, options: {new_option: 'on'}}}", of_all)["compact"]
    assert found == ServiceSpec(
        "COMPACT", Trigger(**default_trigger("COMPACT")), None, {"new_option": "on"}, unsafe_raw=True
    )


def test_a_lake_with_services_is_read_back_from_json_and_yaml(tmp_path: Path) -> None:
    own = """
      compact: {trigger: {schedule: "0  3 * * *", timezone: Europe/Berlin, deleted_share: 1.0}, cluster: nightly}
      cluster: {trigger_mode: ON_DEMAND, options: {columns: [delay, carrier], curve: hilbert}}
      clean: {unsafe_raw: true, options: {"yes": "no"}}
      metasync: {options: {targets: [{type: glue}, {type: rest, uri: "https://catalog"}]}}
      expire: {trigger: {schedule: "0 4 * * *"}, options: {dry_run: true}}
      backfill: {trigger: {rows: 100000}, options: {on_change: recompute}}
      autosavepoint: {}
    """
    found = lake(tmp_path, "\n" + own, more=RETENTION + INGEST)
    [table] = found.tables
    assert [each.kind for each in table.services] == [kind for kind in KINDS if kind != "REFRESH"]  # which views have
    assert table.services[0].trigger == Trigger("0 3 * * *", "Europe/Berlin", deleted_share=1)
    assert table_from_json(json.loads(json.dumps(table_to_json(table)))) == table
    doubles = json.loads(json.dumps(table_to_json(table)), parse_int=float)
    assert table_from_json(doubles) == table
    again = tmp_path / "again"
    again.mkdir()
    (again / "lake.yaml").write_text(lake_to_yaml(found), encoding="utf-8")
    assert load_lake(again, again) == found or load_lake(again, again).tables == found.tables


def test_places_lead_to_the_file_that_says_it(tmp_path: Path) -> None:
    of_all = "{compact: {options: {strategy: tiered}}}"
    places = lake(tmp_path, "{compact: {options: {min_files: 9}}}", of_all).tables[0].sources
    assert places["services.compact.options.strategy"].line < places["services.compact.options.min_files"].line


INGEST = "ingest: {files: 's3://landing/*.csv', mode: append, max_bytes: 1GB, trigger: {schedule: '0 * * * *'}}\n"


@pytest.mark.parametrize("place", ["lakes/demo/in/*.csv", "lakes/demo", "lakes/./demo/../demo/in", "x/../lakes//demo/"])
def test_a_place_within_a_relative_root_is_a_problem(tmp_path: Path, place: str) -> None:
    with pytest.raises(InvalidSpecs) as error:
        lake(tmp_path, "{}", more=f"ingest: {{files: '{tmp_path}/{place}'}}\n")
    (problem,) = error.value.problems
    assert problem.what == f"the place lies within the lake's own root {tmp_path}/lakes/demo"
    assert (problem.at.line, problem.at.column) == (16, 17)


def test_a_place_beside_a_relative_root_is_none(tmp_path: Path) -> None:
    assert lake(tmp_path, "{}", more=f"ingest: {{files: '{tmp_path}/lakes/demo-in/*.csv'}}\n").tables[0].services


RETENTION = "retention: {column: day, keep: 48h}\nholds: [{name: z}, {name: a, where: delay > 3, reason: case 12}]\n"


def test_retention_and_holds_are_read_in_canonical_form(tmp_path: Path) -> None:
    [table] = lake(tmp_path, "{}", more=RETENTION).tables
    assert table.retention == Retention("day", "2d")
    assert table.holds == (Hold("a", "delay > 3", "case 12"), Hold("z"))
    assert table.services == (ServiceSpec("EXPIRE", Trigger("0 2 * * *")),)
    assert table.sources["retention"].line == table.sources["services.expire"].line
    assert table_from_json(json.loads(json.dumps(table_to_json(table)))) == table


@pytest.mark.parametrize(
    ("own", "of_all", "more", "found"),
    [
        (
            "{}",
            "{expire: {trigger: {schedule: '0 5 * * *'}}}",
            RETENTION,
            (ServiceSpec("EXPIRE", Trigger("0 5 * * *")),),
        ),
        ("{}", "{expire: {trigger: {schedule: '0 5 * * *'}}}", "", ()),
        ("{expire: {enabled: false}}", "{}", RETENTION, ()),
        ("{expire: {trigger_mode: ON_DEMAND}}", "{}", RETENTION, (ServiceSpec("EXPIRE"),)),
    ],
    ids=["as the instance says", "without retention", "switched off", "on demand"],
)
def test_a_table_has_expire_exactly_when_it_has_retention(
    tmp_path: Path, own: str, of_all: str, more: str, found: tuple[ServiceSpec, ...]
) -> None:
    assert lake(tmp_path, own, of_all, more).tables[0].services == found


TEXTS: dict[str, tuple[str, dict[str, str], dict[str, Any]]] = {
    "numbers, sizes and shares": (
        "COMPACT",
        {"min_files": "3", "portion_bytes": "10MB", "max_deleted_share": "0.25"},
        {"min_files": 3, "portion_bytes": 10_000_000, "max_deleted_share": 0.25},
    ),
    "defaults": ("CLEAN", {"older_than": "168h", "dry_run": "False"}, {}),
    "lists": ("CLUSTER", {"columns": "carrier, delay"}, {"columns": ["carrier", "delay"]}),
    "lists as JSON": ("CLUSTER", {"columns": '["carrier"]'}, {"columns": ["carrier"]}),
    "one text or a list: a text": ("INGEST", {"files": "/in/[ab],c/*.csv"}, {"files": "/in/[ab],c/*.csv"}),
    "one text or a list: JSON": ("INGEST", {"files": '["/in/*", "s3://in/b"]'}, {"files": ["/in/*", "s3://in/b"]}),
    "targets": ("METASYNC", {"targets": "glue"}, {"targets": [{"type": "glue"}]}),
}


@pytest.mark.parametrize(("kind", "texts", "options"), TEXTS.values(), ids=TEXTS)
def test_options_that_come_as_texts_are_typed(kind: str, texts: dict[str, str], options: dict[str, Any]) -> None:
    assert options_from_text(kind, texts) == options


BAD_TEXTS: dict[str, tuple[str, dict[str, str], str]] = {
    "unknown": ("COMPACT", {"min_file": "3"}, "COMPACT has no option `min_file`; did you mean min_files?"),
    "no number": ("COMPACT", {"min_files": "few"}, "`min_files` is `few` and should be a whole number"),
    "out of range": ("COMPACT", {"min_files": "1"}, "out of range"),
    "no choice": ("CLUSTER", {"curve": "peano"}, "use one of sort, zorder, hilbert"),
    "no flag": ("CLEAN", {"dry_run": "maybe"}, "should be true or false"),
    "no time": ("CLEAN", {"older_than": "a week"}, "such as 7d"),
    "no JSON": ("CLUSTER", {"columns": "[carrier"}, "not valid JSON"),
    "a place with credentials": ("INGEST", {"files": '["/in/*", "s3://key:secret@in"]'}, "without credentials"),
    "unknown target": ("METASYNC", {"targets": "hive"}, "should be a mapping"),
}


@pytest.mark.parametrize(("kind", "texts", "words"), BAD_TEXTS.values(), ids=BAD_TEXTS)
def test_texts_that_the_schema_does_not_take_are_refused(kind: str, texts: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        options_from_text(kind, texts)
    assert words in str(caught.value)


def test_restore_is_not_declared() -> None:
    assert kind_named("compact") == "COMPACT"
    with pytest.raises(InvalidInput, match="on demand only"):
        kind_named("RESTORE")


@pytest.mark.parametrize("kind", KINDS)
def test_a_service_is_never_an_empty_mapping(kind: str) -> None:
    for service in (ServiceSpec(kind), ServiceSpec(kind, Trigger(**default_trigger(kind)))):
        form = service_to_json(service)
        assert form
        assert service_from_json(kind, form) == service


def test_sizes_in_words_are_exact() -> None:
    for size in (1, 999, 1000, 1024, 256_000_000, 2**31, 1_234_567, 2**50):
        assert parse_size(exact_size(size)) == size
    assert [exact_size(size) for size in (256_000_000, 2**30, 1_234_567)] == ["256MB", "1GiB", "1234567"]


def test_a_schedule_keeps_its_zones_clock() -> None:
    """Berlin's clocks go from 2 to 3 on 28 March 2027, and from 3 to 2 on 31 October."""
    start = dt.datetime(2027, 3, 27, tzinfo=dt.UTC)
    found = list(islice(firing_times("30 2 * * *", "Europe/Berlin", start), 3))
    assert [f"{each:%d %H:%M %z}" for each in found] == ["27 02:30 +0100", "28 03:00 +0200", "29 02:30 +0200"]
    autumn = dt.datetime(2027, 10, 30, 12, tzinfo=dt.UTC)
    twice = list(islice(firing_times("30 2 * * *", "Europe/Berlin", autumn), 2))
    assert [f"{each:%d %H:%M %z}" for each in twice] == ["31 02:30 +0200", "01 02:30 +0100"]
