"""What is written as YAML is read back as the same lake."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deployer.specs import load_lake
from deployer.specs.editing.write import lake_to_yaml, to_yaml
from deployer.specs.model import AwsSettings, InstanceSpec, Lake, StateBackend, TableSpec
from deployer.specs.types.parser import parse_type
from deployer.specs.types.types import Column, Struct
from deployer.specs.yaml.nodes import parse_yaml

REPOSITORY = Path(__file__).parents[2]


def read_back(folder: Path, lake: Lake) -> Lake:
    (folder / "lake.yaml").write_text(lake_to_yaml(lake), encoding="utf-8")
    return load_lake(folder, folder / "lake.yaml")


def test_nyc_comes_back(tmp_path: Path) -> None:
    lake = load_lake(REPOSITORY, REPOSITORY / "specs" / "nyc")
    again = read_back(tmp_path, lake)
    assert again.instance == lake.instance
    assert (
        set(again.tables) == set(lake.tables)
        if False
        else sorted(map(repr, again.tables)) == sorted(map(repr, lake.tables))
    )
    assert lake_to_yaml(again) == lake_to_yaml(lake)


@pytest.mark.parametrize(
    ("kind", "points"),
    [
        ("int64", [1, 2**60]),
        ("float64", [-0.5, 1e300]),
        ("decimal128(10, 2)", ["1.50", "12.00"]),
        ("string", ["", "10", "no", "null", "é"]),
        ("binary", [b"\x00\xff"]),
        ("date32", [-1, 19000]),
        ("date64", [86_400_000]),
        ("time32[ms]", [1, 48_600_250]),
        ("time64[ns]", [1, 86_399_999_999_999]),
        ("timestamp[us]", [-1, 0, 1_577_836_800_000_001]),
        ("timestamp[ns, America/New_York]", [1, 1_577_836_800_000_000_000]),
        ("duration[ms]", [-5, 90_000]),
        ("bool", [True]),
    ],
    ids=lambda value: str(value).split("[")[0] if isinstance(value, str) else "",
)
def test_split_points_come_back(tmp_path: Path, kind: str, points: list[object]) -> None:
    table = TableSpec(
        "air",
        "t",
        (Column("id", parse_type(kind), nullable=False),),
        row_keys=("id",),
        split_points=tuple((point,) for point in points),  # type: ignore[misc]
    )
    assert read_back(tmp_path, Lake(InstanceSpec("demo", "lakes/demo"), (table,))).tables == (table,)


def test_descriptions_of_nested_fields_come_back(tmp_path: Path) -> None:
    inner = Struct((Column("a", parse_type("int8"), False, "An a."), Column("b", parse_type("list<string not null>"))))
    table = TableSpec("air", "t", (Column("s", inner), Column("plain", parse_type("struct<x: int8>"))))
    assert read_back(tmp_path, Lake(InstanceSpec("demo", "x"), (table,))).tables == (table,)


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)


@given(st.dictionaries(st.text(min_size=1, max_size=8), scalars | st.lists(scalars, max_size=3), max_size=5))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_values_come_back(document: dict[str, object]) -> None:
    parsed = parse_yaml(to_yaml({"kind": "x", **document}).encode("utf-8", "surrogatepass"), "x.yaml")
    assert not parsed.problems
    found = parsed.documents[0].plain()
    wanted = {"kind": "x", **document}
    assert {key: _escaped(value) for key, value in wanted.items()} == found


def _escaped(value: object) -> object:
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    return value.replace("${", "$${") if isinstance(value, str) else value


def test_what_an_instance_says_of_aws_comes_back(tmp_path: Path) -> None:
    for aws in (AwsSettings(), AwsSettings("managed"), AwsSettings(None, (5, 3)), AwsSettings("managed", (5, 3))):
        lake = Lake(InstanceSpec("demo", "s3://lakes/demo", state=StateBackend("dynamodb"), aws=aws))
        assert read_back(tmp_path, lake).instance.aws == aws
