"""The instance's declaration: reads a document as an `InstanceSpec`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from deployer.errors import Position, Problem
from deployer.specs.declarations.clusters import read_clusters
from deployer.specs.loading.tables import read_tags
from deployer.specs.model import InstanceSpec, StateBackend
from deployer.specs.rules import Rule
from deployer.specs.schema.aws_settings import read_aws_settings
from deployer.specs.sources.files import Document
from deployer.specs.yaml.nodes import Node
from deployer.specs.yaml.suggestions import nearest

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/+")


def read_instance(document: Document, problems: list[Problem]) -> InstanceSpec:
    """Returns the valid parts of the instance; faults are added to `problems`."""
    values = {name: node.value for name in ("name", "root", "description", "engine") if (node := document.get(name))}
    root_node = document.get("root")
    root = str(values.get("root", ""))
    if root_node:
        problems += _root_problems(root, root_node.at)
    remote = root.startswith("s3://")
    assert isinstance(document.node.value, dict)  # noqa: S101
    return InstanceSpec(
        name=str(values.get("name", "")),
        root=root,
        description=str(values.get("description", "")).strip(),
        engine=str(values.get("engine", "auto")),
        state=_state(document.get("state"), remote, problems),
        clusters=tuple(sorted(read_clusters(document.get("clusters"), problems), key=lambda each: each.name)),
        tags=read_tags(document),
        notify=_notify(document.get("notify"), problems),
        aws=read_aws_settings(document.get("aws"), problems),
        sources={"": document.node.at} | {key: node.key_at for key, node in document.node.value.items()},
    )


def _root_problems(root: str, at: Position) -> Iterator[Problem]:
    scheme = _SCHEME.match(root)
    if scheme is None:
        return
    if not root.startswith("s3://"):
        name = scheme[1].lower()
        if name == "file":
            remedy = f"write the path alone: {root[len(scheme[0]) - 1 :]}"
        elif nearest(name, ("s3",)) or name in ("s3a", "s3n"):
            remedy = "write s3://bucket/prefix"
        else:
            remedy = "use a path or s3://bucket/prefix"
        shown = root if "@" not in root else f"{scheme[0]}…"
        yield Problem(at, f"`root` cannot be `{shown}`", remedy, Rule.ROOT_SCHEME)
        return
    authority = root[len("s3://") :].split("/", 1)[0]
    query = urlsplit(root).query or urlsplit(root).fragment
    if "@" in authority or ":" in authority:
        what = "`root` has credentials or a port in it"
        remedy = "write s3://bucket/prefix; credentials come from the environment or the AWS profile"
        yield Problem(at, what, remedy, Rule.ROOT_CREDENTIALS)
    elif query or not _BUCKET.fullmatch(authority):
        shown = authority.split("?")[0]
        what = f"`{shown}` is not the name of a bucket" if not query else "`root` has a query or fragment in it"
        yield Problem(
            at, what, "write s3://bucket/prefix, the bucket in 3 to 63 of a-z, 0-9, . and -", Rule.ROOT_BUCKET
        )


def _notify(node: Node | None, problems: list[Problem]) -> tuple[str, ...]:
    found: dict[str, str] = {}
    for item in node.value if node is not None and isinstance(node.value, list) else ():
        address = str(item.value)
        if address.lower() in found:
            what = f"`{address}` is in `notify` twice"
            problems.append(Problem(item.at, what, "remove the second one", Rule.REPEATED_ADDRESS))
        found.setdefault(address.lower(), address)
    return tuple(found.values())


def _state(node: Node | None, remote: bool, problems: list[Problem]) -> StateBackend:
    if node is None:
        return StateBackend("dynamodb" if remote else "sqlite")
    options = node.plain()
    backend = options.pop("backend")
    if backend == "sqlite" and remote:
        what = "`state` is sqlite, a file that needs a disk, and `root` is s3://"
        problems.append(Problem(node.at, what, "use `backend: dynamodb`, or remove `state:`", Rule.STATE_BACKEND))
    return StateBackend(backend, options)
