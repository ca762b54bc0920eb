"""Publishes the addresses of a lake's clusters and job code as an object below the lake's root on S3.

The stack exports these addresses. `deployer up` copies them below the root for programs that have only the root.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from deployer.compute.jobs.cluster import RemoteCluster
from deployer.compute.jobs.code import OUTPUT as JOBS
from deployer.compute.jobs.code import PREFIX
from deployer.compute.jobs.variables import job_settings
from deployer.compute.running.connect import OUTPUT, connect
from deployer.datasets.storage.options import objects_at
from deployer.errors import Corrupt, NotFound
from deployer.platform.storage.objects import Missing
from deployer.specs.model import Cluster

FILE = f"{PREFIX}/clusters.json"  #: the path below the root, in a folder to which the lake's jobs may not write
_REMEDY = "run `deployer up`, and then this again"


def publish_clusters(root: str, outputs: Mapping[str, Any], settings: Mapping[str, str]) -> None:
    """Writes the stack's outputs about clusters below the root. Writes nothing where the stack has no such output, or
    where the object is up to date.

    `settings` are the stack's settings, some of which jobs get as variables.
    """
    found = {name: outputs[name] for name in (OUTPUT, JOBS) if name in outputs}
    if OUTPUT not in found:
        return
    body = json.dumps({**found, "target_hosts": "", **job_settings(settings)}, indent=1, sort_keys=True).encode()
    objects = objects_at(root)
    if _stored(root) != body:
        objects.put(FILE, body)


def published_cluster(root: str, cluster: Cluster) -> RemoteCluster:
    """Returns the declared cluster of the lake at `root` that the stack made. Raises NotFound when it is not
    published."""
    document = published_outputs(root)
    if document is None:
        what = f"the address of cluster {cluster.name} is not published below the lake's root"
        raise NotFound(what, where=f"{root}/{FILE}", remedy=_REMEDY)
    return connect(cluster, document, f"{root}/{FILE}", document)


def published_outputs(root: str) -> Mapping[str, Any] | None:
    """Returns the published outputs about clusters of the lake at `root`; None where nothing is published. Raises
    Corrupt for an invalid object."""
    body = _stored(root)
    if body is None:
        return None
    try:
        document = json.loads(body)
    except ValueError as error:
        raise Corrupt("it is not a document of clusters", where=f"{root}/{FILE}", remedy=_REMEDY) from error
    if not isinstance(document, dict):
        raise Corrupt("it is not a document of clusters", where=f"{root}/{FILE}", remedy=_REMEDY)
    return document


def _stored(root: str) -> bytes | None:
    try:
        return objects_at(root).get(FILE)
    except Missing:
        return None
