"""The targets by type.

A new type is a class that implements `target.Target` and a line in this module. Targets of other packages are plug-ins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from deployer.errors import InvalidInput
from deployer.live.reader import live_instance
from deployer.services.kinds.metasync.targets.directory import DirectoryTarget
from deployer.services.kinds.metasync.targets.plugin import PluginTarget
from deployer.services.kinds.metasync.targets.rest import RestTarget
from deployer.services.kinds.metasync.targets.target import Target
from deployer.specs.serialized.service_options import options_of_values
from deployer.tables.open_table import ReadTable

Declared = Mapping[str, Any]


def target_for(table: ReadTable, declared: Declared) -> Target:
    """Returns the catalog that a target of the table's METASYNC declares. Raises InvalidInput for an invalid target.

    The declaration may come from the state, so it is checked like specs. Nothing is sent to an unchecked target.
    """
    options_of_values("METASYNC", {"targets": [dict(declared)]})
    return _TARGETS[declared["type"]](table, declared)


def _glue(table: ReadTable, declared: Declared) -> Target:
    from deployer.services.kinds.metasync.targets.glue import GlueTarget  # boto3, of which the others know nothing

    instance = live_instance(table.store.instance())
    if instance is None and "database" not in declared:
        raise InvalidInput(
            "the lake has no name from which that of a Glue database could be made",
            remedy="set the target's `database`, or run `deployer up`",
        )
    return GlueTarget(declared, instance.name if instance is not None else "")


def _directory(table: ReadTable, declared: Declared) -> Target:
    return DirectoryTarget(declared, table.root)


def _rest(_table: ReadTable, declared: Declared) -> Target:
    return RestTarget(declared)


def _plugin(_table: ReadTable, declared: Declared) -> Target:
    return PluginTarget(declared)


_TARGETS: Mapping[str, Callable[[ReadTable, Declared], Target]] = {
    "glue": _glue,
    "directory": _directory,
    "rest": _rest,
    "plugin": _plugin,
}
