"""The options of INGEST, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from deployer.errors import InvalidInput
from deployer.platform.text.units import parse_size
from deployer.specs.schema.services import all_options, declared_options
from deployer.tables.ingest.files.model import Format, ReadOptions
from deployer.tables.ingest.request import Mode


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """The options as `deployer.specs.schema.ingest` describes them; sizes are in bytes."""

    files: tuple[str, ...]
    format: Format | None = None
    mode: Mode = "append"
    on: tuple[str, ...] = ()
    on_error: Literal["set_aside", "fail"] = "set_aside"
    on_change: Literal["report", "reload"] = "report"
    queue: str | None = None
    max_files: int = 100_000
    max_bytes: int = 10_000_000_000
    ignore_extra: bool = False
    missing_as_null: bool = False
    read: ReadOptions = ReadOptions()

    @staticmethod
    def of(declared: Mapping[str, Any]) -> IngestOptions:
        """Reads options as specs write them; omitted ones have their defaults. Raises InvalidInput without `files`."""
        given = all_options("INGEST", declared_options("INGEST", declared))
        if not given.get("files"):
            raise InvalidInput(
                "INGEST has no place to load files from",
                remedy="declare `ingest: {files: …}` of the table and run `deployer up`, or give -o files=…",
            )
        if given.get("on") and given["mode"] != "upsert":
            raise InvalidInput("`on` is given without `mode` upsert", remedy="give it too, or leave `on` out")
        nulls = given.get("null_values")
        return IngestOptions(
            files=places_named(given["files"]),
            format=Format(given["format"]) if given.get("format") else None,
            mode=given["mode"],
            on=tuple(given.get("on") or ()),
            on_error=given["on_error"],
            on_change=given["on_change"],
            queue=given.get("queue"),
            max_files=int(given["max_files"]),
            max_bytes=parse_size(given["max_bytes"]),
            ignore_extra=bool(given["ignore_extra"]),
            missing_as_null=bool(given["missing_as_null"]),
            read=ReadOptions(
                tuple(nulls) if nulls is not None else ("",),
                given.get("delimiter"),
                given["encoding"],
                bool(given["header"]),
                timezone=given.get("timezone"),
            ),
        )


def places_named(files: object) -> tuple[str, ...]:
    """Returns the places of the option `files`, which is one text or a list."""
    return tuple(map(str, files)) if isinstance(files, list | tuple) else (str(files),)
