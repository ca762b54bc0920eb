"""Makes the state store of an instance that has none from an export (see `portable`)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from deployer.errors import NotFound, Refused
from deployer.state import create_store, open_store, remove_store
from deployer.state.transfer.export import Export, read_export


def import_into(path: Path, root: str, options: Mapping[str, object] | None = None, *, instance: str = "") -> Export:
    """Makes the state store of the instance at `root`, as `create_store` does, from an export.

    Refused when there is one. One that an import left half done, which has no instance yet, is made again.
    """
    read_export(path)[0].close()  # a file that cannot be used leaves no store behind
    try:
        with closing(open_store(root)) as found:
            version, logs = found.instance().version, found.logs()
    except NotFound:
        version, logs = 0, []
    if version:
        raise Refused("there is a state store already", where=root, remedy="import into an instance with another root")
    if logs:
        remove_store(root)
    with closing(create_store(root, options, instance=instance)) as store:
        return store.import_from(path)
