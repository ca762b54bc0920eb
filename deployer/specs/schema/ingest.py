"""The JSON Schema of `ingest`: the options of the service INGEST, its trigger and its cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployer.specs.schema.parts import Json, choice, count, flag, list_of, object_schema, ref, size, text

#: An address without credentials: an absolute path on disk, or an object, folder or glob on S3.
#: A presigned URL has `&` between its parameters, so `&` is refused in addresses on S3.
_PLACE = r"^(s3://[^/@?&\s]+(/[^&]*)?|/.*)$"
_QUEUE = r"^(arn:[a-z0-9-]+:sqs:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+|https?://[^/@?#\s]+/[^?#\s]+)$"

_FILES: Mapping[str, Any] = {
    "minLength": 1,
    "maxLength": 2000,
    "pattern": _PLACE,
    "patternErrorMessage": "write s3://BUCKET/PATH or a path that begins with /, without credentials",
}

INGEST_OPTIONS: Mapping[str, Json] = {
    "files": {
        "type": ["string", "array"],
        "description": "The place where files arrive: a folder or a glob, or a list of them, on S3 "
        "(`s3://landing/trips/*.parquet`) or on the disk. It lies outside of the lake's own root.",
        **_FILES,
        "items": text("A folder or a glob.", **_FILES),
        "minItems": 1,
        "examples": [
            "s3://landing/trips/*.parquet",
            "/data/landing/trips/",
            ["s3://landing/trips/*.parquet", "s3://other/trips/*.csv"],
        ],
    },
    "format": choice("Format of the files; by their names unless set.", ("parquet", "csv", "json", "arrow", "lance")),
    "mode": choice(
        "How their rows are loaded: they are added, replace the rows with their keys, or replace all rows.",
        ("append", "upsert", "overwrite"),
        default="append",
    ),
    "on": list_of("Columns by which `upsert` finds rows; the row keys unless set.", ref("column_name"), minItems=1),
    "on_error": choice(
        "How a file that cannot be loaded is handled: it is set aside with its reason, or the run fails and loads "
        "nothing more.",
        ("set_aside", "fail"),
        default="set_aside",
    ),
    "on_change": choice(
        "How a loaded file that has changed since is handled: it is reported, or loaded again. Rows that it gave "
        "before stay, unless an upsert or overwrite replaces them.",
        ("report", "reload"),
        default="report",
    ),
    "queue": text(
        "An SQS queue with event notifications of the bucket, by ARN or URL: its messages name new files, and no place "
        "is listed. The agent looks at it every 15 seconds; on AWS and from cron, only the schedule reads it.",
        pattern=_QUEUE,
        patternErrorMessage="write the ARN or the URL of a queue, without credentials",
        examples=["arn:aws:sqs:eu-central-1:123456789012:landing"],
    ),
    "max_files": count("The largest number of files of one commit.", 1, 1_000_000, default=100_000),
    "max_bytes": size("The most bytes of the files of one commit.", default="10GB"),
    "ignore_extra": flag("Whether fields of files that the table has no column for are left out.", False),
    "missing_as_null": flag("Whether columns that a file does not have are null in its rows.", False),
    "null_values": list_of("Texts that mean null in text files; the empty text unless set.", text("A text.")),
    "delimiter": text(
        "Character that separates the values of a CSV line; detected unless set.", minLength=1, maxLength=10
    ),
    "encoding": text("Encoding of text files.", minLength=1, maxLength=40, default="utf-8"),
    "header": flag("Whether the first line of CSV files has the names of the columns.", True),
    "timezone": text("Time zone of times in text files that have no offset.", minLength=1, maxLength=100),
}

#: options that specs write below `trigger` of `ingest`
IN_TRIGGER = ("queue",)


def ingest_schema() -> Json:
    """Returns the JSON Schema of a table's `ingest`."""
    trigger = object_schema(
        "Trigger of ingest",
        "When new files are looked for. With a queue, its messages name them; the schedule says how often it is read.",
        (),
        {
            "schedule": text(
                "Cron expression: minute, hour, day of the month, month, day of the week.",
                minLength=1,
                default="*/15 * * * *",
                examples=["*/15 * * * *", "0 3 * * *"],
            ),
            "timezone": text("Time zone of the schedule.", minLength=1, default="UTC", examples=["Europe/Berlin"]),
            "queue": INGEST_OPTIONS["queue"],
        },
    )
    own = {name: schema for name, schema in INGEST_OPTIONS.items() if name not in IN_TRIGGER}
    return object_schema(
        "Ingest",
        "Files that are loaded by themselves as they come, each once. The service INGEST does it, and a table with "
        "`ingest` has it.",
        ("files",),
        {
            "files": own.pop("files"),
            "trigger": {**trigger},
            "trigger_mode": choice(
                "Whether triggers start it, or only people and programs.",
                ("AUTOMATIC", "ON_DEMAND"),
                default="AUTOMATIC",
            ),
            "cluster": ref("dashed_name", "The cluster that runs it; by default the one of jobs."),
            **own,
        },
    )
