"""A lake and, for a root on S3, the resources that it needs: bucket, key, state table, clusters, schedules and alarms.

Modules of AWS are imported only for roots on S3, because the package of AWS types is large.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pulumi

from deployer.components.clusters.args import ClusterArgs, Network
from deployer.components.context import LakeContext, lake_tags, managed_on_aws, project_dir
from deployer.compute.jobs.code import OUTPUT as CODE
from deployer.compute.running.connect import OUTPUT as CLUSTERS
from deployer.compute.schedules.landing import landing_places
from deployer.compute.schedules.schedules import scheduled_services
from deployer.errors import InvalidInput, NotFound
from deployer.provider.sdk import Instance, Table, declare_tables
from deployer.specs.model import AwsSettings
from deployer.specs.model import Lake as LakeSpec
from deployer.specs.values.glue import own_glue_databases


@dataclass(frozen=True, slots=True)
class LakeArgs:
    """The arguments of a lake beside its specs, `spec`.

    `bucket` is an existing bucket of the program, with the name in the root: a resource or the name. Its settings are
    then not changed. `kms_key` is the ARN of a key, in place of `aws.kms_key` of the specs. `network` and `job_role`
    (an ARN) are for clusters whose specs do not set them. All resources get `tags`, beside the tags of the specs.
    `managed`: `none` declares nothing on AWS, `table` everything but the bucket; by default `deployer:aws` decides.
    `deployer:jobs` sets the code of jobs.

    `qualified`: in Pulumi, resources are named after the component. A program with several lakes sets it for all but
    the lake that `deployer:specs` names, which deployer's commands use.
    """

    spec: LakeSpec
    bucket: pulumi.Resource | pulumi.Input[str] | None = None
    kms_key: pulumi.Input[str] | None = None
    network: Network | None = None
    job_role: pulumi.Input[str] | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    managed: Literal["all", "table", "none"] | None = None
    qualified: bool = False


class Lake(pulumi.ComponentResource):
    """A lake. The AWS resources that it needs are inside of it; its instance and tables are beside it, where `--target`
    finds them.

    Outputs are None for parts that the lake does not have.
    """

    root: pulumi.Output[str]
    instance: Instance
    tables: Mapping[str, Table]  #: by their full names
    bucket: pulumi.Output[str] | None = None
    kms_key: pulumi.Output[str] | str | None = None
    state_table: pulumi.Output[str] | None = None
    clusters: Mapping[str, Any] | None = None  #: the values that jobs are started with, by the cluster's name
    jobs: Mapping[str, Any] | None = None  #: the addresses of the code of jobs, by architecture
    alarms: pulumi.Output[str] | None = None  #: the ARN of the topic

    def __init__(self, name: str, args: LakeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("deployer:aws:Lake", name, None, opts)
        # in stacks of earlier releases, the components are outside of any other
        self._own = pulumi.ResourceOptions(parent=self, aliases=[pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)])
        self._args = args
        needs: list[pulumi.Resource] = []
        instance = args.spec.instance
        prefix = f"{name}/" if args.qualified else ""
        self._managed = args.managed or managed_on_aws()
        if instance.root.startswith("s3://") and self._managed != "none":
            _require_aws()
            tags = lake_tags(instance, args.tags)
            keyless = LakeContext(args.spec, tags, None, prefix)
            context = LakeContext(args.spec, tags, self._key(keyless), prefix)
            needs += self._bucket(context)
            # otherwise the table is not in AWS, and the state store creates it
            if "endpoint" not in instance.state.options:
                needs.append(self._beside_the_bucket(context, tuple(needs)))
        declared = declare_tables(args.spec, needs, prefix)
        self.instance, self.tables, self.root = declared.instance, declared.tables, declared.instance.root
        self.register_outputs({})

    def export(self, prefix: str = "") -> None:
        """Exports what deployer's commands read from the outputs of the stack, and the names of the resources."""
        found = {
            "root": self.root,
            "bucket": self.bucket,
            "kms_key": self.kms_key
            if self._args.kms_key or self._args.spec.instance.aws.kms_key == "managed"
            else None,
            "state_table": self.state_table,
            CLUSTERS: self.clusters,
            CODE: self.jobs,
            "alarms": self.alarms,
        }
        for name, value in found.items():
            if value is not None:
                pulumi.export(f"{prefix}{name}", value)

    def _key(self, context: LakeContext) -> pulumi.Output[str] | str | None:
        given, declared = self._args.kms_key, context.instance.aws.kms_key
        if given is not None:
            if declared is not None:
                raise InvalidInput(
                    "the program gives the lake a KMS key, and the specs have another in aws.kms_key",
                    where=context.instance.address,
                    remedy="leave one of them out",
                )
            self.kms_key = pulumi.Output.from_input(given)
        elif declared == "managed":
            from deployer.components.key import LakeKey

            self.kms_key = LakeKey(context.label, context, self._own).arn
        else:
            self.kms_key = declared
        return self.kms_key

    def _bucket(self, context: LakeContext) -> list[pulumi.Resource]:
        """Declares the bucket, or checks the given one; returns what must exist before anything is put into the
        bucket."""
        name = context.instance.root.removeprefix("s3://").split("/")[0]
        if self._args.bucket is not None:
            _refuse_settings_of_the_bucket(context.instance.aws, "the program gives the lake a bucket of its own")
            found = _existing_bucket(name, self._args.bucket, context.instance.address)
            self.bucket = found.name
            return list(found.needs)
        if self._managed == "table":
            _refuse_settings_of_the_bucket(context.instance.aws, "deployer:aws is table")
            return []
        from deployer.components.bucket import DataBucket

        bucket = DataBucket(name, context, self._own)
        self.bucket = bucket.name
        return [bucket]

    def _beside_the_bucket(self, context: LakeContext, needs: tuple[pulumi.Resource, ...]) -> pulumi.Resource:
        """Declares the state's table, which is returned, and everything that works on the lake."""
        from deployer.components.alarms import Alarms, AlarmsArgs
        from deployer.components.catalog import Catalog, CatalogArgs
        from deployer.components.clusters.emr import EmrCluster
        from deployer.components.clusters.serverless import ServerlessCluster
        from deployer.components.jobs import JobCode, JobCodeArgs, job_package
        from deployer.components.landing import Landing, LandingArgs
        from deployer.components.schedules import Schedules, SchedulesArgs
        from deployer.components.state_table import StateTable, state_table_name

        args, instance = self._args, context.instance
        state = StateTable(state_table_name(instance), context, self._own)
        self.state_table = state.name
        services = scheduled_services(args.spec)
        scheduled = {each.cluster.name for each in services}
        clusters: dict[str, ServerlessCluster | EmrCluster] = {}
        for spec in instance.clusters:
            of = ClusterArgs(context, spec, state.arn, args.network, args.job_role, spec.name in scheduled)
            if spec.kind == "emr-serverless":
                clusters[spec.name] = ServerlessCluster(of.label, of, self._own)
            elif spec.kind == "emr":
                clusters[spec.name] = EmrCluster(of.label, of, self._own)
        if clusters:
            self.clusters = {name: cluster.exported for name, cluster in clusters.items()}
        folder = pulumi.Config("deployer").get("jobs")
        if (package := job_package(args.spec, folder, project_dir())) is not None:
            code = JobCodeArgs(instance, package, context.prefix, needs)
            self.jobs = JobCode(context.label, code, self._own).places
        if services and self.jobs is None:
            raise InvalidInput(
                f"service {services[0].name} has a schedule, and deployer:jobs is none",
                remedy="let the stack upload the code of jobs, or write `trigger_mode: ON_DEMAND`",
            )
        schedules = None
        if services and self.jobs is not None:
            schedules = Schedules(context.label, SchedulesArgs(context, services, clusters, self.jobs), self._own)
        if clusters:
            alarms = AlarmsArgs(context, clusters, state_table_name(instance), schedules)
            self.alarms = Alarms(context.label, alarms, self._own).topic.arn
        roles = {name: each.own_role.name for name, each in clusters.items() if each.own_role is not None}
        if places := landing_places(args.spec):
            Landing(context.label, LandingArgs(context, state.arn, places, roles), self._own)
        if own_glue_databases(args.spec):
            Catalog(context.label, CatalogArgs(context, roles), self._own)
        return state


def _require_aws() -> None:
    try:
        import pulumi_aws  # noqa: F401 -- the components import it
    except ModuleNotFoundError as error:
        raise NotFound(
            "a root on S3 needs the package pulumi-aws, which is not installed",
            remedy="pip install 'pulumi-aws>=7.30,<8'; or set deployer:aws to none when bucket and table are there "
            "already",
        ) from error


@dataclass(frozen=True, slots=True)
class _ExistingBucket:
    """An existing bucket of the program: its name, and what the lake waits for."""

    name: pulumi.Output[str]
    needs: tuple[pulumi.Resource, ...]


def _existing_bucket(name: str, given: pulumi.Resource | pulumi.Input[str], address: str) -> _ExistingBucket:
    """Returns the bucket that the program gives. Raises InvalidInput, as soon as its name is known, where the name is
    not `name`."""
    resource = given if isinstance(given, pulumi.Resource) else None
    own: Any = getattr(given, "bucket") if resource is not None else given  # noqa: B009 -- any class of buckets

    def checked(found: str) -> str:
        if found != name:
            raise InvalidInput(
                f"the root is in the bucket {name}, and the program gives the lake the bucket {found}",
                where=address,
                remedy=f"write `root: s3://{found}/…` in the specs, or give the lake its own bucket",
            )
        return found

    return _ExistingBucket(pulumi.Output.from_input(own).apply(checked), () if resource is None else (resource,))


def _refuse_settings_of_the_bucket(settings: AwsSettings, why: str) -> None:
    """Raises InvalidInput for settings of a bucket that the stack does not declare."""
    declared = {
        "object_lock": settings.object_lock is not None,
        "replicate_to": settings.replicate_to is not None,
        "only_from": settings.only_from != AwsSettings().only_from,
    }
    for name in (name for name, is_declared in declared.items() if is_declared):
        raise InvalidInput(
            f"aws.{name} is a setting of the bucket, and {why}: the stack leaves the bucket alone",
            remedy=f"remove aws.{name}, and set it up with the bucket; or let deployer declare the bucket",
        )
