"""INGEST on a disk: each file once, bad files aside, changed ones reported, many files one commit."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deployer.errors import Corrupt, DeployerError, Interrupted, InvalidInput, NotFound, Refused
from deployer.platform.system.progress import Progress
from deployer.services.kinds.ingest import ingest_files
from deployer.services.kinds.ingest.record import MERGED_AT, FileLists
from deployer.services.kinds.ingest.view import retry
from deployer.services.registry import run_service
from deployer.services.savepoints.savepoints import take_savepoint
from tests.services.ingest.landings import SCHEMA, Landing


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    return Landing(tmp_path, ("id",))


def test_each_file_is_loaded_once_and_many_are_one_commit(landing: Landing) -> None:
    for number in range(5):
        landing.land(f"{number}.parquet", range(number * 10, number * 10 + 10))
    done = landing.run()
    assert (done.status, done.files, done.rows, done.commits) == ("SUCCEEDED", 5, 50, 1)
    assert landing.ids() == [*range(50)]
    again = landing.run()
    assert (again.status, again.files, again.commits) == ("SKIPPED", 0, 0) and "no new file" in again.why
    landing.land("5.parquet", range(50, 60))
    assert landing.run().files == 1
    assert landing.ids() == [*range(60)]
    assert {each.status for each in landing.files().values()} == {"LOADED"} and len(landing.files()) == 6


@pytest.mark.parametrize("limit", [{"max_files": 2}, {"max_bytes": 1500}], ids=str)
def test_commits_are_bounded(landing: Landing, limit: Mapping[str, Any]) -> None:
    for number in range(5):
        landing.land(f"{number}.parquet", [number])
    size = sum(each.stat().st_size for each in landing.place.iterdir())
    done = landing.run(**limit)
    assert done.commits == (3 if "max_files" in limit else -(-5 // (1500 // (size // 5))))
    assert landing.ids() == [0, 1, 2, 3, 4]
    assert landing.run(**limit).status == "SKIPPED"


#: Files that cannot be loaded, and what their reason says.
BAD: Mapping[str, tuple[str, bytes, str]] = {
    "broken": ("bad.parquet", b"PAR1 and no more", "cannot be read as parquet"),
    "empty": ("bad.csv", b"", "the file is empty"),
    "unknown column": ("bad.csv", b"id,value,other\n7,x,y\n", "no column 'other'"),
    "missing column": ("bad.csv", b"id\n7\n", "it has no column 'value'; add the column to the file"),
    "a bad value": ("bad.csv", b"id,value\n7,x\neight,y\n", "1 of 2 rows cannot be loaded: row 2: column 'id' 'eight'"),
    "a null key": ("bad.json", b'{"value": "x"}\n', "1 of 1 rows cannot be loaded"),
    "not text": ("bad.csv", b"id,value\n7,\xff\xfe\n", "UTF-8"),
    "a zip archive": ("bad.csv.zip", b"PK", "zip archives are not read"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_set_aside_and_blocks_no_other(landing: Landing, name: str) -> None:
    file, content, reason = BAD[name]
    landing.write(file, content)
    for number in (1, 2):
        landing.land(f"{number}.parquet", [number])
    landing.write("3.csv", b"id,value\n3,v\n")
    done = landing.run("*")
    assert (done.files, done.rows, done.set_aside, done.commits) == (3, 3, 1, 1)
    assert landing.ids() == [1, 2, 3]
    [problem] = done.problems
    assert problem.path == str(landing.place / file) and reason in problem.reason
    aside = landing.files()[file]
    assert aside.status == "SET ASIDE" and reason in aside.reason
    assert landing.run("*").problems == ()  # it is not tried again
    assert landing.files()[file] == aside


def damaged(landing: Landing, name: str) -> Path:
    """A Parquet file whose footer is whole, and whose values are not."""
    path = landing.place / name
    pq.write_table(pa.table([range(1000), ["text"] * 1000], schema=SCHEMA), path, compression="gzip")
    data = bytearray(path.read_bytes())
    data[40:400] = bytes(360)
    path.write_bytes(data)
    return path


def test_a_file_with_damaged_values_is_set_aside(landing: Landing) -> None:
    landing.land("a.parquet", [1])
    damaged(landing, "b.parquet")
    done = landing.run()
    assert (done.files, done.set_aside) == (1, 1) and landing.ids() == [1]
    assert "cannot be read" in done.problems[0].reason


def test_small_files_that_are_large_when_read(landing: Landing) -> None:
    for number in range(3):
        values = pa.table([range(number * 10, number * 10 + 10), ["x" * 10**6] * 10], schema=SCHEMA)
        pq.write_table(values, landing.place / f"{number}.parquet", compression="zstd", use_dictionary=False)
    assert sum(each.stat().st_size for each in landing.place.iterdir()) < 10**6
    done = landing.run()
    assert (done.files, done.commits) == (3, 1) and landing.ids() == [*range(30)]


def test_a_file_that_was_set_aside_is_tried_again_once_it_changes(landing: Landing) -> None:
    landing.write("a.csv", b"id,value\none,v\n")
    assert landing.run("*.csv").set_aside == 1
    landing.write("a.csv", b"id,value\n1,v and more\n")
    done = landing.run("*.csv")
    assert (done.files, done.set_aside) == (1, 0)
    assert landing.files()["a.csv"].status == "LOADED"


def test_a_file_that_was_set_aside_is_tried_again_on_request(landing: Landing) -> None:
    paths = [landing.write(name, b"id,value,more\n1,v,w\n") for name in ("a.csv", "b.csv")]
    assert landing.run("*.csv").set_aside == 2
    table = landing.lake.open().opened
    with pytest.raises(NotFound, match="not set aside"):
        retry(landing.lake.root, table.entry.table_id, [str(landing.place / "c.csv")])
    assert retry(landing.lake.root, table.entry.table_id, [str(paths[0])]) == (str(paths[0]),)
    done = landing.run("*.csv", ignore_extra=True)
    assert (done.files, done.set_aside) == (1, 1) and landing.ids() == [1]
    assert retry(landing.lake.root, table.entry.table_id, ()) == (str(paths[1]),)
    assert landing.run("*.csv", ignore_extra=True).set_aside == 0


def test_a_file_that_was_set_aside_and_is_gone_is_forgotten(landing: Landing) -> None:
    path = landing.write("a.csv", b"")
    assert landing.run("*.csv").set_aside == 1
    path.unlink()
    assert landing.run("*.csv").set_aside == 0 and landing.files() == {}


def test_a_bad_file_fails_the_run_where_that_is_declared(landing: Landing) -> None:
    landing.land("a.parquet", [1])
    landing.write("b.parquet", b"no parquet")
    with pytest.raises(InvalidInput, match="cannot be read as parquet") as error:
        landing.run(on_error="fail")
    assert error.value.where == str(landing.place / "b.parquet")
    assert landing.ids() == [] and landing.files() == {}
    (landing.place / "b.parquet").unlink()
    assert landing.run(on_error="fail").files == 1


@pytest.mark.parametrize("keys", [("id",), ()], ids=["keys", "no keys"])
def test_a_run_that_is_cancelled_keeps_what_it_committed(tmp_path: Path, keys: tuple[str, ...]) -> None:
    landing = Landing(tmp_path, keys)
    for number in range(3):
        os.utime(landing.land(f"{number}.parquet", [number]), ns=(0, number * 10**9))
    seen = list[Progress]()

    def cancel(now: Progress) -> None:
        seen.append(now)
        if sum(each.doing == "loading" for each in seen) == 2:
            raise Interrupted("the run was cancelled", remedy="run it again")

    options = {"files": f"{landing.place}/*.parquet", "max_files": 1}
    done = ingest_files(landing.lake.root, "flights", options, on_progress=cancel)
    assert (done.status, done.files, done.commits) == ("CANCELLED", 1, 1) and landing.ids() == [0]
    assert landing.run().files == 2 and landing.ids() == [0, 1, 2]


def test_what_was_set_aside_before_fails_a_run_too(landing: Landing) -> None:
    landing.write("b.parquet", b"no parquet")
    assert landing.run().set_aside == 1
    with pytest.raises(InvalidInput, match="cannot be read as parquet"):
        landing.run(on_error="fail")


@pytest.mark.spark
@pytest.mark.parametrize("keys", [("id",), ()], ids=["keys", "no keys"])
def test_spark_loads_the_same(tmp_path: Path, spark: Any, keys: tuple[str, ...]) -> None:
    landing = Landing(tmp_path, keys)
    for number in range(4):
        landing.land(f"{number}.parquet", range(number * 10, number * 10 + 10))
    landing.write("bad.csv", b"id,value\n99,v\nx,y\n")
    landing.write("empty.csv", b"")
    damaged(landing, "damaged.parquet")
    landing.write("good.csv", b"id,value\n40,v\n")
    done = ingest_files(landing.lake.root, "flights", {"files": f"{landing.place}/*"}, engine="spark")
    assert (done.files, done.set_aside, done.commits) == (5, 3, 1)
    assert landing.ids() == [*range(41)]
    assert landing.run("*").status == "SKIPPED"


def test_a_changed_file_is_reported_and_not_loaded(landing: Landing) -> None:
    landing.land("a.parquet", [1])
    landing.run()
    landing.land("a.parquet", [1, 2])
    done = landing.run()
    assert (done.status, done.files, done.changed) == ("SKIPPED", 0, 1)
    assert "1 loaded file has changed" in done.why and done.problems[0].path.endswith("a.parquet")
    assert landing.files()["a.parquet"].status == "CHANGED" and landing.ids() == [1]
    assert landing.run().problems == ()  # said once
    landing.land("a.parquet", [1])  # as it was loaded
    assert landing.run().changed == 0 and landing.files()["a.parquet"].status == "LOADED"


def test_a_changed_file_is_loaded_again_where_that_is_declared(landing: Landing) -> None:
    landing.land("a.parquet", [1, 2], "old")
    landing.run(mode="upsert", on_change="reload")
    landing.land("a.parquet", [2, 3], "new")
    done = landing.run(mode="upsert", on_change="reload")
    assert (done.files, done.changed) == (1, 0)
    assert landing.rows() == [(1, "old"), (2, "new"), (3, "new")]
    assert landing.run(mode="upsert", on_change="reload").status == "SKIPPED"


def test_a_file_that_was_only_touched_or_copied_again_is_the_same(landing: Landing) -> None:
    path = landing.land("a.parquet", [1])
    landing.run()
    os.utime(path, ns=(1, 1))
    done = landing.run()
    assert (done.files, done.changed) == (0, 0)


def test_files_apply_in_the_order_in_which_they_came(landing: Landing) -> None:
    """Two files of one commit that change the same row: the later one holds."""
    for number, name in enumerate(("z", "m", "a")):
        path = landing.land(f"{name}.parquet", [1, 10 + number], name)
        os.utime(path, ns=(number, number * 10**9))
    done = landing.run(mode="upsert")
    assert done.files == 3 and done.set_aside == 0
    assert landing.rows() == [(1, "a"), (10, "z"), (11, "m"), (12, "a")]


def test_a_file_with_one_key_twice_is_set_aside_by_an_upsert(landing: Landing) -> None:
    landing.land("a.parquet", [1, 1])
    landing.land("b.parquet", [2])
    done = landing.run(mode="upsert")
    assert (done.files, done.set_aside) == (1, 1) and landing.ids() == [2]
    assert "a.parquet" in done.problems[0].path


def test_files_with_taken_unique_keys_are_set_aside(tmp_path: Path) -> None:
    landing = Landing(tmp_path, ("id",), unique=True)
    landing.land("a.parquet", [1, 2])
    landing.run()
    for name, ids in (("b", [3]), ("c", [4, 2]), ("d", [5, 3])):
        os.utime(landing.land(f"{name}.parquet", ids), ns=(0, ord(name) * 10**9))
    done = landing.run()
    assert (done.files, done.set_aside) == (1, 2)
    assert landing.ids() == [1, 2, 3]
    assert all("key" in each.reason for each in done.problems)


def test_an_overwrite_takes_all_new_files_as_one(landing: Landing) -> None:
    landing.land("a.parquet", [1])
    landing.run(mode="overwrite")
    landing.land("b.parquet", [2])
    landing.land("c.parquet", [3])
    done = landing.run(mode="overwrite", max_files=1)
    assert done.commits == 1 and landing.ids() == [2, 3]


def test_files_without_rows_are_loaded_without_a_version(landing: Landing) -> None:
    for mode in ("append", "upsert", "overwrite"):
        landing.land(f"{mode}.parquet", [])
        done = landing.run(mode=mode)
        assert (done.status, done.files, done.rows) == ("SUCCEEDED", 1, 0)
        assert done.before.lance_version == done.after.lance_version
        assert landing.run(mode=mode).status == "SKIPPED"


@pytest.mark.parametrize(
    ("files", "taken"),
    [
        ("", {"a.parquet", "deep/b.csv", "deep/day=1/c.json"}),
        ("*", {"a.parquet", "none.txt", "deep/b.csv", "deep/day=1/c.json"}),
        ("*.*", {"a.parquet", "none.txt"}),
        ("**/*.csv", {"deep/b.csv"}),
        ("deep", {"deep/b.csv", "deep/day=1/c.json"}),
        ("d*/*", {"deep/b.csv", "deep/day=1/c.json"}),
        ("[b-z]*/b.*", {"deep/b.csv"}),
    ],
)
def test_which_files_a_place_has(landing: Landing, files: str, taken: set[str]) -> None:
    landing.land("a.parquet", [1])
    landing.write("deep/b.csv", b"id,value\n2,v\n")
    landing.write("deep/day=1/c.json", b'{"id": 3, "value": "v"}\n')
    for hidden in ("_SUCCESS", ".x.csv", "_temporary/d.csv", ".deep/e.csv"):
        landing.write(hidden, b"id,value\n9,v\n")
    landing.write("none.txt", b"id,value\n9,v\n")
    landing.run(files, ignore_extra=True)
    assert landing.files().keys() == taken


def test_several_places_are_one_ingest(landing: Landing) -> None:
    landing.land("a/1.parquet", [1])
    landing.land("a/deep/2.parquet", [2])
    landing.write("b/day=3/3.csv", b"id,value\n3,v\n")  # below the place: the folder names a column
    landing.write("day=4/c/4.csv", b"id\n4\n")
    landing.write("none/5.csv", b"id,value\n5,v\n")
    lance.write_dataset(pa.table([[6], ["v"]], schema=SCHEMA), landing.place / "d" / "6.lance")
    names = ["a/*.parquet", "b", "a/**/*.parquet", "later/*.csv", "day=4/c/*.csv", "d/*.lance"]
    files = [f"{landing.place}/{name}" for name in names]
    options = {"files": files, "ignore_extra": True, "missing_as_null": True}
    done = ingest_files(landing.lake.root, "flights", options)
    assert (done.files, done.set_aside, done.commits) == (5, 0, 1)
    assert landing.ids() == [1, 2, 3, 4, 6]
    assert ", ".join(files) in ingest_files(landing.lake.root, "flights", options).why
    landing.land("a/1.parquet", [1, 7])
    assert ingest_files(landing.lake.root, "flights", options).changed == 1


def test_each_place_is_checked(landing: Landing) -> None:
    for wrong in (landing.lake.root, "relative/*.csv", "s3://key:secret@bucket/*"):
        with pytest.raises(DeployerError):
            ingest_files(landing.lake.root, "flights", {"files": [f"{landing.place}/*.csv", wrong]})


def test_a_lance_dataset_is_one_file(landing: Landing) -> None:
    path = landing.place / "a.lance"
    lance.write_dataset(pa.table([[1, 2], ["a", "b"]], schema=SCHEMA), path)
    done = landing.run("*.lance")
    assert done.files == 1 and landing.ids() == [1, 2]
    assert landing.run("*.lance").status == "SKIPPED"
    lance.write_dataset(pa.table([[3], ["c"]], schema=SCHEMA), path, mode="append")
    assert landing.run("*.lance").changed == 1


def test_a_place_that_is_not_there_yet_has_no_files(landing: Landing) -> None:
    assert landing.run(f"{landing.place}/later/*.csv").status == "SKIPPED"


@pytest.mark.parametrize("files", ["{root}", "{root}/air/*.parquet", "{root}/..", "{root}/../*/*/*", "{root}/../**"])
def test_the_lakes_own_files_are_refused(landing: Landing, files: str) -> None:
    with pytest.raises(Refused, match="within the lake's own root"):
        landing.run(files.format(root=landing.lake.root).replace("lake/..", "landing/.."))


def test_a_link_into_the_lake_is_refused(landing: Landing) -> None:
    (landing.place / "link").symlink_to(landing.lake.root)
    with pytest.raises(Refused, match="within the lake's own root"):
        landing.run(f"{landing.place}/link/*")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"files": "s3://key:secret@bucket/*"}, "cannot be"),
        ({"files": "https://bucket.s3.amazonaws.com/a?X-Amz-Signature=1"}, "cannot be"),
        ({"files": "relative/*.csv"}, "cannot be"),
        ({"files": "s3://bucket/a.csv?X-Amz-Credential=1&X-Amz-Signature=2"}, "cannot be"),
        ({"files": "s3://*/a.csv"}, "the bucket's name is a glob"),
        ({"files": "/x/*", "on": ["id"]}, "without `mode` upsert"),
        ({"files": "/x/*", "queue": "https://user:secret@sqs.aws/q"}, "cannot be"),
        ({}, "no place to load files from"),
    ],
    ids=str,
)
def test_options_that_are_refused(landing: Landing, options: Mapping[str, Any], says: str) -> None:
    with pytest.raises(DeployerError, match=says):
        ingest_files(landing.lake.root, "flights", options)


def test_what_a_restore_undoes_is_loaded_again(landing: Landing) -> None:
    landing.land("a.parquet", [1])
    landing.run()
    table = landing.lake.open().opened
    take_savepoint(landing.lake.store, [table.entry.table_id], "before")
    landing.land("b.parquet", [2])
    landing.run()
    run_service(landing.lake.root, "flights", "RESTORE")
    assert landing.ids() == [1] and landing.files().keys() == {"a.parquet"}
    assert landing.run().files == 1
    assert landing.ids() == [1, 2]
    assert landing.run().status == "SKIPPED"


def test_many_lists_become_one(landing: Landing) -> None:
    for number in range(MERGED_AT + 1):
        landing.land(f"{number}.parquet", [number])
    landing.run(max_files=1)
    table = landing.lake.open().opened
    lists = FileLists(landing.lake.root, table.entry.table_id)
    record = lists.read(table.state)
    assert len(record.lists) == 1 and len(record.files) == MERGED_AT + 1
    assert landing.run().status == "SKIPPED"
    assert landing.ids() == [*range(MERGED_AT + 1)]


def test_a_lost_list_is_found_out(landing: Landing) -> None:
    landing.land("a.parquet", [1])
    landing.run()
    [path] = Path(landing.lake.root, "_ingest").rglob("list-*")
    path.unlink()
    landing.land("b.parquet", [2])
    with pytest.raises(Corrupt, match=r"list of the files that .* loaded is missing"):
        landing.run()
    assert landing.ids() == [1]


def test_a_deleted_table_leaves_nothing(landing: Landing) -> None:
    from deployer.tables.admin.deletion import delete_table

    landing.land("a.parquet", [1])
    landing.write("b.parquet", b"")
    landing.run()
    table = landing.lake.open().opened
    delete_table(landing.lake.store, landing.lake.root, table.entry.table_id, allow_destroy=True)
    assert [*Path(landing.lake.root, "_ingest").rglob("*")] == []
