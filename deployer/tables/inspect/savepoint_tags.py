"""A Lance tag for each savepoint of a table, so that Lance's own clean-up keeps its version too.

The table's state defines the savepoints, and tags follow it: a tag is made before its savepoint is recorded, and
removed after the savepoint. After a crash in between, the next command that makes or removes savepoints or cleans the
table settles the tags.
"""

from __future__ import annotations

from contextlib import suppress

from deployer.datasets.dataset import open_dataset
from deployer.datasets.storage.places import dataset_uri
from deployer.datasets.storage.refs import delete_tag, set_tags, tags_of
from deployer.errors import NotFound
from deployer.tables.open_table import OpenTable, open_entry

PREFIX = "deployer-savepoint-"  #: prefix of deployer's own tags


def tag_now(table: OpenTable, name: str) -> None:
    """Makes a tag of the recorded version, for a savepoint that is about to be recorded."""
    set_tags(open_dataset(table.location), {PREFIX + name: table.state.lance_version})


def settle_tags(table: OpenTable) -> None:
    """Makes tags of the table's datasets those of the savepoints that its newest state has: adds, moves and removes."""
    table = open_entry(table.store, table.root, table.entry)  # the newest state: the opened one may be old
    places = {each.number: each.location for each in table.state.datasets if each.status == "retired"}
    for number, location in {**places, table.state.dataset: table.entry.location}.items():
        wanted = {
            PREFIX + each.name: each.lance_version for each in table.state.savepoints.values() if each.dataset == number
        }
        with suppress(NotFound):  # a retired one that is removed, and not recorded yet
            dataset = open_dataset(dataset_uri(table.root, location))
            for name in tags_of(dataset):
                if name.startswith(PREFIX) and name not in wanted:
                    delete_tag(dataset, name)
            set_tags(dataset, wanted)  # two processes that settle at the same time do the same
