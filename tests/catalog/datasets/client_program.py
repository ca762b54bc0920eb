"""A program for the environment of Rerun's client: datasets of recordings on this project's server and on Rerun's own.

`python client_program.py URL FOLDER SEED` writes random recordings, registers them with both servers, and prints what
differs as JSON; then it prints what calls answer that only this server has an answer for.
"""

# mypy: ignore-errors
from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import rerun as rr
import rerun.blueprint as rrb
from datafusion import col
from rerun.catalog import CatalogClient, IndexColumnSelector
from rerun.server import Server

warnings.simplefilter("ignore")
BASE = np.datetime64("2025-01-01T00:00:00", "ns")
#: Places and times, and what Rerun's own server computes of chunks that it has joined in memory.
VARIES = {
    "rerun_storage_urls",
    "rerun_storage_url",
    "rerun_last_updated_at",
    "rerun_registration_time",
    "rerun_num_chunks",
    "rerun_size_bytes",
    "rerun_schema_sha256",
}


def write(path: Path, segment: str, rng: np.random.Generator, layer: int) -> None:
    """Writes a recording: several timelines, repeated times, static values, several components, properties."""
    with rr.RecordingStream("tests", recording_id=segment) as rec:
        rec.save(str(path))
        rec.send_property(f"info{layer}", rr.AnyValues(robot=f"r{rng.integers(9)}", mass=float(rng.integers(9))))
        rec.log("static/doc", rr.TextDocument(f"{segment} {layer}"), static=True)
        for tick in np.sort(rng.integers(0, 40, rng.integers(0, 60))):
            rec.set_time("tick", sequence=int(tick))
            if rng.random() < 0.7:
                rec.set_time("at", timestamp=BASE + np.timedelta64(int(tick) * 10**9, "ns"))
            if rng.random() < 0.6:
                rec.log(f"scalars/{layer}", rr.Scalars(float(rng.integers(100))))
            if rng.random() < 0.3:
                rec.log("log", rr.TextLog(f"{segment} {tick}", level="INFO" if rng.random() < 0.5 else None))
            if rng.random() < 0.2:
                rec.log("points", rr.Points3D(rng.random((int(rng.integers(0, 3)), 3)), radii=0.5))
            if rng.random() < 0.05:
                rec.log("points", rr.Clear(recursive=bool(rng.random() < 0.5)))
        for first in range(0, 40, 10):
            if rng.random() < 0.7:
                ticks = np.sort(rng.integers(first, first + 12, 8))
                rec.send_columns(
                    "columns", [rr.TimeColumn("tick", sequence=ticks)], rr.Scalars.columns(scalars=rng.random(8))
                )


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with times as numbers: Python's have no nanoseconds."""
    columns = [column.cast(pa.int64()) if pa.types.is_temporal(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def rows_of(frame) -> list[str]:
    """All rows as text, in an order of their own."""
    rows = [row for batch in frame.collect() for row in plain(batch).to_pylist()]
    kept = [{name: row[name] for name in sorted(row) if name not in VARIES} for row in rows]
    return sorted(json.dumps(row, default=str) for row in kept)


def meta_of(catalog, place: Path):
    """A table of what is known of segments, of which one is in no dataset, and one is missing."""
    schema = pa.schema([("rerun_segment_id", pa.string()), ("success", pa.bool_()), ("note", pa.string())])
    table = catalog.create_table("meta", schema, place.as_uri())
    table.append(rerun_segment_id=["s0", "s1", "s1", "none"], success=[True, False, True, True], note=list("abcd"))
    return table


def reads(dataset, meta):
    """The reads that are compared, by name."""
    values = np.array([0, 3, 11, 25, 39, 100], np.int64)
    one = dataset.filter_segments(["s0"])
    times = BASE + np.array([5, 20], "timedelta64[s]")
    return {
        "tick": lambda: dataset.reader(index="tick"),
        "at": lambda: dataset.reader(index="at"),
        "filled": lambda: dataset.reader(index="tick", fill_latest_at=True),
        "values": lambda: one.reader(index="tick", using_index_values=values),
        "filled values": lambda: one.reader(index="tick", using_index_values=values, fill_latest_at=True),
        "filled times": lambda: dataset.reader(index="at", using_index_values=times, fill_latest_at=True),
        "static": lambda: dataset.reader(index=None),
        "range": lambda: dataset.reader(index="tick").filter((col("tick") >= 10) & (col("tick") <= 15)),
        "filled range": lambda: dataset.reader(index="tick", fill_latest_at=True).filter(col("tick") == 12),
        "a segment": lambda: dataset.reader(index="tick").filter(col("rerun_segment_id") == "s1"),
        "contents": lambda: dataset.filter_contents(["/scalars/**"]).reader(index="tick"),
        "contents filled": lambda: (
            dataset.filter_contents(["/points/**", "/columns"])
            .filter_segments(["s0", "s2"])
            .reader(index="tick", fill_latest_at=True)
        ),
        "empty columns": lambda: dataset.reader(index="tick", include_semantically_empty_columns=True),
        "tombstones": lambda: dataset.reader(index="tick", include_tombstone_columns=True),
        "segments": lambda: dataset.segment_table(),
        "segments of a view": lambda: one.segment_table(),
        "manifest": lambda: dataset.manifest(),
        "segments with a table": lambda: dataset.segment_table(join_meta=meta),
        "segments with a frame": lambda: dataset.segment_table(join_meta=meta.reader()),
        "segments by another key": lambda: dataset.segment_table(
            join_meta=meta.reader().with_column_renamed("rerun_segment_id", "rerun_storage_urls"),
            join_key="rerun_storage_urls",
        ),
        "segments by a key that is not there": lambda: dataset.segment_table(join_meta=meta, join_key="none"),
        "segments of a view with a table": lambda: one.segment_table(join_meta=meta),
    }


def outcome(call):
    try:
        return call()
    except Exception as failure:
        return type(failure).__name__


def search(dataset) -> dict[str, object]:
    """What search and maintenance answer, which Rerun's own server has not."""
    text, tick = "/log:TextLog:text", IndexColumnSelector("tick")
    dataset.create_fts_search_index(column=text, time_index=tick)
    dataset.create_fts_search_index(column=text, time_index=tick, store_position=True)
    found = {"listed": len(dataset.list_search_indexes()), "deprecated": len(dataset.list_indexes())}
    rows = dataset.search_fts("s1", text)
    found["columns"] = rows.schema().names
    found["rows"] = sorted({row["rerun_segment_id"] for row in rows.to_pylist()})
    found["limited"] = rows.limit(1).count()
    found["unknown"] = outcome(lambda: dataset.search_fts("s1", "/log:TextLog:none").count())
    found["vector"] = outcome(lambda: dataset.create_vector_search_index(column=text, time_index=tick))
    found["unknown index"] = outcome(
        lambda: dataset.create_fts_search_index(column=text, time_index=IndexColumnSelector("none"))
    )
    found["maintained"] = dataset.do_maintenance(optimize_indexes=True, compact_fragments=True) is None
    found["deleted"] = len(dataset.delete_search_indexes(text))
    found["left"] = len(dataset.list_search_indexes())
    return found


def main() -> None:
    url, folder, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    rng = np.random.default_rng(seed)
    base, more = [], []
    for number in range(4):
        base.append(folder / f"base{number}.rrd")
        write(base[-1], f"s{number}", rng, 0)
        if number % 2:
            more.append(folder / f"more{number}.rrd")
            write(more[-1], f"s{number}", rng, 1)
    look = folder / "look.rbl"
    rrb.Blueprint(rrb.Spatial2DView()).save("app", look)
    found: dict[str, object] = {}
    with Server() as server:
        catalogs = CatalogClient(url), server.client()
        sets = []
        for catalog in catalogs:
            dataset = catalog.create_dataset("drives")
            result = dataset.register([each.as_uri() for each in base]).wait(60)
            assert result.segment_ids == [f"s{number}" for number in range(4)], result
            list(dataset.register([each.as_uri() for each in more], layer_name="more").iter_results(60))
            sets.append(dataset)
        metas = [meta_of(each, folder / place) for each, place in zip(catalogs, ("ours", "theirs"), strict=True)]
        ours, theirs = map(reads, sets, metas)
        for name, read in ours.items():
            mine, own = (outcome(lambda each=each: rows_of(each())) for each in (read, theirs[name]))
            if mine != own:
                found[f"differs: {name}"] = [str(mine)[:2000], str(own)[:2000]]
            found.setdefault("rows", {})[name] = len(mine) if isinstance(mine, list) else mine
        calls = {
            "schema": lambda each: sorted(str(column) for column in each.schema()),
            "arrow_schema": lambda each: sorted(
                (field.name, str(field.type), sorted((field.metadata or {}).items())) for field in each.arrow_schema()
            ),
            "segment_ids": lambda each: sorted(each.segment_ids()),
            "again": lambda each: each.register(base[0].as_uri()),
            "unknown index": lambda each: each.reader(index="none").count(),
            "unknown segment": lambda each: each.filter_segments("none").reader(index="tick").count(),
            "partition_ids": lambda each: sorted(each.partition_ids()),
            "segments of a frame": lambda each: sorted(each.filter_segments(each.segment_table()).segment_ids()),
            "download_partition": lambda each: each.download_partition("s1").recording_id(),
            "default_blueprint_partition_id": lambda each: each.default_blueprint_partition_id(),
            "no recordings": lambda each: each.register([]),
            "other lengths": lambda each: each.register([base[0].as_uri()], layer_name=["a", "b"]),
            "missing prefix": lambda each: each.register_prefix((folder / "none").as_uri()),
            "prefix of a file": lambda each: each.register_prefix(base[0].as_uri()),
            "download": lambda each: each.download_segment("s1").recording_id(),
            "register_blueprint": lambda each: each.register_blueprint(look.as_uri()),
            "blueprints": lambda each: len(each.blueprints()),
            "default_blueprint": lambda each: each.default_blueprint() in each.blueprints(),
            "no default": lambda each: (each.set_default_blueprint(None), each.default_blueprint()),
        }
        for name, call in calls.items():
            mine, own = (outcome(lambda each=each, call=call: call(each)) for each in sets)
            if mine != own:
                found[f"differs: {name}"] = [str(mine)[:2000], str(own)[:2000]]
        mine = sets[0]
        bad = folder / "bad.rrd"
        bad.write_bytes(base[0].read_bytes()[:-200])
        other = catalogs[0].create_dataset("other")
        handle = other.register([base[0].as_uri(), bad.as_uri(), base[1].as_uri()])
        found["results"] = sorted((each.segment_id, each.is_success) for each in handle.iter_results(60))
        try:
            handle.wait(60)
        except ValueError as failure:
            found["wait"] = bad.name in str(failure) and "truncated" in str(failure)
        found["missing"] = outcome(lambda: other.register("file:///none.rrd").wait(10))
        found["empty name"] = outcome(lambda: other.update(name=""))
        found["good"] = sorted(other.segment_ids())
        found["search"] = search(other)
        found["taken"] = outcome(lambda: catalogs[0].create_dataset("other"))
        mine.update(name="trips")
        found["renamed"] = catalogs[0].get_dataset("trips").id == mine.id
        found["old name"] = outcome(lambda: catalogs[0].get_dataset("drives"))
        base[2].write_bytes(base[2].read_bytes() + b"x")
        found["changed"] = outcome(lambda: mine.reader(index="tick").collect() and "read")
        mine.delete()
        found["left"] = catalogs[0].dataset_names()
        found["deleted"] = outcome(lambda: mine.segment_ids())
    print(json.dumps(found))


if __name__ == "__main__":
    main()
