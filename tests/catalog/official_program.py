"""The program of the official client: each documented call for tables, and each deprecated name, with its outcome.

It runs in the client's own environment: `PROGRAM URL FOLDER` prints a JSON object with what came of each step, in their
order. It is a text here, since the client's packages are not in this one.
"""

PROGRAM = """
import json, re, sys, warnings
import pyarrow as pa
import rerun.catalog as rc
from rerun.catalog import CatalogClient, EntryId, EntryKind

url, folder = sys.argv[1:3]
found = {}

def step(name, call):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            outcome = call()
        except Exception as failure:
            said = re.search(r'self: "(.*)", metadata', str(failure))  # of the server, without ids of this run
            message = re.sub("[0-9a-fA-F]{32}", "ID", said[1] if said else str(failure))
            outcome = {"error": type(failure).__name__, "message": re.sub(r"rerun-py/[0-9.]+", "rerun-py", message)}
    deprecated = [str(each.message) for each in seen if issubclass(each.category, DeprecationWarning)]
    if deprecated:
        outcome = {"deprecated": deprecated, "outcome": outcome}
    found[name] = outcome
    return outcome

client = CatalogClient(url)
INDEX = {"rerun:is_table_index": "true"}
KEYED = pa.schema([pa.field("k", pa.int64(), metadata=INDEX), pa.field("v", pa.string())])
PLAIN = pa.schema([pa.field("k", pa.int64()), pa.field("v", pa.string())])
batch = lambda ks, vs: pa.record_batch([pa.array(ks, pa.int64()), pa.array(vs, pa.string())], schema=PLAIN)
rows = lambda table: sorted(map(list, zip(*pa.Table.from_batches(list(table.to_arrow_reader())).to_pydict().values())))
names = lambda entries: [each.name for each in entries]
taken = lambda: client.create_table("air.flights", KEYED, f"file://{folder}/x")

# Entries
step("url", lambda: client.url == url)
step("entry_names", client.entry_names)
step("entry_names hidden", lambda: client.entry_names(include_hidden=True))
step("table_names", client.table_names)
step("table_names hidden", lambda: client.table_names(include_hidden=True))
step("dataset_names", client.dataset_names)
step("entries", lambda: names(client.entries()))
step("tables", lambda: names(client.tables(include_hidden=True)))
step("datasets", lambda: names(client.datasets()))
step("all_entries", lambda: names(client.all_entries()))
step("table_entries", lambda: names(client.table_entries()))
step("dataset_entries", lambda: names(client.dataset_entries()))

# Creating and registering
step("create_table", lambda: client.create_table("t", KEYED, f"file://{folder}/t").name)
step("create_table_entry", lambda: client.create_table_entry("plain", PLAIN, f"file://{folder}/plain").name)
if "plain" not in client.table_names():  # later clients lack the deprecated names
    client.create_table("plain", PLAIN, f"file://{folder}/plain")
place = client.get_table("t").storage_url
step("register_table", lambda: client.register_table("again", place).name)
step("create_table taken", lambda: client.create_table("t", KEYED, f"file://{folder}/u").name)
step("create_table taken by a table of the instance", taken)
step("create_table there", lambda: client.create_table("u", KEYED, f"file://{folder}/t").name)
step("create_table inside", lambda: client.create_table("u", KEYED, f"file://{folder}/t/data").name)
step("register_table none", lambda: client.register_table("u", f"file://{folder}/none").name)
step("register_table taken", lambda: client.register_table("plain", f"file://{folder}/t").name)

# Finding
t = client.get_table("t")
step("get_table name", lambda: client.get_table(name="t").name)
step("get_table id", lambda: client.get_table(id=t.id).name)
step("get_table id as text", lambda: client.get_table(id=str(t.id)).name)
step("get_table both", lambda: client.get_table("t", id=t.id))
step("get_table neither", lambda: client.get_table())
step("get_table none", lambda: client.get_table("none"))
step("get_table unknown id", lambda: client.get_table(id="0" * 32))
step("get_table bad id", lambda: client.get_table(id="zz"))
step("get_table_entry", lambda: client.get_table_entry(name="t").name)
step("get_table_entry id", lambda: client.get_table_entry(id=t.id).name)

# The entry
step("kind", lambda: [str(t.kind), int(t.kind)])
step("times", lambda: [type(t.created_at).__name__, t.created_at <= t.updated_at, t.created_at.tzinfo is not None])
step("storage_url", lambda: t.storage_url == f"file://{folder}/t")
step("catalog", lambda: t.catalog.url == url)
listed = client.entries()
step("equal", lambda: ["t" in listed, t.id in listed, "none" in listed, t == client.get_table("t")])
step("entry id", lambda: [EntryId(str(t.id)) == t.id, len(str(t.id))])
is_index = lambda field: (field.metadata or {}).get(b"rerun:is_table_index") == b"true"
step("arrow_schema", lambda: [[each.name, str(each.type), is_index(each)] for each in t.arrow_schema()])

# Writing
step("append", lambda: t.append(k=[1, 2], v=["a", "b"]))
step("append batch", lambda: t.append(batch([3], ["c"])))
step("append batches", lambda: t.append([batch([4], ["d"]), batch([5], ["e"])]))
step("append lists of batches", lambda: t.append([[batch([6], ["f"])], [batch([7], ["g"])]]))
step("append reader", lambda: t.append(pa.RecordBatchReader.from_batches(PLAIN, [batch([8], ["h"])])))
step("append one value", lambda: t.append(k=9, v="i"))
step("append nothing", lambda: t.append())
step("appended", lambda: rows(t))
step("upsert", lambda: t.upsert(k=[1, 10], v=["A", "j"]))
step("upsert batch", lambda: t.upsert(batch([2], ["B"])))
step("upserted", lambda: rows(t))
step("overwrite", lambda: t.overwrite([batch([1], ["x"]), batch([2], ["y"])]))
step("overwritten", lambda: rows(t))
step("overwrite values", lambda: t.overwrite(k=[5], v=["z"]))
step("overwritten by values", lambda: rows(t))
step("append_to_table", lambda: client.append_to_table("t", k=[6], v=["p"]))
step("update_table", lambda: client.update_table("t", k=[6], v=["q"]))
step("write_table append", lambda: client.write_table("t", batch([7], ["r"]), rc.TableInsertMode.APPEND))
step("write_table replace", lambda: client.write_table("t", batch([7], ["s"]), rc.TableInsertMode.REPLACE))
step("written", lambda: rows(t))
step("write_table overwrite", lambda: client.write_table("t", batch([1], ["only"]), rc.TableInsertMode.OVERWRITE))
step("write_table overwritten", lambda: rows(t))
step("batches and values", lambda: t.append(batch([1], ["a"]), k=[1]))
step("lengths", lambda: t.append(k=[1, 2], v=["a"]))
step("unknown column", lambda: t.append(k=[1], w=["a"]))
step("unknown column in a batch", lambda: t.append(pa.record_batch({"k": [1], "v": ["a"], "w": [1]})))
step("another type", lambda: t.append(pa.record_batch({"k": ["one"], "v": ["a"]})))
step("upsert without index", lambda: client.get_table("plain").upsert(k=[1], v=["a"]))
step("upsert of one key twice", lambda: t.upsert(k=[1, 1], v=["a", "b"]))
step("not written", lambda: [rows(t), rows(client.get_table("plain"))])

# Reading
step("reader", lambda: t.reader().to_pydict())
step("ctx", lambda: client.ctx.sql("SELECT count(*) AS n FROM t").to_pydict())
step("provider", lambda: type(t.__datafusion_table_provider__()).__name__)

# Tables of the instance
own = client.get_table("air.flights")
step("own rows", lambda: own.reader().count())
step("own schema", lambda: own.arrow_schema().names)
some = own.reader().limit(3).collect()
step("own append of keys that are there", lambda: own.append(some))
step("own appended", lambda: own.reader().count())
step("own upsert", lambda: own.upsert(some))
step("own upserted", lambda: own.reader().count())
step("own upsert of one key twice", lambda: own.upsert([some, some]))
step("own upsert without keys", lambda: client.get_table("air.empty").upsert(some))
step("own delete", own.delete)
step("own rename taken", lambda: client.get_table("air.empty").update(name="air.flights"))
step("own rename taken by an external table", lambda: client.get_table("air.empty").update(name="t"))
step("own rename", lambda: client.get_table("air.empty").update(name="air.other"))
step("own renamed delete", lambda: client.get_table("air.other").delete())
step("own overwrite", lambda: own.overwrite(some))
step("own overwritten", lambda: own.reader().count())
step("system write", lambda: client.get_table("__entries").append(pa.record_batch({"a": [1]})))
step("system delete", lambda: client.get_table("__entries").delete())

# Renaming and deleting
step("update", lambda: t.update(name="renamed"))
step("update nothing", lambda: t.update())
step("update taken", lambda: t.update(name="plain"))
step("update to nothing", lambda: t.update(name=""))
step("names", client.table_names)
step("delete", t.delete)
step("delete again", t.delete)
step("use of what is deleted", lambda: rows(t))
step("data stays", lambda: rows(client.get_table("again")))
step("names at the end", client.table_names)
print(json.dumps(found))
"""
