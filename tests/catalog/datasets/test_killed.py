"""Processes that are killed (SIGKILL) while they change a dataset: the change is there, or nothing of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from deployer.catalog.datasets.maintenance import remove_leftovers
from deployer.catalog.datasets.model.record import folder_of
from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.datasets.reading import Source
from deployer.catalog.datasets.reads.index import Indexes
from deployer.catalog.datasets.registration import Registration
from deployer.catalog.datasets.search.searches import NewSearch, Searches
from deployer.datasets.indexes.instances import TextIndex
from deployer.platform.system.clock import Clock
from deployer.state import create_store, open_store
from tests.catalog.datasets.recordings import write_recording
from tests.catalog.datasets.test_search import TEXT, texts

pytestmark = pytest.mark.full

#: What a process does with the dataset `drives`, in which the segment `s0` is registered.
PROGRAM = """
import sys
from deployer.catalog.datasets.maintenance import Maintenance, maintain
from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.datasets.reading import Source
from deployer.catalog.datasets.reads.index import Indexes
from deployer.catalog.datasets.registration import Registration
from deployer.catalog.datasets.search.searches import NewSearch, Searches
from deployer.datasets.indexes.instances import TextIndex
from deployer.state import open_store
root, what, *files = sys.argv[1:]
datasets, indexes = Datasets(open_store(root), root), Indexes(root)
dataset = datasets.by_name("drives").dataset_id
if what == "register":
    Registration(datasets, indexes).register(dataset, [Source(each) for each in files])
elif what == "rename":
    datasets.rename(dataset, "trips")
elif what == "delete":
    datasets.delete(dataset)
elif what == "index":
    Searches(datasets, indexes).create(dataset, NewSearch("/log", "TextLog:text", "tick", TextIndex(), b""))
else:
    maintain(datasets, Searches(datasets, indexes), dataset, Maintenance(True, True, True))
"""

#: What is killed, where, and whether it is done then.
KILLED = {
    "register before its commit": ("register", "catalog:before-registering", False),
    "register before the log has it": ("register", "commit:before-put", False),
    "register when the log has it": ("register", "commit:after-put", True),
    "register before it answers": ("register", "catalog:after-registering", True),
    "rename before the log has it": ("rename", "commit:before-put", False),
    "rename when the log has it": ("rename", "commit:after-put", True),
    "delete before the log has it": ("delete", "commit:before-put", False),
    "delete before its files are removed": ("delete", "catalog:before-removing-files", True),
    "an index before its commit": ("index", "catalog:before-naming-index", False),
    "an index when the log has it": ("index", "commit:after-put", True),
    "maintenance before its commit": ("maintain", "catalog:before-naming-compacted", False),
    "maintenance when the log has it": ("maintain", "commit:after-put", True),
}


@contextmanager
def opened(root: str) -> Iterator[tuple[Datasets, Registration, Searches]]:
    with closing(open_store(root)) as store:
        datasets, indexes = Datasets(store, root), Indexes(root)
        yield datasets, Registration(datasets, indexes), Searches(datasets, indexes)


@pytest.mark.parametrize("case", KILLED)
def test_a_change_that_is_killed_is_whole_or_nothing(case: str, tmp_path: Path) -> None:
    what, point, is_done = KILLED[case]
    root = str(tmp_path / "lake")
    create_store(root).close()
    files = [
        str(write_recording(tmp_path / f"s{number}.rrd", f"s{number}", [texts([f"apple {number}"])], first=9 * number))
        for number in range(4)
    ]
    with opened(root) as (datasets, registration, searches):
        dataset = datasets.create("drives").dataset_id
        for file in files[:2]:
            registration.register(dataset, [Source(file)])
        if what == "maintain":
            searches.create(dataset, NewSearch("/log", TEXT, "tick", TextIndex(), b""))
    command = [sys.executable, "-c", PROGRAM, root, what, *files[2:]]
    environment = {**os.environ, "DEPLOYER_FAILPOINT": point}
    done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    with opened(root) as (datasets, registration, searches):
        records = {each.name: each for each in datasets.all() if each.kind == "dataset"}
        expected = {"rename": {"trips"}, "delete": set()}.get(what, {"drives"}) if is_done else {"drives"}
        assert records.keys() == expected
        for record in records.values():
            segments = ["s0", "s1", *(["s2", "s3"] if what == "register" and is_done else [])]
            index = registration.indexes.of(record)
            assert index.segment_codes[1].to_pylist() == segments and index.chunks.count == len(segments)
            assert len(record.searches) == (what == "maintain" or (what == "index" and is_done))
            if record.searches:
                assert searches.search_texts(record, "/log", TEXT, "apple").num_rows == len(segments)
            if len(segments) == 2:
                registration.register(record.dataset_id, [Source(file) for file in files[2:]])
            index = registration.indexes.of(datasets.by_id(record.dataset_id))
            assert index.segment_codes[1].to_pylist() == ["s0", "s1", "s2", "s3"] and index.chunks.count == 4
        now = datasets.store._clock.now()
        remove_leftovers(Datasets(datasets.store, root, Clock(now=lambda: now + 7_200_000)), searches)
        for record in records.values():
            assert registration.indexes.of(datasets.by_id(record.dataset_id)).chunks.count == 4
        assert Path(folder_of(root, dataset), "layers.lance").exists() == bool(records)
