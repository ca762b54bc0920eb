"""The resources as classes for Pulumi programs: `Instance`, `Table` and `Dataset` of the provider `lake`, and all
resources of a lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from deployer.plan.graph import build_graph
from deployer.provider.resources.inputs import dataset_inputs, instance_inputs, table_inputs
from deployer.provider.urn import DATASET_TYPE, INSTANCE_TYPE, TABLE_TYPE
from deployer.specs.model import InstanceSpec, TableSpec
from deployer.specs.model import Lake as LakeSpec
from deployer.specs.types.dataset import DatasetSpec


class Instance(pulumi.CustomResource):
    """A lake's root and its state store."""

    root: pulumi.Output[str]

    def __init__(self, spec: InstanceSpec, opts: pulumi.ResourceOptions | None = None, *, prefix: str = "") -> None:
        """`prefix` begins the resource's name, where a program has instances of one name."""
        super().__init__(INSTANCE_TYPE, f"{prefix}{spec.name}", instance_inputs(spec), opts)


class Table(pulumi.CustomResource):
    """A table of `instance`, or a materialized view: a Lance dataset and its log in the state store.

    Outputs beside the inputs: `table_id`; `location`, the dataset's path under the root.
    """

    table_id: pulumi.Output[str]
    location: pulumi.Output[str]

    def __init__(
        self, instance: Instance, spec: TableSpec, opts: pulumi.ResourceOptions | None = None, *, prefix: str = ""
    ) -> None:
        """`prefix` begins the resource's name, where a program has tables of one name in several lakes."""
        inputs = {**table_inputs(spec, instance.root), "table_id": None, "location": None}  # outputs are attributes too
        options = pulumi.ResourceOptions.merge(_options(spec, prefix), opts)
        super().__init__(TABLE_TYPE, f"{prefix}{spec.full_name}", inputs, options)


class Dataset(pulumi.CustomResource):
    """A dataset of recordings of `instance`: a record in its log, and Lance tables of the registered recordings.

    Output beside the inputs: `dataset_id`, which clients of the catalog use.
    """

    dataset_id: pulumi.Output[str]

    def __init__(
        self, instance: Instance, spec: DatasetSpec, opts: pulumi.ResourceOptions | None = None, *, prefix: str = ""
    ) -> None:
        """`prefix` begins the resource's name, where a program has datasets of one name in several lakes."""
        inputs = {**dataset_inputs(spec, instance.root), "dataset_id": None}  # an output is an attribute too
        super().__init__(DATASET_TYPE, f"{prefix}{spec.name}", inputs, opts)


def stack_values() -> dict[str, str]:
    """Returns the stack's values for variables of the specs: `deployer:NAME` of its configuration, as texts, without
    secrets."""
    own = pulumi.runtime.config.CONFIG.get() or pulumi.runtime.config.get_config_env()
    return {
        key.removeprefix("deployer:"): str(value)
        for key, value in own.items()
        if key.startswith("deployer:") and not pulumi.runtime.is_config_secret(key)
    }


def _options(spec: TableSpec, prefix: str) -> pulumi.ResourceOptions:
    """Returns the options of a resource. A renamed table has its former URN as an alias."""
    if spec.former_name is None:
        return pulumi.ResourceOptions()
    return pulumi.ResourceOptions(aliases=[pulumi.Alias(name=f"{prefix}{spec.former_name}")])


@dataclass(frozen=True, slots=True)
class LakeTables:
    """The resources of the provider `lake`; tables by their full names, datasets by their names."""

    instance: Instance
    tables: Mapping[str, Table]
    datasets: Mapping[str, Dataset] = field(default_factory=dict)


def declare_tables(lake: LakeSpec, needs: Sequence[pulumi.Resource] = (), prefix: str = "") -> LakeTables:
    """Declares every node of the lake's graph. `needs` must exist before the lake; `prefix` begins the names in
    Pulumi."""
    instance = Instance(lake.instance, pulumi.ResourceOptions(depends_on=list(needs)), prefix=prefix)
    tables: dict[str, Table] = {}
    datasets: dict[str, Dataset] = {}
    for node in build_graph(lake).nodes.values():
        if isinstance(spec := node.spec, TableSpec):
            read = [tables[name] for name in (spec.view.tables if spec.view is not None else ()) if name in tables]
            options = pulumi.ResourceOptions(depends_on=read) if read else None
            tables[spec.full_name] = Table(instance, spec, options, prefix=prefix)
        elif isinstance(spec, DatasetSpec):
            datasets[spec.name] = Dataset(instance, spec, prefix=prefix)
    return LakeTables(instance, tables, datasets)
