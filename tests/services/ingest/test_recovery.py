"""What INGEST knows of files after the table was rewritten, its state was rebuilt, or it was emptied."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from deployer.live.reader import read_table
from deployer.state import open_store
from deployer.tables.admin.tables import update_table
from deployer.tables.evolution.rewrite.truncate import reinitialise_table
from tests.services.ingest.landings import Landing
from tests.tables.verify.test_rebuild import lose, rebuild


def test_a_rewrite_of_the_table_forgets_no_file(tmp_path: Path) -> None:
    landing = Landing(tmp_path, ("id",))
    landing.land("a.parquet", [1, 2])
    landing.run()
    with closing(open_store(landing.lake.root)) as store:
        [entry] = store.instance().tables.values()
        spec = read_table(store, landing.lake.root, entry).spec
        update_table(store, landing.lake.root, entry.table_id, replace(spec, row_keys=(), sort_keys=("id",)))
    assert landing.run().status == "SKIPPED" and landing.ids() == [1, 2]
    landing.land("b.parquet", [3])
    assert landing.run().files == 1 and landing.ids() == [1, 2, 3]


def test_a_rebuilt_state_forgets_no_file(tmp_path: Path) -> None:
    landing = Landing(tmp_path, ("id",))
    for name, mode in (("a", "append"), ("b", "upsert"), ("c", "append")):
        landing.land(f"{name}.parquet", [ord(name)])
        landing.run(mode=mode)
    opened = landing.lake.open().opened
    spec = read_table(landing.lake.store, landing.lake.root, opened.entry).spec
    lose(landing.lake)
    rebuild(landing.lake, spec)
    assert landing.run().status == "SKIPPED"
    landing.land("d.parquet", [ord("d")])
    assert landing.run().files == 1 and landing.ids() == [97, 98, 99, 100]


def test_an_emptied_table_loads_its_files_again(tmp_path: Path) -> None:
    landing = Landing(tmp_path, ("id",))
    landing.land("a.parquet", [1])
    landing.run()
    table_id = landing.lake.open().opened.entry.table_id
    reinitialise_table(landing.lake.store, landing.lake.root, table_id, allow_destroy=True)
    assert landing.ids() == []
    assert landing.run().files == 1 and landing.ids() == [1]
