"""A stack's state as a deployment of version 3: from the checkpoint to values and back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from deployer.engine.secrets.encryption import Secrets, StackKeys
from deployer.engine.secrets.keepers import as_state, keeper_of_deployment
from deployer.engine.values.resource import from_json, to_json
from deployer.engine.values.snapshot import Pending, Snapshot, in_dependency_order
from deployer.engine.values.values import SECRET, SIG
from deployer.errors import Refused

#: The CLI reads a manifest's version as that of the engine which wrote it; the format of this version is followed.
FORMAT_VERSION = "v3.230.0"
_UNSUPPORTED = {"snippets": "PCL snippets", "extensions": "provider extensions"}


@dataclass(frozen=True)
class OpenedDeployment:
    """A deployment that was read: the snapshot to change, the encryption of its secrets, and fields that are only
    preserved."""

    snapshot: Snapshot
    secrets: Secrets
    metadata: Mapping[str, Any]


def open_deployment(deployment: Mapping[str, Any] | None, keys: StackKeys, *, sealed: bool = False) -> OpenedDeployment:
    """Returns the deployment. `sealed`: its secrets are not decrypted, and no key is needed."""
    secrets = Secrets(keys, keeper_of_deployment(deployment), sealed=sealed)
    document = deployment or {}
    for key, what in _UNSUPPORTED.items():
        if document.get(key):
            raise Refused(f"the state has {what}", where=key, remedy="install the Pulumi CLI (`pulumi`)")
    base = [from_json(doc, secrets.reveal) for doc in document.get("resources") or ()]
    pending = [
        Pending(doc["type"], from_json(doc["resource"], secrets.reveal))
        for doc in document.get("pending_operations") or ()
    ]
    return OpenedDeployment(Snapshot(base, pending), secrets, document.get("metadata") or {})


def has_plaintext(value: Any) -> bool:
    """Returns whether a deployment has secrets in plain text, as in an export that shows them."""
    if isinstance(value, Mapping):
        shown = value.get(SIG) == SECRET and "plaintext" in value
        return shown or any(map(has_plaintext, value.values()))
    return isinstance(value, list) and any(map(has_plaintext, value))


def to_deployment(
    snapshot: Snapshot, secrets: Secrets, metadata: Mapping[str, Any], pending: Iterable[Pending] | None = None
) -> dict[str, Any]:
    """Returns the deployment of a snapshot; `pending` stands in for the snapshot's own pending operations."""
    resources = [to_json(state, secrets.hide) for state in in_dependency_order(snapshot.resources())]
    operations = [
        {"resource": to_json(operation.resource, secrets.hide), "type": operation.kind}
        for operation in (snapshot.pending() if pending is None else pending)
    ]
    document: dict[str, Any] = {
        "manifest": {
            "time": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "magic": hashlib.sha256(FORMAT_VERSION.encode()).hexdigest(),
            "version": FORMAT_VERSION,
        }
    }
    if secrets.keeper is not None:
        document["secrets_providers"] = as_state(secrets.keeper)
    if resources:
        document["resources"] = resources
    if operations:
        document["pending_operations"] = operations
    document["metadata"] = dict(metadata)
    return document
