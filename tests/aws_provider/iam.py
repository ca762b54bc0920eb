"""The types of `aws:iam`: roles and instance profiles, by name, and roles' policies, whose id is `ROLE:NAME`.

IAM's limits on names, paths and sizes are kept, which moto does not.
"""

from __future__ import annotations

import json
from typing import Any

from tests.aws_provider import limits
from tests.aws_provider.kinds import Found, Kind, Values, same_json, tag_list, tags_of


def _create_role(iam: Any, inputs: Values) -> str:
    limits.check_role(inputs["name"], inputs.get("path", "/"), inputs["assumeRolePolicy"])
    boundary = inputs.get("permissionsBoundary")
    iam.create_role(
        RoleName=inputs["name"],
        Path=inputs.get("path", "/"),
        **({"PermissionsBoundary": boundary} if boundary else {}),
        AssumeRolePolicyDocument=inputs["assumeRolePolicy"],
        Description=inputs.get("description", ""),
        Tags=tag_list(inputs.get("tags", {})),
    )
    return str(inputs["name"])


def _read_role(iam: Any, id: str, inputs: Values) -> Found | None:
    try:
        role = iam.get_role(RoleName=id)["Role"]
    except iam.exceptions.NoSuchEntityException:
        return None
    boundary = role.get("PermissionsBoundary")
    found = {
        "name": id,
        "assumeRolePolicy": json.dumps(role["AssumeRolePolicyDocument"]),
        **({"path": role["Path"]} if role["Path"] != "/" else {}),
        **({"permissionsBoundary": boundary["PermissionsBoundaryArn"]} if boundary else {}),
        **({"description": role["Description"]} if role.get("Description") else {}),
        **tags_of(iam.list_role_tags(RoleName=id)["Tags"]),
    }
    return Found(_canonical_role(found), {"arn": role["Arn"]})


def _update_role(iam: Any, id: str, before: Values, inputs: Values) -> None:
    limits.check_role(id, inputs.get("path", "/"), inputs["assumeRolePolicy"])
    boundary = inputs.get("permissionsBoundary")
    if boundary and boundary != before.get("permissionsBoundary"):
        iam.put_role_permissions_boundary(RoleName=id, PermissionsBoundary=boundary)
    elif not boundary and "permissionsBoundary" in before:
        iam.delete_role_permissions_boundary(RoleName=id)
    iam.update_assume_role_policy(RoleName=id, PolicyDocument=inputs["assumeRolePolicy"])
    iam.update_role(RoleName=id, Description=inputs.get("description", ""))
    old, new = before.get("tags", {}), inputs.get("tags", {})
    if gone := sorted(old.keys() - new.keys()):
        iam.untag_role(RoleName=id, TagKeys=gone)
    if new:
        iam.tag_role(RoleName=id, Tags=tag_list(new))


def _delete_role(iam: Any, id: str, inputs: Values) -> None:
    try:
        iam.delete_role(RoleName=id)
    except iam.exceptions.NoSuchEntityException:
        return


def _canonical_role(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "assumeRolePolicy": same_json(values["assumeRolePolicy"])}


def _put_policy(iam: Any, inputs: Values) -> str:
    others = [
        json.dumps(iam.get_role_policy(RoleName=inputs["role"], PolicyName=each)["PolicyDocument"])
        for each in iam.list_role_policies(RoleName=inputs["role"])["PolicyNames"]
        if each != inputs["name"]
    ]
    limits.check_inline_policies([*others, inputs["policy"]])
    iam.put_role_policy(RoleName=inputs["role"], PolicyName=inputs["name"], PolicyDocument=inputs["policy"])
    return f"{inputs['role']}:{inputs['name']}"


def _update_policy(iam: Any, id: str, before: Values, inputs: Values) -> None:
    _put_policy(iam, inputs)


def _read_policy(iam: Any, id: str, inputs: Values) -> Found | None:
    role, _, name = id.partition(":")
    try:
        document = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
    except iam.exceptions.NoSuchEntityException:
        return None
    return Found({"role": role, "name": name, "policy": same_json(json.dumps(document))}, {})


def _delete_policy(iam: Any, id: str, inputs: Values) -> None:
    role, _, name = id.partition(":")
    try:
        iam.delete_role_policy(RoleName=role, PolicyName=name)
    except iam.exceptions.NoSuchEntityException:
        return


def _attach(iam: Any, inputs: Values) -> str:
    iam.attach_role_policy(RoleName=inputs["role"], PolicyArn=inputs["policyArn"])
    return f"{inputs['role']}-{inputs['policyArn']}"


def _read_attached(iam: Any, id: str, inputs: Values) -> Found | None:
    role, _, arn = id.partition("-arn:")
    try:
        attached = iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
    except iam.exceptions.NoSuchEntityException:
        return None
    wanted = f"arn:{arn}"
    return (
        Found({"role": role, "policyArn": wanted}, {}) if wanted in [each["PolicyArn"] for each in attached] else None
    )


def _detach(iam: Any, id: str, inputs: Values) -> None:
    role, _, arn = id.partition("-arn:")
    try:
        iam.detach_role_policy(RoleName=role, PolicyArn=f"arn:{arn}")
    except iam.exceptions.NoSuchEntityException:
        return


def _create_profile(iam: Any, inputs: Values) -> str:
    iam.create_instance_profile(InstanceProfileName=inputs["name"], Tags=tag_list(inputs.get("tags", {})))
    iam.add_role_to_instance_profile(InstanceProfileName=inputs["name"], RoleName=inputs["role"])
    return str(inputs["name"])


def _read_profile(iam: Any, id: str, inputs: Values) -> Found | None:
    try:
        profile = iam.get_instance_profile(InstanceProfileName=id)["InstanceProfile"]
    except iam.exceptions.NoSuchEntityException:
        return None
    roles = {"role": profile["Roles"][0]["RoleName"]} if profile["Roles"] else {}
    return Found({"name": id, **roles, **tags_of(profile.get("Tags", []))}, {"arn": profile["Arn"]})


def _update_profile(iam: Any, id: str, before: Values, inputs: Values) -> None:
    if before.get("role") != inputs["role"]:
        for each in iam.get_instance_profile(InstanceProfileName=id)["InstanceProfile"]["Roles"]:
            iam.remove_role_from_instance_profile(InstanceProfileName=id, RoleName=each["RoleName"])
        iam.add_role_to_instance_profile(InstanceProfileName=id, RoleName=inputs["role"])
    old, new = before.get("tags", {}), inputs.get("tags", {})
    if gone := sorted(old.keys() - new.keys()):
        iam.untag_instance_profile(InstanceProfileName=id, TagKeys=gone)
    if new:
        iam.tag_instance_profile(InstanceProfileName=id, Tags=tag_list(new))


def _delete_profile(iam: Any, id: str, inputs: Values) -> None:
    try:
        for each in iam.get_instance_profile(InstanceProfileName=id)["InstanceProfile"]["Roles"]:
            iam.remove_role_from_instance_profile(InstanceProfileName=id, RoleName=each["RoleName"])
        iam.delete_instance_profile(InstanceProfileName=id)
    except iam.exceptions.NoSuchEntityException:
        return


KINDS = {
    "aws:iam/role:Role": Kind(
        shape={
            "name": str,
            "path": str,
            "permissionsBoundary": str,
            "assumeRolePolicy": str,
            "description": str,
            "tags": {"*": str},
        },
        needed=("name", "assumeRolePolicy"),
        replaces=("name", "path"),
        computed=("arn",),
        create=_create_role,
        read=_read_role,
        update=_update_role,
        delete=_delete_role,
        service="iam",
        canonical=_canonical_role,
    ),
    "aws:iam/rolePolicy:RolePolicy": Kind(
        shape={"role": str, "name": str, "policy": str},
        needed=("role", "name", "policy"),
        replaces=("role", "name"),
        computed=(),
        create=_put_policy,
        read=_read_policy,
        update=_update_policy,
        delete=_delete_policy,
        service="iam",
        canonical=lambda values: {**values, "policy": same_json(values["policy"])},
    ),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": Kind(
        shape={"role": str, "policyArn": str},
        needed=("role", "policyArn"),
        replaces=("role", "policyArn"),
        computed=(),
        create=_attach,
        read=_read_attached,
        update=lambda iam, id, before, inputs: None,
        delete=_detach,
        service="iam",
    ),
    "aws:iam/instanceProfile:InstanceProfile": Kind(
        shape={"name": str, "role": str, "tags": {"*": str}},
        needed=("name", "role"),
        replaces=("name",),
        computed=("arn",),
        create=_create_profile,
        read=_read_profile,
        update=_update_profile,
        delete=_delete_profile,
        service="iam",
    ),
}
