"""The clusters of an instance's declaration, and the rules between their settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from deployer.errors import Problem
from deployer.specs.model import Cluster
from deployer.specs.rules import Rule
from deployer.specs.yaml.nodes import Node

MAX_FLEET_TYPES = 30  #: of EMR, for fleets with an allocation strategy

_Options = Mapping[str, Any]
#: the wrong setting (empty: the cluster), what is wrong, what to do
_Found = Iterator[tuple[str, str, str]]


def read_clusters(node: Node | None, problems: list[Problem]) -> Iterator[Cluster]:
    """Yields the valid clusters, by name or as a list with names; faults are added to `problems`."""
    if node is None:
        return
    named: list[tuple[str, Node]] = []
    if isinstance(node.value, dict):
        named = list(node.value.items())
    elif isinstance(node.value, list):
        named = [(str(item.value["name"].value), item) for item in node.value if isinstance(item.value, dict)]
    seen: dict[str, str] = {}
    for name, cluster in named:
        first = seen.setdefault(name.lower(), name)
        if first is not name:
            at = cluster.key_at if isinstance(node.value, dict) else cluster.at
            same = "is declared already" if first == name else f"differs only in case from `{first}`"
            what = f"cluster `{name}` {same}"
            problems.append(Problem(at, what, "rename or remove one of them", Rule.DUPLICATE_CLUSTER))
            continue
        options = cluster.plain()
        options.pop("name", None)
        kind = options.pop("kind")
        assert isinstance(cluster.value, dict)  # noqa: S101 -- the shape was checked
        for setting, what, remedy in _CHECKS[kind](options):
            at = cluster.value[setting].key_at if setting else cluster.at
            problems.append(Problem(at, f"cluster `{name}` {what}", remedy, Rule.CLUSTER_SETTING))
        yield Cluster(name, kind, options)


def processors_of(instance_type: str) -> str:
    """Returns `arm64` or `x86_64`. An EC2 type of Graviton has a g after its generation, such as r7g or c6gn."""
    return "arm64" if re.match(r"[a-z]+\d+g", instance_type) else "x86_64"


def _check_local(options: _Options) -> _Found:
    yield from ()


def _check_serverless(options: _Options) -> _Found:
    most = options.get("max_workers")
    if most is not None and options.get("initial_workers", 0) > most:
        yield "initial_workers", f"keeps more workers ready than its `max_workers`, {most}", "raise `max_workers`"
    if "security_groups" in options and "subnets" not in options:
        yield "security_groups", "has security groups and no subnets", "add `subnets:`"


def _check_emr(options: _Options) -> _Found:
    fleets = options.get("fleets")
    if fleets and "instance_type" in options:
        yield "instance_type", "has `fleets` and `instance_type`", "keep one of them"
    elif fleets:
        yield from _check_fleets(options, fleets)
    elif "instance_type" in options:
        if len(options.get("subnets", ())) > 1:
            remedy = "name one, or use `fleets`, for which EMR chooses among several"
            yield "subnets", "has several subnets for instances of one type", remedy
        yield from _check_most(options, options.get("instances", 1))
    else:
        yield "", "has neither `instance_type` nor `fleets`", "add an EC2 type, such as instance_type: r7g.xlarge"
    types = [*(fleets["types"] if fleets else [options.get("instance_type", "")]), options.get("primary_type", "")]
    if len({processors_of(each) for each in types if each}) > 1:
        at = "primary_type" if "primary_type" in options else "fleets"
        yield (
            at,
            "has instances with arm64 and with x86_64 processors",
            "use types of one kind; those of arm64 have a g",
        )
    if "idle_minutes" in options and options.get("lifetime", "run") == "run":
        what = "exists only during a run and has `idle_minutes`"
        yield "idle_minutes", what, "remove it: the cluster ends with its job; or write lifetime: long"


def _check_fleets(options: _Options, fleets: _Options) -> _Found:
    if "instances" in options:
        yield "instances", "has `fleets` and `instances`", "write `on_demand` and `spot` in `fleets` instead"
    if len(fleets["types"]) > MAX_FLEET_TYPES:
        yield "fleets", f"has {len(fleets['types'])} types in `fleets`", f"use at most {MAX_FLEET_TYPES}"
    wanted = fleets.get("on_demand", 0) + fleets.get("spot", 0)
    if wanted:
        yield from _check_most(options, wanted)
    else:
        yield "fleets", "has no instances in `fleets`", "add `on_demand:` or `spot:` with a number"


def _check_most(options: _Options, wanted: int) -> _Found:
    most = options.get("max_instances", wanted)
    if most < wanted:
        yield "max_instances", f"has {wanted} instances and at most {most}", f"use at least {wanted}, or remove it"


_CHECKS: Mapping[str, Callable[[_Options], _Found]] = {
    "local": _check_local,
    "emr-serverless": _check_serverless,
    "emr": _check_emr,
}
