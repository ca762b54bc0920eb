"""The options of `df.write.format("deployer")` and of `writeStream`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from deployer.errors import InvalidInput
from deployer.spark.options import absolute_root
from deployer.specs.yaml.suggestions import nearest
from deployer.tables.ingest.rows.bad_rows import BadRowLimit

#: the meaning of each option, for its documentation; letter case and underscores in names do not count
OPTIONS: Mapping[str, str] = {
    "root": "The lake: a path or `s3://bucket/prefix`. Required.",
    "path": "The table, `database.name`; the argument of `save` or `start`.",
    "upsert": "`true`: a row replaces the row of the table that has the same row keys; others are added. `false` "
    "by default.",
    "job_id": "Id of this write. A second write with the same id adds nothing. Not for streams, which have one "
    "for each batch.",
    "bad_rows": "Set rows that do not fit aside with the reasons, and write the others: a new file, here or on S3 "
    "(`.parquet`, else JSON lines). For a stream a folder, where each batch with bad rows has a file.",
    "max_bad_rows": "With `bad_rows`: write nothing if more rows are bad than this number, or this share, such as "
    "`5%`. For a stream, of each batch.",
    "on_duplicate": "In a table with unique row keys, for rows whose keys the table or the write already has. "
    "`reject`: nothing is written, unless `bad_rows` sets these rows aside; `skip`: the other rows are written.",
    "missing_as_null": "`true`: columns that the DataFrame does not have and that have no default are null; else they "
    "are an error.",
    "ignore_extra": "`true`: leave out columns that the table does not have; else they are an error.",
    "indexes": "`false`: leave the table's indexes to a later load. `true` by default; for streams `false`.",
    "services": "`false`: do not run the services that are due afterwards. `true` by default.",
}
_OF_SPARK = frozenset({"checkpointlocation", "queryname", "outputmode"})
_SYNONYMS: Mapping[str, str] = {
    "batchid": "job_id",
    "database": "path",
    "duplicates": "on_duplicate",
    "location": "root",
    "merge": "upsert",
    "mergeschema": "missing_as_null",
    "table": "path",
    "txnappid": "job_id",
    "txnversion": "job_id",
    "uri": "root",
}

Mode = Literal["append", "upsert", "overwrite"]


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a write."""

    root: str
    table: str
    mode: Mode = "append"
    job_id: str | None = None
    bad_rows: str | None = None
    max_bad_rows: BadRowLimit | None = None
    on_duplicate: Literal["reject", "skip"] = "reject"
    missing_as_null: bool = False
    ignore_extra: bool = False
    indexes: bool = True
    services: bool = True

    @staticmethod
    def of(given: Mapping[str, str], *, overwrite: bool = False, stream: bool = False) -> WriteOptions:
        """Reads the options of a data source. Raises InvalidInput for unknown names, with the nearest, and values."""
        names = {_plain(name): name for name in OPTIONS}
        options: dict[str, str] = {}
        for name, value in given.items():
            if _plain(name) in names:
                options[names[_plain(name)]] = value
            elif not (stream and name.lower() in _OF_SPARK):
                raise _unknown(name)
        if not options.get("root"):
            raise InvalidInput("the option `root` is missing", remedy='name the lake: .option("root", "s3://…/lake")')
        if not options.get("path"):
            raise InvalidInput("no table is named", remedy='name it: .save("database.table"), or .start(…) of a stream')
        if stream and "job_id" in options:
            raise InvalidInput(
                "the option `job_id` is given for a stream, whose batches have ids of their own",
                remedy="leave it out: batches are known by the stream's checkpoint and their number",
            )
        upsert = _flag(options, "upsert")
        if upsert and overwrite:
            raise InvalidInput(
                "the option `upsert` is given with the mode `overwrite`" + (" (complete)" if stream else ""),
                remedy='use .mode("append") with it, or leave it out',
            )
        if options.get("max_bad_rows") is not None and options.get("bad_rows") is None:
            raise InvalidInput("the option `max_bad_rows` is given without `bad_rows`", remedy="give `bad_rows` too")
        return WriteOptions(
            root=absolute_root(options["root"]),
            table=options["path"],
            mode="overwrite" if overwrite else "upsert" if upsert else "append",
            job_id=options.get("job_id") or None,
            bad_rows=_place(options.get("bad_rows")),
            max_bad_rows=None if "max_bad_rows" not in options else BadRowLimit.parse(options["max_bad_rows"]),
            on_duplicate=_on_duplicate(options.get("on_duplicate", "reject")),
            missing_as_null=_flag(options, "missing_as_null"),
            ignore_extra=_flag(options, "ignore_extra"),
            indexes=_flag(options, "indexes", default=not stream),
            services=_flag(options, "services", default=True),
        )


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _unknown(name: str) -> InvalidInput:
    near = _SYNONYMS.get(_plain(name)) or nearest(name.lower(), list(OPTIONS))
    remedy = f"did you mean `{near}`?" if near else f"use {', '.join(f'`{each}`' for each in OPTIONS)}"
    return InvalidInput(f"there is no option `{name}` for writing", remedy=remedy)


def _flag(options: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    value = options.get(name, str(default)).strip().lower()
    if value not in ("true", "false"):
        raise InvalidInput(f"the option `{name}` is {options[name]!r}", remedy="use true or false")
    return value == "true"


def _on_duplicate(value: str) -> Literal["reject", "skip"]:
    match value.strip().lower():
        case "reject":
            return "reject"
        case "skip":
            return "skip"
    raise InvalidInput(f"the option `on_duplicate` is {value!r}", remedy="use reject or skip")


def _place(path: str | None) -> str | None:
    return path if path is None or "://" in path else str(Path(path).absolute())
