"""Opening, making and removing the state store of an instance."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from deployer.errors import Corrupt, DeployerError, InvalidInput, NotFound, Refused
from deployer.state import create_store, open_store, remove_store
from deployer.state.log.requirements import LogEmpty
from deployer.state.log.updates import SetInstanceProperties
from deployer.state.model.entities import INSTANCE_LOG
from deployer.state.reader import StateReader

from .samples import TABLE, added, creation


def test_a_store_is_made_once_and_opened_again(tmp_path: Path) -> None:
    root = tmp_path / "a" / "lake"
    create_store(root).commit(INSTANCE_LOG, [SetInstanceProperties({"name": "nyc"})], [LogEmpty()])
    assert create_store(root).instance().properties == {"name": "nyc"}
    reader: StateReader = open_store(f"file://{root}")
    assert reader.instance().version == 1


def test_many_may_make_it_at_once(tmp_path: Path) -> None:
    start, failures = threading.Barrier(8), list[BaseException]()

    def make(number: int) -> None:
        start.wait()
        try:
            create_store(tmp_path).commit(f"table-{number}", [creation()])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(open_store(tmp_path).tables(f"table-{number}" for number in range(8))) == 8


def _nothing(root: Path) -> None:
    pass


def _empty_file(root: Path) -> None:
    (root / "_state").mkdir()
    (root / "_state" / "state.db").touch()


def _garbage(root: Path) -> None:
    (root / "_state").mkdir()
    (root / "_state" / "state.db").write_bytes(b"not a database" * 1000)


def _newer(root: Path) -> None:
    create_store(root).close()
    with sqlite3.connect(root / "_state" / "state.db") as database:
        database.execute("PRAGMA user_version = 2")


def _folder(root: Path) -> None:
    (root / "_state" / "state.db").mkdir(parents=True)


FOUND = [
    (_nothing, NotFound, "there is no state store; create the instance first: deployer up"),
    (_empty_file, NotFound, "there is no state store"),
    (_garbage, Corrupt, "the state store's file is damaged"),
    (_newer, Refused, r"written by a newer deployer \(format 2\), this one reads up to 1; upgrade"),
    (_folder, NotFound, "there is no state store"),
]


@pytest.mark.parametrize(("prepare", "error", "words"), FOUND, ids=[prepare.__name__ for prepare, *_ in FOUND])
def test_what_is_no_store_is_said_so(tmp_path: Path, prepare: object, error: type[DeployerError], words: str) -> None:
    assert callable(prepare)
    prepare(tmp_path)
    with pytest.raises(error, match=words) as caught:
        open_store(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_other_schemes_are_refused_in_words() -> None:
    with pytest.raises(Refused, match=r"gs://bucket/lake: .* use a path or s3://bucket/prefix"):
        open_store("gs://bucket/lake")


@pytest.mark.parametrize("table_id", ["", "a/b", "..", "a b", "x" * 65])
def test_a_table_id_never_becomes_a_path(tmp_path: Path, table_id: str) -> None:
    store = create_store(tmp_path)
    for use in (store.table, store.remove_table_log, store.snapshot, lambda log: store.table(log, at=1), store.log):
        with pytest.raises(InvalidInput, match="is not a table id"):
            use(table_id)


def test_a_removed_store_is_gone_even_for_those_who_had_it_open(tmp_path: Path) -> None:
    late = create_store(tmp_path)
    late.commit(INSTANCE_LOG, [SetInstanceProperties({"name": "nyc"})])
    late.commit(TABLE, [creation()])
    remove_store(tmp_path)
    remove_store(tmp_path)
    assert list(tmp_path.iterdir()) == []
    for log, updates in ((TABLE, [added(1)]), (INSTANCE_LOG, [SetInstanceProperties({"a": 1})])):
        with pytest.raises(NotFound, match="it was removed"):
            late.commit(log, updates)
    assert create_store(tmp_path).instance().version == 0


def test_a_removal_that_was_interrupted_is_ended_by_making_the_store_again(tmp_path: Path) -> None:
    store = create_store(tmp_path)
    store.commit(INSTANCE_LOG, [SetInstanceProperties({"name": "nyc"})])
    store.remove_log(INSTANCE_LOG)
    store.close()
    assert create_store(tmp_path).commit(INSTANCE_LOG, [SetInstanceProperties({"a": 1})], [LogEmpty()]).version == 1


def test_opening_needs_no_arrow(tmp_path: Path) -> None:
    """The command line starts quickly: a small lake's state is read without Arrow."""
    create_store(tmp_path).commit(TABLE, [creation()])
    program = (
        "import sys; from deployer.state import open_store; from deployer.state.model.keys import encode_key;"
        f"assert open_store({str(tmp_path)!r}).table({TABLE!r}).version == 1;"
        "print([name for name in ('pyarrow', 'numpy', 'lance', 'pulumi', 'boto3', 'obstore') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
