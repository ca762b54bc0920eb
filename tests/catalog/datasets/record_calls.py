"""Records the calls of Rerun's own client: `python -m tests.catalog.datasets.record_calls` writes files/calls.json.gz.

It needs the client's environment (`make rerun-client`). The gate replays the calls (test_recorded_calls.py).
"""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from deployer.catalog.protocol.dataframes import rows_in, schema_in
from deployer.catalog.protocol.messages import cloud
from deployer.catalog.serving import server
from deployer.state import create_store

FILES = Path(__file__).parents[1] / "files"
CALLS = FILES / "calls.json.gz"
PYTHON = Path(__file__).parents[3] / "build" / "rerun" / "bin" / "python"
#: Columns whose values differ between two runs.
VARIES = frozenset(
    {
        "chunk_key",
        "created_at",
        "id",
        "msgs",
        "rerun_last_updated_at",
        "rerun_registration_time",
        "rerun_storage_url",
        "rerun_storage_urls",
        "rerun_task_id",
        "task_id",
        "updated_at",
    }
)

PROGRAM = """
import sys
import numpy as np
from datafusion import col
from rerun.catalog import CatalogClient

def attempt(call):
    try:
        call()
    except Exception as failure:
        print(type(failure).__name__)

client = CatalogClient(sys.argv[1])
closed, bad = sys.argv[2:]
dataset = client.create_dataset("drives")
handle = dataset.register([closed, bad], layer_name=["base", "base"])
print([(each.segment_id, each.is_success) for each in handle.iter_results(60)])
attempt(lambda: handle.wait(60))
dataset.register(closed, layer_name="again").wait(60)
attempt(lambda: dataset.register(closed))
print(dataset.segment_ids(), dataset.segment_table().count(), dataset.manifest().count())
print(len(dataset.schema().component_columns()), len(dataset.arrow_schema()))
print(dataset.reader(index="tick").count(), dataset.reader(index=None).count())
print(dataset.reader(index="tick").filter((col("tick") >= 2) & (col("tick") <= 3)).count())
values = np.array([1, 4], np.int64)
view = dataset.filter_segments("rec_0").filter_contents("/scalars/**")
print(view.reader(index="tick", using_index_values=values, fill_latest_at=True).count())
print(dataset.download_segment("rec_0").recording_id())
attempt(lambda: dataset.filter_segments("none").reader(index="tick").count())
print(client.dataset_names(), dataset.blueprints(), dataset.default_blueprint())
dataset.update(name="trips")
attempt(lambda: client.get_dataset("drives"))
client.get_dataset("trips").delete()
print(client.dataset_names())
"""


def summary(method: str, answers: list[bytes]) -> Any:
    """What answers say, without what differs between two runs."""
    kind = getattr(cloud, f"{method}Response")
    found: list[Any] = []
    for each in map(kind.FromString, answers):
        data = getattr(each, "data", None) or getattr(each, "dataframe_part", None)
        if data is not None:
            found += [row for batch in rows_in(data) for row in plain(batch.to_pylist())]
        elif hasattr(each, "schema"):
            found += [f"{field.name}: {field.type}" for field in schema_in(each.schema)]
        elif method == "FetchChunks":
            found += sorted([message.store_id.recording_id, len(message.payload)] for message in each.chunks)
        elif method == "FindEntries":
            found += [[entry.entry_kind, entry.name[:5]] for entry in each.entries]
    return found


def plain(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield {name: json.loads(json.dumps(value, default=str)) for name, value in row.items() if name not in VARIES}


def encoded(message: Any) -> str:
    data = b"".join(message) if isinstance(message, list) else message.SerializeToString()
    return base64.b64encode(data).decode()


def recording(calls: list[dict[str, Any]], checked: Callable[..., Any]) -> Callable[..., Any]:
    """A `_checked` that records the calls that are made."""

    def make(method: Any, call: Callable[..., Any]) -> Any:
        def recorded(request: Any, headers: Mapping[str, str]) -> Any:
            kept = {name: value for name, value in headers.items() if name.startswith("x-rerun-")}
            made: dict[str, Any] = {"method": method.name, "headers": kept, "request": encoded(request)}
            calls.append(made)
            made["answers"] = answers = []
            try:
                found = call(request, headers)
                if not method.gives_stream:
                    answers.append(encoded(found))
                    return found
                listed = list(found)
            except Exception as failure:
                made["error"] = type(failure).__name__
                raise
            answers += map(encoded, listed)
            return iter(listed)

        return checked(method, recorded)

    return make


def main() -> None:
    calls: list[dict[str, Any]] = []
    server._checked = recording(calls, server._checked)
    with tempfile.TemporaryDirectory() as folder:
        bad = Path(folder) / "bad.rrd"
        bad.write_bytes(b"PAR1" + bytes(100))
        root = f"{folder}/lake"
        with closing(create_store(root)) as store, server.served(store, root) as url:
            files = [(FILES / "closed.rrd").as_uri(), bad.as_uri()]
            subprocess.run([PYTHON, "-c", PROGRAM, url, *files], check=True)
    CALLS.write_bytes(gzip.compress(json.dumps(calls, indent=1).encode(), mtime=0))


if __name__ == "__main__":
    main()
