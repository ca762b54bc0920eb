"""What jobs record of their files: other files under the same job id, and files that are loaded a second time."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import pytest

from deployer.errors import InvalidInput
from deployer.state.log.codec import decode, encode
from deployer.state.model.entities import Job, TableState
from deployer.state.snapshots.columns import format_of, from_parts, to_parts
from deployer.tables.ingest.files import loaded_files
from deployer.tables.ingest.files.find import find_sources
from deployer.tables.ingest.files.loaded_files import LoadedFiles, identified, loaded_before
from tests.tables.lakes import Lake, flights

ENGINES = ["driver", pytest.param("spark", marks=pytest.mark.spark)]


def files_of(*paths: Path) -> LoadedFiles:
    return identified(find_sources([str(path) for path in paths], None))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_job_id_is_of_its_files(engine: Any, lake: Lake, request: Any) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    lake.table()
    first, second = lake.file(flights(10), "j1.parquet"), lake.file(flights(10, 10), "j2.parquet")
    assert lake.ingest(first, engine=engine, job_id="daily").rows == 10
    with pytest.raises(InvalidInput) as raised:
        lake.ingest(second, engine=engine, job_id="daily")
    assert "job daily was done before with other files: it loaded" in str(raised.value)
    assert f"j1.parquet ({first.stat().st_size:,} bytes), as version 2" in str(raised.value)
    assert "give these files another --job-id" in raised.value.remedy
    moved = shutil.copy(first, lake.folder / "moved.parquet")
    for again in (first, moved):
        assert lake.ingest(again, engine=engine, job_id="daily").already_done
    first.unlink()
    assert lake.ingest(first, job_id="daily").already_done  # whoever removed it wants no error of it
    assert lake.open().count() == 10


def test_a_race_of_other_files_under_one_job_id(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table()
    first, second = lake.file(flights(10)), lake.file(flights(10, 10))
    lake.ingest(first, job_id="daily")
    monkeypatch.setattr("deployer.tables.ingest.attempt.find_job", lambda *_: None)  # as before the other had committed
    before = lake.data_files()
    with pytest.raises(InvalidInput, match="done before with other files"):
        lake.ingest(second, job_id="daily")
    assert lake.open().count() == 10 and lake.data_files() == before


def test_a_file_that_was_loaded_before_is_named(lake: Lake) -> None:
    lake.table()
    one, two = lake.file(flights(10), "one.parquet"), lake.file(flights(10, 10), "two.parquet")
    assert lake.ingest(one, job_id="first").loaded_before == ()
    (again,) = lake.ingest(one, two).loaded_before
    assert (again.job_id, again.lance_version) == ("first", 2) and again.file.endswith("one.parquet")
    assert str(again).startswith(f"{one} was loaded before, as version 2 (20")
    assert [each.lance_version for each in lake.ingest(one, two).loaded_before] == [3, 3]
    new = lake.text("new.csv", "carrier,flight\nAA,1\n")
    assert lake.ingest(new, missing_as_null=True).loaded_before == ()


def test_files_are_known_when_the_process_died_before_it_recorded_them(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark of the commit has them, too."""
    lake.table()
    path = lake.file(flights(10))
    monkeypatch.setattr("deployer.datasets.commit.protocol.recorded_at_once", lambda *_, **__: None)
    lake.ingest(path, job_id="daily")
    job = lake.open().opened.state.jobs["daily"]
    assert LoadedFiles.of_text(job.sources) == files_of(path)


@pytest.mark.parametrize("change", ["same", "grown", "start", "middle", "end"])
def test_files_are_known_by_their_content(change: str, tmp_path: Path) -> None:
    size = 8 * loaded_files.PART_BYTES
    before, after = tmp_path / "before.csv", tmp_path / "after.csv"
    data = bytearray(b"x" * size)
    before.write_bytes(data)
    if change == "grown":
        data += b"x"
    elif change != "same":
        data[{"start": 0, "middle": size // 2, "end": -1}[change]] = ord("y")
    after.write_bytes(data)
    assert (files_of(before).digest == files_of(after).digest) == (change == "same")


def test_empty_files_and_datasets_are_known_too(tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.touch()
    lance.write_dataset(flights(10), str(tmp_path / "a.lance"))
    lance.write_dataset(flights(10), str(tmp_path / "b.lance"))
    one, other = files_of(tmp_path / "a.lance"), files_of(tmp_path / "b.lance")
    assert one.digest != other.digest and one == files_of(tmp_path / "a.lance") and one.named[0].bytes > 0
    job = Job("empty", "ingest", 0, 2, 0, files_of(empty).to_text())
    assert loaded_before(files_of(empty), [job]) == ()


def test_what_is_recorded_is_bounded(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 50)
    folder.mkdir()
    for number in range(300):
        (folder / f"{number:03}.csv").write_text(f"id\n{number}\n", encoding="utf-8")
    files = files_of(folder)
    assert (files.count, len(files.named)) == (300, loaded_files.MOST_NAMED)
    assert len(files.to_text()) < 60_000 and files.named[0].name.endswith("/000.csv")
    assert str(files).endswith("/004.csv (5 bytes) and 295 more")
    assert LoadedFiles.of_text(files.to_text()) == files
    (folder / "299.csv").write_text("id\n300\n", encoding="utf-8")
    assert files_of(folder).digest != files.digest


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"count": 1, "digest": "x", "names": ["a"]}'])
def test_records_that_say_nothing(text: str) -> None:
    assert LoadedFiles.of_text(text) is None


def test_states_without_files_are_stored_as_before(lake: Lake) -> None:
    """Older versions read what has no files; what has is of a newer format, which they refuse."""
    lake.table()
    job = Job("j", "append", 1, 2, 3)
    assert "sources" not in encode(job) and decode(Job, encode(job)) == job
    lake.ingest(lake.file(flights(10)), job_id="daily")
    state = lake.open().opened.state
    assert format_of(to_parts(state)) == 4
    read = from_parts(to_parts(state), state.version, state.at)
    assert isinstance(read, TableState) and dict(read.jobs) == dict(state.jobs)
