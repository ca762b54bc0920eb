"""The AWS Glue Data Catalog, with an entry for each table in the form that the Lance namespace for Glue describes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from deployer.platform.aws.calls import CallFailed, Calls, Cause
from deployer.services.kinds.metasync.entry import COMMENT, FINGERPRINT, Publication, own_properties
from deployer.services.kinds.metasync.targets.glue_types import glue_columns
from deployer.services.kinds.metasync.targets.target import Catalog, Found, Parts, Place, with_fingerprint
from deployer.specs.values.glue import glue_database

FORMAT = {"table_type": "lance", "managed_by": "storage"}  #: mark an entry as a Lance table
EXTERNAL = "EXTERNAL_TABLE"
MOST_DESCRIPTION = 2048  #: the most characters that Glue accepts
#: the fields of an entry that others may have set; a change of the entry keeps them
_THEIRS = ("Owner", "Retention", "PartitionKeys", "ViewOriginalText", "ViewExpandedText", "TargetTable")


class GlueTarget:
    """An implementation of `target.Target` for tables of the instance named `instance`.

    It calls CreateTable, DeleteTable, GetTable and UpdateTable; the database must exist. Glue's names are in lower
    case. Changes keep the additions of others. Glue refuses a change where the entry has changed since it was read.
    """

    def __init__(self, declared: Mapping[str, Any], instance: str) -> None:
        self._declared, self._instance = declared, instance
        self._region: str | None = declared.get("region")
        id = declared.get("catalog_id")
        self._catalog_id: Mapping[str, str] = {"CatalogId": id} if id else {}

    @cached_property
    def _calls(self) -> Calls:
        return Calls("glue", self.title, region=self._region)

    @property
    def title(self) -> str:
        parts = ("glue", self._region, self._declared.get("catalog_id"))
        return " ".join(part for part in parts if part)

    @property
    def catalog(self) -> Catalog:
        return ("glue", self._region or "", self._declared.get("catalog_id", ""))

    def place(self, database: str, name: str) -> Place:
        return glue_database(self._instance, database, self._declared), name.lower()

    def wanted(self, publication: Publication) -> Parts:
        properties = publication.properties()
        description = properties.pop(COMMENT, "")[:MOST_DESCRIPTION]
        columns = glue_columns(publication.schema)
        return _parts(publication.location, EXTERNAL, description, columns, {**FORMAT, **properties})

    def find(self, place: Place) -> Found | None:
        database, name = place
        try:
            table = self._calls("get_table", **self._catalog_id, DatabaseName=database, Name=name)["Table"]
        except CallFailed as failure:
            if failure.cause is Cause.MISSING:
                return None
            raise
        storage, parameters = table.get("StorageDescriptor", {}), table.get("Parameters", {})
        location, description = storage.get("Location", ""), table.get("Description", "")
        parts = _parts(location, table.get("TableType", ""), description, storage.get("Columns", []), parameters)
        return Found(location, parts, parameters, table)

    def put(self, place: Place, publication: Publication, found: Found | None) -> None:
        database, name = place
        raw, parts = found.raw if found is not None else {}, self.wanted(publication)
        own = publication.properties()
        own.pop(COMMENT, None)
        theirs = {
            key: value for key, value in raw.get("Parameters", {}).items() if key not in own_properties({key: ""})
        }
        table: dict[str, Any] = {
            **{key: raw[key] for key in _THEIRS if raw.get(key)},
            "Name": name,
            "TableType": EXTERNAL,
            "Parameters": with_fingerprint({**theirs, **FORMAT, **own}, parts),
            "StorageDescriptor": {
                **raw.get("StorageDescriptor", {}),
                "Location": publication.location,
                "Columns": glue_columns(publication.schema),
            },
        }
        if description := publication.description[:MOST_DESCRIPTION]:
            table["Description"] = description
        where = {**self._catalog_id, "DatabaseName": database}
        if found is None:
            self._calls("create_table", **where, TableInput=table)
            return
        if version := raw.get("VersionId"):
            where["VersionId"] = version
        # Without SkipArchive, Glue would keep each version of an entry, up to a quota. The versions are in Lance.
        self._calls("update_table", **where, TableInput=table, SkipArchive=True)

    def remove(self, place: Place, found: Found) -> None:
        database, name = place
        try:
            self._calls("delete_table", **self._catalog_id, DatabaseName=database, Name=name)
        except CallFailed as failure:
            if failure.cause is not Cause.MISSING:  # a missing entry was removed by another process
                raise


def _parts(
    location: str, kind: str, description: str, columns: list[dict[str, Any]], parameters: Mapping[str, str]
) -> Parts:
    own = own_properties(parameters)
    own.pop(FINGERPRINT, None)
    own.pop(COMMENT, None)  # Hive stores this property in addition to the description
    form = {key: str(parameters.get(key, "")).lower() for key in FORMAT}
    return {
        "location": location,
        "description": description,
        "columns": json.dumps([_column(each) for each in columns], sort_keys=True),
        "format": json.dumps({"TableType": kind, **form}, sort_keys=True),
        **own,
    }


def _column(form: Mapping[str, Any]) -> dict[str, Any]:
    return {key: form[key] for key in ("Name", "Type", "Comment", "Parameters") if form.get(key)}
