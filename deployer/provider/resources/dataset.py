"""The dataset of recordings as a Pulumi resource. Inputs are the spec's JSON form and the instance's root; the id is
the dataset's id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployer.errors import DeployerError, NotFound, Refused
from deployer.plan.diff.lakes import diff
from deployer.platform.system.progress import OnProgress
from deployer.provider.resources.inputs import DATASET_ID, ROOT, dataset_inputs, dataset_of
from deployer.provider.resources.kind import UNKNOWN, CheckFailure, Difference, Properties, Resource
from deployer.provider.resources.property_paths import property_paths
from deployer.provider.resources.run_context import Stores
from deployer.provider.urn import address_of, owner_of
from deployer.specs.validation.plain_values import text

if TYPE_CHECKING:
    from deployer.catalog.datasets.declared.apply import DeclaredDatasets
    from deployer.live.model import LiveDataset


class DatasetKind:
    """Datasets of recordings: a record in the instance's log, and Lance tables that it names."""

    def check(self, news: Properties) -> tuple[Properties, tuple[CheckFailure, ...]]:
        missing = tuple(
            CheckFailure(name, f"a dataset needs `{name}`") for name in (ROOT, "name") if not news.get(name)
        )
        if missing:
            return news, missing
        try:
            return dataset_inputs(dataset_of(news), news[ROOT]), ()
        except DeployerError as error:
            return news, (CheckFailure("name", f"a dataset cannot be read from these inputs: {error}"),)

    def faults(self, inputs: Properties) -> tuple[CheckFailure, ...]:
        from deployer.specs.loading.datasets import problems_of_dataset

        found = problems_of_dataset(dataset_of(inputs))
        return tuple(CheckFailure(each.at.file, f"{each.what}; {each.remedy}") for each in found)

    def diff(self, olds: Properties, news: Properties) -> Difference:
        before = {name: value for name, value in olds.items() if name != DATASET_ID}
        if before == news:
            return Difference({})
        old, new = dataset_of(before), dataset_of(news)
        if old.name != new.name:
            return Difference({"name": "update"}, ("name",), delete_before_replace=True)
        paths = property_paths(diff(old, new), before, news)
        if UNKNOWN != news[ROOT] != before.get(ROOT):
            paths[ROOT] = "update"
        return Difference(paths)

    def preview(self, news: Properties) -> Properties:
        return {**news, DATASET_ID: UNKNOWN}

    def create(self, stores: Stores, urn: str, news: Properties, on_progress: OnProgress) -> Resource:
        record = _declared(stores, news[ROOT]).create(dataset_of(news), owner_of(urn))
        return Resource(record.dataset_id, news, {**news, DATASET_ID: record.dataset_id})

    def read(self, stores: Stores, id: str, inputs: Properties) -> Resource | None:
        root, name = (stores.current_root(str(inputs[ROOT])), id) if inputs.get(ROOT) else _import_id(id)
        found = _live(stores, root, name)
        if found is None:
            return None
        now = dataset_inputs(found.spec, root)
        return Resource(found.dataset_id, now, {**now, DATASET_ID: found.dataset_id})

    def update(self, stores: Stores, id: str, news: Properties, on_progress: OnProgress) -> Resource:
        found = _live(stores, news[ROOT], id)
        if found is None:
            raise NotFound(
                "the dataset was deleted meanwhile", where=address_in(news), remedy="run `deployer up` again"
            )
        _declared(stores, news[ROOT]).update(id, dataset_of(news), found.owner)
        return Resource(id, news, {**news, DATASET_ID: id})

    def delete(self, stores: Stores, urn: str, id: str, outputs: Properties) -> None:
        root, address = text(outputs, ROOT), address_in(outputs)
        found = _live(stores, root, id)
        if found is None:
            return
        if stores.deletions is not None:
            stores.deletions.require(stores.path(root), address, id)
        elif found.spec.address != address:
            raise Refused(
                f"Pulumi's state has the id of {found.spec.address} for it, so it is not deleted",
                where=address,
                remedy="`pulumi refresh`, then check its name",
            )
        allowed = not stores.allow_destroy.isdisjoint((found.spec.address, address_of(urn) or ""))
        _declared(stores, root).delete(id, allow_destroy=allowed)


def address_in(properties: Properties) -> str:
    """Returns the address of the dataset that has these properties."""
    return f"dataset/{text(properties, 'name')}"


def _declared(stores: Stores, root: str) -> DeclaredDatasets:
    from deployer.catalog.datasets.declared.apply import DeclaredDatasets  # it loads Arrow and the messages of Rerun

    return DeclaredDatasets(stores.store(root), stores.path(root), stores.project_dir)


def _live(stores: Stores, root: str, name: str) -> LiveDataset | None:
    """Returns the dataset of that id, or of that name for an import."""
    from deployer.catalog.datasets.declared.live import live_of
    from deployer.catalog.datasets.model.record import id_of_name, record_of

    try:
        instance = stores.reader(root).instance()
    except NotFound:
        return None
    record = record_of(instance, name) or record_of(instance, id_of_name(instance, name) or "")
    return None if record is None or record.kind != "dataset" else live_of(record)


def _import_id(id: str) -> tuple[str, str]:
    root, separator, name = id.rpartition("#")
    if not separator:
        raise NotFound("an import needs the root and the dataset's name", where=id, remedy="write ROOT#NAME")
    return root, name
