"""The JSON Schema of the catalogs and folders to which METASYNC publishes."""

from __future__ import annotations

from deployer.specs.schema.parts import WHITE_SPACE, Json, constant, object_schema, ref, text
from deployer.specs.values.target_server import HOSTS_VARIABLE, TOKEN_PATTERN, TOKEN_PREFIX

#: types of targets of METASYNC
TARGETS = ("glue", "directory", "rest", "plugin")

_FOLDER: Json = {
    "pattern": f"^(/.*|s3://[^@{WHITE_SPACE}]+)$",
    "patternErrorMessage": "write a path that begins with / or an s3:// URI without credentials",
}
TARGET_SCHEMAS: list[Json] = [
    object_schema(
        "Glue target",
        "The AWS Glue Data Catalog: a database of the instance, an entry for each table.",
        ("type",),
        {
            "type": constant("glue", "Kind of the catalog."),
            "database": text(
                "Name of the Glue database; of the names of the instance and the table's database unless set.",
                pattern="^[a-z0-9_]{1,255}$",
                patternErrorMessage="use a-z, 0-9 and _, as Glue does",
            ),
            "catalog_id": text("Id of the catalog; the account's own unless set.", pattern="^[0-9]{12}$")
            | {"patternErrorMessage": 'write the 12 digits of an AWS account in quotes, such as "123456789012"'},
            "region": text(
                "AWS region; that of the session unless set.",
                pattern="^[a-z]{2,}(-[a-z0-9]+)+$",
                patternErrorMessage="write a region such as eu-central-1",
                examples=["eu-central-1"],
            ),
        },
    ),
    object_schema(
        "Directory target",
        "A Lance directory namespace, in which LanceDB and others find tables by name.",
        ("type",),
        {
            "type": constant("directory", "Kind of the catalog."),
            "root": text(
                "The namespace's folder or s3:// URI, above the tables; the lake's root unless set.", **_FOLDER
            ),
        },
    ),
    object_schema(
        "REST target",
        "A Lance REST namespace.",
        ("type", "uri"),
        {
            "type": constant("rest", "Kind of the catalog."),
            "uri": text(
                "Address of the server: https://, or http:// where it is this machine. Which hosts a process publishes "
                f"to is set in its own environment, in `{HOSTS_VARIABLE}`.",
                pattern=f"^https?://[^@?#{WHITE_SPACE}]+$",
                patternErrorMessage="write http:// or https://, no credentials and no query",
                format="server-uri",
                examples=["https://catalog.example.com"],
            ),
            "root": text(
                "The folder or s3:// URI from which the server counts locations; without it, the server gets "
                "whole URIs.",
                **_FOLDER,
            ),
            "token_variable": text(
                f"The environment variable of the job that holds a bearer token, `{TOKEN_PREFIX}…`; no other variable "
                "is read, and the token itself is kept nowhere.",
                pattern=TOKEN_PATTERN,
                patternErrorMessage=f"begin the variable's name with {TOKEN_PREFIX}, such as {TOKEN_PREFIX}CATALOG",
            ),
        },
    ),
    object_schema(
        "Plug-in target",
        "A catalog that a separate package implements, installed beside deployer where jobs run.",
        ("type", "name"),
        {
            "type": constant("plugin", "Kind of the catalog."),
            "name": ref("dashed_name", "Name of the package's entry point in the group `deployer.metasync_targets`."),
            "options": {
                "type": "object",
                "description": "Options for the plug-in. They are kept in the state, so do not put credentials here.",
                "additionalProperties": {
                    "type": ["string", "number", "boolean"],
                    "description": "A text, number or flag.",
                },
            },
        },
    ),
]
