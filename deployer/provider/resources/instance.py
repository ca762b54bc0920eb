"""The instance as a Pulumi resource. Inputs are the spec's JSON form; the id is the instance's name."""

from __future__ import annotations

from deployer.errors import NotFound
from deployer.live.reader import live_instance
from deployer.plan.diff.lakes import diff
from deployer.platform.system.progress import OnProgress
from deployer.provider.resources.inputs import instance_inputs
from deployer.provider.resources.kind import CheckFailure, Difference, Properties, Resource
from deployer.provider.resources.property_paths import property_paths
from deployer.provider.resources.run_context import Stores
from deployer.provider.urn import owner_of
from deployer.specs.serialized.specs import instance_from_json
from deployer.specs.validation.plain_values import text
from deployer.tables.admin.instance import create_instance, delete_instance, update_instance


class InstanceKind:
    """Instances: the root and its state store."""

    def check(self, news: Properties) -> tuple[Properties, tuple[CheckFailure, ...]]:
        missing = tuple(
            CheckFailure(name, f"an instance needs `{name}`") for name in ("name", "root") if not news.get(name)
        )
        return (news, missing) if missing else (instance_inputs(instance_from_json(news)), ())

    def faults(self, inputs: Properties) -> tuple[CheckFailure, ...]:
        return ()

    def diff(self, olds: Properties, news: Properties) -> Difference:
        if olds == news:
            return Difference({})
        changes = diff(instance_from_json(olds), instance_from_json(news))
        return Difference(property_paths(changes, olds, news))

    def preview(self, news: Properties) -> Properties:
        return news

    def create(self, stores: Stores, urn: str, news: Properties, on_progress: OnProgress) -> Resource:
        root = stores.path(news["root"])
        create_instance(root, instance_from_json(news), owner_of(urn), new_state=stores.new_state)
        return Resource(news["name"], news, news)

    def read(self, stores: Stores, id: str, inputs: Properties) -> Resource | None:
        try:
            state = stores.reader(stores.current_root(inputs.get("root") or id)).instance()
        except NotFound:
            return None
        live = live_instance(state)
        if live is None:
            return None
        found = instance_inputs(live)
        return Resource(live.name, found, found)

    def update(self, stores: Stores, id: str, news: Properties, on_progress: OnProgress) -> Resource:
        update_instance(stores.path(news["root"]), instance_from_json(news))
        return Resource(id, news, news)

    def delete(self, stores: Stores, urn: str, id: str, outputs: Properties) -> None:
        root = text(outputs, "root")
        path, address = stores.path(root), f"instance/{id}"
        if stores.deletions is not None:
            stores.deletions.require(path, address, None)
        stores.forget(root)
        delete_instance(path, address)
