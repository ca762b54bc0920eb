"""Targets: which names of which resources addresses and globs stand for, whatever is declared, live or was applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from deployer.errors import InvalidInput
from deployer.plan import changes as c
from deployer.plan.targeting.targets import (
    Targets,
    describe_targets,
    needs_instance,
    resolve_targets,
    targets_as_json,
    targets_from_json,
)
from deployer.specs.model import Cluster, InstanceSpec, Lake, TableSpec
from tests.plan.lakes import EMPTY, FLIGHTS, INSTANCE, LIVE

JETS = replace(EMPTY, name="jets", renamed_from="air.planes")


def lake(*tables: TableSpec) -> Lake:
    return Lake(INSTANCE, tables)


# name: (given, declared, addresses by id that are live, ids by address that were applied, names found, others)
CASES: dict[str, tuple[list[str], Lake, Mapping[str, str], Mapping[str, str], set[str], int]] = {
    "declared": (["table/air.empty"], lake(FLIGHTS, EMPTY), {}, {}, {"table/air.empty"}, 2),
    "instance": (["instance/*"], lake(FLIGHTS, EMPTY), {}, {}, {"instance/demo"}, 2),
    "everything": (["*"], lake(FLIGHTS), {"1": "table/air.flights"}, {}, {"instance/demo", "table/air.flights"}, 0),
    "set_of_letters": (["table/air.[ef]*"], lake(FLIGHTS, EMPTY, JETS), {}, {}, {FLIGHTS.address, EMPTY.address}, 2),
    "given_twice": (["table/air.empty", "table/air.empty"], lake(EMPTY), {}, {}, {EMPTY.address}, 1),
    "removed": (
        ["table/air.old"],
        lake(EMPTY),
        {"1": "table/air.old", "2": "table/air.empty"},
        {"table/air.old": "1", "table/air.empty": "2", "instance/demo": "demo"},
        {"table/air.old"},
        2,
    ),
    "removed_and_not_targeted": (
        ["table/air.empty"],
        lake(EMPTY),
        {"1": "table/air.old", "2": "table/air.empty"},
        {"table/air.old": "1", "table/air.empty": "2"},
        {"table/air.empty"},
        2,
    ),
    "of_another_stack_is_not_counted": (["instance/demo"], lake(EMPTY), {"9": "table/b.c"}, {}, {"instance/demo"}, 1),
    "renamed_by_its_new_name": (
        ["table/air.jets"],
        lake(JETS, EMPTY),
        {"1": "table/air.planes"},
        {"table/air.planes": "1"},
        {"table/air.jets", "table/air.planes"},
        2,
    ),
    "renamed_by_its_former_name": (
        ["table/air.planes"],
        lake(JETS, EMPTY),
        {"1": "table/air.planes"},
        {},
        {"table/air.jets", "table/air.planes"},
        2,
    ),
    "renamed_and_applied": (
        ["table/air.jets"],
        lake(JETS),
        {"1": "table/air.jets", "2": "table/air.planes"},
        {"table/air.jets": "1"},
        {"table/air.jets"},
        1,
    ),
    "another_has_the_former_name_now": (
        ["table/air.jets"],
        lake(JETS, replace(EMPTY, name="planes")),
        {"1": "table/air.planes"},
        {},
        {"table/air.jets"},
        2,
    ),
    "renamed_by_others": (
        ["table/air.empty"],
        lake(EMPTY),
        {"1": "table/air.void"},
        {"table/air.empty": "1"},
        {"table/air.empty", "table/air.void"},
        1,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_target_stands_for_all_names_of_its_resource(name: str) -> None:
    given, declared, live, applied, addresses, others = CASES[name]
    targets = resolve_targets(given, declared, live, applied)
    assert (set(targets.addresses), targets.others) == (addresses, others)
    assert targets_from_json(targets_as_json(targets)) == targets


def test_the_first_that_names_nothing_is_told() -> None:
    with pytest.raises(InvalidInput, match=r"--target table/air\.emty: no resource has this address; did you mean"):
        resolve_targets(["table/air.flights", "table/air.emty", "table/no.no"], lake(FLIGHTS, EMPTY), {})


WORDS = {
    "table/a.b; 12 other resources are not targeted": Targets(("table/a.b",), frozenset(), others=12),
    "table/a.b; 1 other resource is not targeted; 1 of them differs": Targets(
        ("table/a.b",), frozenset(), others=1, differ=1
    ),
    "a, b, c, d, e and 2 more; there is no other resource": Targets(tuple("abcdefg"), frozenset(), others=0, differ=0),
    "table/a.b; instance/x is included, because the targets need it; 1,200 other resources are not targeted": Targets(
        ("table/a.b",), frozenset(), others=1201
    ).needing("instance/x"),
}


@pytest.mark.parametrize("words", WORDS)
def test_targets_in_words(words: str) -> None:
    assert describe_targets(WORDS[words]) == words


ON_S3 = replace(INSTANCE, root="s3://bucket/demo")
MOVED = c.ChangeRoot(INSTANCE.address, "a", "b", True)
TAGGED = c.ChangeTags(INSTANCE.address, {}, {"a": "b"})
CLUSTERED = c.ChangeClusters(INSTANCE.address, (), (Cluster("small", "local", {}),))
RENAMED = c.RenameTable(FLIGHTS.address, "air.old", "air.flights")

# name: (changes of the instance and of the targets, the instance, the targets, whether the instance is needed)
NEEDS: dict[str, tuple[list[c.Change], InstanceSpec, TableSpec, bool]] = {
    "nothing": ([], INSTANCE, FLIGHTS, False),
    "tags": ([TAGGED], INSTANCE, FLIGHTS, False),
    "moved": ([MOVED], INSTANCE, FLIGHTS, True),
    "clusters_and_services": ([CLUSTERED], INSTANCE, FLIGHTS, True),
    "clusters_without_services": ([CLUSTERED], INSTANCE, EMPTY, False),
    "created_on_a_disk": ([c.CreateTable(FLIGHTS.address, FLIGHTS)], INSTANCE, FLIGHTS, False),
    "created_with_services_on_s3": ([c.CreateTable(FLIGHTS.address, FLIGHTS)], ON_S3, FLIGHTS, True),
    "created_without_services_on_s3": ([c.CreateTable(EMPTY.address, EMPTY)], ON_S3, EMPTY, False),
    "service_on_s3": ([c.DeleteService(FLIGHTS.address, FLIGHTS.services[0])], ON_S3, FLIGHTS, True),
    "renamed_on_s3": ([RENAMED], ON_S3, FLIGHTS, True),
    "deleted_with_services_on_s3": ([c.DeleteTable(FLIGHTS.address)], ON_S3, FLIGHTS, True),
    "deleted_without_services_on_s3": ([c.DeleteTable(EMPTY.address)], ON_S3, EMPTY, False),
}


@pytest.mark.parametrize("name", NEEDS)
def test_whether_targets_need_their_instance(name: str) -> None:
    changes, instance, table, needed = NEEDS[name]
    assert needs_instance(changes, Lake(instance, (table,)), LIVE) is needed
    assert needs_instance(changes, Lake(instance, (table,)), replace(LIVE, instance=None))
