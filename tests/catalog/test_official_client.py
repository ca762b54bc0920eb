"""The official client of rerun-sdk 0.28 against the server: `make rerun-client` makes its environment.

The client needs a release of datafusion that is older than this project's, so it has an environment of its own, and
runs as a program. The tests are skipped where that is missing.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from deployer.catalog.serving.server import served
from deployer.state import open_store
from deployer.state.log.updates import SetTableProperties
from tests.tables.lakes import Lake, flights

PYTHON = Path(__file__).parents[2] / "build" / "rerun" / "bin" / "python"

PROGRAM = """
import json, sys
import pyarrow as pa
from rerun.catalog import AlreadyExistsError, CatalogClient

def error(call):
    try:
        call()
    except Exception as failure:
        return type(failure).__name__
    return "none"

client = CatalogClient(sys.argv[1])
rows = pa.ipc.open_stream(sys.stdin.buffer).read_all().combine_chunks().to_batches()
found = {"entries": client.entry_names(), "tables": [each.name for each in client.tables()]}
found["datasets"] = client.datasets()
table = client.get_table("air.flights")
found["rows"] = table.reader().count()
found["columns"] = table.arrow_schema().names
table.append(rows)
found["appended"] = pa.Table.from_batches(list(table.to_arrow_reader())).num_rows
table.upsert(rows)
found["upserted"] = table.reader().count()
found["sql"] = client.ctx.sql("SELECT count(*) AS n FROM air.flights").to_pydict()["n"]
found["unknown"] = error(lambda: client.get_table("none"))
found["protected"] = error(table.delete)
found["taken"] = error(lambda: client.get_table("air.empty").update(name="air.flights"))
found["recordings"] = error(lambda: client.create_dataset("d").delete())
found["unfit"] = error(lambda: table.upsert(pa.concat_tables([pa.table(rows[0])] * 2).to_batches()))
table.overwrite(rows)
found["overwritten"] = table.reader().count()
client.get_table("air.empty").update(name="air.other")
client.get_table("air.other").delete()
found["left"] = client.entry_names()
print(json.dumps(found))
"""


@pytest.mark.full
@pytest.mark.skipif(not PYTHON.exists(), reason="make rerun-client makes the environment of the client")
def test_every_call_of_the_client_for_tables(tmp_path: Path) -> None:
    import pyarrow as pa

    lake = Lake(tmp_path)
    lake.table()
    lake.table(name="empty", row_keys=())
    lake.ingest(lake.file(flights(40)))
    for name in ("flights", "empty"):
        lake.store.commit(lake.open(name).opened.entry.table_id, [SetTableProperties({"declared": {}})])
    sent = pa.BufferOutputStream()
    with pa.ipc.new_stream(sent, flights(5, 40).schema) as writer:
        writer.write_table(flights(5, 40))
    with closing(open_store(lake.root)) as store, served(store, lake.root) as url:
        done = subprocess.run(
            [PYTHON, "-c", PROGRAM, url], input=sent.getvalue().to_pybytes(), capture_output=True, check=False
        )
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    assert found == {
        "entries": ["air.flights", "air.empty"],
        "tables": ["air.flights", "air.empty"],
        "datasets": [],
        "rows": 40,
        "columns": flights(1).schema.names,
        "appended": 45,
        "upserted": 45,
        "sql": [45],
        "unknown": "LookupError",
        "protected": "PermissionError",
        "taken": "AlreadyExistsError",
        "recordings": "none",
        "unfit": "ValueError",
        "overwritten": 5,
        "left": ["air.flights"],
    }
