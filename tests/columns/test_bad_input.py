"""What `load_columns` refuses: each with what is wrong and what to do, and nothing changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.columns.load.source import LoadSource, Part
from deployer.errors import Conflict, DeployerError, InvalidInput, NotFound, Refused
from deployer.table import Table, connect
from tests.columns.rows import source
from tests.tables.lakes import Lake

Arguments = dict[str, Any]


def of(
    rows: pa.Table, pk: str = "id", columns: tuple[str, ...] = ("label",), **more: Any
) -> Callable[[Lake], Arguments]:
    return lambda lake: {"source": str(lake.file(rows)), "pk": pk, "columns": list(columns), **more}


GOOD = source(range(30))


def half_written(lake: Lake) -> Arguments:
    path = lake.file(GOOD)
    path.write_bytes(path.read_bytes()[:-20])
    return {"source": str(path), "pk": "id", "columns": ["label"]}


def cut_ipc(lake: Lake) -> Arguments:
    path = lake.file_arrow(GOOD)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return {"source": str(path), "pk": "id", "columns": ["label"]}


def two_types(lake: Lake) -> Arguments:
    other = GOOD.set_column(2, "label", pa.array(range(30)))
    return {"source": [str(lake.file(GOOD)), str(lake.file(other))], "pk": "id", "columns": ["label"]}


def two_lance(lake: Lake) -> Arguments:
    uri = str(lake.folder / "source.lance")
    lance.write_dataset(GOOD, uri)
    return {"source": [uri, str(lake.file(GOOD))], "pk": "id", "columns": ["label"]}


NULL_KEYS = GOOD.set_column(0, "id", pa.array([None if i in (3, 17) else i for i in range(30)], pa.int64()))
TWICE = pa.concat_tables([GOOD, source([4, 9])])
BAD_RATING = pa.table({"id": [1], "rating": pa.array(["x"])})
LARGE = pa.table({"id": [1, 2], "day": pa.array([1 << 40, 2], pa.int64())})

CASES: dict[str, tuple[Callable[[Lake], Arguments], type[DeployerError], str]] = {
    "pk is not in the table": (
        of(GOOD.rename_columns(["key", "embedding", "label", "place"]), "key"),
        InvalidInput,
        "the table has no column key",
    ),
    "pk is not in the source": (of(GOOD, "name"), InvalidInput, "the source has no column name"),
    "a column is not in the source": (of(GOOD, columns=("lable",)), InvalidInput, "the source has no column lable"),
    "pk is null": (of(NULL_KEYS), Refused, r"2 of 30 rows of the source have a null id \(rows 3, 17\)"),
    "pk occurs twice": (of(TWICE), Refused, "several rows for the same id, such as 4, 9"),
    "pk has another type": (
        of(GOOD.set_column(0, "id", GOOD["label"])),
        InvalidInput,
        "column id is string in the source and int32 in the table",
    ),
    "pk is a float": (of(pa.table({"rating": [1.0], "label": ["a"]}), "rating"), InvalidInput, "not a type of keys"),
    "values of another type": (
        of(BAD_RATING, columns=("rating",)),
        InvalidInput,
        "column rating is string in the source and float64 in the table",
    ),
    "a row key": (
        of(GOOD.append_column("x", GOOD["id"]), "id", columns=("id",)),
        InvalidInput,
        "is the primary key, and it is loaded too",
    ),
    "a row key by another key": (
        of(pa.table({"name": ["name 1"], "id": [1]}), "name", columns=("id",)),
        InvalidInput,
        "row key",
    ),
    "no rows": (of(GOOD.slice(0, 0)), InvalidInput, "the source has no rows"),
    "no such file": (
        lambda lake: {"source": f"{lake.folder}/none.parquet", "pk": "id", "columns": ["label"]},
        NotFound,
        "no such file",
    ),
    "a half-written Parquet file": (half_written, InvalidInput, "cannot be read as parquet"),
    "a cut IPC file": (cut_ipc, InvalidInput, "cannot be read as arrow"),
    "a CSV file": (
        lambda lake: {"source": str(lake.text("a.csv", "id,label\n1,a\n")), "pk": "id", "columns": ["label"]},
        InvalidInput,
        "not loaded from csv",
    ),
    "files of two types": (two_types, InvalidInput, "column label is int64 here, and string in"),
    "a Lance dataset among others": (two_lance, InvalidInput, "a Lance dataset is among them"),
    "no files": (lambda _: {"source": [], "pk": "id", "columns": ["label"]}, InvalidInput, "there is no source"),
    "credentials in the address": (
        lambda _: {"source": "s3://me:pw@bucket/x", "pk": "id", "columns": ["label"]},
        InvalidInput,
        "credentials",
    ),
    "no columns": (of(GOOD, columns=()), InvalidInput, "`columns` is not a list of names"),
    "a name of Lance's": (
        of(GOOD.rename_columns(["id", "embedding", "_rowlabel", "place"]), columns=("_rowlabel",)),
        InvalidInput,
        "a name that Lance keeps for itself",
    ),
    "a name in other capitals": (
        of(GOOD.rename_columns(["id", "embedding", "NAME", "place"]), columns=("NAME",)),
        InvalidInput,
        "differs from name only in upper and lower case",
    ),
    "a type that its files cannot have": (
        of(GOOD.append_column("m", pa.array([[("k", 1)]] * 30, pa.map_(pa.string(), pa.int64()))), columns=("m",)),
        InvalidInput,
        "column m: Lance stores maps in file version 2.2 only",
    ),
    "a column twice": (of(GOOD, columns=("label", "label")), InvalidInput, "column label is named twice"),
    "an unknown mode": (of(GOOD, on_missing="keep"), InvalidInput, "on_missing='keep' is not valid"),
    "an unknown format": (of(GOOD, source_format="csv"), InvalidInput, "source_format='csv' is not valid"),
    "a negative size": (
        of(GOOD, checkpoint_size=-1),
        InvalidInput,
        "checkpoint_size=-1 is not a positive whole number",
    ),
    "no concurrency": (of(GOOD, concurrency=0), InvalidInput, "concurrency=0"),
    "a negative granularity": (of(GOOD, commit_granularity=-64), InvalidInput, "commit_granularity=-64"),
    "a minimum above its maximum": (
        of(GOOD, min_checkpoint_size=9, max_checkpoint_size=8),
        InvalidInput,
        "min_checkpoint_size=9 is above max_checkpoint_size=8",
    ),
    "a negative interval": (of(GOOD, checkpoint_interval_seconds=-1.0), InvalidInput, "is negative"),
    "a job id that is a path": (of(GOOD, job_id="../../x"), InvalidInput, "is not a valid job id"),
    "rows without a match": (
        of(source(range(12)), on_missing="error"),
        Refused,
        "18 of 30 rows have no match in the source: id 12, 13, 14, 15, 16, 17, 18, 19, 20, 21",
    ),
}


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("name", CASES)
def test_refused_and_nothing_changed(name: str, table: Table, lake: Lake) -> None:
    arguments, kind, words = CASES[name]
    before, schema, version, files = table.to_arrow(), table.schema, table.version, lake.data_files()
    with pytest.raises(kind, match=words) as caught:
        table.load_columns(**arguments(lake))
    assert caught.value.remedy
    assert (table.schema, table.version, lake.data_files()) == (schema, version, files)
    assert table.to_arrow().equals(before)


def test_a_value_that_does_not_fit_is_refused(table: Table, lake: Lake) -> None:
    table.load_columns(str(lake.file(pa.table({"id": [1], "small": pa.array([1], pa.int8())}))), "id", ["small"])
    version = table.version
    with pytest.raises(Refused, match="column small: 1 values cannot become int8"):
        table.load_columns(str(lake.file(pa.table({"id": [1, 2], "small": [300, 2]}))), "id", ["small"])
    assert table.version == version


def test_a_source_that_changes_is_refused(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    path = lake.file(GOOD)
    read = LoadSource.read

    def changing(self: LoadSource, part: Part, columns: Any) -> pa.Table:
        rows = read(self, part, columns)
        lake.file(source(range(30), 2), path.name)
        return rows

    monkeypatch.setattr(LoadSource, "read", changing)
    version = table.version
    with pytest.raises(Conflict, match="the source was changed while it was read"):
        table.load_columns(str(path), "id", ["label"])
    assert table.version == version and "label" not in table.schema.names


def test_the_id_of_another_job_is_refused(table: Table, lake: Lake) -> None:
    path = str(lake.file(GOOD))
    table.load_columns(path, "id", ["label"], job_id="monday")
    with pytest.raises(InvalidInput, match="a job of kind load columns label had it"):
        table.load_columns(path, "id", ["embedding"], job_id="monday")
    lake.table(name="others")
    from deployer.columns.fill.checkpoints import JobFolder

    with connect(lake.root) as connection:
        other = connection.open_table("others")._newest().entry.table_id
        JobFolder(lake.root, other, "tuesday").begin({"columns": ["x"]}, "")
        with pytest.raises(InvalidInput, match=r"a job of table air\.others"):
            table.load_columns(path, "id", ["embedding"], job_id="tuesday")
    own = table._newest().entry.table_id
    JobFolder(lake.root, own, "friday").begin({"columns": ["x"], "source": "y"}, "")
    with pytest.raises(InvalidInput, match="was started with another columns and another"):
        table.load_columns(path, "id", ["embedding"], job_id="friday")


def test_arguments_without_a_meaning_are_reported_once(table: Table, lake: Lake) -> None:
    path = str(lake.file(GOOD))
    with pytest.warns(UserWarning, match="_loader_cpus has no meaning here"):
        table.load_columns(path, "id", ["label"], _loader_cpus=2.0)
    table.load_columns(path, "id", ["label"], _loader_cpus=2.0)
