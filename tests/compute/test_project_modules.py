"""The project's modules that jobs on clusters import, and whether the stack trusts their functions there."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from deployer.compute.jobs.variables import job_variables, trusted_on_clusters
from deployer.compute.packaging.project_modules import NamedFunction, project_modules
from deployer.compute.running.named_functions import named_functions, untrusted_functions
from deployer.compute.schedules.schedules import job_arguments, scheduled_services
from deployer.errors import InvalidInput
from deployer.specs.model import Cluster, InstanceSpec, Lake, ServiceSpec, TableSpec, Trigger
from deployer.specs.types.computed import ComputedBySql, ComputedByUdf
from deployer.specs.types.types import Column, Scalar
from deployer.specs.types.view import ViewFunction, ViewSpec

SPEED = NamedFunction("features.flights:speed", "column speed of table/air.flights", required=True)
IMPORTS_ALL = """
import json
from typing import TYPE_CHECKING
import numpy as np
from pyspark.sql import SparkSession
from deployer.table import udf
from . import units
from .deep.more import DEEPER
import rates
if TYPE_CHECKING:
    import nowhere_at_all
try:
    import nowhere_either
except ImportError:
    nowhere_either = None

@udf
def speed(distance: int, minutes: int) -> float:
    return distance / minutes
"""


def project(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_a_package_that_a_cluster_declares_may_be_imported(tmp_path: Path) -> None:
    project(tmp_path, features__flights="import pluggy\n\ndef speed(distance: int) -> float: ...\n")
    with pytest.raises(
        InvalidInput, match="imports pluggy, which the packages of jobs on clusters do not have"
    ) as found:
        project_modules(tmp_path, [SPEED])
    assert "name its package in `requirements` of the cluster" in found.value.remedy
    assert project_modules(tmp_path, [SPEED], ["pluggy"]).functions == (SPEED.name,)


def packed(contents: bytes) -> list[str]:
    return zipfile.ZipFile(io.BytesIO(contents)).namelist()


def test_the_packages_of_what_a_function_imports_are_packed(tmp_path: Path) -> None:
    raising = "raise RuntimeError('imported')\n"
    project(
        tmp_path,
        features__flights=IMPORTS_ALL + raising,
        features__units=raising,
        features__deep__more="DEEPER = 1\n",
        features__unused="import nowhere_at_all\n",
        src__rates="from features import units\n",
        stacks__other=raising,
    )
    (tmp_path / "features" / "table.csv").write_text("a,b\n")
    (tmp_path / "features" / "__pycache__").mkdir()
    (tmp_path / "features" / "__pycache__" / "units.pyc").write_bytes(b"")
    found = project_modules(tmp_path, [SPEED])
    assert found.functions == ("features.flights:speed",)
    assert packed(found.contents) == [
        "features/deep/more.py",
        "features/flights.py",
        "features/table.csv",
        "features/units.py",
        "features/unused.py",
        "rates.py",
    ]
    assert project_modules(tmp_path, [SPEED]).contents == found.contents


MISSING = {
    "no module": ({}, "the project has no module features.flights"),
    "no function": ({"features__flights": "def other(): ...\n"}, "flights.py of the project has no `speed`"),
    "a missing package": (
        {"features__flights": "import polars_of_no_one\ndef speed(): ...\n"},
        "module features.flights imports polars_of_no_one, which the packages of jobs on clusters do not have",
    ),
    "a missing package of another module": (
        {"features__flights": "from . import units\ndef speed(): ...\n", "features__units": "import pytest\n"},
        "module features.units imports pytest",
    ),
    "one inside of a function": (
        {"features__flights": "def speed():\n    import polars_of_no_one\n"},
        "imports polars_of_no_one",
    ),
    "not Python": ({"features__flights": "def speed(:\n"}, "flights.py cannot be read"),
}


@pytest.mark.parametrize("case", MISSING)
def test_a_function_that_jobs_cannot_import_is_refused_where_they_need_it(case: str, tmp_path: Path) -> None:
    files, message = MISSING[case]
    project(tmp_path, **files)
    with pytest.raises(InvalidInput, match=message) as raised:
        project_modules(tmp_path, [SPEED])
    assert raised.value.where == SPEED.where and raised.value.remedy
    assert project_modules(tmp_path, [NamedFunction(SPEED.name, SPEED.where)]).functions == ()


def test_a_function_of_a_package_of_jobs_needs_no_module(tmp_path: Path) -> None:
    found = project_modules(tmp_path, [NamedFunction("numpy:sqrt", "", required=True)])
    assert (found.contents, found.functions) == (b"", ("numpy:sqrt",))


HASH = "5a" * 32
SETTINGS = {
    "nothing": ({}, {}),
    "others": ({"aws": "none", "jobs": "none"}, {}),
    "functions": (
        {"trusted_functions": f"features.flights:speed, {HASH}"},
        {"DEPLOYER_TRUSTED_FUNCTIONS": f"features.flights:speed, {HASH}"},
    ),
    "authors": ({"trusted_authors": "ana,bo"}, {"DEPLOYER_TRUSTED_AUTHORS": "ana,bo"}),
    "all": ({"trust_udfs": "true"}, {"DEPLOYER_TRUST_UDFS": "1"}),
    "not all": ({"trust_udfs": "false"}, {}),
    "hosts": ({"target_hosts": "catalog.example.com"}, {"DEPLOYER_TARGET_HOSTS": "catalog.example.com"}),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_of_the_stack_are_variables_of_its_jobs(case: str) -> None:
    settings, variables = SETTINGS[case]
    assert job_variables(settings) == variables


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"trusted_functions": "speed"}, "deployer:trusted_functions"),
        ({"trust_udfs": "yes"}, "deployer:trust_udfs"),
        ({"target_hosts": "a/b"}, "deployer:target_hosts"),
    ],
)
def test_a_setting_that_is_not_valid_is_refused(settings: dict[str, str], where: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        job_variables(settings)
    assert raised.value.where == where and raised.value.remedy


def test_trust_of_this_machine_is_not_that_of_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOYER_TRUST_UDFS", "1")
    assert trusted_on_clusters({}).all_packages is False


def lake(service: ServiceSpec, **computed: ComputedBySql | ComputedByUdf) -> Lake:
    columns = tuple(Column(name, Scalar("float64"), computed=each) for name, each in computed.items())
    clusters = (Cluster("here", "local", {}), Cluster("small", "emr-serverless", {"release": "emr-7.12.0"}))
    table = TableSpec("air", "flights", (Column("distance", Scalar("int32")), *columns), services=(service,))
    return Lake(InstanceSpec("demo", "s3://lakes/demo", clusters=clusters), (table,))


UDF = ComputedByUdf("features.flights:speed", "", ("distance",), "1")
PACKAGED = ComputedByUdf("speed", HASH, ("distance",), "1")
NIGHTLY = Trigger(schedule="0 3 * * *")


@pytest.mark.parametrize(
    ("service", "required"),
    [
        pytest.param(ServiceSpec("BACKFILL", cluster="small"), True, id="names its cluster"),
        pytest.param(ServiceSpec("BACKFILL", trigger=NIGHTLY), True, id="a schedule uses the only one"),
        pytest.param(ServiceSpec("BACKFILL", cluster="here"), False, id="on this machine"),
        pytest.param(ServiceSpec("BACKFILL"), False, id="by the agent"),
        pytest.param(ServiceSpec("COMPACT", cluster="small"), False, id="another service"),
        pytest.param(ServiceSpec("BACKFILL", cluster="small", options={"columns": ("km",)}), False, id="not of it"),
    ],
)
def test_functions_that_a_backfill_calls_on_a_cluster_are_required(service: ServiceSpec, required: bool) -> None:
    declared = lake(service, km=ComputedBySql("distance * 2", ("distance",)), speed=UDF, fast=PACKAGED)
    [found] = named_functions(declared)
    assert (found.name, found.required) == ("features.flights:speed", required)
    remarks = list(untrusted_functions(declared, {}))
    assert len(remarks) == (2 if required else 0)
    allowed = {"trusted_functions": f"features.flights:speed,{HASH}"}
    assert not [*untrusted_functions(declared, allowed)]
    by_author = {"trusted_functions": "features.flights:speed", "trusted_authors": "ana"}
    assert not [*untrusted_functions(declared, by_author)]


@pytest.mark.parametrize(
    ("service", "called"),
    [
        pytest.param(ServiceSpec("REFRESH", cluster="small"), True, id="names its cluster"),
        pytest.param(ServiceSpec("REFRESH", trigger=NIGHTLY), True, id="a schedule uses the only one"),
        pytest.param(ServiceSpec("REFRESH", cluster="here"), False, id="on this machine"),
        pytest.param(ServiceSpec("COMPACT", cluster="small"), False, id="another service"),
    ],
)
def test_functions_that_a_refresh_calls_on_a_cluster_are_remarked_on(service: ServiceSpec, called: bool) -> None:
    declared = lake(ServiceSpec("COMPACT"))
    view = ViewSpec("SELECT speed(distance) AS speed FROM air.flights", {"speed": ViewFunction(HASH, "float64")})
    speeds = TableSpec("air", "speeds", (Column("speed", Scalar("float64")),), services=(service,), view=view)
    declared = replace(declared, tables=(*declared.tables, speeds))
    remarks = list(untrusted_functions(declared, {}))
    assert ["REFRESH of air.speeds on cluster small will refuse the function speed" in each for each in remarks] == (
        [True] if called else []
    )
    assert not [*untrusted_functions(declared, {"trusted_functions": HASH})]
    assert not [*untrusted_functions(declared, {"trusted_authors": "ana"})]
    started = [job_arguments("s3://lakes/demo", each) for each in scheduled_services(declared)]
    nightly = ["--table=air.speeds", "--service=REFRESH", "--cluster=small"]
    assert [each[1:4] for each in started] == ([nightly] if service.trigger else [])
