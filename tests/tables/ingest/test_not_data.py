"""Files that are not data are reported as what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployer.errors import InvalidInput
from deployer.tables.importing.infer import infer
from deployer.tables.ingest.files.model import Format, ReadOptions
from tests.tables.lakes import Lake

APPLE_DOUBLE = bytes.fromhex("00051607 00020000") + b"Mac OS X        " + bytes(80)
DS_STORE = b"\x00\x00\x00\x01Bud1\x00\x00\x10\x00" + bytes(80)
EMPTY, MACOS = "the file is empty; remove it", "it holds attributes that macOS stores beside a file"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        *((f"a.{form}", b"", EMPTY) for form in ("csv", "csv.gz", "jsonl", "parquet", "arrow")),
        *((f"._a.{form}", APPLE_DOUBLE, MACOS) for form in ("csv", "csv.gz", "jsonl", "parquet", "arrow")),
        (".DS_Store", DS_STORE, MACOS),
    ],
)
def test_a_file_that_is_not_data_is_named(name: str, content: bytes, said: str, lake: Lake, tmp_path: Path) -> None:
    lake.table()
    path = tmp_path / name
    path.write_bytes(content)
    form = Format.CSV if name == ".DS_Store" else None
    with pytest.raises(InvalidInput) as raised:
        lake.ingest(path, format=form)
    assert str(raised.value).startswith(f"{path}: {said}")
    with pytest.raises(InvalidInput, match=said):
        infer([str(path)], form, ReadOptions())


def test_folders_leave_hidden_files_out_and_name_empty_ones(lake: Lake, tmp_path: Path) -> None:
    lake.table()
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text("carrier,flight\nAA,1\n", encoding="utf-8")
    (folder / "._a.csv").write_bytes(APPLE_DOUBLE)
    (folder / ".DS_Store").write_bytes(DS_STORE)
    (folder / "_SUCCESS").touch()
    assert lake.ingest(folder, missing_as_null=True).rows == 1
    (folder / "b.csv").touch()
    with pytest.raises(InvalidInput, match=r"b\.csv: the file is empty"):
        lake.ingest(folder, missing_as_null=True)
