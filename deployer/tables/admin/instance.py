"""Creating, changing and deleting an instance. Every step can be repeated after a crash."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from deployer.datasets.storage.places import remove_empty_root
from deployer.errors import Conflict, NotFound, Refused
from deployer.live.reader import live_instance
from deployer.plan.assess.unsupported import refuse_unsupported
from deployer.plan.diff.lakes import diff
from deployer.platform.text.formatting import count
from deployer.specs.model import InstanceSpec
from deployer.specs.serialized.specs import instance_to_json
from deployer.state import create_store, open_reader, open_store, remove_store
from deployer.state.log.updates import SetInstanceProperties
from deployer.state.model.declared_properties import BLUEPRINTS, DATASET_NAME, OWNER, SPEC
from deployer.state.model.entities import INSTANCE_LOG
from deployer.state.model.lost_store import refuse_new_store

if TYPE_CHECKING:
    from deployer.state.store import StateStore


def create_instance(root: str, spec: InstanceSpec, owner: str, *, new_state: bool = False) -> None:
    """Creates the instance's state store. When `owner` created it before, its properties are changed to `spec`.

    Raises Conflict when another instance, or one of another owner, is at this root; Refused where datasets show that
    the former state store was lost, unless `new_state`.
    """
    if not new_state:
        _refuse_lost(root)
    with closing(_new_store(root, spec)) as store:
        state = store.instance()
        live = live_instance(state)
        if live is not None and (live.name, state.properties.get(OWNER)) != (spec.name, owner):
            raise Conflict(
                f"the root already holds instance {live.name}, which {state.properties.get(OWNER)} manages",
                where=root,
                remedy="give this instance a root of its own",
            )
        store.commit(INSTANCE_LOG, [SetInstanceProperties({SPEC: instance_to_json(spec), OWNER: owner})])


def _refuse_lost(root: str) -> None:
    try:
        open_reader(root).close()
    except NotFound:
        refuse_new_store(root)


def _new_store(root: str, spec: InstanceSpec) -> StateStore:
    try:
        return create_store(root, spec.state.options, instance=spec.name)
    except OSError as failure:
        raise NotFound(
            f"the root cannot be made: {failure.strerror or failure}",
            where=root,
            remedy="let `root` name a folder that can be made and written",
        ) from None


def update_instance(root: str, spec: InstanceSpec) -> None:
    """Records the instance's changed properties. Raises Refused, before anything is written, for another state
    store."""
    with closing(open_store(root)) as store:
        refuse_unsupported(diff(live_instance(store.instance()), spec, read=True))
        store.commit(INSTANCE_LOG, [SetInstanceProperties({SPEC: instance_to_json(spec)})])


def delete_instance(root: str, address: str) -> None:
    """Removes the state store and, if it is then empty, the root. Raises Refused while the instance has tables, or
    datasets of recordings."""
    with closing(open_store(root)) as store:
        instance = store.instance()
    left = sorted(entry.full_name for entry in instance.tables.values())
    datasets = sorted(
        name.removeprefix(DATASET_NAME)
        for name, held in instance.properties.items()
        if name.startswith(DATASET_NAME) and held is not None and not name.startswith(f"{DATASET_NAME}{BLUEPRINTS}")
    )
    if datasets:
        raise Refused(
            f"the instance still has {count(len(datasets), 'dataset')} of recordings that this stack does not manage: "
            f"{', '.join(datasets[:5])}",
            where=address,
            remedy="delete them in the catalog first",
        )
    if left:
        raise Refused(
            f"the instance still has {len(left)} table(s) that this stack does not manage: {', '.join(left[:5])}",
            where=address,
            remedy="delete them first",
        )
    remove_store(root)
    remove_empty_root(root)
