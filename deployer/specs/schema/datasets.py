"""The JSON Schema of datasets of recordings."""

from __future__ import annotations

from deployer.platform.text.units import SPEC_DURATION
from deployer.specs.schema.parts import WHITE_SPACE, choice, constant, count, flag, list_of, object_schema, ref, text
from deployer.specs.schema.services import trigger_schema
from deployer.specs.types.dataset import BASE

LAYER = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}$"
COLUMN = r"^/[^:]*:[^:].*$"
TOKENIZERS = ("simple", "whitespace", "raw")
METRICS = ("cosine", "L2", "dot")

RECORDING_SOURCE = object_schema(
    "Recording source",
    "Where recordings of a dataset are. All files below it whose names end in `.rrd` are recordings.",
    ("prefix",),
    {
        "prefix": text(
            "A folder, relative to the project or absolute, or a prefix in S3.",
            pattern=f"^[^{WHITE_SPACE}](.*[^{WHITE_SPACE}])?$",
            patternErrorMessage="write a folder or s3://BUCKET/PREFIX",
            minLength=1,
            maxLength=1024,
            examples=["s3://recordings/drives"],
        ),
        "layer": text(
            "The layer of the segments that the recordings become.",
            pattern=LAYER,
            patternErrorMessage="use letters, digits, _, . and -",
            default=BASE,
        ),
    },
)

_OF_ALL = {
    "column": text(
        "The component: the path of its entity, `:` and its name.",
        pattern=COLUMN,
        patternErrorMessage="write /ENTITY/PATH:COMPONENT, such as /log:TextLog:text",
        maxLength=1024,
        examples=["/log:TextLog:text"],
    ),
    "timeline": text("The timeline whose times results have.", minLength=1, maxLength=255),
}

SEARCH_INDEX = object_schema(
    "Search index",
    "A search index over a component of a dataset. New recordings are in it when their registration ends.",
    ("column", "timeline", "kind"),
    {
        **_OF_ALL,
        "kind": choice("`text` for full-text search, `vector` for the nearest vectors.", ("text", "vector")),
        "tokenizer": choice("How texts become words, of kind `text`.", TOKENIZERS, default="simple"),
        "store_position": flag("Whether phrases can be searched, of kind `text`.", False),
        "metric": choice("How vectors are compared, of kind `vector`.", METRICS, default="cosine"),
        "num_sub_vectors": count(
            "Parts of a vector that are compressed, of kind `vector`; it divides the vectors' length.",
            1,
            4096,
            default=16,
        ),
        "target_partition_num_rows": count("Vectors of a partition, of kind `vector`.", 1, 2**31 - 1, default=8192),
    },
)

DATASET_SERVICE = object_schema(
    "Dataset service",
    "When the agent (`deployer agent`) does it. What was due while no agent ran is done once when one starts.",
    ("schedule",),
    {name: trigger_schema()["properties"][name] for name in ("schedule", "timezone")},
)

DATASET_SERVICES = object_schema(
    "Dataset services",
    "Scheduled work of the agent for a dataset.",
    (),
    {
        "register": ref("dataset_service", "Registers what is new below the sources."),
        "maintain": ref("dataset_service", "Does what `deployer catalog maintain` does."),
    },
)

DATASET = object_schema(
    "Dataset",
    "A dataset of recordings, which the catalog serves. Its segments are data, and never a difference of a plan.",
    ("kind", "name"),
    {
        "kind": constant("Dataset", "Declares a dataset of recordings."),
        "name": ref("dashed_name", "Name of the dataset; no other entry of the catalog has the same."),
        "description": text("Description of the recordings."),
        "sources": list_of("Where its recordings are.", ref("recording_source"), default=[]),
        "register": choice(
            "`auto`: `up` registers recordings that are new below the sources. `manual`: `preview` reports them, and "
            "`deployer catalog register` registers them.",
            ("auto", "manual"),
            default="auto",
        ),
        "search_indexes": list_of(
            "Search indexes, at most one of a component. One whose component has no values yet is built by the first "
            "`up` that finds some.",
            ref("search_index"),
            default=[],
        ),
        "default_blueprint": text(
            "A file of the project with a blueprint (.rbl), by its path in the project, or one in S3: how viewers show "
            "the dataset. It is copied into the lake.",
            minLength=1,
            maxLength=1024,
            examples=["blueprints/drives.rbl"],
        ),
        "retention": text(
            "How long `deployer catalog maintain` keeps versions of the dataset's tables that newer ones replaced. "
            "Without it, they are kept until `--clean-older-than` removes them. Recordings are never removed.",
            pattern=SPEC_DURATION,
            patternErrorMessage="write a number and d for days or h for hours, such as 7d",
        ),
        "services": ref("dataset_services", "Scheduled work of the agent for the dataset.") | {"default": {}},
        "deletion_protection": flag("Whether a dataset with recordings is protected from deletion.", True),
    },
    patternProperties={"^x-": True},
)
