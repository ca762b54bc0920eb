"""The type `aws:glue:CatalogDatabase`. Its id is `CATALOG:NAME`."""

from __future__ import annotations

from typing import Any

from tests.aws_provider.kinds import Found, Kind, Values


def _create(glue: Any, inputs: Values) -> str:
    glue.create_database(DatabaseInput=_input(inputs), Tags=inputs.get("tags", {}))
    return f"{glue.get_database(Name=inputs['name'])['Database']['CatalogId']}:{inputs['name']}"


def _input(inputs: Values) -> dict[str, str]:
    return {"Name": inputs["name"], **({"Description": inputs["description"]} if "description" in inputs else {})}


def _arn(glue: Any, id: str) -> str:
    catalog, _, name = id.partition(":")
    return f"arn:aws:glue:{glue.meta.region_name}:{catalog}:database/{name}"


def _read(glue: Any, id: str, inputs: Values) -> Found | None:
    try:
        found = glue.get_database(Name=id.partition(":")[2])["Database"]
    except glue.exceptions.EntityNotFoundException:
        return None
    tags = glue.get_tags(ResourceArn=_arn(glue, id))["Tags"]
    values = {"name": found["Name"], **({"description": found["Description"]} if found.get("Description") else {})}
    values |= {"region": inputs["region"]} if "region" in inputs else {}
    return Found({**values, **({"tags": tags} if tags else {})}, {"arn": _arn(glue, id)})


def _update(glue: Any, id: str, before: Values, inputs: Values) -> None:
    glue.update_database(Name=inputs["name"], DatabaseInput=_input(inputs))
    old, new = before.get("tags", {}), inputs.get("tags", {})
    if gone := sorted(old.keys() - new.keys()):
        glue.untag_resource(ResourceArn=_arn(glue, id), TagsToRemove=gone)
    if new:
        glue.tag_resource(ResourceArn=_arn(glue, id), TagsToAdd=dict(new))


def _delete(glue: Any, id: str, inputs: Values) -> None:
    try:
        glue.delete_database(Name=id.partition(":")[2])
    except glue.exceptions.EntityNotFoundException:
        return


KINDS = {
    "aws:glue/catalogDatabase:CatalogDatabase": Kind(
        shape={"name": str, "description": str, "region": str, "tags": {"*": str}},
        needed=("name",),
        replaces=("name", "region"),
        computed=("arn",),
        create=_create,
        read=_read,
        update=_update,
        delete=_delete,
        service="glue",
    )
}
