"""The options of `spark.read.format("deployer")`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deployer.errors import InvalidInput
from deployer.platform.text.units import OPTION_DURATION, parse_duration, parse_size
from deployer.services.savepoints.read_lease import HOLD
from deployer.specs.types.column_names import split_names
from deployer.specs.yaml.suggestions import nearest

#: the meaning of each option, for its documentation; Spark compares names of options in any letter case
OPTIONS: Mapping[str, str] = {
    "root": "The lake: a path or `s3://bucket/prefix`. Required.",
    "path": "The table, `database.name`; the argument of `load`.",
    "version": "A version that `deployer history` lists, such as `3` or `1:3`. The newest by default.",
    "time": "The version at a time: ISO 8601, in UTC unless it has an offset.",
    "since": "Reads the changes of the versions after this one, or after a time, instead of rows; 0 is before the "
    "first. For streams also `snapshot`: all rows first.",
    "until": "With `since`: the last version, or a time. The newest by default.",
    "max_versions": "For streams: the largest number of versions of a batch. All by default.",
    "columns": "Columns to read, separated by commas; a name with a comma in double quotes. All by default.",
    "range": "`COLUMN=LOW..HIGH`, as `deployer query --range`; several, one a line.",
    "keys": "`VALUE[,VALUE…]`, the first values of the row keys, as `deployer query --keys`; several, one a line.",
    "where": "An SQL condition of Lance, as `deployer query --where`.",
    "lease": "How long CLEAN keeps the version, at least, such as `1h` (the default); `none` reads without a lease, "
    "and needs no right to write.",
    "nanoseconds": "`error` (the default) or `truncate`: what to do with times that have digits below a microsecond.",
    "partition_size": "Bytes of data files that one task reads, such as `64MB`; up to 128 MiB by default.",
}
_SYNONYMS: Mapping[str, str] = {
    "at": "version",
    "asof": "time",
    "startingversion": "since",
    "startingtimestamp": "since",
    "endingversion": "until",
    "maxversions": "max_versions",
    "maxversionspertrigger": "max_versions",
    "maxfilespertrigger": "max_versions",
    "database": "path",
    "filter": "where",
    "key": "keys",
    "location": "root",
    "ranges": "range",
    "select": "columns",
    "table": "path",
    "timestamp": "time",
    "timestampasof": "time",
    "uri": "root",
    "versionasof": "version",
}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a read. `at` is a version or a time, as for `Table.scan`. `ranges` and `keys` are unparsed texts,
    because only the table determines their meaning. `lease` is None for a read without a lease."""

    root: str
    table: str
    at: str | dt.datetime | None = None
    columns: tuple[str, ...] | None = None
    ranges: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    where: str | None = None
    lease: dt.timedelta | None = HOLD
    truncates: bool = False
    partition_size: int | None = None
    since: str | None = None
    until: str | None = None
    max_versions: int | None = None

    @staticmethod
    def of(given: Mapping[str, str]) -> ReadOptions:
        """Reads the options of a data source. Raises InvalidInput for unknown names, with the nearest, and values."""
        options = {name.lower(): value for name, value in given.items()}
        for name in options:
            if name not in OPTIONS:
                raise _unknown(name)
        if not options.get("root"):
            raise InvalidInput("the option `root` is missing", remedy='name the lake: .option("root", "s3://…/lake")')
        if not options.get("path"):
            raise InvalidInput("no table is named", remedy='name it: .load("database.table")')
        if "version" in options and "time" in options:
            raise InvalidInput("the options `version` and `time` exclude each other", remedy="give one of them")
        columns = options.get("columns")
        return ReadOptions(
            root=absolute_root(options["root"]),
            table=options["path"],
            at=_time(options["time"]) if "time" in options else options.get("version"),
            columns=None if columns is None else tuple(split_names(columns, "columns")),
            ranges=_lines(options.get("range")),
            keys=_lines(options.get("keys")),
            where=options.get("where"),
            lease=_lease(options.get("lease")),
            truncates=_choice("nanoseconds", options.get("nanoseconds", "error"), ("error", "truncate")) == "truncate",
            partition_size=_size(options.get("partition_size")),
            since=options.get("since"),
            until=_until(options),
            max_versions=_count("max_versions", options.get("max_versions")),
        )


def _until(options: Mapping[str, str]) -> str | None:
    if "until" in options and "since" not in options:
        raise InvalidInput(
            "the option `until` ends the changes that `since` begins", remedy="give `since` too, or `version` instead"
        )
    return options.get("until")


def _count(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) == 0:
        raise InvalidInput(f"the option `{name}` is {text!r}", remedy="give a whole number from 1")
    return int(text)


def _unknown(name: str) -> InvalidInput:
    near = _SYNONYMS.get(name.replace("_", "")) or nearest(name, list(OPTIONS))
    remedy = f"did you mean `{near}`?" if near else f"use {', '.join(f'`{each}`' for each in OPTIONS)}"
    if near == "path":
        remedy = 'name the table in load: .load("database.table")'
    return InvalidInput(f"there is no option `{name}`", remedy=remedy)


def absolute_root(root: str) -> str:
    """Returns the root as an absolute path or URI, for processes in other folders."""
    return root if "://" in root else str(Path(root).absolute())


def _lines(text: str | None) -> tuple[str, ...]:
    return tuple(line.strip() for line in (text or "").splitlines() if line.strip())


def _time(text: str) -> dt.datetime:
    try:
        found = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(
            f"the option `time` is {text!r}, which is not a time", remedy="write it as 2026-01-31T12:00:00Z"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def _lease(text: str | None) -> dt.timedelta | None:
    if text is None:
        return HOLD
    if text.strip().lower() == "none":
        return None
    return parse_duration(text.strip(), OPTION_DURATION, option="lease")


def _choice(name: str, value: str, choices: Sequence[str]) -> str:
    if (chosen := value.strip().lower()) not in choices:
        raise InvalidInput(f"the option `{name}` is {value!r}", remedy=f"use {' or '.join(choices)}")
    return chosen


def _size(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_size(int(text) if text.strip().isdecimal() else text.strip())
    except InvalidInput as error:
        raise InvalidInput(f"the option `partition_size`: {error.what}", remedy=error.remedy) from None
