"""The JSON Schema of table services: the kinds, their options and their triggers. Specs and the client use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from deployer.errors import InvalidInput
from deployer.platform.text.units import canonical_duration, exact_size, parse_size
from deployer.specs.schema.ingest import INGEST_OPTIONS
from deployer.specs.schema.parts import (
    Json,
    choice,
    constant,
    count,
    duration,
    flag,
    list_of,
    object_schema,
    ref,
    share,
    size,
    text,
)
from deployer.specs.schema.targets import TARGET_SCHEMAS
from deployer.specs.yaml.suggestions import one_of

if TYPE_CHECKING:
    from deployer.state.model.services import ServiceKind

MODES = ("AUTOMATIC", "ON_DEMAND")


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of service. `trigger` is the trigger of an AUTOMATIC service that does not declare one."""

    description: str
    options: Mapping[str, Json]
    trigger: Mapping[str, Any]


_FILE_BYTES: Json = size("Files are written up to this size.", default="256MB")
_KINDS: Mapping[str, _Kind] = {
    "COMPACT": _Kind(
        "Merges small files of a leaf and drops deleted rows; rows stay in their order.",
        {
            "target_file_bytes": _FILE_BYTES,
            "target_rows": count(
                "Files are written up to this many rows; the table's `max_rows_per_file` unless set.", 1, 2**31 - 1
            ),
            "strategy": choice(
                "The files that are merged: all that are small, files of about the same size (each row is rewritten "
                "less often), or level by level.",
                ("size", "tiered", "leveled"),
                default="size",
            ),
            "min_files": count("A leaf with fewer small files is left alone.", 2, 1_000_000, default=2),
            "max_deleted_share": share(
                "A file of which a larger share of the rows is deleted is rewritten, however large.", default=0.1
            ),
            "portion_bytes": size(
                "Bytes that are rewritten between two commits. A smaller value shows results earlier, a larger "
                "one commits less often.",
                default="1GB",
            ),
        },
        {"small_files": 32, "deleted_share": 0.2},
    ),
    "CLUSTER": _Kind(
        "Rewrites rows so that rows with similar values in some columns are in the same files.",
        {
            "columns": list_of(
                "Columns to cluster by; the table's row keys and sort keys unless set.", ref("column_path"), minItems=1
            ),
            "curve": choice(
                "How several columns become one order: one after the other, or along a space-filling curve, with which "
                "filters on any of them read little.",
                ("sort", "zorder", "hilbert"),
                default="sort",
            ),
            "incremental": flag("Whether only what is not clustered yet is rewritten.", True),
            "target_file_bytes": _FILE_BYTES,
            "portion_bytes": size(
                "Bytes of a leaf that are arranged and committed at once. A larger value clusters better, a "
                "smaller one shows results earlier.",
                default="10GB",
            ),
            "dry_run": flag("Whether it only reports the clustering of the table and what it would rewrite.", False),
        },
        {"rows": 10_000_000},
    ),
    "CLEAN": _Kind(
        "Removes old versions, and files that no version needs. Never what a savepoint, a tag or a reader needs.",
        {
            "older_than": duration("Versions younger than this are kept.", default="7d"),
            "keep_versions": count("Number of newest versions that are kept, however old.", 1, 1_000_000, default=1),
            "dry_run": flag("Whether it only reports what it would remove.", False),
        },
        {"schedule": "30 3 * * *"},
    ),
    "METASYNC": _Kind(
        "Publishes the table's name, schema, partitions, descriptions and version to catalogs.",
        {
            "targets": {
                "type": "array",
                "description": "Catalogs to publish to; the lake's own directory namespace unless set.",
                "items": {"oneOf": TARGET_SCHEMAS},
                "minItems": 1,
                "default": [{"type": "directory"}],
            }
        },
        {"commits": 1},
    ),
    "INGEST": _Kind(
        "Loads the files that come to a place, each once. Declared by a table's `ingest`.",
        INGEST_OPTIONS,
        {"schedule": "*/15 * * * *"},
    ),
    "EXPIRE": _Kind(
        "Removes rows that are older than the table's `retention`. Tables with retention have it; others cannot.",
        {"dry_run": flag("Whether it only reports what it would remove.", False)},
        {"schedule": "0 2 * * *"},
    ),
    "BACKFILL": _Kind(
        "Computes computed columns for the rows that lack them, beside the rows; no other column is written.",
        {
            "columns": list_of("Computed columns; all of the table's unless set.", ref("column_name"), minItems=1),
            "on_change": choice(
                "Whether values of another version of a column's definition stay, or are computed again.",
                ("keep", "recompute"),
                default="keep",
            ),
            "commit_granularity": count("Number of files that become visible together.", 1, 1_000_000, default=64),
            "concurrency": count("The most files that are computed at the same time.", 1, 100_000, default=8),
        },
        {"rows": 100_000},
    ),
    "REFRESH": _Kind(
        "Makes a view the result of its query again, by what changed in the tables that it reads. For views only.",
        {
            "full": flag("Whether all rows are computed again, whatever changed.", False),
            "max_rows_per_fragment": count(
                "The most rows of a file that is written; as the view's storage says unless set.",
                1,
                1_000_000_000,
            ),
        },
        {"rows": 100_000},
    ),
    "AUTOSAVEPOINT": _Kind(
        "Makes savepoints: named states of the table that `restore` goes back to and that are not cleaned away.",
        {
            "expires_after": duration("A savepoint is removed after this long.", default="30d"),
            "keep": count("Number of savepoints that are kept; the oldest is removed first.", 1, 10_000, default=30),
        },
        {"schedule": "0 0 * * *"},
    ),
}
#: kinds that a table can declare; RESTORE is not one of them, because it runs on demand only
KINDS = cast("tuple[ServiceKind, ...]", tuple(_KINDS))

_CONDITIONS: Mapping[str, Json] = {
    "commits": count("Runs after this many commits.", 1, 1_000_000_000),
    "rows": count("Runs after this many rows were written.", 1, 2**53),
    "bytes": size("Runs after this many bytes were written."),
    "small_files": count("Runs when COMPACT would merge this many small files.", 1, 1_000_000_000),
    "deleted_share": share("Runs when this share of the rows is deleted in files."),
}
_TRIGGER = object_schema(
    "Trigger",
    "When an AUTOMATIC service runs: by a schedule, or by what was written since its last run. Any one is enough.",
    (),
    {
        "schedule": text(
            "Cron expression: minute, hour, day of the month, month, day of the week.",
            minLength=1,
            examples=["0 3 * * *", "*/15 * * * MON-FRI"],
        ),
        "timezone": text("Time zone of the schedule.", minLength=1, default="UTC", examples=["Europe/Berlin"]),
        **_CONDITIONS,
    },
)
CONDITIONS = tuple(_CONDITIONS)

_OPTIONS = (
    "Options of the service. Sizes are bytes, or such as `256MB` (decimal) or `1GiB` (binary); times are days "
    "or hours, such as "
    "`7d` or `36h`."
)
_COMMON: Mapping[str, Json] = {
    "enabled": flag("Whether the table has it; false leaves out what the instance declares for all tables.", True),
    "trigger_mode": choice("Whether triggers start it, or only people and programs.", MODES, default="AUTOMATIC"),
    "cluster": ref("dashed_name", "The cluster that runs it; by default the one of jobs."),
}


def _service_schema(kind: str) -> Json:
    about = _KINDS[kind]
    trigger = " or ".join(
        f"{name} {value:,}" if name == "rows" else f"{name} {value}" for name, value in about.trigger.items()
    )
    typed = object_schema(
        kind,
        about.description,
        (),
        {
            **_COMMON,
            "trigger": ref("trigger", f"When it runs. Unless set: {trigger}."),
            "options": object_schema(f"Options of {kind}", _OPTIONS, (), about.options),
        },
    )
    return {"description": about.description, "anyOf": [ref("raw_service"), typed]}


#: kinds that are declared by their own property beside `services`, with the name of that property
OWN_PROPERTY: Mapping[str, str] = {"INGEST": "ingest"}


def services_schema(*, in_specs: bool = False) -> Json:
    """Returns the JSON Schema of the services of a table, or of an instance for all its tables.

    `in_specs` leaves out the kinds that specs declare by their own property (see OWN_PROPERTY).
    """
    return object_schema(
        "Services",
        "Services that maintain the table, one of each kind.",
        (),
        {kind.lower(): _service_schema(kind) for kind in KINDS if not (in_specs and kind in OWN_PROPERTY)},
    )


def raw_service_schema() -> Json:
    """Returns the JSON Schema of a service whose options are not checked."""
    return object_schema(
        "Unchecked service",
        "A service of any kind with options that are passed on as they are, such as those of a newer release.",
        ("unsafe_raw",),
        {
            **_COMMON,
            "trigger": ref("trigger", "When it runs; the kind's own trigger unless set."),
            "unsafe_raw": constant(True, "Options are not checked; the plan shows this."),
            "options": {
                "type": "object",
                "description": "Texts by name.",
                "additionalProperties": text("A value."),
            },
        },
    )


def trigger_schema() -> Json:
    """Returns the JSON Schema of a trigger."""
    return _TRIGGER


def option_names(kind: str) -> tuple[str, ...]:
    """Returns the names of the options of a kind, in the order of the documentation."""
    return tuple(_KINDS[kind].options)


def option_schema(kind: str, name: str) -> Json:
    """Returns the JSON Schema of one option."""
    return _KINDS[kind].options[name]


def default_trigger(kind: str) -> Mapping[str, Any]:
    """Returns the trigger, in JSON form, of an AUTOMATIC service that does not declare one."""
    return _KINDS[kind].trigger


def all_options(kind: str, declared: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the declared options, which are canonical, and the canonical defaults of the others. Sizes are in
    bytes."""
    defaults = {
        name: canonical_option(kind, name, schema["default"])
        for name, schema in _KINDS[kind].options.items()
        if "default" in schema
    }
    return {**defaults, **declared}


def declared_options(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options that differ from their defaults, in canonical form and in the order of the schema."""
    defaults = all_options(kind, {})
    found = {name: canonical_option(kind, name, values[name]) for name in option_names(kind) if name in values}
    return {name: value for name, value in found.items() if value is not None and value != defaults.get(name)}


def canonical_option(kind: str, name: str, value: Any) -> Any:
    """Returns the canonical form of a value, which the state stores: sizes in bytes, times in days where they are whole
    days, integers without a fraction.

    The schema must accept the value. Raises InvalidInput for an invalid size or time.
    """
    return _canonical(option_schema(kind, name), value)


def _canonical(schema: Json, value: Any) -> Any:
    if schema.get("format") == "bytes":
        return parse_size(value)
    if schema.get("pattern") == _KINDS["CLEAN"].options["older_than"]["pattern"]:
        return canonical_duration(value)
    return plain(value)


def option_document(kind: str, name: str, value: Any) -> Any:
    """Returns a canonical value as people write it: sizes with their units."""
    of_size = name in option_names(kind) and option_schema(kind, name).get("format") == "bytes"
    return exact_size(value) if of_size and isinstance(value, int) else value


def plain(value: Any) -> Any:
    """Returns a value as plain JSON. Doubles without a fraction become integers, because a protobuf Struct stores
    integers as doubles."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case Mapping():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value


def trigger_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a trigger's values in canonical form, without null values and values that equal their defaults."""
    found: dict[str, Any] = {}
    for name, schema in _TRIGGER["properties"].items():
        if name not in values or values[name] is None:
            continue
        value = _canonical(schema, values[name])
        if value != schema.get("default"):
            found[name] = " ".join(value.split()) if name == "schedule" else value
    return found


def kind_named(name: str, among: Sequence[ServiceKind] = KINDS) -> ServiceKind:
    """Returns the kind that `name` names, in any letter case. Raises InvalidInput for other names; the error lists
    the kinds in `among`."""
    wanted = name.upper()
    for kind in among:
        if kind == wanted:
            return kind
    if wanted == "RESTORE":
        raise InvalidInput("RESTORE runs on demand only and is not attached", remedy=one_of("", among))
    raise InvalidInput(f"unknown service `{name}`", remedy=one_of(wanted, among))
