"""Entries of a log that no deployer wrote, though their checksum is right: an error that says where, and no more."""

from __future__ import annotations

import base64
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deployer.errors import Corrupt
from deployer.platform.storage.envelope import MAGIC, digest, unseal
from deployer.state import open_store

from . import forge
from .conftest import Deployer

DEEP = b'{"x": ' * 100_000 + b"1" + b"}" * 100_000
PAYLOADS = {
    "no JSON": b"{",
    "no text": b"\xff\xfe",
    "a list": b"[]",
    "null": b"null",
    "too deep": DEEP,
    "too deep in an update": b'{"log":"LOG","version":VERSION,"txn_id":"%s","at":1,"author":"a","updates":[%s]}'
    % (b"ab" * 16, b'{"type":"set-table-properties","changes":{"tags":' + b'{"a":' * 900 + b"1" + b"}" * 902),
    "nothing": b"",
}
ENTRIES: dict[str, dict[str, Any]] = {
    "updates are none": {"updates": None},
    "updates are a text": {"updates": "rewrite-started"},
    "an update is a number": {"updates": [7]},
    "the time is a text": {"at": "now"},
    "the time is negative": {"at": -1},
    "the time is after all dates": {"at": 10**18},
    "the time is a flag": {"at": True},
    "the author is a list": {"author": ["ann"]},
    "the author cannot be encoded": {"author": "\ud800"},
    "the version is a text": {"version": "2"},
}
UPDATES: dict[str, dict[str, Any]] = {
    "a number that no column holds": {"type": "set-lance-version", "lance_version": 10**30},
    "a fraction": {"type": "set-lance-version", "lance_version": 1.5},
    "a flag for a number": {"type": "set-lance-version", "lance_version": True},
    "a text that cannot be encoded": {"type": "set-table-properties", "changes": {"description": "\ud800"}},
    "a number in a map": {"type": "set-table-properties", "changes": {"tags": {"a": 10**30}}},
    "no finite number": {"type": "set-table-properties", "changes": {"tags": {"a": float("inf")}}},
    "a list of levels": {"type": "set-table-properties", "changes": {"declared": {"a": [[[[[]]]]] * 3, "b": {"c": 1}}}},
    "a path for a savepoint": {"type": "savepoint-taken", "name": "../../x"},
    "a lock for a savepoint": {"type": "savepoint-taken", "name": "x.lock"},
    "a kind that is a map": {"type": "pause-service", "kind": {}},
    "bytes that are none": {"type": "set-schema", "schema": "§", "lance_version": 2},
    "a tree that is none": {
        "type": "partition-split",
        "partition_id": "x",
        "split_point": "",
        "left_id": "",
        "right_id": "",
    },
    "an unknown field": {"type": "set-lance-version", "lance_version": 2, "\x1b[2J": 1},
}
#: Settings of storage that no spec can have, and what the message says.
STORAGE: dict[str, tuple[dict[str, Any], str]] = {
    "no rows in a file": ({"max_rows_per_file": -1}, "`max_rows_per_file` is -1 and out of range"),
    "a flag for rows": ({"max_rows_per_file": True}, "`max_rows_per_file` is `true` and should be a whole number"),
    "a text for rows": ({"max_rows_per_file": "x"}, "`max_rows_per_file` is `x` and should be a whole number"),
    "more bytes than there are": ({"max_bytes_per_file": 2**63 - 1}, "`max_bytes_per_file` is 9,223,372,036,854,775"),
    "hardly any bytes": ({"max_bytes_per_file": 1}, "`max_bytes_per_file` is 1 and out of range"),
    "kept forever": ({"keep_replaced_for": "9" * 30 + "d"}, "`keep_replaced_for` cannot be `9999"),
    "kept for a number": ({"keep_replaced_for": 7}, "`keep_replaced_for` is the number 7 and should be text"),
    "a format of no release": ({"data_storage_version": "9.9"}, "`data_storage_version` cannot be `9.9`"),
    "a setting that there is not": ({"nope": 1}, "unknown field `nope` of Storage"),
}
OF_INSTANCE: dict[str, dict[str, Any]] = {
    "an id that is a path": {"type": "set-table-status", "table_id": "../../x", "status": "deleting"},
    "the instance as a table": {"type": "remove-table", "table_id": "instance"},
    "a name that is a path": {"type": "rename-table", "table_id": "ID", "database": "../x", "name": "y"},
    "a name in SQL": {"type": "rename-table", "table_id": "ID", "database": "air", "name": 'x" OR 1=1 --'},
    "a long name": {"type": "rename-table", "table_id": "ID", "database": "air", "name": "x" * 129},
    "a name with an escape": {"type": "rename-table", "table_id": "ID", "database": "air", "name": "x\x1b[2J"},
    "a dataset without a number": {
        "type": "set-table-dataset",
        "table_id": "ID",
        "location": "LOCATION",
        "dataset": -1,
    },
    "a dataset of no rewrite": {
        "type": "set-table-dataset",
        "table_id": "ID",
        "location": "LOCATION",
        "dataset": 2**63 - 1,
    },
    "a first dataset without a number": {
        "type": "register-table",
        "entry": {"database": "air", "location": "air/x.lance", "dataset": 0},
    },
    "a reserved database": {
        "type": "register-table",
        "entry": {"database": "_state", "location": "_state/x-0a1b2c3d.lance"},
    },
}


def refused(deployer: Deployer, where: str) -> None:
    """Every command names the entry, without raw control characters. What lists several tables shows the others."""
    of_table = not where.endswith(" instance")
    for command, code in (
        (("preview",), 0 if of_table else 1),
        (("preview", "--exit-code"), 2 if of_table else 1),
        (("up", "--yes"), 1),
        (("tables",), 0 if of_table else 1),
        (("table", "gc", "planes"), 1),
        (("describe", "planes"), 1),
    ):
        ran = deployer(*command)
        said = ran.out + ran.err
        assert ran.code == code and where in said and "\x1b[2J" not in said, (command, ran)
        assert ran.err.count("\n") < 12 and len(ran.err) < 4_000
    assert deployer("state", "verify").code == 2
    assert deployer("state", "repair").code == 2
    assert deployer("state", "log", "planes").code in (0, 1)


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
def test_an_entry_that_is_none_is_named(payload: bytes, root: Path, deployer: Deployer) -> None:
    """F25: bytes that are no entry, such as JSON that is nested too deep."""
    planes = forge.table(root, "planes")
    with closing(open_store(root)) as store:
        version = store.table(planes.table_id).version + 1
    payload = payload.replace(b"LOG", planes.table_id.encode()).replace(b"VERSION", str(version).encode())
    forge.append_raw(root, planes.table_id, payload)
    refused(deployer, f"entry {version} of log {planes.table_id}")


@pytest.mark.parametrize("change", ENTRIES.values(), ids=ENTRIES.keys())
def test_an_entry_of_another_shape_is_named(change: dict[str, Any], root: Path, deployer: Deployer) -> None:
    """F25: each member of an entry has its type."""
    planes = forge.table(root, "planes")
    good = {"type": "set-table-properties", "changes": {"description": "x"}}
    version = forge.append(root, planes.table_id, good, **change)
    refused(deployer, f"entry {version} of log {planes.table_id}")


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES.keys())
def test_an_update_of_another_shape_is_named(update: dict[str, Any], root: Path, deployer: Deployer) -> None:
    """F25: each field of an update has its type, its bounds and its form."""
    planes = forge.table(root, "planes")
    version = forge.append(root, planes.table_id, update)
    if update.get("changes", {}).get("declared"):
        assert deployer("preview").code == 0  # it is allowed, and means nothing
        return
    refused(deployer, f"entry {version} of log {planes.table_id}")


@pytest.mark.parametrize(("storage", "what"), STORAGE.values(), ids=STORAGE.keys())
def test_storage_has_the_bounds_that_specs_have(
    storage: dict[str, Any], what: str, root: Path, deployer: Deployer
) -> None:
    """F25: `ingest` ended in an OverflowError where a log says that a file has -1 rows."""
    planes = forge.table(root, "planes")
    forge.append(root, planes.table_id, {"type": "set-table-properties", "changes": {"storage": storage}})
    for command in (
        ("ingest", "planes", "planes.csv"),
        ("service", "run", "planes", "COMPACT"),
        ("service", "run", "planes", "CLUSTER"),
        ("table", "reinitialise", "planes", "--force"),
        ("query", "planes"),
        ("up", "--yes"),
        ("preview",),
        ("drift",),
        ("state", "verify"),
    ):
        ran = deployer(*command)
        said = " ".join((ran.out + ran.err).split())
        assert ran.code == (0 if command == ("preview",) else 2 if command[0] in ("drift", "state") else 1), (
            command,
            ran,
        )
        assert what in said and "table/air.planes" in said and "Traceback" not in said, (command, ran)


@pytest.mark.parametrize("update", OF_INSTANCE.values(), ids=OF_INSTANCE.keys())
def test_names_of_tables_are_those_that_specs_may_give(update: dict[str, Any], root: Path, deployer: Deployer) -> None:
    """F2: names and ids become paths, keys and addresses, so each has the form that specs have."""
    planes = forge.table(root, "planes")
    own = {"ID": planes.table_id, "LOCATION": str(planes.location)}
    update = {name: own.get(value, value) if isinstance(value, str) else value for name, value in update.items()}
    if "entry" in update:
        more = {"table_id": "0a1b2c3d" * 4, "name": "x", "status": "active", "created_at": 1, "dataset": 1}
        update = {**update, "entry": {**more, **update["entry"]}}
    version = forge.to_instance(root, update)
    refused(deployer, f"entry {version} of log instance")


def test_what_cannot_be_decompressed_is_corrupt() -> None:
    """F25: an envelope whose flag says that it is compressed, and whose checksum is right."""
    payload = b"not compressed"
    with pytest.raises(Corrupt, match="the state store did not write this content"):
        unseal(MAGIC + bytes([1, 1]) + digest(payload) + payload, "here")
    short = zlib.compress(b"x" * 100)[:-5]
    with pytest.raises(Corrupt, match="is cut off"):
        unseal(MAGIC + bytes([1, 1]) + digest(short) + short, "here")


DECLARED: dict[str, dict[str, Any]] = {
    "storage": {"storage": {"data_storage_version": [], "x": 1}},
    "a time to keep": {"storage": {"keep_replaced_for": "forever"}},
    "split points": {"declared": {"split_points": [["x"], 7]}},
    "split points that are none": {"declared": {"split_points": 7}},
    "a limit of rows": {"declared": {"max_rows_per_leaf": "many"}},
    "an embedding": {"declared": {"embedding": {"function": "os; import sys", "column": "a", "vector": "b"}}},
    "an embedding without columns": {"declared": {"embedding": {"function": "words:vectors"}}},
    "an embedding that is none": {"declared": {"embedding": 7}},
    "unique keys": {"declared": {"unique": "yes"}},
    "indexes": {"declared": {"indexes": {"../x": {"index": {"kind": "nope"}}}}},
    "indexes that are none": {"declared": {"indexes": [1]}},
    "keys that are not there": {"row_keys": ["nope", "../x"]},
    "tags": {"tags": {"a": {"b": []}}},
}


@pytest.mark.parametrize("changes", DECLARED.values(), ids=DECLARED.keys())
def test_what_a_table_declares_is_read_with_words(changes: dict[str, Any], root: Path, deployer: Deployer) -> None:
    """F25: values that fit the log and are none that specs could say."""
    planes = forge.table(root, "planes")
    forge.append(root, planes.table_id, {"type": "set-table-properties", "changes": changes})
    before = forge.tree(root)
    for command in (
        ("preview",),
        ("preview", "--format", "html"),
        ("describe", "planes"),
        ("table", "gc", "planes"),
        ("service", "run", "planes", "CLEAN"),
        ("table", "partitions", "planes"),
        ("drift",),
        ("state", "verify"),
    ):
        ran = deployer(*command)
        assert ran.code in (0, 1, 2, 3) and "Traceback" not in ran.err, (command, ran)
    assert forge.tree(root) == before


def test_a_schema_that_is_none_is_named(root: Path, deployer: Deployer) -> None:
    """F25: the Arrow schema in a log is bytes, which may be no schema."""
    planes = forge.table(root, "planes")
    with closing(open_store(root)) as store:
        version = store.table(planes.table_id).lance_version
    forge.append(root, planes.table_id, {"type": "set-schema", "schema": "AAAA", "lance_version": version})
    shown = deployer("preview")
    assert shown.code == 0 and "table/air.planes" in shown.out and "is not an Arrow schema" in shown.out
    for command in (("describe", "planes"), ("table", "gc", "planes"), ("query", "planes")):
        ran = deployer(*command)
        assert ran.code == 1 and "table/air.planes" in ran.err and "is not an Arrow schema" in ran.err, (command, ran)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ([("id", pa.int64()), ("id", pa.string())], "two columns have the name `id`"),
        ([("id", pa.int64()), ("at", pa.struct([("x", pa.int8())] * 2))], "two fields of `at` have the name `x`"),
    ],
)
def test_a_schema_has_no_name_twice(
    columns: list[tuple[str, pa.DataType]], said: str, root: Path, deployer: Deployer
) -> None:
    """F25: the plan of all tables ended in a traceback."""
    planes = forge.table(root, "planes")
    with closing(open_store(root)) as store:
        version = store.table(planes.table_id).lance_version
    schema = base64.b64encode(pa.schema(columns).serialize().to_pybytes()).decode()
    forge.append(root, planes.table_id, {"type": "set-schema", "schema": schema, "lance_version": version})
    for command in (("preview",), ("drift",)):
        ran = deployer(*command)
        assert "table/air.planes" in ran.out and said in ran.out.replace("\n", " "), ran
    assert said in deployer("query", "planes").err


def test_what_the_instance_declares_is_read_with_words(root: Path, deployer: Deployer) -> None:
    """F25: the instance's own spec, as it was last applied."""
    for spec in ({"name": 7}, {}, {"name": "x", "root": []}, {"clusters": 7}, [1]):
        forge.to_instance(root, {"type": "set-instance-properties", "changes": {"spec": spec, "owner": [1]}})
        for command in (("preview",), ("tables",), ("up", "--yes")):
            ran = deployer(*command)
            assert ran.code in (0, 1, 3) and "Traceback" not in ran.err, (spec, command, ran)


def test_files_of_a_snapshot_have_their_types(root: Path) -> None:
    """F25: Parquet whose columns are of other types, with the right checksums."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    from deployer.state.snapshots.columns import from_parts, to_parts

    planes = forge.table(root, "planes")
    with closing(open_store(root)) as store:
        state, whole = store.table(planes.table_id), store.instance()
    for held in (state, whole):
        parts = to_parts(held)
        assert from_parts(parts, held.version, held.at) == held
        for name, table in parts.items():
            for column in table.column_names:
                for wrong in (pa.array([{"x": 1}] * table.num_rows), pa.array(["../x"] * table.num_rows)):
                    at = table.schema.get_field_index(column)
                    changed = {**parts, name: table.set_column(at, column, wrong)}
                    file = io.BytesIO()
                    pq.write_table(changed[name], file)
                    try:
                        found = from_parts(changed, held.version, held.at)
                    except (KeyError, TypeError, ValueError, pa.ArrowException):
                        continue
                    assert isinstance(found, type(held))  # a text where any text may be


def test_times_of_a_log_do_not_go_back(root: Path, deployer: Deployer) -> None:
    """F2: an entry of long ago at the end of a log would end the time for which data is kept."""
    id = forge.table(root, "planes").table_id
    forge.append(root, id, {"type": "set-table-properties", "changes": {}}, at=1)
    assert "its time 1 is before that of the entry before" in deployer("preview").out
