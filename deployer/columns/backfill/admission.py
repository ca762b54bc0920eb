"""Checks, before a job starts, that a worker of a cluster has the resources that one call of a function needs."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from deployer.columns.backfill.definition import Definition, FunctionDefinition
from deployer.errors import InvalidInput, ResourcesUnavailable
from deployer.live.reader import live_instance
from deployer.platform.text.formatting import size
from deployer.specs.model import Cluster
from deployer.tables.open_table import OpenTable

CHECK, STRICT = "GENEVA_ADMISSION__CHECK", "GENEVA_ADMISSION__STRICT"
_WITH_GPUS = ("g", "p")  #: the first letters of EC2 instance families that have GPUs
#: The most CPUs and bytes of memory of a worker of EMR Serverless.
WORKER_CPUS, WORKER_BYTES = 16.0, 120 * 10**9


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of one worker: CPUs, bytes of memory, GPUs. `name` is the cluster's, or `this machine`."""

    name: str
    cpus: float
    memory: float
    gpus: float


class Needs(Protocol):
    """The resources that one call of a function needs: a UDF, or the description in its package. `memory` is in
    bytes."""

    @property
    def name(self) -> str: ...

    @property
    def num_cpus(self) -> float: ...

    @property
    def num_gpus(self) -> float: ...

    @property
    def memory(self) -> int | None: ...


def admit(
    table: OpenTable, definition: Definition, check: bool | None, strict: bool | None, *, cluster: str | None = None
) -> None:
    """Raises ResourcesUnavailable where the cluster lacks resources that the definition's function needs (see
    `admit_function`). `check` and `strict` None: the environment variables CHECK and STRICT decide."""
    checks, is_strict = _setting(CHECK, check), _setting(STRICT, strict)
    if isinstance(definition, FunctionDefinition) and checks:
        admit_function(table, definition.udf, strict=is_strict, cluster=cluster)


def admit_function(table: OpenTable, udf: Needs, *, strict: bool = True, cluster: str | None = None) -> None:
    """Raises ResourcesUnavailable where a worker of the cluster lacks resources that a call needs. Without `strict`, it
    warns instead (UserWarning). `cluster` None is the cluster that runs backfills of the table."""
    there = resources_of(table, cluster)
    wants: Mapping[str, tuple[float, float, str, str]] = {
        "num_cpus": (udf.num_cpus, there.cpus, f"{udf.num_cpus:g} CPUs", f"{there.cpus:g}"),
        "memory": (udf.memory or 0, there.memory, size(udf.memory or 0), _most(there.memory)),
        "num_gpus": (udf.num_gpus, there.gpus, f"{udf.num_gpus:g} GPUs", f"{there.gpus:g}"),
    }
    lacking = [
        f"{needed} ({name}), and it has {has}" for name, (want, most, needed, has) in wants.items() if want > most
    ]
    if not lacking:
        return
    error = ResourcesUnavailable(
        f"the function `{udf.name}` needs more than a worker of {there.name} has: {'; '.join(lacking)}",
        where=table.address,
        remedy="ask for less, or declare a larger cluster for the table's BACKFILL service",
    )
    if strict:
        raise error
    warnings.warn(str(error), UserWarning, stacklevel=3)


def resources_of(table: OpenTable, cluster: str | None = None) -> Resources:
    """Returns the resources of a worker of the cluster. `cluster` None is the cluster of the table's BACKFILL service,
    or this machine where the service names no cluster."""
    service, instance = table.state.services.get("BACKFILL"), live_instance(table.store.instance())
    name = cluster or (service.cluster if service is not None else None)
    found = next((each for each in (instance.clusters if instance else ()) if each.name == name), None)
    if found is not None and found.kind != "local":
        return _remote(found)
    cores = found.options.get("cores") if found is not None else None
    return Resources(
        "this machine" if found is None else f"cluster {found.name}",
        float(cores) if isinstance(cores, int) else float(os.cpu_count() or 1),
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        float(len(list(Path("/dev").glob("nvidia[0-9]*")))),
    )


def _remote(cluster: Cluster) -> Resources:
    name = f"cluster {cluster.name}"
    if cluster.kind == "emr-serverless":
        return Resources(name, WORKER_CPUS, WORKER_BYTES, 0.0)
    fleets = cluster.options.get("fleets")
    types = fleets.get("types", ()) if isinstance(fleets, Mapping) else (cluster.options.get("instance_type", ""),)
    has_gpus = any(str(each).startswith(_WITH_GPUS) for each in types)
    return Resources(
        name, math.inf, math.inf, math.inf if has_gpus else 0.0
    )  # the sizes of EMR's instances are unknown


def _most(memory: float) -> str:
    return size(int(memory)) if math.isfinite(memory) else "any"


def _setting(variable: str, given: bool | None) -> bool:
    if given is not None:
        if not isinstance(given, bool):
            raise InvalidInput(
                f"{given!r} does not say whether resources are checked", remedy="give True, False or None"
            )
        return given
    text = os.environ.get(variable, "true").strip().lower()
    if text in ("true", "1", "yes", "on"):
        return True
    if text in ("false", "0", "no", "off"):
        return False
    raise InvalidInput(f"{variable}={text!r} is not valid", where="environment", remedy="use true or false")
