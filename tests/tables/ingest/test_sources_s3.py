"""Sources on S3: what addresses name, every form read as from a disk, and what cannot be read said."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest

from deployer.errors import DeployerError, InvalidInput, NotFound
from deployer.tables.ingest.files import source_files
from deployer.tables.ingest.files.find import find_sources, splits_of
from tests.tables.ingest.test_ingest import write
from tests.tables.lakes import Lake, flights, sorted_rows

Upload = Callable[..., str]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.fixture
def upload(bucket: str) -> Upload:
    """Puts files, or a folder's, below a new prefix; gives its address."""
    prefix = uuid.uuid4().hex[:12]

    def put(*paths: Path, under: str = "") -> str:
        s3 = boto3.client("s3")
        for path in paths:
            for file in [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]:
                key = "/".join(filter(None, (prefix, under, file.relative_to(path.parent).as_posix())))
                s3.put_object(Bucket=bucket, Key=key, Body=file.read_bytes())
        return f"s3://{bucket}/{prefix}"

    return put


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("form", ["parquet", "csv", "tsv", "csv.gz", "jsonl", "arrow", "arrows", "lance"])
def test_every_form_of_source(form: str, lake: Lake, upload: Upload) -> None:
    lake.table()
    path, rows = write(lake, form)
    place = upload(path)
    assert lake.ingest(f"{place}/{path.name}").rows == 120
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(rows)


@pytest.mark.spark
def test_tasks_read_there_too(lake: Lake, upload: Upload, spark: Any) -> None:
    lake.table()
    place = upload(lake.file(flights(300), "a.parquet"), lake.file(flights(300, 300), "b.parquet"))
    if "AWS_ENDPOINT_URL_S3" in os.environ:  # workers of a session that was there before have its environment
        for name in ("AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
            spark.sparkContext.environment[name] = os.environ[name]
    assert lake.ingest(place, engine="spark").rows == 600
    assert lake.open().count() == 600


@pytest.mark.parametrize("quotes", [False, True], ids=["plain", "quoted"])
def test_large_text_is_cut_at_line_ends_unless_it_has_quotes(
    quotes: bool, lake: Lake, upload: Upload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deployer.tables.ingest.files.find.SPLIT_BYTES", 5_000)
    monkeypatch.setattr(source_files, "SCANNED_BYTES", 700)
    lines = [f"AA,{number},{number % 50}" for number in range(2_000)]
    if quotes:
        lines[-1] = 'AA,1999,"49"'
    lake.table()
    place = upload(lake.text("big.csv", "\n".join(["carrier,flight,delay", *lines])))
    splits = len(splits_of(find_sources([f"{place}/big.csv"], None)))
    assert (splits == 1) if quotes else (splits > 3)
    assert lake.ingest(f"{place}/big.csv", missing_as_null=True).rows == 2_000
    assert sorted(lake.open().scan().to_table()["flight"].to_pylist()) == list(range(2_000))


NAMED: dict[str, tuple[str, list[str]]] = {
    "one": ("a.csv", ["a.csv"]),
    "a folder": ("", ["a.csv", "d.lance", "sub/b.parquet", "sub/deep/c.csv"]),
    "a folder with a slash": ("sub/", ["sub/b.parquet", "sub/deep/c.csv"]),
    "a glob": ("*.csv", ["a.csv"]),
    "a glob of folders": ("s?b", ["sub/b.parquet", "sub/deep/c.csv"]),
    "a glob at any depth": ("**/*.csv", ["a.csv", "sub/_aside/x.csv", "sub/deep/c.csv"]),
    "a glob in a folder": ("sub/*/[c-d].csv", ["sub/deep/c.csv"]),
    "a dataset": ("d.lance", ["d.lance"]),
    "a glob of datasets": ("*.lance", ["d.lance"]),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_an_address_names(name: str, tmp_path: Path, upload: Upload) -> None:
    for file in ("a.csv", "notes.md", ".hidden.csv", "sub/b.parquet", "sub/deep/c.csv", "sub/_aside/x.csv"):
        (tmp_path / "in" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / file).touch()
    for file in ("d.lance/_versions/1.manifest", "d.lance/data/x.csv"):
        (tmp_path / "in" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / file).write_text("x", encoding="utf-8")
    given, expected = NAMED[name]
    place = f"{upload(tmp_path / 'in')}/in"
    found = [source.path for source in find_sources([f"{place}/{given}"], None)]
    assert [path.removeprefix(f"{place}/") for path in found] == expected


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("given", ["in", "in/day=mon", "in/day=mon/a.csv", "in/*/*.csv"])
def test_folders_give_columns_there_too(given: str, tmp_path: Path, upload: Upload) -> None:
    (tmp_path / "in" / "day=mon").mkdir(parents=True)
    (tmp_path / "in" / "day=mon" / "a.csv").touch()
    assert [each.folders for each in find_sources([f"{upload(tmp_path / 'in')}/{given}"], None)] == [(("day", "mon"),)]


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ("{place}/none.csv", NotFound, "no such object"),
        ("{place}/*.none", NotFound, "no such object, folder or glob on S3; check the address"),
        ("s3:///x.csv", InvalidInput, "there is no bucket in the address; write s3://BUCKET/PATH"),
        ("s3://no-such-bucket-of-tests/x.csv", NotFound, "the bucket does not exist"),
        ("{place}/a.zip", InvalidInput, "zip archives are not read"),
        ("{place}/bad.parquet", InvalidInput, "it cannot be read as parquet"),
    ],
)
def test_what_cannot_be_read_is_said(
    given: str, kind: type[DeployerError], said: str, lake: Lake, upload: Upload
) -> None:
    lake.table()
    place = upload(lake.text("a.zip", "x"), lake.text("bad.parquet", "x"))
    with pytest.raises(kind, match=said):
        lake.ingest(given.format(place=place))


def test_an_object_that_may_not_be_read_is_said(
    bucket: str,
    lake: Lake,
    upload: Upload,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake.table()
    place = upload(lake.file(flights(3), "a.parquet"))
    found = find_sources([place], None)
    monkeypatch.setattr("deployer.tables.ingest.attempt.find_sources", lambda *_: found)
    failure = OSError(
        "When reading 'a.parquet': AWS Error ACCESS_DENIED during HeadObject operation: No response body."
    )

    def refuse(*_: object) -> Any:
        raise failure

    class Denied:
        open_input_file = refuse

    monkeypatch.setattr(source_files, "_filesystem", Denied)
    with pytest.raises(InvalidInput, match=r"a\.parquet: it cannot be read from S3: .*ACCESS_DENIED.*execution role"):
        lake.ingest(place)


@pytest.mark.full
def test_another_endpoint_is_asked_once_it_is_set(lake: Lake, upload: Upload, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table()
    place = upload(lake.file(flights(10), "a.parquet"))
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")  # nobody is there
        with pytest.raises(DeployerError):
            source_files.file_size(f"{place}/a.parquet")
    assert source_files.file_size(f"{place}/a.parquet") > 0


def test_bad_rows_are_set_aside_there_once(lake: Lake, upload: Upload) -> None:
    lake.table()
    path = lake.text("in.csv", "carrier,flight,delay\nAA,1,2\nAA,x,2\n")
    aside = f"{upload()}/bad.jsonl"
    assert lake.ingest(path, bad_rows=aside, missing_as_null=True).bad_rows == 1
    with pytest.raises(InvalidInput, match="exists already"):
        lake.ingest(path, bad_rows=aside, missing_as_null=True)
    with pytest.raises(DeployerError, match="column 'flight' 'x' does not fit int32"):
        lake.ingest(aside, missing_as_null=True)
