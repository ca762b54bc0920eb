"""Leaves whose rows a run arranged all at once: while their files stay, the same run would change nothing in them.

The record of a run has them, by a digest of their files, so that a run which arranges everything again leaves them out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping

from deployer.files.json_values import JSON
from deployer.services.cluster.layout import Arrangement
from deployer.services.rewriting.tasks import Sizes
from deployer.services.runs.records import runs_of
from deployer.state.model.entities import File, TableState

KEY = "whole"  #: of a run's figures afterwards
LEAVES_KEPT = 200  #: leaves that the record of a run names


def whole_leaves(state: TableState, arrangement: Arrangement, sizes: Sizes) -> frozenset[str]:
    """The leaves that an earlier run of the same arrangement and sizes arranged at once, and left as they are."""
    for run in runs_of(state, "CLUSTER"):
        found = run.figures.after.get(KEY)
        if isinstance(found, dict):
            leaves = found.get("leaves")
            if found.get("by") != _by(arrangement, sizes) or not isinstance(leaves, dict):
                return frozenset()
            return frozenset(
                name for name, digest in leaves.items() if digest == _digest(state, name, arrangement.name)
            )
    return frozenset()


def recorded(state: TableState, arrangement: Arrangement, sizes: Sizes, leaves: Collection[str]) -> dict[str, JSON]:
    """The entry of a run record for leaves that the run arranged at once, or found so."""
    digests = {name: _digest(state, name, arrangement.name) for name in sorted(leaves)}
    kept = {name: digest for name, digest in digests.items() if digest}
    named: Mapping[str, JSON] = dict(list(kept.items())[:LEAVES_KEPT])
    return {KEY: {"by": _by(arrangement, sizes), "leaves": dict(named)}}


def _by(arrangement: Arrangement, sizes: Sizes) -> str:
    return f"{arrangement.name} {sizes.file_bytes} {sizes.file_rows}"


def _digest(state: TableState, leaf: str, name: str) -> str:
    """A digest of the leaf's files as CLUSTER recorded them; empty where one is not arranged as `name`."""
    files = sorted(state.files.for_partition(leaf), key=lambda file: file.fragment_id)
    if not files or any(file.clustering != name for file in files):
        return ""
    return hashlib.blake2b(b"".join(_parts(state, files)), digest_size=8).hexdigest()


def _parts(state: TableState, files: Iterable[File]) -> Iterable[bytes]:
    yield str(state.dataset).encode()
    for file in files:
        yield repr((file.fragment_id, file.rows, file.cluster_min, file.cluster_max)).encode()
