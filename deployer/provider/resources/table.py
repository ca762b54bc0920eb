"""The table as a Pulumi resource. Inputs are the spec's JSON form and the instance's root; the id is the table's id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deployer.errors import Corrupt, DeployerError, InvalidInput, NotFound, Refused
from deployer.live.model import LiveTable, Unreadable
from deployer.live.reader import live_instance, read_table
from deployer.plan.diff.lakes import diff
from deployer.platform.system.progress import OnProgress
from deployer.provider.resources.checks import check_names, check_table
from deployer.provider.resources.elsewhere import plans_of_builds, rewrites_elsewhere
from deployer.provider.resources.inputs import COLUMNS, ROOT, table_inputs, table_of
from deployer.provider.resources.kind import UNKNOWN, CheckFailure, Difference, Properties, Resource
from deployer.provider.resources.property_paths import property_paths
from deployer.provider.resources.run_context import Stores
from deployer.provider.urn import address_of, owner_of
from deployer.specs.model import TableSpec
from deployer.specs.validation.plain_values import text
from deployer.state.reader import StateReader
from deployer.state.store import StateStore
from deployer.tables.admin.deletion import delete_table
from deployer.tables.admin.tables import create_table, update_table
from deployer.tables.inspect.recorded import recorded_table

if TYPE_CHECKING:
    from deployer.tables.ingest.loading import LoadedFragments, LoadPlan
    from deployer.tables.ingest.request import LoadWithSpark
    from deployer.views.refresh.queries import Queries

_OWN_OUTPUTS = ("table_id", "location", "status")


class TableKind:
    """Tables: a Lance dataset under the root and its log in the state store."""

    def check(self, news: Properties) -> tuple[Properties, tuple[CheckFailure, ...]]:
        needed = (ROOT, "database", "name", COLUMNS)
        missing = tuple(CheckFailure(name, f"a table needs `{name}`") for name in needed if not news.get(name))
        if missing:
            return news, missing
        if misnamed := tuple(check_names(news)):
            return news, misnamed
        try:
            return table_inputs(table_of(news), news[ROOT]), ()
        except DeployerError as error:
            return news, (CheckFailure(COLUMNS, f"a table cannot be read from these inputs: {error}"),)

    def faults(self, inputs: Properties) -> tuple[CheckFailure, ...]:
        return tuple(check_table(table_of(inputs)))

    def diff(self, olds: Properties, news: Properties) -> Difference:
        if olds.get("status") == "deleting":
            # a spec declares a table whose deletion was interrupted: finish the deletion, then create the table
            return Difference({"name": "update"}, ("name",), delete_before_replace=True)
        before = {name: value for name, value in olds.items() if name not in _OWN_OUTPUTS}
        if before == news:
            return Difference({})
        changes = diff(table_of(before), table_of(news))
        paths = property_paths(changes, before, news)
        if UNKNOWN != news[ROOT] != before.get(ROOT):
            paths[ROOT] = "update"
        return Difference(paths)

    def preview(self, news: Properties) -> Properties:
        return {**news, "table_id": UNKNOWN, "location": UNKNOWN}

    def create(self, stores: Stores, urn: str, news: Properties, on_progress: OnProgress) -> Resource:
        store, root = stores.store(news[ROOT]), stores.path(news[ROOT])
        spec, owner = table_of(news), owner_of(urn)
        with_spark, elsewhere = _with_spark(store), rewrites_elsewhere(stores, store, root)
        plan_build = plans_of_builds(stores, store, root, spec.address)
        if (former := _renamed_table(store, root, spec, owner)) is not None:
            update_table(
                store,
                root,
                former,
                spec,
                with_spark,
                on_progress,
                elsewhere,
                plan_build=plan_build,
                views=DeclaredViews(),
            )
            table_id = former
        else:
            allowed = spec.address in stores.allow_destroy
            table_id = create_table(
                store,
                root,
                spec,
                owner,
                with_spark,
                on_progress,
                allow_destroy=allowed,
                elsewhere=elsewhere,
                plan_build=plan_build,
                views=DeclaredViews(),
            )
        entry = store.instance().tables[table_id]
        return Resource(table_id, news, _outputs(news, entry.table_id, entry.location, entry.status))

    def read(self, stores: Stores, id: str, inputs: Properties) -> Resource | None:
        """Reads the table. Raises Corrupt for an existing table that cannot be read, because it is not missing."""
        declared_root, table = (stores.current_root(str(inputs[ROOT])), id) if inputs.get(ROOT) else _import_id(id)
        try:
            reader = stores.reader(declared_root)
        except NotFound:
            return None
        if live := stores.live_table(declared_root, table):
            return _resource(live, declared_root)
        table_id = _id_of(reader, table)
        entry = reader.instance().tables.get(table_id)
        if entry is None or entry.status == "creating":
            return None
        if entry.status == "deleting":  # interrupted; the table exists until a deletion completes
            return Resource(table_id, inputs, _outputs(inputs, table_id, entry.location, entry.status))
        return _resource(read_table(reader, stores.path(declared_root), entry), declared_root)

    def update(self, stores: Stores, id: str, news: Properties, on_progress: OnProgress) -> Resource:
        store, root = stores.store(news[ROOT]), stores.path(news[ROOT])
        renamed = stores.deletions is not None and id in stores.deletions.renames
        planned_with = stores.planned_with(news[ROOT], id)
        spec = table_of(news)
        try:
            update_table(
                store,
                root,
                id,
                spec,
                _with_spark(store),
                on_progress,
                rewrites_elsewhere(stores, store, root),
                renamed=renamed,
                planned_with=planned_with,
                plan_build=plans_of_builds(stores, store, root, spec.address),
                views=DeclaredViews(),
            )
        finally:
            stores.forget_table(news[ROOT], id)
        entry = store.instance().tables[id]
        return Resource(id, news, _outputs(news, entry.table_id, entry.location, entry.status))

    def delete(self, stores: Stores, urn: str, id: str, outputs: Properties) -> None:
        address, root = f"table/{text(outputs, 'database')}.{text(outputs, 'name')}", text(outputs, ROOT)
        store, path = stores.store(root), stores.path(root)
        entry = store.instance().tables.get(id)
        if entry is None:
            return
        if stores.deletions is not None:
            stores.deletions.require(path, address, id)
        elif entry.address != address:
            raise Refused(
                f"Pulumi's state has the id of {entry.address} for it, so it is not deleted",
                where=address,
                remedy="`pulumi refresh`, then check its name",
            )
        allowed = not stores.allow_destroy.isdisjoint((entry.address, address_of(urn)))
        delete_table(
            store,
            path,
            id,
            allow_destroy=allowed,
            delete_savepoints=stores.delete_savepoints,
            planned_with=stores.planned_with(root, id),
        )


class DeclaredViews:
    """Builds the views that specs declare. Functions of queries run only where the environment trusts them; their
    modules are imported when a view is made."""

    def with_stored_columns(self, store: StateStore, root: str, spec: TableSpec) -> TableSpec:
        from deployer.views.refresh.declared import with_stored_columns

        return with_stored_columns(store, root, spec, _queries(root))

    def rebuild(self, store: StateStore, root: str, table_id: str, spec: TableSpec, on_progress: OnProgress) -> None:
        from deployer.views.refresh.declared import rebuild_view

        rebuild_view(store, root, table_id, spec, _queries(root), on_progress)


def _queries(root: str) -> Queries:
    from deployer.platform.isolation.trusted_functions import TrustedFunctions
    from deployer.views.refresh.engine import queries_of

    return queries_of(root, TrustedFunctions.allowed())


def _renamed_table(store: StateStore, root: str, spec: TableSpec, owner: str) -> str | None:
    """Returns the id of the active table of `owner` that still has its name from before a rename; None where there is
    none, or where another table has the new name."""
    tables = store.instance()
    entry = tables.by_name(spec.former_name) if spec.former_name else None
    if entry is None or entry.status != "active" or tables.by_name(spec.full_name) is not None:
        return None
    return entry.table_id if recorded_table(store, root, entry).owner == owner else None


def _with_spark(store: StateStore) -> LoadWithSpark:
    """Copies with Spark on the instance's cluster, which is looked up when it is needed."""

    def copy(plan: LoadPlan, on_progress: OnProgress) -> LoadedFragments:
        from deployer.compute.clusters import local_cluster
        from spark_jobs.rewrite import copy_with_spark

        instance = live_instance(store.instance())
        cluster = local_cluster(instance.clusters, None, instance.address) if instance else None
        return copy_with_spark(plan, on_progress, cluster)

    return copy


def _resource(live: LiveTable | Unreadable, root: str) -> Resource:
    if isinstance(live, Unreadable):
        raise Corrupt(f"the table cannot be read: {live.what}", where=live.address, remedy=live.remedy)
    found = table_inputs(live.spec, root)
    return Resource(live.table_id, found, _outputs(found, live.table_id, live.location, "active"))


def _outputs(inputs: Properties, table_id: str, location: str, status: str) -> dict[str, Any]:
    """Returns the outputs. Values that change by themselves, such as versions and sizes, are left out: Pulumi would
    always show them as changes."""
    return {**inputs, "table_id": table_id, "location": location, "status": status}


def _import_id(id: str) -> tuple[str, str]:
    root, separator, name = id.rpartition("#")
    if not separator:
        raise InvalidInput(
            "a table is imported by its instance's root and its name", where=id, remedy="write ROOT#DATABASE.NAME"
        )
    return root, name


def _id_of(store: StateReader, table: str) -> str:
    entry = store.instance().by_name(table) if "." in table else None
    return entry.table_id if entry else table
