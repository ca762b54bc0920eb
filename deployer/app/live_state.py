"""The live state of a lake, for commands that run no engine."""

from __future__ import annotations

from contextlib import closing

from deployer.errors import NotFound
from deployer.live.model import LiveLake
from deployer.platform.system.progress import OnProgress, no_progress


def read_live(root: str, *, to_delete: bool = False, on_progress: OnProgress = no_progress) -> LiveLake:
    """Returns the live state of the lake at `root`; an empty one where there is no lake yet.

    With `to_delete`, tables that cannot be read are listed with the others, with as much as is known of them.
    """
    from deployer.live.reader import read_lake  # it loads Arrow
    from deployer.live.to_delete import as_far_as_known
    from deployer.provider.resources.live_datasets import with_datasets
    from deployer.state import open_reader

    try:
        with closing(open_reader(root)) as store:
            live = with_datasets(read_lake(store, root, on_progress=on_progress), store.instance())
            return as_far_as_known(store, live) if to_delete else live
    except NotFound:
        return LiveLake(None)
