"""Names of a lake's resources on AWS, and the tag of their owner. Pure.

Access is granted by these names and this tag, so neither may match two lakes. The id of a lake has a fixed length and
follows `deployer-`: the pattern `deployer-ID-*` of a lake never matches a name of another lake, whatever the names of
their instances. Resources that hold data, and those that AWS cannot rename, have a name without the id (`name_on_aws`);
policies name them exactly, or by the tag.
"""

from __future__ import annotations

import hashlib
import re

# : The tag by which policies identify a lake's resources; its value is `lake_id`. `deployer:instance` is for bills:
# lakes of : one account may share an instance's name.
LAKE_TAG = "deployer:lake"
INSTANCE_TAG = "deployer:instance"


def lake_id(root: str, instance: str) -> str:
    """Returns a lake's id: 10 characters of 0-9 and a-f, which differ between lakes."""
    return _digest(f"{root.rstrip('/')}\0{instance}", 5)


def own_names(root: str, instance: str) -> str:
    """Returns the prefix of the names of a lake's own resources: `deployer-1a2b3c4d5e-`."""
    return f"deployer-{lake_id(root, instance)}-"


def own_name(root: str, instance: str, what: str) -> str:
    """Returns a name of at most 64 of a-z, A-Z, 0-9 and - that begins with `own_names`; names of a lake are never
    equal."""
    return f"{own_names(root, instance)}{readable(f'{instance}-{what}', 35)}-{_digest(what, 4)}"


def role_path(root: str, instance: str) -> str:
    """Returns the path in IAM of the roles that a stack makes: `/deployer/1a2b3c4d5e/`."""
    return f"/deployer/{lake_id(root, instance)}/"


def name_on_aws(root: str, instance: str, what: str) -> str:
    """Returns a name of at most 64 of a-z, A-Z, 0-9 and -, for resources that cannot be renamed. Names of different
    roots are never equal, but a pattern of one instance's name may match another's."""
    digest = _digest(f"{root.rstrip('/')}\0{instance}\0{what}", 4)
    return f"deployer-{readable(f'{instance}-{what}', 45)}-{digest}"


def log_bucket_name(root: str, instance: str) -> str:
    """Returns the bucket of a lake's access logs: at most 63 of a-z, 0-9 and -."""
    bucket = re.sub(r"[^a-z0-9]+", "-", root.removeprefix("s3://").partition("/")[0])
    return f"{bucket[:45].strip('-')}-logs-{lake_id(root, instance)}"


def readable(text: str, length: int) -> str:
    """Returns the part of a name that people read: at most `length` of a-z, A-Z, 0-9 and -."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:length]


def _digest(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


#: EMR's own policies apply to resources with this tag: clusters and their instances, subnets and their VPC.
EMR_TAG = {"for-use-with-amazon-emr-managed-policies": "true"}
