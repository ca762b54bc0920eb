"""A program for the environment of Rerun's client: each documented call for datasets, and each deprecated name.

`python documented_program.py URL FOLDER` prints a JSON object: what came of each step, with its warnings, and which
documented names of the classes were not used.
"""

# mypy: ignore-errors
from __future__ import annotations

import functools
import json
import re
import sys
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import rerun as rr
import rerun.blueprint as rrb
import rerun.catalog as rc
from rerun.catalog import CatalogClient, IndexColumnSelector

CLASSES = ("Schema", "DatasetEntry", "DatasetView", "RegistrationHandle")
#: Of the client, what the program for tables does not use.
OF_CLIENT = {"create_dataset", "dataset_entries", "dataset_names", "datasets", "get_dataset", "get_dataset_entry"}
OF_CLIENT |= {"do_global_maintenance", "ctx", "url"}
used = set()


def watched(cls, name, member):
    """Notes that a member of a class is used."""
    label = f"{cls.__name__}.{name}"
    if isinstance(member, property):

        def get(self):
            used.add(label)
            return member.fget(self)

        return property(get)

    @functools.wraps(member)
    def call(*arguments, **options):
        used.add(label)
        return member(*arguments, **options)

    return call


documented = set()
for class_name in (*CLASSES, "CatalogClient"):
    cls = getattr(rc, class_name)
    for owner in reversed(cls.__mro__[:-1]):
        for name, member in list(vars(owner).items()):
            public = not name.startswith("_") and (class_name != "CatalogClient" or name in OF_CLIENT)
            if public and (callable(member) or isinstance(member, property)):
                documented.add(f"{class_name}.{name}")
                setattr(cls, name, watched(cls, name, member))

url, folder = sys.argv[1], Path(sys.argv[2])
found = {}


def plain(value):
    """A value as JSON, without ids and places of this run."""
    if isinstance(value, bool | int | float | None):
        return value
    if isinstance(value, list | tuple | set):
        return [plain(each) for each in (sorted(value) if isinstance(value, set) else value)]
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    text = str(value).replace(url, "URL").replace(str(folder), "/FOLDER")
    said = re.search(r'self: "(.*)", metadata', text)
    text = (said[1] if said else text).partition(", metadata: {")[0]  # their order varies
    text = re.sub("[0-9a-fA-F]{32}", "ID", text)
    return re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", text)


def step(name, call):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            outcome = plain(call())
        except Exception as failure:
            outcome = {"error": type(failure).__name__, "message": plain(failure)[:300]}
    deprecated = [str(each.message) for each in seen if issubclass(each.category, DeprecationWarning)]
    found[name] = {"deprecated": deprecated, "outcome": outcome} if deprecated else outcome


def write(name: str, segment: str, first: int) -> str:
    path = folder / f"{name}.rrd"
    path.parent.mkdir(exist_ok=True)
    with rr.RecordingStream("tests", recording_id=segment) as rec:
        rec.save(str(path))
        rec.send_property("info", rr.AnyValues(robot=segment, mass=float(first)))
        for tick in range(first, first + 4):
            rec.set_time("tick", sequence=tick)
            rec.set_time("at", timestamp=np.datetime64("2025-01-01", "ns") + np.timedelta64(tick, "s"))
            rec.log("scalars", rr.Scalars(float(tick)))
            rec.log("log", rr.TextLog(f"{segment} {tick}"))
            rec.log("vectors", rr.AnyValues(embedding=[float(tick), 1.0, 0.0, 2.0]))
    return path.as_uri()


one, two, three = (write(f"in/{name}", name, first) for name, first in (("s1", 0), ("s2", 10), ("s3", 20)))
look = folder / "look.rbl"
rrb.Blueprint(rrb.Spatial2DView()).save("app", look)
bad = folder / "bad.rrd"
bad.write_bytes(b"RRF2 but no more")

client = CatalogClient(url)
tick = IndexColumnSelector("tick")
count = lambda frame: frame.count()  # noqa: E731

# Entries
step("url", lambda: client.url)
step("create_dataset", lambda: client.create_dataset("drives").name)
step("create_dataset taken", lambda: client.create_dataset("drives"))
step("create_dataset without a name", lambda: client.create_dataset(""))
step("dataset_names", client.dataset_names)
step("dataset_names hidden", lambda: client.dataset_names(include_hidden=True))
step("datasets", lambda: [each.name for each in client.datasets()])
step("dataset_entries", lambda: [each.name for each in client.dataset_entries()])
drives = client.get_dataset("drives")
step("get_dataset by id", lambda: client.get_dataset(id=drives.id) == drives)
step("get_dataset by text of an id", lambda: client.get_dataset(id=str(drives.id)).name)
step("get_dataset of none", client.get_dataset)
step("get_dataset of both", lambda: client.get_dataset("drives", id=drives.id))
step("get_dataset unknown", lambda: client.get_dataset("none"))
step("get_dataset unknown id", lambda: client.get_dataset(id="0" * 32))
step("get_dataset_entry", lambda: client.get_dataset_entry(name="drives").name)
step("get_dataset_entry by id", lambda: client.get_dataset_entry(id=drives.id).name)
step("create_table of a dataset's name", lambda: client.create_table("drives", pa.schema([]), f"file://{folder}/t"))
step("get_table of a dataset", lambda: client.get_table("drives"))
step(
    "entry", lambda: [drives.name, str(drives.kind), drives.catalog.url == url, drives.created_at <= drives.updated_at]
)
step("manifest_url", lambda: drives.manifest_url)
step("empty", lambda: [drives.segment_ids(), drives.schema().column_names(), drives.arrow_schema().names])

# Registration
step("register", lambda: drives.register(one).wait().segment_ids)
step("register again", lambda: drives.register(one))
step("register several", lambda: drives.register([two, three], layer_name=["base", "more"]).wait(60).segment_ids)
step("iter_results", lambda: [each.segment_id for each in drives.register([one], layer_name="x").iter_results(60)])
results = drives.register([bad.as_uri(), three])
step(
    "results",
    lambda: sorted([each.uri, each.segment_id, each.is_success, str(each.error)] for each in results.iter_results()),
)
step("wait for a bad one", results.wait)
step("register nothing", lambda: drives.register([]))
step("register with other lengths", lambda: drives.register([one, two], layer_name=["a"]))
step("register_prefix", lambda: drives.register_prefix((folder / "in").as_uri(), layer_name="p").wait(60).segment_ids)
step("register_prefix missing", lambda: drives.register_prefix((folder / "none").as_uri()))

# What there is
step("segment_ids", lambda: sorted(drives.segment_ids()))
step("partition_ids", lambda: sorted(drives.partition_ids()))
step("schema", lambda: [str(each) for each in drives.schema()])
schema = drives.schema()
step("schema equals", lambda: [schema == drives.schema(), len(list(schema))])
step("column_names", schema.column_names)
step("index_columns", lambda: [each.name for each in schema.index_columns()])
step("component_columns", lambda: [each.name for each in schema.component_columns()])
step("column_for", lambda: schema.column_for("/scalars", "Scalars:scalars").component_type)
step("column_for unknown", lambda: schema.column_for("/scalars", "none"))
step("column_for_selector", lambda: schema.column_for_selector("/scalars:Scalars:scalars").entity_path)
step("column_for_selector unknown", lambda: schema.column_for_selector("/scalars:none"))
step("column_for_selector bad", lambda: schema.column_for_selector("scalars"))
step("arrow_schema", lambda: [field.name for field in drives.arrow_schema()])
step("segment_table", lambda: sorted(drives.segment_table().select("rerun_segment_id").to_pydict()["rerun_segment_id"]))
step("manifest", lambda: count(drives.manifest()))
step("segment_url", lambda: drives.segment_url("s1"))
step("segment_url of ticks", lambda: drives.segment_url("s1", "tick", 0, 10))
step("segment_url of times", lambda: drives.segment_url("s1", "at", datetime(2025, 1, 1), datetime(2025, 1, 2)))  # noqa: DTZ001
step("partition_url", lambda: drives.partition_url("s1", "tick", 0, 10))
step("download_segment", lambda: drives.download_segment("s1").recording_id())
step("download_partition", lambda: drives.download_partition("s1").recording_id())
step("download_segment unknown", lambda: drives.download_segment("none"))

# Reading
step("reader", lambda: count(drives.reader(index="tick")))
step("reader of static values", lambda: count(drives.reader(index=None)))
step("reader filled at values", lambda: count(drives.reader("tick", fill_latest_at=True, using_index_values=[1, 30])))
step("reader of an unknown index", lambda: count(drives.reader(index="none")))
view = drives.filter_segments(["s1", "s2"]).filter_contents(["/scalars/**"])
step("view", lambda: [sorted(view.segment_ids()), view.schema().column_names(), view.arrow_schema().names])
step("view reader", lambda: count(view.reader(index="tick")))
step("view segment_table", lambda: count(view.segment_table()))
step("view of views", lambda: drives.filter_segments("s1").filter_segments(["s2"]).segment_ids())
step("view download_segment", lambda: view.download_segment("s1").recording_id())
step("view filter_segments of a frame", lambda: sorted(drives.filter_segments(drives.segment_table()).segment_ids()))
step("view of an unknown segment", lambda: count(drives.filter_segments("none").reader(index="tick")))
step("view of bad contents", lambda: count(drives.filter_contents("nothing").reader(index="tick")))

# Blueprints
step("no blueprint", lambda: [drives.blueprints(), drives.default_blueprint()])
step("blueprint_dataset", lambda: drives.blueprint_dataset().kind)
step("register_blueprint", lambda: drives.register_blueprint(look.as_uri()))
step("blueprints", lambda: len(drives.blueprints()))
step("default_blueprint", lambda: drives.default_blueprint() in drives.blueprints())
step("default_blueprint_partition_id", lambda: drives.default_blueprint_partition_id() in drives.blueprints())
step("set_default_blueprint", lambda: drives.set_default_blueprint(None))
name = drives.blueprints()[0]
step("set_default_blueprint_partition_id", lambda: drives.set_default_blueprint_partition_id(name))
step("default", lambda: drives.default_blueprint() == name)
step("register_blueprint of a recording", lambda: drives.register_blueprint(one))

# Search
text, vector = "/log:TextLog:text", "/vectors:embedding"
wanted = {"column": vector, "time_index": tick, "num_sub_vectors": 2}
step("create_fts_search_index", lambda: drives.create_fts_search_index(column=text, time_index=tick) is not None)
step("create_fts_index", lambda: drives.create_fts_index(column=text, time_index=tick) is not None)
step(
    "create_vector_search_index", lambda: drives.create_vector_search_index(**wanted, distance_metric="L2") is not None
)
step("create_vector_index", lambda: drives.create_vector_index(**wanted) is not None)
step(
    "metrics",
    lambda: [
        drives.create_vector_search_index(**wanted, distance_metric=each) is not None
        for each in (rc.VectorDistanceMetric.Dot, "Cosine")
    ],
)
step("Hamming", lambda: drives.create_vector_search_index(**wanted, distance_metric="Hamming"))
step("sub vectors", lambda: drives.create_vector_search_index(column=vector, time_index=tick, num_sub_vectors=3))
step("index of numbers as texts", lambda: drives.create_fts_search_index(column=vector, time_index=tick))
step("index of no component", lambda: drives.create_fts_search_index(column="/log:none", time_index=tick))
step("index by no timeline", lambda: drives.create_fts_search_index(column=text, time_index=IndexColumnSelector("no")))
step("list_search_indexes", lambda: len(drives.list_search_indexes()))
step("list_indexes", lambda: len(drives.list_indexes()))
step("search_fts", lambda: sorted(drives.search_fts("s2", text).to_pydict()["instance"]))
step("search_fts without an index", lambda: count(drives.search_fts("s2", "/log:TextLog:level")))
step("search_vector", lambda: count(drives.search_vector([1.0, 1.0, 0.0, 2.0], vector, 3)))
step("search_vector of another length", lambda: count(drives.search_vector([1.0], vector, 3)))
step("search_vector of none", lambda: count(drives.search_vector([1.0, 1.0, 0.0, 2.0], vector, 0)))
step("delete_search_indexes", lambda: len(drives.delete_search_indexes(text)))
step("delete_indexes", lambda: len(drives.delete_indexes(vector)))
step("indexes left", lambda: len(drives.list_search_indexes()))

# Maintenance
step(
    "do_maintenance", lambda: drives.do_maintenance(optimize_indexes=True, retrain_indexes=True, compact_fragments=True)
)
now = datetime.now(UTC)
step("do_maintenance that cleans", lambda: drives.do_maintenance(cleanup_before=now - timedelta(hours=2)))
step("do_maintenance that cleans recent ones", lambda: drives.do_maintenance(cleanup_before=now + timedelta(hours=1)))
step(
    "do_maintenance that may",
    lambda: drives.do_maintenance(cleanup_before=now + timedelta(hours=1), unsafe_allow_recent_cleanup=True),
)
step("do_global_maintenance", client.do_global_maintenance)
step("read after maintenance", lambda: count(drives.reader(index="tick")))
step("ctx", lambda: client.ctx.sql("SELECT 1 AS one").to_pydict())

# The end
step("update", lambda: drives.update(name="trips"))
step("update to nothing", lambda: drives.update(name=""))
step("updated", lambda: [client.dataset_names(), client.get_dataset("trips") == drives])
step("delete", drives.delete)
step("delete again", drives.delete)
step("deleted", lambda: [client.dataset_names(), (folder / "in" / "s1.rrd").exists()])
step("use of what is deleted", lambda: drives.segment_ids())
found["not used"] = sorted(documented - used)
print(json.dumps(found))
